"""What every renderer is given: palette, width and how far the item is open; and the common layout.

A row is: two cells of gutter, text, one free cell at the right, where the view marks the place in the text.
"""

from collections.abc import Iterable

from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import BLANK, Line, Row, Span, to_rows, with_margin

_NARROW = 16
"""Cells below which the gutter is given up."""


@dataclass(frozen=True, slots=True)
class Brush:
    """How to draw. ``width`` in cells is that of a whole row.

    ``hint`` is the key that opens items. ``frame`` and ``elapsed_s`` are for items that run: the frame of the
    turning sign, and the seconds since the call started, as far as known.
    """

    palette: Palette
    width: int
    expanded: bool = False
    hint: str = "ctrl+o"
    frame: int = 0
    elapsed_s: float | None = None

    @property
    def gutter(self) -> int:
        """Cells left of the text."""
        return 2 if self.width >= _NARROW else 0

    @property
    def fill_cells(self) -> int:
        """Cells a background may fill: it ends before the row does (TUI-1.29)."""
        return max(1, self.width - 1)

    @property
    def text_width(self) -> int:
        """Cells for text."""
        return max(1, self.fill_cells - self.gutter)

    def style(self, token: str) -> Style:
        """The style of a token of the theme."""
        return self.palette.style(token)

    def symbol(self, name: str) -> str:
        """A symbol of the theme."""
        return self.palette.symbol(name)

    def indented(
        self, lines: Iterable[Line], first: Span | None = None, style: Style | None = None
    ) -> list[Line]:
        """The lines behind the gutter, which holds ``first`` in its first row (one or two cells)."""
        if not self.gutter:
            return list(lines)
        blank = ("  ", style or Style())
        return with_margin(lines, (first[0].ljust(2)[:2], first[1]) if first else blank, blank)

    def rows(self, lines: Iterable[Line], fill: Style | None = None) -> list[Row]:
        """The lines as full rows, and the blank row that ends every item."""
        rows = to_rows(lines, self.width, fill or Style(), self.fill_cells if fill else 0)
        return [*rows, *to_rows([BLANK], self.width)]
