"""Rows of styled text as strips: what every small widget of the shell is drawn with."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.base.cells import cell_width, cut_cells
from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import joined

Row: TypeAlias = Sequence[tuple[str, Style]]
"""Runs of text with their styles, left to right."""

GROUND = Style()
"""The terminal's own ground. Every segment needs a style, or a terminal without colours breaks the frame."""


def app_of(widget: Widget) -> App[object]:
    """The app a widget runs in, whatever it returns at its end."""
    return widget.app  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  open in Textual


def one_line(text: str) -> str:
    """Text from outside as one line that a terminal shows as it is."""
    return " ".join(display_safe(text).split())


def row_cells(row: Row) -> int:
    """Cells the row takes."""
    return sum(cell_width(text) for text, _ in row)


def cut_row(row: Row, width_cells: int, ellipsis: str = "…") -> list[tuple[str, Style]]:
    """The row in at most ``width_cells``; an ellipsis ends it when something was left out."""
    if row_cells(row) <= width_cells:
        return list(row)
    result: list[tuple[str, Style]] = []
    left = width_cells - cell_width(ellipsis)
    for text, style in row:
        if cell_width(text) > left:
            result.append((cut_cells(text, max(left, 0), "") + cut_cells(ellipsis, width_cells, ""), style))
            break
        result.append((text, style))
        left -= cell_width(text)
    return result


def spread(left: Row, right: Row, width_cells: int, ellipsis: str = "…") -> list[tuple[str, Style]]:
    """One row with ``left`` at its start and ``right`` at its end; without room ``right`` goes."""
    room = width_cells - row_cells(right) - 2
    if room < min(row_cells(left), 16):
        return cut_row(left, width_cells, ellipsis)
    shown = cut_row(left, room, ellipsis)
    gap = width_cells - row_cells(shown) - row_cells(right)
    return [*shown, (" " * gap, GROUND), *right]


def without_start(row: Row, cells: int) -> list[tuple[str, Style]]:
    """The row without its first ``cells``, if any; half a wide character becomes a blank."""
    cells = max(0, cells)
    rest: list[tuple[str, Style]] = []
    for text, style in row:
        here = cell_width(text)
        if cells >= here:
            cells -= here
            continue
        if cells > 0:
            gone = cut_cells(text, cells, "")
            half = cells - cell_width(gone)
            text = " " * half + text[len(gone) + half :]
            cells = 0
        rest.append((text, style))
    return rest


def title_row(title: str, palette: Palette, width_cells: int) -> Row:
    """A title in the rule above a part of the screen."""
    rule, border = palette.symbol("rule"), palette.style("borderAccent")
    shown = cut_cells(title, max(0, width_cells - 4), palette.symbol("ellipsis"))
    rest = rule * max(0, width_cells - 3 - cell_width(shown))
    return [(rule, border), (f" {shown} ", palette.style("accent") + Style(bold=True)), (rest, border)]


def search_row(query: str, empty: str, palette: Palette, width_cells: int, *, caret: bool = True) -> Row:
    """What is typed into a search; of a long one the end, where its caret is. ``empty`` stands for nothing.

    ``caret``: the keys go there.
    """
    ellipsis = palette.symbol("ellipsis")
    mark = (f"{palette.symbol('cursor')} ", palette.style("accent"))
    here = (" ", Style(reverse=True) if caret else GROUND)
    room = max(0, width_cells - row_cells([mark, here]))
    if not query:
        return [mark, here, *cut_row([(empty, palette.style("dim"))], room, ellipsis)]
    typed: Row = [(query, palette.style("text"))]
    if cell_width(query) > room:
        gone = cell_width(query) - room + cell_width(ellipsis)
        typed = [(ellipsis, palette.style("dim")), *without_start(typed, gone)]
    return [mark, *typed, here]


def strip_of(row: Row, width_cells: int, fill: Style = GROUND) -> Strip:
    """The row as a strip of exactly ``width_cells``; ``fill`` lies under all of it."""
    segments = [Segment(text, fill + style) for text, style in joined(row)]
    return Strip(segments).crop_extend(0, width_cells, fill)


def blank_strips(crop: Region) -> list[Strip]:
    """Rows of the terminal's own ground for a part of a widget."""
    return [Strip.blank(crop.width, GROUND)] * crop.height


class DrawnWidget(Widget):
    """A widget that says its rows and is as high as they are many."""

    DEFAULT_CSS = "DrawnWidget { height: auto; width: 1fr; }"
    ALLOW_SELECT = False

    def __init__(self, palette: Palette, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.palette = palette

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The rows to draw at this width: none, unless a subclass says so."""
        return ()

    def set_palette(self, palette: Palette) -> None:
        """Draws with another theme from now on."""
        self.palette = palette
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """One line per row."""
        return len(list(self.rows(width)))

    def render_line(self, y: int) -> Strip:
        """The row at ``y``; below the last one nothing."""
        width = self.size.width
        rows = list(self.rows(width))
        return strip_of(rows[y] if y < len(rows) else (), width)
