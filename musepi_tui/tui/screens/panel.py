"""Panels over the lower part of the screen: a list to choose from, or a text to read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.base.cells import cut_cells
from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.keys import bindings
from musepi_tui.tui.pastes import clean_paste
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import (
    GROUND,
    Row,
    app_of,
    cut_row,
    row_cells,
    search_row,
    spread,
    strip_of,
    title_row,
)

MIN_LIST_ROWS = 3

_DOT = "·"
"""What stands between facts and keys; drawn as the preset of symbols has it."""


@dataclass(frozen=True, slots=True)
class Item:
    """A row of a list. ``key`` None is a heading or a line of text that cannot be chosen.

    ``detail`` stands at the end of a row that can be chosen and behind the label of one that cannot; ``note``
    is shown where there is room.
    """

    key: str | None
    label: str
    detail: str = ""
    current: bool = False
    note: str = ""


Find: TypeAlias = Callable[[str], Sequence[Item]]
"""The rows for what was typed."""


@dataclass(frozen=True, slots=True)
class PanelText:
    """The fixed words of a panel: its title, what the search line says when empty, the keys at its foot."""

    title: str
    placeholder: str = ""
    hint: str = "enter choose · esc close"


class PanelView(Widget):
    """Draws a panel. Only rows that are seen are drawn, so long lists cost nothing."""

    DEFAULT_CSS = "PanelView { height: auto; width: 1fr; background: ansi_default; }"
    ALLOW_SELECT = False
    can_focus = True

    def __init__(self, panel: "Panel", palette: Palette) -> None:
        super().__init__()
        self.palette = palette
        self._panel = panel
        self._drawn: list[Row] | None = None

    @property
    def list_rows(self) -> int:
        """Rows of the list that are seen at once."""
        return max(1, self._height() - self._frame_rows())

    def _frame_rows(self) -> int:
        return 5 if self._panel.searchable else 4

    def _height(self) -> int:
        screen_rows = app_of(self).size.height
        wanted = max(MIN_LIST_ROWS, len(self._panel.items)) + self._frame_rows()
        least = self._panel.LEAST_ROWS + self._frame_rows()
        return max(1, min(wanted, max(screen_rows * 2 // 3, least), screen_rows))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Title, search, list and foot; at most two thirds of the screen."""
        return self._height()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows in ``crop``; all of them are made once, not again for each."""
        self._drawn = self._rows(self.size.width)
        try:
            return super().render_lines(crop)
        finally:
            self._drawn = None

    def render_line(self, y: int) -> Strip:
        """The row at ``y``."""
        width = self.size.width
        rows = self._rows(width) if self._drawn is None else self._drawn
        return strip_of(rows[y] if y < len(rows) else (), width)

    def _rows(self, width_cells: int) -> list[Row]:
        panel, palette = self._panel, self.palette
        rows: list[Row] = [title_row(self._dotted(panel.text.title), palette, width_cells)]
        if panel.searchable:
            empty = self._dotted(panel.text.placeholder)
            rows.append(search_row(panel.query_text, empty, palette, width_cells))
        rows.append(())
        rows += self._list(width_cells)
        hint = f"  {self._dotted(panel.text.hint)}"
        rows += [(), cut_row([(hint, palette.style("dim"))], width_cells, palette.symbol("ellipsis"))]
        return rows

    def index_at(self, x: int, y: int) -> int | None:
        """The item drawn at a cell of this widget, if there is one."""
        row = y - (3 if self._panel.searchable else 2)
        index = self._panel.top + row
        return index if 0 <= row < self.list_rows and index < len(self._panel.items) else None

    def _dotted(self, text: str) -> str:
        return text.replace(_DOT, self.palette.symbol("dot"))

    def _list(self, width_cells: int) -> list[Row]:
        panel, room = self._panel, self.list_rows
        if not panel.items:
            return [[(f"  {panel.empty_text}", self.palette.style("muted"))], *[()] * (room - 1)]
        shown = list(range(panel.top, min(panel.top + room, len(panel.items))))
        rows: list[Row] = [self._item(index, width_cells) for index in shown]
        return rows + [()] * (room - len(rows))

    def detail_of(self, item: Item, width_cells: int) -> str:
        """What stands at the end of a row that can be chosen; a view that knows more overrides it."""
        return item.detail

    def _item(self, index: int, width_cells: int) -> Row:
        palette, item = self.palette, self._panel.items[index]
        ellipsis = palette.symbol("ellipsis")
        muted, accent = palette.style("muted"), palette.style("accent")
        if item.key is None:
            heading = item.detail == ""
            label = (f"  {item.label}", accent if heading else palette.style("text"))
            text: Row = [label, (f"  {self._dotted(item.detail)}", muted)]
            note: Row = [(f"{item.note} ", palette.style("dim"))]
            if row_cells(text) + row_cells(note) + 2 <= width_cells:
                return spread(text, note, width_cells, ellipsis)
            return cut_row(text, width_cells, ellipsis)
        marked = index == self._panel.index
        back = palette.style("selectedBg") if marked else GROUND
        mark = palette.symbol("cursor") if marked else " "
        sign = palette.symbol("ok") if item.current else ""
        left: Row = [
            (f"{mark} ", accent + back),
            (item.label, (accent if marked and not back.bgcolor else palette.style("text")) + back),
            (f" {sign}" if sign else "", palette.style("success") + back),
        ]
        detail = self._dotted(self.detail_of(item, width_cells))
        row = spread(left, [(f"{detail} ", muted + back)] if detail else [], width_cells, ellipsis)
        blanks = " " * max(0, width_cells - row_cells(row))
        return [(text, style if style is not GROUND else back) for text, style in (*row, (blanks, GROUND))]


class Panel(ModalScreen[str | None], inherit_bindings=False):
    """A list with a search line. It ends with the key of the row that was chosen, None when it was closed."""

    BINDINGS = bindings("panel")
    LEAST_ROWS = MIN_LIST_ROWS
    """Rows of the list that are seen on a screen too low for all, where they can be."""

    DEFAULT_CSS = """
    Panel { align: left bottom; background: transparent; }
    """
    AUTO_FOCUS = "PanelView"

    def __init__(self, palette: Palette, text: PanelText, find: Find, *, searchable: bool = True) -> None:
        super().__init__()
        self.text = text
        self.searchable = searchable
        self.query_text = ""
        self.items: Sequence[Item] = ()
        self.empty_text = "nothing found"
        self.index = 0
        self.top = 0
        self._find = find
        self.view = PanelView(self, palette)

    def compose(self) -> ComposeResult:
        """The one widget."""
        yield self.view

    def on_mount(self) -> None:
        """Fills the list; the current row is marked."""
        self.search(self.query_text)

    def search(self, query: str) -> None:
        """Shows the rows for a search. Only what a terminal shows as it is can be searched for."""
        self.query_text = display_safe(query).replace("\n", " ")
        rows_before = len(self.items)
        self.items = self._find(self.query_text)
        current = (index for index, item in enumerate(self.items) if item.current)
        self.index = next(current, self._choosable(0, 1)) if not query else self._choosable(0, 1)
        self._keep_visible()
        self.view.refresh(layout=len(self.items) != rows_before)
        self.marked()

    def marked(self) -> None:
        """Called when another row is marked; a panel that previews overrides it."""

    @property
    def chosen(self) -> Item | None:
        """The marked row, None when there is none to choose."""
        item = self.items[self.index] if 0 <= self.index < len(self.items) else None
        return item if item is not None and item.key is not None else None

    def _choosable(self, start: int, step: int) -> int:
        """The first row from ``start`` on that can be chosen; ``start`` when none can."""
        index = start
        while 0 <= index < len(self.items):
            if self.items[index].key is not None:
                return index
            index += step
        return self.index if 0 <= self.index < len(self.items) else 0

    def _keep_visible(self) -> None:
        room = self.view.list_rows
        last_top = max(0, len(self.items) - room)
        if not any(item.key is not None for item in self.items):
            self.top = min(self.top, last_top)
            return
        self.top = min(max(self.top, self.index - room + 1), self.index, last_top)
        if self._choosable(0, 1) == self.index:
            self.top = 0  # headings above the first choice are seen with it

    def _go(self, index: int, step: int) -> None:
        if not self.items:
            return
        self.index = self._choosable(max(0, min(index, len(self.items) - 1)), step)
        self._keep_visible()
        self.view.refresh()
        self.marked()

    def _scroll(self, rows: int) -> None:
        self.top = max(0, min(self.top + rows, len(self.items) - self.view.list_rows))
        self.view.refresh()

    @property
    def _is_text(self) -> bool:
        return not any(item.key is not None for item in self.items)

    def action_move(self, step: int) -> None:
        """Marks the row above or below; in a text, scrolls."""
        if self._is_text:
            self._scroll(step)
        else:
            self._go(self.index + step, step)

    def action_page(self, direction: int) -> None:
        """Moves by a screenful."""
        rows = max(1, self.view.list_rows - 1) * direction
        if self._is_text:
            self._scroll(rows)
        else:
            self._go(self.index + rows, -direction if 0 <= self.index + rows < len(self.items) else direction)

    def action_edge(self, direction: int) -> None:
        """Goes to the first or last row."""
        if self._is_text:
            self._scroll(direction * len(self.items))
        else:
            self._go(len(self.items) - 1 if direction > 0 else 0, -direction)

    def action_accept(self) -> None:
        """Ends with the marked row, or closes a text. A search that found nothing stays open."""
        if self.chosen is not None:
            self.accept(self.chosen)
        elif self._is_text and (self.items or not self.query_text):
            self.dismiss(None)

    def accept(self, item: Item) -> None:
        """Ends with this row; a panel in which some rows mean something else overrides it."""
        self.dismiss(item.key)

    def action_cancel(self) -> None:
        """Closes."""
        self.dismiss(None)

    def action_erase(self) -> None:
        """Takes the last character of the search away."""
        if self.searchable and self.query_text:
            self.search(self.query_text[:-1])

    def action_erase_all(self) -> None:
        """Empties the search."""
        if self.searchable and self.query_text:
            self.search("")

    def on_key(self, event: events.Key) -> None:
        """Typed characters search."""
        if self.searchable and event.is_printable and event.character is not None:
            event.stop()
            self.search(self.query_text + event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text searches, its first line that is not empty."""
        event.stop()
        if self.searchable:
            lines = (line.strip() for line in clean_paste(event.text).split("\n"))
            self.search(self.query_text + next(filter(None, lines), ""))

    def on_resize(self) -> None:
        """The list has other room."""
        self._keep_visible()
        self.view.refresh(layout=True)

    def on_click(self, event: events.Click) -> None:
        """A click on a row takes it, one above the panel closes it."""
        if event.widget is not self.view:
            self.dismiss(None)
            return
        index = self.view.index_at(event.x, event.y)
        if index is not None and self.items[index].key is not None:
            self.accept(self.items[index])

    def on_mouse_scroll_down(self) -> None:
        """The wheel moves the mark."""
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        """The wheel moves the mark."""
        self.action_move(-1)


def text_parts(text: str, cells: int) -> list[str]:
    """The text in pieces of at most ``cells``, at any place: paths have no blanks to break at."""
    parts: list[str] = []
    while True:
        part = cut_cells(text, cells, "")
        if not part or part == text:
            return [*parts, text]
        parts.append(part)
        text = text[len(part) :]


def matches(query: str, text: str) -> bool:
    """Whether every word of the query stands in a short text, letters in order, any case."""
    low = text.lower()
    return all(_is_in_order(word, low) for word in query.lower().split())


def _is_in_order(word: str, text: str) -> bool:
    remaining = iter(text)
    return word in text or all(letter in remaining for letter in word)
