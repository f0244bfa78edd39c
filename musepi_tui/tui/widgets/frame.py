"""The editor between two rules, the sign before it, and the cover of a screen that is too small."""

from collections.abc import Iterable

from rich.color import Color as RichColor
from textual.app import ComposeResult
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.base.cells import cell_width, cut_cells
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.composer import Composer
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row, blank_strips

TOO_SMALL = "terminal too small (40x12)"


class Ground(Widget):
    """A container that shows nothing of its own.

    Textual draws every widget whose clip is touched by a change, and the clip of a widget is its container:
    without the two containers each key typed would draw the transcript as well.
    """

    DEFAULT_CSS = "Ground { width: 1fr; overflow: hidden; }"

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank rows, without asking the style sheets."""
        return blank_strips(crop)


class Upper(Ground):
    """What scrolls."""

    DEFAULT_CSS = "Upper { height: 1fr; }"


class Lower(Ground):
    """What stays."""

    DEFAULT_CSS = "Lower { height: auto; }"


class PromptMark(DrawnWidget):
    """The sign in the column before the editor."""

    DEFAULT_CSS = "PromptMark { width: 2; height: 1; }"

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The sign."""
        yield [(self.palette.symbol("cursor"), self.palette.style("accent"))]


class ComposerFrame(Widget):
    """Two rules around the editor; their colour tells the thinking level, or that nothing is asked."""

    DEFAULT_CSS = "ComposerFrame { layout: horizontal; height: auto; width: 1fr; }"

    def __init__(self, palette: Palette, composer: Composer) -> None:
        super().__init__()
        self._palette = palette
        self._composer = composer
        self._mark = PromptMark(palette)
        self._token = "borderMuted"
        self._draw_rules()

    def compose(self) -> ComposeResult:
        """Sign and editor."""
        yield self._mark
        yield self._composer

    def set_palette(self, palette: Palette) -> None:
        """Draws with another theme from now on."""
        self._palette = palette
        self._mark.set_palette(palette)
        self._composer.set_palette(palette)
        self._draw_rules()

    def show_level(self, thinking_level: str, mode: str) -> None:
        """Colours the rules."""
        token = "error" if mode == "yolo" else f"thinking{thinking_level.capitalize()}"
        if token != self._token and token in self._palette.styles:
            self._token = token
            self._draw_rules()

    def _draw_rules(self) -> None:
        color = css_color(self._palette.style(self._token).color)
        kind = "solid" if self._palette.symbol("rule") == "─" else "ascii"
        self.styles.border_top = (kind, color)
        self.styles.border_bottom = (kind, color)


class TooSmall(DrawnWidget):
    """One line over everything while the terminal is smaller than 40 by 12."""

    DEFAULT_CSS = """
    TooSmall { display: none; layer: cover; width: 100%; height: 100%; background: ansi_default; }
    """

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The line, in the middle."""
        height = self.size.height
        text = cut_cells(TOO_SMALL, width_cells, "")
        row: Row = [(" " * ((width_cells - cell_width(text)) // 2) + text, self.palette.style("muted"))]
        return [row if y == (height - 1) // 2 else () for y in range(height)]


def css_color(color: RichColor | None) -> Color:
    """The colour for a style sheet; None is the terminal's own."""
    return Color.from_rich_color(color or RichColor.default())
