"""The bar above the editor while the session may only be read."""

import textwrap
from collections.abc import Iterable

from musepi_tui.tui.status import Status
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row, cut_row

BUSY_REMEDY = "fork it (/fork) or close the other one"
NEWER_REMEDY = "fork it (/fork), or start musepi with --force"
MARGIN_CELLS = 4


class ReadOnlyBar(DrawnWidget):
    """Says why nothing can be written and what can be done about it; nothing for a session that is ours."""

    def __init__(self, palette: Palette, status: Status) -> None:
        super().__init__(palette)
        self._status = status
        self._shown = (status.read_only, status.is_waiting)

    def refresh_rows(self) -> None:
        """Draws again when something else is to be said."""
        wanted = (self._status.read_only, self._status.is_waiting)
        if wanted != self._shown:
            self._shown = wanted
            self.refresh(layout=True)

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The reason, wrapped, and the way out."""
        cause = self._status.read_only
        if cause is None:
            return
        palette = self.palette
        warning, dim = palette.style("warning"), palette.style("dim")
        remedy = BUSY_REMEDY if self._status.can_wait else NEWER_REMEDY
        text = f"read-only: {cause}; {remedy}"
        sign = palette.symbol("warn")
        for index, line in enumerate(textwrap.wrap(text, max(8, width_cells - MARGIN_CELLS))):
            yield [(f" {sign if index == 0 else ' '} {line}", warning)]
        hint = "shown as it was when it was read · enter: read it again, and more"
        if not self._status.can_wait:
            hint = "enter: what can be done"
        if self._status.is_waiting:
            hint = "waiting for the other one to close it · esc stops waiting"
        yield cut_row([(f"   {hint}", dim)], width_cells, palette.symbol("ellipsis"))
