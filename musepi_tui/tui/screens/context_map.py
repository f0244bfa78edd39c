"""The context window as a hundred blocks beside the table of ``/context`` (tui 4.6)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.style import Style

from musepi_tui.base.cells import cell_width
from musepi_tui.tui.screens.panel import Item, Panel, PanelText, PanelView
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import GROUND, Row, app_of, cut_row, row_cells

SIDE = 10
"""Blocks in a row, and rows."""

MAP_CELLS = 2 * SIDE - 1
GAP_CELLS = 4
"""Cells between the table and the map, where there is room; half of it does as well."""

FREE, BEYOND = "free", "billed beyond these"
"""Parts of the window besides those of the breakdown."""

_LOOKS: Mapping[str, tuple[str, str]] = {
    "system prompt": ("accent", "S"),
    "tools": ("thinkingLow", "T"),
    "summary": ("customMessageLabel", "M"),
    "kept tail": ("thinkingMax", "K"),
    "user": ("success", "U"),
    "assistant": ("text", "A"),
    "thinking": ("thinkingText", "H"),
    "tool calls": ("thinkingHigh", "C"),
    "tool results": ("syntaxType", "R"),
    "images": ("thinkingMedium", "I"),
    "other": ("syntaxNumber", "O"),
    BEYOND: ("dim", "B"),
    FREE: ("gaugeRest", "."),
}
"""The colour of each part, unlike that of its neighbours, and its letter where colours do not tell apart."""


@dataclass(frozen=True, slots=True)
class PartItem(Item):
    """A row of the table with blocks in the map."""

    part: str = ""


@dataclass(frozen=True, slots=True)
class BlockMap:
    """The map: the part of each block, and where it is drawn.

    ``column`` is its first cell, ``top`` the index of the item beside its first row; ``caption`` stands above
    that.
    """

    blocks: tuple[str, ...]
    column: int
    top: int
    caption: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows at one width, and the map beside them where it fits."""

    items: Sequence[Item]
    map: BlockMap | None = None


def place_map(table_cells: int, bar_cells: int, width_cells: int) -> int | None:
    """The column of the map beside a table of so many cells, followed by bars; None: there is no room."""
    last = width_cells - MAP_CELLS - 1
    column = min(table_cells + bar_cells + GAP_CELLS, last)
    return column if column >= table_cells + GAP_CELLS // 2 else None


def mark_of(part: str, palette: Palette) -> tuple[str, Style]:
    """How a block of the part looks: a coloured sign, or a letter where some parts would look the same."""
    token, letter = _LOOKS[part]
    style = palette.style(token)
    if _has_own_colors(palette):
        return palette.symbol("gauge_rest" if part == FREE else "gauge_full"), style
    return palette.symbol("dot") if part == FREE else letter, style


def _has_own_colors(palette: Palette) -> bool:
    """Whether every part has a colour of its own, and signs for blocks that are not letters anyway."""
    colors = {palette.style(token).color for token, _ in _LOOKS.values()}
    return len(colors) == len(_LOOKS) and not palette.symbol("gauge_full").isascii()


class ContextView(PanelView, inherit_css=True):
    """Draws the table and the map beside it; the marks of the rows are the key to the map."""

    DEFAULT_CSS = "ContextView { height: auto; width: 1fr; background: ansi_default; }"

    def __init__(self, panel: "ContextPanel", palette: Palette) -> None:
        super().__init__(panel, palette)
        self._shown = panel

    def _item(self, index: int, width_cells: int) -> Row:
        block_map = self._shown.block_map
        if block_map is None:
            return super()._item(index, width_cells)
        beside = self._map_row(block_map, index)
        room = block_map.column - GAP_CELLS // 2
        if index < block_map.top and _cells_of(self._shown.items[index]) > room:
            beside = ()  # figures need the place of the caption
        row = self._marked(index, super()._item(index, room if beside else width_cells))
        if not beside:
            return row
        return [*row, (" " * (block_map.column - row_cells(row)), GROUND), *beside]

    def _marked(self, index: int, row: Row) -> Row:
        """The row with the sign of its part in front of the name."""
        item = self._shown.items[index]
        if not isinstance(item, PartItem) or not item.part:
            return row
        (label, style), *rest = row
        return [("  ", GROUND), mark_of(item.part, self.palette), (label[3:], style), *rest]

    def _map_row(self, block_map: BlockMap, index: int) -> Row:
        line = index - block_map.top
        if line == -1:
            caption = [(block_map.caption, self.palette.style("dim"))]
            return cut_row(caption, MAP_CELLS, self.palette.symbol("ellipsis"))
        if not 0 <= line < SIDE:
            return ()
        row: list[tuple[str, Style]] = []
        for part in block_map.blocks[line * SIDE : (line + 1) * SIDE]:
            row += [(" ", GROUND), mark_of(part, self.palette)]
        return row[1:]


def _cells_of(item: Item) -> int:
    """Cells of a row that cannot be chosen."""
    return 2 + cell_width(item.label) + 2 + cell_width(item.detail)


class ContextPanel(Panel):
    """The figures of the context. ``lay_out`` gives the rows for a width in cells."""

    def __init__(self, palette: Palette, text: PanelText, lay_out: Callable[[int], Layout]) -> None:
        super().__init__(palette, text, lambda _: self._fill(), searchable=False)
        self._lay_out = lay_out
        self.block_map: BlockMap | None = None
        self.view = ContextView(self, palette)

    def _fill(self) -> Sequence[Item]:
        layout = self._lay_out(app_of(self).size.width)
        self.block_map = layout.map
        return layout.items

    def on_resize(self) -> None:
        """Bars and map follow the width."""
        self.search("")
