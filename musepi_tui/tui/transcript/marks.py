"""What lies over the text while one reads back: the place in the whole, and the chip to the end."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from musepi_tui.base.cells import cell_width
from musepi_tui.base.dataclass import dataclass
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.viewport import Viewport


@dataclass(frozen=True, slots=True)
class Marks:
    """``thumb`` are the screen rows of the scroll mark; ``chip_row`` and its text, empty for none."""

    thumb: range = range(0)
    chip_row: int = -1
    chip: str = ""
    width: int = 0

    def at(self, row: int) -> tuple[bool, str]:
        """Whether the scroll mark crosses a row, and the chip on it."""
        return row in self.thumb, self.chip if row == self.chip_row else ""

    def has_chip_at(self, column: int, row: int) -> bool:
        """Whether the chip covers a cell."""
        return bool(self.chip) and row == self.chip_row and column >= self.width - cell_width(self.chip) - 5


def marks_of(viewport: Viewport) -> Marks:
    """The marks for what the viewport shows: none while it follows the end."""
    height, total = viewport.height, max(viewport.heights.total, len(viewport.rows))
    if viewport.following or total <= height or height < 2:
        return Marks()
    size = max(1, height * height // total)
    start = min(height - size, viewport.top_row * height // total)
    count = viewport.new_items
    chip = f"{count} new" if count else ""
    return Marks(range(start, start + size), height - 1, chip, viewport.width)


def marked_strip(strip: Strip, marks: tuple[bool, str], palette: Palette) -> Strip:
    """A row with its marks painted over it."""
    thumb, chip = marks
    if chip:
        style = palette.style("accent") + palette.style("selectedBg")
        strip = _overlay(strip, f" {palette.symbol('down')} {chip} ", style, strip.cell_length - 1)
    if thumb:
        strip = _overlay(strip, palette.symbol("bar"), palette.style("dim"), strip.cell_length)
    return strip


def _overlay(strip: Strip, text: str, style: Style, end: int) -> Strip:
    """The strip with ``text`` over the cells before ``end``, unchanged where there is no room."""
    cells = cell_width(text)
    start = end - cells
    if start < 0:
        return strip
    parts = [*strip.crop(0, start), Segment(text, style), *strip.crop(end, strip.cell_length)]
    return Strip(parts, strip.cell_length)
