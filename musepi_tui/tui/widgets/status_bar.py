"""The footer row (tui 1.2)."""

from collections.abc import Iterable

from musepi_tui.tui.footer import Piece, Place, Signs, footer_pieces
from musepi_tui.tui.status import Status
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row


class StatusBar(DrawnWidget):
    """Where, what with, and how full."""

    DEFAULT_CSS = "StatusBar { height: 1; padding: 0 1 0 2; }"

    def __init__(self, palette: Palette, status: Status) -> None:
        super().__init__(palette)
        self._status = status
        self._drawn: tuple[Piece, ...] = ()
        self.place = Place("")

    def refresh_row(self) -> None:
        """Draws again when the row would be another one."""
        if self._pieces(self.size.width) != self._drawn:
            self.refresh()

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The row."""
        self._drawn = self._pieces(width_cells)
        yield [(piece.text, self.palette.style(piece.token)) for piece in self._drawn]

    def _pieces(self, width_cells: int) -> tuple[Piece, ...]:
        symbol = self.palette.symbol
        signs = Signs(
            dot=symbol("dot"),
            full=symbol("gauge_full"),
            rest=symbol("gauge_rest"),
            mark=symbol("gauge_mark"),
            up=symbol("up"),
            down=symbol("down"),
            bullet=symbol("bullet"),
            ellipsis=symbol("ellipsis"),
        )
        return footer_pieces(self._status, self.place, width_cells, signs)
