"""How the list of sessions is drawn: more facts on wide rows, the end of the marked session beside them."""

from collections.abc import Mapping
from typing import Protocol

from musepi_tui.base.cells import cell_width
from musepi_tui.tui.screens.panel import Item, Panel, PanelView
from musepi_tui.tui.screens.session_preview import Preview, preview_rows
from musepi_tui.tui.screens.session_rows import LABEL_CELLS, Facts, fitting_details, shown_besides
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import GROUND, Row, app_of, cut_row, row_cells

PREVIEW_COLUMNS = 110
"""From this width on a session is previewed (TUI-4.83)."""

LIST_SHARE = 0.55
"""What the list keeps of a screen with a preview."""

PREVIEW_ROWS = 14
"""Rows a preview gets however few sessions there are."""

FRAME_CELLS = 7
"""Cells of a row that are neither title nor details: marks and blanks."""


class Shown(Protocol):
    """What a list of sessions gives its view: what its rows depend on, and what is shown beside them."""

    preview: Preview | None

    @property
    def facts(self) -> Facts:
        """What the rows depend on besides their sessions."""
        ...

    def details(self, item: Item) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """What the row of a session says, and what is known of the session besides."""
        ...


class SessionsView(PanelView):
    """Draws the list of sessions."""

    def __init__(self, panel: Panel, shown: Shown, palette: Palette) -> None:
        super().__init__(panel, palette)
        self._shown = shown

    @property
    def has_preview(self) -> bool:
        """Whether the screen is wide enough for one."""
        return app_of(self).size.width >= PREVIEW_COLUMNS

    def _height(self) -> int:
        height = super()._height()
        if not self.has_preview:
            return height
        most = app_of(self).size.height * 2 // 3
        return max(height, min(most, PREVIEW_ROWS + self._frame_rows()))

    def detail_of(self, item: Item, width_cells: int) -> str:
        """Besides what every row says: what there is room for, the same in all rows."""
        details, besides = self._shown.details(item)
        if not details:
            return item.detail
        room = width_cells - min(LABEL_CELLS, cell_width(item.label)) - FRAME_CELLS
        fitting = fitting_details(details, room)
        said = " · ".join(fitting)
        names = shown_besides(width_cells) if len(fitting) == len(details) else ()
        for name in reversed(names):
            longer = f"{besides.get(name, '')} · {said}"
            said = longer if name in besides and cell_width(longer) <= room else said
        return said

    def index_at(self, x: int, y: int) -> int | None:
        """The session drawn at a cell; the preview beside the list is none."""
        is_list = not self.has_preview or x < _list_cells(self.size.width)
        return super().index_at(x, y) if is_list else None

    def _list(self, width_cells: int) -> list[Row]:
        if not self.has_preview:
            return super()._list(width_cells)
        left_cells = _list_cells(width_cells)
        left = super()._list(left_cells)
        right = self._preview(width_cells - left_cells - 4, len(left))
        bar = (f" {self.palette.symbol('bar')} ", self.palette.style("borderMuted"))
        return [
            [*self._fitted(row, left_cells), bar, *beside] for row, beside in zip(left, right, strict=True)
        ]

    def _preview(self, width_cells: int, rows: int) -> list[Row]:
        preview = self._shown.preview
        if preview is None:
            return [()] * rows
        return preview_rows(preview, self._shown.facts, self.palette, width_cells, rows)

    def _fitted(self, row: Row, width_cells: int) -> Row:
        """The row in exactly so many cells."""
        shown = cut_row(row, width_cells, self.palette.symbol("ellipsis"))
        return [*shown, (" " * (width_cells - row_cells(shown)), GROUND)]


def _list_cells(width_cells: int) -> int:
    """What the list keeps of a screen with a preview."""
    return int(width_cells * LIST_SHARE)
