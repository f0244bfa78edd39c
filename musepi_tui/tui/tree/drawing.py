"""One row of the tree as styled text, and how far rows are moved to the left (tui 5.2). Pure."""

from datetime import datetime

from rich.style import Style

from musepi_tui.base.cells import cell_width
from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.times import unix_ms
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.tree.layout import FOLDED, in_symbols
from musepi_tui.tui.tree.model import Label, TreeRow
from musepi_tui.tui.widgets.drawing import GROUND, Row, cut_row, one_line, row_cells, without_start

CURSOR_CELLS = 2
"""The column of the cursor, which stays where it is when the rest is moved."""

_SPEAKERS = (("user:", "accent"), ("assistant:", "success"))
_MARKS = (("[compaction", "dividerLabel"), ("[branch summary", "dividerLabel"), ("[", "muted"))
"""What a row begins with, and the token it is drawn in: of the speaker only the word, of a mark the row."""


@dataclass(frozen=True, slots=True)
class Look:
    """How rows are drawn. ``pan_cells`` are left out at the left; ``now_ms`` None: no label times.
    ``gap_cells`` stay free in place of the label: its editor lies there."""

    palette: Palette
    width_cells: int
    pan_cells: int = 0
    now_ms: int | None = None
    gap_cells: int = 0


def find_pan(text_start: int, width_cells: int) -> int:
    """Cells to leave out at the left so that a row whose text begins at ``text_start`` can be read.

    At least a third of the width, 4 to 20 cells, is left for the text, with 2 to 12 cells of tree before it.
    """
    text_cells = max(4, min(20, width_cells // 3))
    if text_start + text_cells <= width_cells:
        return 0
    tree_cells = max(2, min(12, width_cells // 4))
    return max(0, text_start - tree_cells)


def text_start(row: TreeRow, palette: Palette) -> int:
    """Cells of tree before the text of a row, the cursor column not counted."""
    return len(row.prefix) + (cell_width(f"{palette.symbol('bullet')} ") if row.on_path else 0)


def draw_row(row: TreeRow, text: str, look: Look, *, marked: bool) -> Row:
    """The row in exactly ``look.width_cells``; ``text`` is what the entry says."""
    palette = look.palette
    width = look.width_cells - CURSOR_CELLS
    end: Row = [(f" {palette.symbol('here')} here", palette.style("treePath"))] if row.is_leaf else []
    if row_cells(end) + 8 > width:
        end = []
    bullet = [(f"{palette.symbol('bullet')} ", palette.style("treePath"))] if row.on_path else []
    body = [*bullet, *_label_spans(row.label, look), *_text_spans(text, palette)]
    tree = row.prefix[look.pan_cells : look.pan_cells + width]
    shown = [*_tree_spans(tree, palette), *without_start(body, look.pan_cells - len(row.prefix))]
    shown = cut_row(shown, width - row_cells(end), palette.symbol("ellipsis"))
    mark = palette.symbol("cursor") if marked else " "
    drawn: Row = [(f"{mark} ", palette.style("accent")), *shown, *end]
    blanks = " " * max(0, look.width_cells - row_cells(drawn))
    under = palette.style("selectedBg") + Style(bold=True) if marked else GROUND
    return [(part, style + under) for part, style in (*drawn, (blanks, GROUND))]


def _tree_spans(prefix: str, palette: Palette) -> Row:
    """The lines of the tree before a row. Far down they may be hundreds of characters, each of one cell."""
    signs = in_symbols(prefix, palette.symbols)
    fold = prefix.find(FOLDED)
    dim = palette.style("dim")
    if fold < 0:
        return [(signs, dim)]
    return [(signs[:fold], dim), (signs[fold], palette.style("accent")), (signs[fold + 1 :], dim)]


def label_time(timestamp: str, now_ms: int) -> str:
    """When a label was given: the time today, else the day as well; empty when that cannot be read."""
    given_ms = unix_ms(timestamp)
    if given_ms is None:
        return ""
    given, now = (datetime.fromtimestamp(ms / 1000).astimezone() for ms in (given_ms, now_ms))
    if given.date() == now.date():
        return f"{given:%H:%M}"
    day = f"{given.month}/{given.day} {given:%H:%M}"
    return day if given.year == now.year else f"{given:%y}/{day}"


def _label_spans(label: Label | None, look: Look) -> Row:
    if look.gap_cells:
        return [(" " * look.gap_cells, GROUND)]
    if label is None:
        return []
    text = one_line(label.text)
    spans: list[tuple[str, Style]] = [(f"[{text}] ", look.palette.style("treeLabel"))]
    time = label_time(label.timestamp, look.now_ms) if look.now_ms is not None else ""
    return [*spans, (f"{time} ", look.palette.style("dim"))] if time else spans


def _text_spans(text: str, palette: Palette) -> Row:
    for speaker, token in _SPEAKERS:
        if text.startswith(speaker):
            return [(speaker, palette.style(token)), (text[len(speaker) :], palette.style("text"))]
    token = next((token for mark, token in _MARKS if text.startswith(mark)), "text")
    return [(text, palette.style(token))]
