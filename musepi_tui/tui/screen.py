"""The main screen and the base of the app: Textual's own, with immediate echo, own selection, safe crashes.

Everything private of Textual's app and screen that the program relies on is used here and nowhere else;
``tests/tui/test_toolkit.py`` fails when one of the names goes away.
"""

import logging
import sys
import traceback
from collections.abc import Callable
from typing import cast

from textual import events
from textual.app import App, ComposeResult
from textual.errors import NoWidget
from textual.geometry import Offset, Region
from textual.screen import Screen
from textual.signal import Signal
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.base.clock import Clock
from musepi_tui.runtime.events import ApprovalAsked
from musepi_tui.settings.schema import Settings
from musepi_tui.tui.bridge import Bridge
from musepi_tui.tui.footer import Place
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.view import TranscriptView
from musepi_tui.tui.widgets.approval import ApprovalDialog
from musepi_tui.tui.widgets.completion import CompletionList
from musepi_tui.tui.widgets.composer import Composer
from musepi_tui.tui.widgets.drawing import app_of, blank_strips
from musepi_tui.tui.widgets.frame import ComposerFrame, Lower, TooSmall, Upper
from musepi_tui.tui.widgets.pending import PendingArea
from musepi_tui.tui.widgets.read_only import ReadOnlyBar
from musepi_tui.tui.widgets.status_bar import StatusBar
from musepi_tui.tui.widgets.working import StatusLine

_log = logging.getLogger("musepi.tui")

MIN_COLUMNS = 40
MIN_ROWS = 12


class MainScreen(Screen[None], inherit_bindings=False):
    """The screen that is always there: transcript, what waits, what runs, the editor, the footer."""

    AUTO_FOCUS = "Composer"
    DEFAULT_CSS = """
    MainScreen {
        layers: base cover; background: ansi_default; color: ansi_default; overflow: hidden;
        & > .screen--selection { background: $musepi-selected; color: ansi_default; }
        &.-reverse > .screen--selection { background: ansi_default; text-style: reverse; }
        &.-asking ComposerFrame { display: none; }
        &.-asking StatusLine { display: none; }
        &.-tiny > TooSmall { display: block; }
    }
    """

    def __init__(self, palette: Palette, bridge: Bridge, clock: Clock, settings: Settings) -> None:
        super().__init__()
        status = bridge.status
        animated = settings.display.animations
        self.transcript = TranscriptView(bridge.transcript, palette, clock=clock, animated=animated)
        self.pending = PendingArea(palette, status)
        self.read_only = ReadOnlyBar(palette, status)
        self.status_line = StatusLine(palette, status, clock, animated=animated)
        self.completions = CompletionList(palette)
        self.composer = Composer(palette, self.completions, settings.editor.max_rows)
        self.frame = ComposerFrame(palette, self.composer)
        self.dialog = ApprovalDialog(palette, clock)
        self.footer = StatusBar(palette, status, clock, settings.display.idle_countdown)
        self._too_small = TooSmall(palette)
        self._status = status
        self._show_palette(palette)

    def compose(self) -> ComposeResult:
        """Top to bottom."""
        with Upper():
            yield self.transcript
        with Lower():
            yield self.pending
            yield self.status_line
            yield self.read_only
            yield self.completions
            yield self.frame
            yield self.dialog
            yield self.footer
        yield self._too_small

    def set_palette(self, palette: Palette) -> None:
        """Draws everything with another theme."""
        lists = (self.pending, self.completions, self.dialog)
        bars = (self.status_line, self.read_only, self.footer, self._too_small)
        for widget in (self.transcript, self.frame, *lists, *bars):
            widget.set_palette(palette)
        self._show_palette(palette)

    def _show_palette(self, palette: Palette) -> None:
        self.set_class(palette.style("selectedBg").bgcolor is None, "-reverse")

    def bring_up_to_date(self) -> None:
        """Draws what the models say now."""
        self.transcript.model_changed()
        self.pending.refresh_rows()
        self.read_only.refresh_rows()
        self.status_line.refresh_row()
        self.footer.refresh_row()
        self.frame.show_level(self._status.thinking_level, self._status.mode)

    def show_place(self, place: Place, cwd: str) -> None:
        """Where the session works."""
        self.footer.place = place
        self.footer.refresh_row()
        self.dialog.cwd = cwd

    def ask(self, question: ApprovalAsked) -> None:
        """Puts the question whether a tool may run."""
        self.dialog.ask(question)
        self.show_dialog()

    def show_dialog(self) -> None:
        """Gives the keys to the question, or back to the editor when there is none."""
        asking = self.dialog.is_open
        if asking != self.has_class("-asking"):
            self.set_class(asking, "-asking")
            # Not before the refresh: until the new class has been applied the editor cannot take the focus.
            self.call_after_refresh(self._give_keys)

    def _give_keys(self) -> None:
        (self.dialog if self.dialog.is_open else self.composer).focus()

    def on_mount(self) -> None:
        """Keeps the terminal's own cursor at the caret, also when only the layout moved it."""
        signal = self.screen_layout_refresh_signal  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        cast("Signal[object]", signal).subscribe(self, lambda _: self._place_cursor(), immediate=True)

    def _place_cursor(self) -> None:
        """Input methods open their window at the terminal's cursor (TUI-3.23)."""
        app = cast("SafeApp", app_of(self))
        place = self.composer.cursor_screen_offset
        if self.composer.has_focus and place != app.cursor_position:
            app.cursor_position = place
            app.write_terminal(f"\x1b[{place.y + 1};{place.x + 1}H")

    def on_resize(self, event: events.Resize) -> None:
        """Covers everything with one line while the terminal is too small."""
        self.set_class(event.size.width < MIN_COLUMNS or event.size.height < MIN_ROWS, "-tiny")
        self.composer.fit(event.size.height)

    # -- what Textual does otherwise

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank rows: everything is covered by widgets."""
        return blank_strips(crop)

    async def _on_idle(self, event: events.Idle) -> None:
        """Paints a dirty editor at once; the base handler, which runs as well, waits for its timer."""
        batching = app_of(self)._batch_count  # pyright: ignore[reportPrivateUsage]
        if self._layout_required or batching or not self.is_current:
            return
        if self.composer in self._dirty_widgets:
            others = self._dirty_widgets - {self.composer}
            self._compositor.update_widgets({self.composer})
            self._compositor_refresh()
            self._dirty_widgets |= others  # the refresh took them for painted; the timer paints them

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """The widget under a cell and the place in its text: the transcript knows its own."""
        try:
            widget, region = self.get_widget_at(x, y)
        except NoWidget:
            return None, None
        if isinstance(widget, TranscriptView):
            return widget, widget.offset_at(x - region.x, y - region.y)
        return super().get_widget_and_offset_at(x, y)

    # -- keys of the transcript, which work while the editor has the focus

    def _action_page(self, direction: int) -> None:
        self.transcript.page(direction)

    def _action_line(self, rows: int) -> None:
        self.transcript.scroll_rows(rows)

    def _action_top(self) -> None:
        self.transcript.to_top()

    def _action_end(self) -> None:
        self.transcript.to_end()

    def _action_toggle_expanded(self) -> None:
        self.transcript.toggle_expanded()

    def _action_toggle_collapsed(self) -> None:
        self.transcript.toggle_collapsed()

    def _action_toggle_thinking(self) -> None:
        self.transcript.toggle_thinking()


class SafeApp(App[int], inherit_bindings=False):
    """An app that tells a crash in one line and keeps the details in the log, without local variables."""

    crash_log = "the log file"
    """Where the details of a crash go, as the one line says it."""
    crash_line: str | None = None
    """The line for the person, set when the program crashed."""
    undo = ""
    """What takes back what ``write_terminal`` left in the terminal; written when it is given back."""
    _early: list[events.Event] | None = None
    """What was typed before a widget had the focus, oldest first; None once ``let_input_in`` was called."""

    async def on_event(self, event: events.Event) -> None:
        """Holds keys and pastes back while nothing could take them: type-ahead is not lost."""
        if self._early is not None and isinstance(event, (events.Key, events.Paste)):
            self._early.append(event)
        else:
            await super().on_event(event)

    def hold_input(self) -> None:
        """Keeps what is typed from now on until ``let_input_in``."""
        self._early = []

    def let_input_in(self) -> None:
        """Hands over what was held back, in its order and before anything newer."""
        self.call_later(self._give_early)

    async def _give_early(self) -> None:
        early, self._early = self._early, None
        for event in early or ():
            await super().on_event(event)

    def _fatal_error(self) -> None:
        """Called while an unexpected exception is handled: log it, end with exit code 1."""
        _log.error("crash\n%s", traceback.format_exc())
        error = sys.exc_info()[1]
        self.crash_line = (
            f"musepi stopped because of a bug ({type(error).__name__}). Details: {self.crash_log}"
        )
        self._close_messages_no_wait()

    def repaint_all(self) -> None:
        """Draws every cell again: frames were lost, or the terminal was somebody else's."""
        self.screen.refresh(layout=True)

    def on_resume(self, function: Callable[[], None]) -> None:
        """Calls the function whenever the program has the terminal again."""
        signal = self.app_resume_signal  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        cast("Signal[object]", signal).subscribe(self, lambda _: function())

    def write_terminal(self, data: str) -> None:
        """Puts a control sequence between two frames. Does nothing without a real terminal."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(data)
