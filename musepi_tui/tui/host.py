"""What slash commands can do: the app's side of ``CommandHost`` and of argument completion."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias

from musepi_tui.commands.registry import Call, CommandRegistry, Completion
from musepi_tui.runtime.events import IntentSettled, SessionView
from musepi_tui.runtime.intents import Intent

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

Opener: TypeAlias = "Callable[[Shell, str], None]"

WAIT = "wait for the turn to end or press esc"
"""What a command that cannot run now is refused with (TUI-3.44)."""

PREPARE_AFTER_S = 0.5
"""From the first frame on until the rest of the screens is imported: the session opens and the first keys are
struck before."""


class Host:
    """Runs commands and carries out what they ask for. The first slash typed builds the registry, unless that
    was done before."""

    def __init__(self, app: "Shell") -> None:
        self._app = app
        self._registry: CommandRegistry | None = None
        self._alias_note = ""
        self._told_notes: set[str] = set()

    @property
    def registry(self) -> CommandRegistry:
        """The commands."""
        if self._registry is None:
            self._registry = CommandRegistry.discover()
        return self._registry

    def prepare_soon(self) -> None:
        """Has a thread import, in a moment, what the first command would wait for: 50 ms or so."""
        app = self._app
        app.set_timer(
            PREPARE_AFTER_S, lambda: app.run_worker(self._prepare(), name="commands", exit_on_error=False)
        )

    async def _prepare(self) -> None:
        registry = await asyncio.to_thread(CommandRegistry.discover)
        self._registry = self._registry or registry
        await asyncio.to_thread(_find_openers)
        for name in ("runtime.stored_sessions", "storage.listing"):
            await asyncio.to_thread(import_module, f"musepi_tui.{name}")

    def complete(self, text: str) -> tuple[Completion, ...]:
        """The completions for a command line."""
        return self.registry.complete(text, self)

    def may_run(self, call: Call) -> bool:
        """Whether the command exists and is allowed now; if not, a notice says why and the text stays."""
        command = self.registry.find(call.name)
        if command is None:
            near = ", ".join(f"/{name}" for name in self.registry.nearest(call.name))
            hint = f" Did you mean {near}?" if near else ""
            self.notify("warning", f"There is no command /{call.name}.{hint} //{call.name} sends it as text.")
            return False
        status = self._app.bridge.status
        if status.is_working and command.interrupts:
            runs_already = status.pass_running is not None and status.pass_running.reason == "manual"
            return runs_already or self._offer_to_stop(call)
        if status.is_working and not command.now:
            # Beside the editor, not in the transcript, where the answer that streams would push it away.
            self._app.main.status_line.hint(command.busy or WAIT, 3.0)
            return False
        return True

    def _offer_to_stop(self, call: Call) -> bool:
        """Asks whether what runs is stopped for a command, which runs after a yes (TUI-4.1). Never waits."""
        from musepi_tui.tui.screens.confirm import ask  # deferred: not needed for the first frame

        text = self._app.main.composer.full_text
        question = f"something is running – stop it for /{call.name}?"
        ask(self._app, question, "stop it", lambda: self._app.carry_out(text, call))
        return False

    async def run(self, call: Call) -> None:
        """Runs a command that may run."""
        command = self.registry.find(call.name)
        if command is None:
            return
        self._alias_note = command.alias_note if call.name != command.name else ""
        try:
            await command.run(self, call.args)
        finally:
            self._alias_note = ""

    # -- CommandHost

    def send(self, intent: Intent, *, done: str = "") -> str:
        """Hands an intent to the runtime, returns its id. ``done`` is told when it ended well; so is, once,
        that the command has another name: not before, because another session takes the notices away."""
        note = self._alias_note

        def ended(event: IntentSettled) -> None:
            text = str((event.data or {}).get("text", ""))
            if text:
                self._app.main.composer.put_before(text)
            if done:
                self._app.tell("info", done)
            if note and note not in self._told_notes:
                self._told_notes.add(note)
                self._app.tell("info", note)

        return self._app.send(intent, ended)

    def show(self, screen: str, argument: str = "") -> None:
        """Opens a screen by name."""
        _find_openers()[screen](self._app, argument)

    def notify(self, level: Literal["info", "warning", "error"], text: str) -> None:
        """Shows a notice in the transcript."""
        self._app.tell(level, text)

    def view(self) -> SessionView:
        """The session as it is now."""
        return self._app.runtime.view()

    def act(self, name: str, argument: str = "") -> None:
        """``quit``, ``redo`` or ``set-theme``."""
        match name:
            case "quit":
                self._app.leave()
            case "redo":
                self._app.navigation.redo()
            case "set-theme":
                self._app.looks.choose(argument)
            case _:
                raise ValueError(f"the screen cannot do {name!r}")

    # -- Choices

    def choices(self, kind: Literal["model", "theme", "thinking", "command", "context"]) -> tuple[str, ...]:
        """The values of a kind that can be completed."""
        match kind:
            case "model":
                return tuple(model.key for model in self._app.runtime.models())
            case "theme":
                return self._app.looks.names
            case "thinking":
                return self._app.thinking_levels()
            case "command":
                return tuple(command.name for command in self.registry.commands)
            case "context":
                meter = self._app.bridge.status.meter
                if meter.context_tokens is None or not meter.window:
                    return ()
                return (f"{100 * meter.context_tokens / meter.window:.0f}% used",)


def _find_openers() -> Mapping[str, Opener]:
    """What opens a screen, by its name."""
    # deferred: no screen is needed for the first frame
    from musepi_tui.tui.screens import context as context_screen
    from musepi_tui.tui.screens import deletion, model_picker, named, prompts, session, theme, yolo
    from musepi_tui.tui.screens import help as help_screen

    return {
        "context": context_screen.open_context,
        "resume": named.open_named,
        "rewind": prompts.open_rewind,
        "branch": prompts.open_branch,
        "delete": deletion.open_deletion,
        "model": model_picker.open_models,
        "theme": theme.open_themes,
        "help": help_screen.open_help,
        "hotkeys": help_screen.open_hotkeys,
        "yolo": yolo.open_confirmation,
        "session": session.open_session,
        "tree": lambda app, selected: app.navigation.open_tree(selected or None),
    }
