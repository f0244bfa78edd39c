"""The transcript on the screen: one widget that draws lines, whatever the length of the session.

``virtual_size`` and ``scroll_y`` only mirror where the viewport stands, silently: what is shown comes from
the viewport, so that no layout is ever needed for text that arrives.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

from rich.segment import Segment
from textual import events
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from musepi_tui.base.clock import Clock, SystemClock
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.blocks import ItemKind
from musepi_tui.tui.transcript.drawings import FRAMES_PER_S, Drawings
from musepi_tui.tui.transcript.engines import engines_loaded, load_engines
from musepi_tui.tui.transcript.lines import PLAIN
from musepi_tui.tui.transcript.marks import Marks, marked_strip, marks_of
from musepi_tui.tui.transcript.model import TranscriptModel
from musepi_tui.tui.transcript.selection import (
    character_at,
    row_code,
    selected_strip,
    selected_text,
    selection_at,
)
from musepi_tui.tui.transcript.viewport import Placed, Viewport

_log = logging.getLogger("musepi.tui")

WHEEL_ROWS = 3
"""Rows a notch of the wheel moves."""

_SLICE_S = 0.006
_SLICE_PAUSE_S = 0.02
"""Work on the final drawing of a long answer, and the pause for keys and frames between two pieces."""

_VIRTUAL_SIZE = cast("Reactive[Size]", Widget.virtual_size)
_SCROLL_Y = Widget.scroll_y
_SCROLL_TARGET_Y = cast("Reactive[float]", Widget.scroll_target_y)

_OPENED_BY_CLICK = frozenset(
    {
        ItemKind.TOOL,
        ItemKind.THINKING,
        ItemKind.BASH,
        ItemKind.COMPACTION,
        ItemKind.BRANCH_SUMMARY,
        ItemKind.HANDOFF,
        ItemKind.ERROR,
        ItemKind.NOTICE,
        ItemKind.FOLD,
    }
)


class _Painted(NamedTuple):
    """What a screen row was painted from, without the selection."""

    strip: Strip
    marks: tuple[bool, str]


class TranscriptView(ScrollView, can_focus=False, inherit_bindings=False):
    """Draws a model. The app calls ``model_changed`` after events, some twenty times a second at most."""

    DEFAULT_CSS = """
    TranscriptView { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 0; }
    """

    class FollowChanged(Message):
        """The view began or ceased to follow the end."""

        def __init__(self, *, following: bool) -> None:
            super().__init__()
            self.following = following

    def __init__(
        self, model: TranscriptModel, palette: Palette, *, clock: Clock | None = None, animated: bool = True
    ) -> None:
        super().__init__()
        self.model = model
        self._palette = palette
        self._hint = "ctrl+o"
        self._drawings = Drawings(model, palette, (clock or SystemClock()).monotonic, animated=animated)
        self._viewport = Viewport(model, self._drawings)
        self._painted: list[_Painted] = []
        self._marks = Marks()
        self._laid_out = Size(0, 0)
        self._was_following = True
        self._held = False
        self._dragging = False
        self._ticker: Timer | None = None
        self._finisher: Timer | None = None

    # what the app calls

    @property
    def following(self) -> bool:
        """Whether the end is shown whatever comes."""
        return self._viewport.following

    @property
    def rendered_items(self) -> int:
        """How many items were drawn so far, for tests and benchmarks."""
        return self._drawings.rendered

    def model_changed(self) -> None:
        """The model took in events: paints the rows that differ."""
        self._update()

    def set_palette(self, palette: Palette) -> None:
        """Draws with another theme."""
        self._palette = palette
        self._drawings.set_brush(palette, self._viewport.width, self._hint)
        self._update()
        self.refresh()

    def set_hint(self, key: str) -> None:
        """The key that opens items, as dividers and previews name it."""
        self._hint = key
        self._drawings.set_brush(self._palette, self._viewport.width, key)
        self._update()

    def page(self, direction: int) -> None:
        """A screenful up (-1) or down (+1), two rows of it stay in sight."""
        self.scroll_rows(direction * max(1, self._viewport.height - 2))

    def scroll_rows(self, rows: int) -> None:
        """Moves by rows; negative is up."""
        self._take_changes()
        self._viewport.scroll(rows)
        self._update()

    def to_top(self) -> None:
        """Shows the first item without drawing the middle."""
        self._take_changes()
        self._viewport.to_top()
        self._update()

    def to_end(self) -> None:
        """Shows the end and follows it."""
        self._viewport.to_end()
        self._update()

    def toggle_expanded(self) -> None:
        """Opens or closes tool outputs, dividers and all else that can be opened."""
        self.model.toggle_expanded()
        self._update()

    def toggle_thinking(self) -> None:
        """Shows or hides what the model thought."""
        self.model.toggle_thinking()
        self._update()

    def toggle_collapsed(self) -> None:
        """Folds what lies before the newest compaction, or shows it again."""
        self._in_place(lambda: self.model.collapse_compacted(on=not self.model.collapses))

    def open_fold(self) -> None:
        """Shows what is folded, when the fold can be seen."""
        folds = [placed.item for placed in self._viewport.rows if placed.item.kind is ItemKind.FOLD]
        if folds:
            self._in_place(partial(self.model.toggle, folds[0]))

    # drawing

    def on_mount(self) -> None:
        """Loads the Markdown parser and the highlighter after the first paint, in a thread."""
        self._ticker = self.set_interval(1 / FRAMES_PER_S, self._tick, pause=True)
        if not engines_loaded():
            self.call_after_refresh(self._load_engines)

    def render_lines(self, crop: Region) -> list[Strip]:
        """The strips of the rows in ``crop``. Sizes may be new here before any resize event came."""
        if self.size != self._laid_out:
            self._lay_out()
            self.call_later(self._mirror)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """One row of the screen, with scroll mark, chip and selection."""
        width = max(0, self.size.width)
        if not 0 <= y < len(self._painted):
            return Strip.blank(width, PLAIN)
        strip, marks = self._painted[y]
        placed = self._viewport.rows[y] if y < len(self._viewport.rows) else None
        if placed is not None:
            strip = self._with_selection(strip, placed)
        strip = marked_strip(strip, marks, self._palette)
        return strip if strip.cell_length == width else strip.adjust_cell_length(width, PLAIN)

    def _with_selection(self, strip: Strip, placed: Placed) -> Strip:
        selection = self.text_selection
        span = selection.get_span(row_code(placed)) if selection is not None else None
        if span is None:
            return strip
        style = self.screen.get_component_rich_style("screen--selection")
        return selected_strip(strip, placed.row, span, style)

    def _take_changes(self) -> None:
        self._viewport.take(self.model.take_changes())

    def _lay_out(self) -> None:
        """Works out what every row of the screen shows."""
        self._take_changes()
        size = self.size
        self._laid_out = size
        if size.width != self._drawings.brush.width:
            self._drawings.set_brush(self._palette, size.width, self._hint)
        rows = self._viewport.layout(size.width, size.height)
        self._marks = marks_of(self._viewport)
        self._painted = _paint(rows, self._marks, size)
        if self._ticker is not None and self._drawings.runs:
            self._ticker.resume()
        if self._drawings.is_finishing and self._finisher is None and self.is_mounted:
            self._finisher = self.set_timer(_SLICE_PAUSE_S, self._finish)

    def _update(self) -> None:
        """Lays out again and repaints the rows that differ from what is on the screen."""
        if not self.is_mounted or not self.size:
            return
        before, size = self._painted, self._laid_out
        self._lay_out()
        if self._laid_out != size or len(before) != len(self._painted):
            self.refresh()
        else:
            changed = [y for y, row in enumerate(self._painted) if row != before[y]]
            if 2 * len(changed) > len(before):
                self.refresh()
            elif changed:
                self.refresh(*_regions(changed, size.width))
        self._mirror()
        if self.following != self._was_following:
            self._was_following = self.following
            self.post_message(self.FollowChanged(following=self.following))

    def _mirror(self) -> None:
        """Tells Textual where the view stands, without a layout or a repaint."""
        viewport = self._viewport
        virtual = Size(self.size.width, max(viewport.heights.total, len(viewport.rows)))
        if virtual != self.virtual_size:
            self.set_reactive(_VIRTUAL_SIZE, virtual)
        if round(self.scroll_y) != viewport.top_row:
            self.set_reactive(_SCROLL_Y, float(viewport.top_row))
            self.set_reactive(_SCROLL_TARGET_Y, float(viewport.top_row))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows Textual where it moves the view while a selection is dragged over its edge.

        Every other change comes from its own idea of how far one can scroll, and is put right.
        """
        if not self.is_mounted:
            return
        if self._dragging and self._has_selection():
            self.scroll_rows(round(new_value) - self._viewport.top_row)
        else:
            self.call_later(self._mirror)

    def _tick(self) -> None:
        """Another frame for the signs that turn; stops when none is on the screen."""
        self._drawings.runs = False
        self._update()
        if not self._drawings.runs and self._ticker is not None:
            self._ticker.pause()

    def _finish(self) -> None:
        self._finisher = None
        done = self._drawings.finish(_SLICE_S)
        if done is not None:
            self._update()
        if self._drawings.is_finishing and self._finisher is None:
            self._finisher = self.set_timer(_SLICE_PAUSE_S, self._finish)

    def _load_engines(self) -> None:
        self.run_worker(load_engines, name="engines", thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """The libraries are there: what was drawn as plain text is drawn again."""
        if event.state is WorkerState.SUCCESS:
            self._update()
        elif event.state is WorkerState.ERROR:
            error = event.worker.error  # pyright: ignore[reportUnknownMemberType]  Textual leaves its type open
            _log.error("the Markdown parser cannot be loaded: %s", error)

    # mouse and selection

    def offset_at(self, x: int, y: int) -> Offset:
        """The place in the text under a cell of the widget: a character of a row, and the row's code."""
        rows = self._viewport.rows
        if not rows:
            return Offset(0, 0)
        placed = rows[min(max(0, y), len(rows) - 1)]
        if y >= len(rows):
            return Offset(len(placed.row.text), row_code(placed))
        return Offset(character_at(placed.row, x), row_code(placed))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as people expect it, and what ends it."""
        return selected_text(self._viewport, selection), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draws the selection."""
        self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """The text stays where it is while a selection is dragged."""
        self._held = self._viewport.following
        self._dragging = True
        self._viewport.hold()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Follows the end again, unless something was selected."""
        if self._held and not self._has_selection():
            self.to_end()
        self._held = self._dragging = False

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """A button released elsewhere ends a drag, too."""
        self._dragging = self._dragging and event.button != 0

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        self._wheel(event, -WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        self._wheel(event, WHEEL_ROWS)

    def _wheel(self, event: events.MouseEvent, rows: int) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_rows(rows)

    def on_click(self, event: events.Click) -> None:
        """One click opens an item at its title, two select a word, three a line."""
        placed = self._viewport.rows[event.y] if 0 <= event.y < len(self._viewport.rows) else None
        if event.chain > 1:
            event.prevent_default()
            if placed is not None and (found := selection_at(placed, event.x, whole_row=event.chain > 2)):
                self.screen.selections = {self: found}
        elif self._marks.has_chip_at(event.x, event.y):
            self.to_end()
        elif placed is not None and not self._has_selection() and self._opens(placed):
            self._in_place(partial(self.model.toggle, placed.item))

    def _in_place(self, change: Callable[[], None]) -> None:
        """Changes how items are drawn; what is at the top of the screen stays there."""
        self._viewport.hold()
        change()
        self._take_changes()
        self._viewport.settle()
        self._update()

    def _opens(self, placed: Placed) -> bool:
        if placed.item_row == 0 and placed.item.kind in _OPENED_BY_CLICK:
            return True
        return placed.row.text.endswith(f" {self._hint}")

    def _has_selection(self) -> bool:
        selection = self.text_selection
        return selection is not None and selection.start != selection.end


def _paint(rows: list[Placed], marks: Marks, size: Size) -> list[_Painted]:
    """What every row of the screen shows."""
    blank = Strip([Segment(" " * size.width, PLAIN)], size.width)
    strips = [placed.row.strip for placed in rows] + [blank] * (size.height - len(rows))
    return [_Painted(strips[y], marks.at(y)) for y in range(size.height)]


def _regions(rows: list[int], width: int) -> list[Region]:
    """The runs of neighbouring rows as regions of the widget."""
    regions: list[Region] = []
    start = previous = rows[0]
    for row in [*rows[1:], -1]:
        if row != previous + 1:
            regions.append(Region(0, start, width, previous - start + 1))
            start = row
        previous = row
    return regions
