"""The app: what each key does, and running it until it ends."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from musepi_tui.base.streams import drop_unwritable
from musepi_tui.commands.registry import Call
from musepi_tui.runtime.intents import Retry, SelectModel, SetMode, SetThinking
from musepi_tui.tui.driver import patch_toolkit
from musepi_tui.tui.keys import bindings
from musepi_tui.tui.shell import Shell
from musepi_tui.tui.terminal import draft_file, find_editor, signals_end, signals_wake

if TYPE_CHECKING:
    from musepi_tui.runtime.session import SessionRuntime

DOUBLE_ESCAPE_S = 0.5
QUIT_AGAIN_S = 2.0
MODES = ("ask", "auto-edit", "yolo")
"""In the order the key goes through them; the last one is confirmed first."""


class MusepiApp(Shell):
    """Keys become intents, commands or moves on the screen; the runtime decides everything else."""

    BINDINGS = bindings("app")

    def __init__(
        self,
        runtime: "SessionRuntime",
        environ: Mapping[str, str],
        *,
        prompts: Sequence[str] = (),
        pick: bool = False,
    ) -> None:
        super().__init__(runtime, environ, prompts=prompts, pick=pick)
        self._escaped_at_s = float("-inf")
        self._cleared_at_s = float("-inf")

    def _action_interrupt(self) -> None:
        """Esc: the first of list, selection, what runs; twice with text clears it (TUI-3.15, 3.16)."""
        composer = self.main.composer
        if composer.close_completions():
            return
        if self.screen.selections:
            self.screen.clear_selection()
        elif self.bridge.status.is_working or self.bridge.status.is_waiting:
            self.talk.interrupt()
        elif self._is_repeated("_escaped_at_s", DOUBLE_ESCAPE_S):
            if composer.text:
                composer.clear_draft()
            else:
                self._open_earlier()

    def _open_earlier(self) -> None:
        """What the person wants two presses of esc to open."""
        match self._settings.double_escape_action:
            case "tree":
                self.navigation.open_tree()
            case "fork":
                self.host.show("branch", "new")
            case "rewind":
                self.host.show("rewind")
            case "none":
                return

    def _action_open_tree(self) -> None:
        self.navigation.open_tree()

    def _action_clear(self) -> None:
        """Ctrl+c: copies a selection, clears the text, stops what runs, and only then quits (TUI-3.17)."""
        composer = self.main.composer
        selected = self.screen.get_selected_text() or composer.selected_text
        if selected:
            self.copy_to_clipboard(selected)
            self.main.status_line.hint("copied")
        elif composer.text:
            composer.clear_draft()
        elif self.bridge.status.is_working:
            self.talk.interrupt()
        elif self._is_repeated("_cleared_at_s", QUIT_AGAIN_S):
            self.leave()
        else:
            self.main.status_line.hint("press ctrl+c again to quit", QUIT_AGAIN_S)

    def _is_repeated(self, name: str, within_s: float) -> bool:
        """Whether the same key came a moment ago; a third one counts as a first again."""
        now_s = self.clock.monotonic()
        repeated = now_s - getattr(self, name) < within_s
        setattr(self, name, float("-inf") if repeated else now_s)
        return repeated

    async def _action_external_editor(self) -> None:
        """Edits the text elsewhere; the runtime goes on meanwhile (TUI-3.14)."""
        from musepi_tui.base.process import run_foreground  # deferred: not needed for the first frame

        composer = self.main.composer
        command = find_editor(self.environ)
        with draft_file(composer.full_text) as path:
            try:
                with self.suspend():
                    code = await run_foreground((*command, str(path)))
            except OSError as error:
                self.tell("warning", f"{command[0]} cannot be started ({error.strerror}); set $EDITOR")
                return
            text = await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace")
        if code == 0:
            composer.put(text.rstrip("\n"))
        else:
            self.tell("warning", f"{command[0]} ended with code {code}; the text is as it was")

    def _action_cycle_thinking(self) -> None:
        levels = self.thinking_levels()
        if len(levels) > 1:
            current = self.bridge.status.thinking_level
            index = levels.index(current) if current in levels else -1
            self.send(SetThinking(levels[(index + 1) % len(levels)]))
        else:
            self.main.status_line.hint("this model has no thinking levels")

    def _action_select_model(self) -> None:
        self.host.show("model")

    def _action_cycle_model(self, step: int) -> None:
        models = self.runtime.models()
        current = self.bridge.status.model
        if len(models) > 1:
            index = models.index(current) if current in models else -step
            model = models[(index + step) % len(models)]
            self.send(SelectModel(model.provider, model.id))
        else:
            self.main.status_line.hint("there is no other model")

    def _action_cycle_mode(self) -> None:
        current = self.bridge.status.mode
        mode = MODES[(MODES.index(current) + 1) % len(MODES)] if current in MODES else MODES[0]
        if mode == "yolo":
            self.host.show("yolo")
        else:
            self.send(SetMode(mode))

    def _action_dequeue(self) -> None:
        self.talk.take_queue()

    def _action_retry(self) -> None:
        self.send(Retry())

    def _action_redraw(self) -> None:
        self.repaint_all()

    async def _action_command(self, name: str) -> None:
        call = Call(name, "")
        if self.host.may_run(call):
            await self.host.run(call)


async def run_app(
    runtime: "SessionRuntime",
    environ: Mapping[str, str],
    *,
    prompts: Sequence[str] = (),
    pick: bool = False,
) -> int:
    """Shows the session until the person leaves; the exit code.

    ``prompts`` are sent first; ``pick`` opens the session list at once. 0 after quitting, 1 after a crash
    (one line was written to stderr), 143 and 129 after SIGTERM and SIGHUP. The caller closes the runtime.
    """
    patch_toolkit()
    app = MusepiApp(runtime, environ, prompts=prompts, pick=pick)
    loop = asyncio.get_running_loop()

    def stop(code: int) -> None:
        loop.call_soon_threadsafe(lambda: app.exit(return_code=code))

    with signals_wake(loop), signals_end(stop, lambda: app.undo):
        await app.run_async()
    drop_unwritable()
    if app.crash_line is not None:
        with suppress(OSError):  # a terminal that is gone must not change the exit code
            os.set_blocking(2, True)
            sys.stderr.write(f"{app.crash_line}\n")
    return app.return_code or 0
