"""The app without its keys: screen, bridge, commands, what widgets tell it."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

from textual import events
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from musepi_tui.base.collector import resume_collector
from musepi_tui.base.log import log_path
from musepi_tui.commands.registry import Call, parse_call, prompt_text
from musepi_tui.runtime.events import (
    AgentSettled,
    ApprovalAsked,
    ApprovalClosed,
    ContextPruned,
    EntryAppended,
    Event,
    ExtensionFailed,
    IntentSettled,
    LeafMoved,
    MaintenanceEnded,
    ModelPromoted,
    Notice,
    Phase,
    PhaseChanged,
    SaveStateChanged,
    SessionReady,
    UsageChanged,
)
from musepi_tui.runtime.intents import AnswerApproval, Intent
from musepi_tui.storage.state import PromptHistory
from musepi_tui.tui.access import offer_access, show_access
from musepi_tui.tui.advance import Advance
from musepi_tui.tui.bridge import FLUSH_S, REMOTE_FLUSH_S, Bridge
from musepi_tui.tui.conversation import Conversation, Then
from musepi_tui.tui.driver import ASK_GROUND, GroundTold, SafeDriver
from musepi_tui.tui.greeting import Greeting
from musepi_tui.tui.host import Host
from musepi_tui.tui.keys import Keymap, editor_actions, load_keymap
from musepi_tui.tui.looks import Looks
from musepi_tui.tui.navigation import Navigation
from musepi_tui.tui.presence import Presence
from musepi_tui.tui.prompts import PromptStore
from musepi_tui.tui.screen import MainScreen, SafeApp
from musepi_tui.tui.terminal_signs import TerminalSigns
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.approval import ApprovalDialog
from musepi_tui.tui.widgets.frame import css_color

if TYPE_CHECKING:
    from musepi_tui.runtime.session import SessionRuntime

_log = logging.getLogger("musepi.tui")

QUIT_WORDS = frozenset({"exit", "quit", ":q"})


class Shell(SafeApp):
    """The screen of one runtime. Its parts: ``main`` draws, ``talk`` sends, ``host`` runs commands."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "musepi"

    def __init__(
        self,
        runtime: "SessionRuntime",
        environ: Mapping[str, str],
        *,
        prompts: Sequence[str] = (),
        pick: bool = False,
    ) -> None:
        self.environ = environ
        options = runtime.options
        values = options.settings.values
        self.runtime = runtime
        self.looks = Looks(values.theme, values.symbol_preset, environ, options.paths.config)
        super().__init__(driver_class=SafeDriver, ansi_color=True)
        self.hold_input()
        self.crash_log = str(log_path(options.paths.state))
        self.clock = options.clock
        self._settings = values
        self.keymap: Keymap = load_keymap(options.paths.config / "keybindings.json")
        self._prompts = tuple(prompts)
        self._pick = pick
        remote = "SSH_CONNECTION" in environ
        flush_s = REMOTE_FLUSH_S if remote else FLUSH_S
        self.bridge = Bridge(runtime, self, self.clock, flush_s=flush_s)
        self.bridge.show_now()
        self.bridge.transcript.shows_thinking = not values.hide_thinking_block
        self.bridge.transcript.show_model_changes(shown=values.display.show_model_changes)
        self.bridge.transcript.collapse_compacted(on=values.display.collapse_compacted)
        self.main = MainScreen(self.looks.palette, self.bridge, self.clock, values)
        self.host = Host(self)
        self.talk = Conversation(runtime, self.bridge.status, self.main.composer, self.tell)
        idle_enabled = values.compaction.idle_enabled
        self.navigation = Navigation(self)
        self.presence = Presence(runtime.send, self.clock.monotonic, enabled=idle_enabled)
        self._advance = Advance()
        self._history = PromptStore(PromptHistory(options.paths, options.cwd))
        self._signs = TerminalSigns(self, values.terminal, environ)
        self._greeting = Greeting(self, is_quiet=values.quiet_startup)

    # -- Textual's own hooks

    def get_default_screen(self) -> Screen[None]:
        """The main screen."""
        return self.main

    def get_css_variables(self) -> dict[str, str]:
        """The few colours that style sheets need, from the palette."""
        palette = self.looks.palette
        bar = css_color(palette.style("borderMuted").color).css
        own = {
            "musepi-dim": css_color(palette.style("dim").color).css,
            "musepi-selected": css_color(palette.style("selectedBg").bgcolor).css,
            **dict.fromkeys(("scrollbar", "scrollbar-hover", "scrollbar-active"), bar),
        }
        ground = ("", "-hover", "-active")
        own |= {f"scrollbar-background{state}": "ansi_default" for state in ground}
        return {**super().get_css_variables(), **own, "scrollbar-corner-color": "ansi_default"}

    async def on_event(self, event: events.Event) -> None:
        """Every event of the terminal comes through here."""
        self.presence.notice(event)
        await super().on_event(event)

    def on_mount(self) -> None:
        """Starts following the runtime; the runtime starts loading once the first frame is on the screen."""
        self.looks.changed = self._show_palette
        self.looks.told = self.tell
        self.set_keymap(dict(self.keymap.changes))
        expand_keys = self.keymap.keys_of("app.tools.expand")
        if expand_keys:
            self.main.transcript.set_hint(expand_keys[0])
        self.on_resume(self.repaint_all)
        composer = self.main.composer
        composer.submit = self._submit
        composer.submit_nothing = self._submit_nothing
        composer.edited = self.presence.edited
        composer.working = lambda: self.bridge.status.is_queueing
        composer.complete_line = self.host.complete
        composer.key_actions = editor_actions(self.keymap)
        self._greeting.show_place()
        self._greeting.show_header()
        self.run_worker(self.bridge.follow(), name="bridge", exit_on_error=False)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.runtime.begin()
        self.let_input_in()
        if self.looks.asks_terminal:
            self.write_terminal(ASK_GROUND)
        for prompt in self._prompts:
            self.talk.submit(prompt, follow_up=False)
        self.run_worker(self._load_prompts(), name="prompts", exit_on_error=False)
        for notice in (*self.keymap.notices, *filter(None, [self.looks.problem])):
            self.tell("warning", notice)
        self.host.prepare_soon()
        if self._pick:
            self.host.show("resume")

    async def _load_prompts(self) -> None:
        self.main.composer.recall.extend_older(await self._history.load())

    def _on_worker_state_changed(self, event: "Worker.StateChanged") -> None:
        if event.state is WorkerState.ERROR:
            worker = cast("Worker[object]", event.worker)  # pyright: ignore[reportUnknownMemberType]
            _log.error("worker %s failed", worker.name, exc_info=worker.error)
            kind = type(worker.error).__name__
            self.tell("error", f"Something went wrong ({kind}). Details: {self.crash_log}")

    # -- Painter: what the bridge asks for

    def after_event(self, event: Event) -> None:
        """What an event means beyond the models."""
        match event:
            case SessionReady():
                self._session_opened(event)
            case ApprovalAsked():
                self.navigation.close_tree()
                self.main.ask(event)
            case ApprovalClosed():
                self.main.dialog.close(event.request_id)
                self.main.show_dialog()
            case MaintenanceEnded():
                self.talk.ended(event)
            case IntentSettled():
                self.talk.settled(event)
            case Notice():
                self.talk.noticed(event)
            case SaveStateChanged():
                self.talk.saved(event)
            case AgentSettled():
                self._greeting.show_place()
            case PhaseChanged(phase) if phase is not Phase.LOADING:
                resume_collector()
            case _:
                self._after_upkeep(event)

    def _session_opened(self, event: SessionReady) -> None:
        """Another session is there, or the same one anew."""
        self._advance.start(event.view.meter)
        self.presence.session_opened()
        self.main.dialog.close_all()
        self.main.show_dialog()
        self._greeting.show_place()
        self._greeting.show_header()
        self._greeting.offer_help()
        self.main.transcript.to_end()
        self.talk.session_changed()
        self.navigation.session_changed()
        show_access(self, event.reason)
        if self.screen is not self.main:
            self.screen.query().refresh()  # a list that was opened before knows more now

    def _after_upkeep(self, event: Event) -> None:
        """What happened by itself and is told, as far as the settings want it."""
        display = self._settings.display
        match event:
            case UsageChanged():
                near = self._advance.take(event.meter)
                if near is not None:
                    self.tell("info", near)
            case LeafMoved() | EntryAppended():
                self.navigation.changed(event)
            case ContextPruned() if not display.prune_notices:
                return
            case ModelPromoted() if display.show_model_changes:
                return  # the row of its entry says it, after a resume as well
            case ContextPruned() | ModelPromoted() | ExtensionFailed():
                self.talk.happened(event)
            case _:
                return

    def flush(self) -> None:
        """Brings the widgets up to date with the models."""
        if self.is_running:
            self.main.bring_up_to_date()
            self._show_signs()

    # -- what commands and panels use

    def send(self, intent: Intent, then: Then | None = None) -> str:
        """Hands an intent to the runtime; a failure becomes a notice."""
        return self.talk.send(intent, then)

    def tell(self, level: Literal["info", "warning", "error"], text: str) -> None:
        """Shows a notice in the transcript."""
        self.bridge.transcript.notice(level, text)
        self.bridge.request_flush()

    def leave(self) -> None:
        """Quits; while a compaction runs only after a question."""
        from musepi_tui.tui.screens.confirm import ask  # deferred: not needed for the first frame

        if self.bridge.status.pass_running is None:
            self.exit(0)
        else:
            ask(
                self,
                "compaction running – quit anyway?",
                "quit; the session stays as it was",
                lambda: self.exit(0),
            )

    def thinking_levels(self) -> tuple[str, ...]:
        """The levels of the current model."""
        from musepi_tui.providers.thinking import supported_levels  # deferred: not needed for the first frame

        model = self.bridge.status.model
        return tuple(level.value for level in supported_levels(model)) if model is not None else ()

    # -- messages of the widgets

    def _submit(self, text: str, follow_up: bool) -> None:  # noqa: FBT001  called by position
        if text.strip() in QUIT_WORDS:
            self.main.composer.accept(text)
            self.leave()
            return
        call = parse_call(text)
        if call is None and self.bridge.status.read_only is not None:
            offer_access(self)
        elif call is None:
            self.main.transcript.to_end()
            self._take(text)
            self.talk.submit(prompt_text(text), follow_up=follow_up)
        elif self.host.may_run(call):
            self.carry_out(text, call)

    def carry_out(self, text: str, call: Call) -> None:
        """Runs a command that was typed as ``text``."""
        self._take(text)
        self.run_worker(self.host.run(call), name="command", exit_on_error=False)

    def _submit_nothing(self) -> None:
        """Enter in an empty editor: what can be done in a session to be read, else the folded history."""
        if not offer_access(self):
            self.main.transcript.open_fold()

    def _take(self, text: str) -> None:
        """The editor is emptied and the text remembered."""
        if self.main.composer.accept(text):
            self.run_worker(self._history.append(text), name="prompts", exit_on_error=False)

    def on_ground_told(self, message: GroundTold) -> None:
        """The terminal answered which ground it has."""
        self.looks.follow_ground(is_light=message.is_light)

    def _on_composer_exit_wanted(self) -> None:
        self.leave()

    def _on_composer_end_wanted(self) -> None:
        self.main.transcript.to_end()

    def _on_approval_dialog_answered(self, message: ApprovalDialog.Answered) -> None:
        self.send(AnswerApproval(message.request_id, message.decision))
        self.main.show_dialog()

    # -- title, progress, colours

    def _show_signs(self) -> None:
        self._signs.show(self.bridge.status, is_asking=self.main.dialog.is_open)

    def repaint_all(self) -> None:
        """Draws every cell again and writes what the terminal shows beside them."""
        self._signs.forget()
        self._show_signs()
        super().repaint_all()

    def _show_palette(self, palette: Palette) -> None:
        self.main.set_palette(palette)
        self.refresh_css(animate=False)
