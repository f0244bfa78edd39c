"""The line across the transcript: ``── 📷 compacted · ctrl+o ──`` (TUI-2.40 to 2.44)."""

from musepi_tui.base.cells import cell_width, cut_cells
from musepi_tui.base.dataclass import dataclass
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import Line, line_of

_LEAST_RULES = 4
"""Rule cells below which the label stands alone: two on each side make the canonical text."""


@dataclass(frozen=True, slots=True)
class Divider:
    """``symbol`` is the name of a symbol of the palette, ``hint`` the key that opens the divider."""

    symbol: str
    label: str
    hint: str = "ctrl+o"
    warned: bool = False

    def line(self, palette: Palette, width_cells: int) -> Line:
        """The divider over the full width, or its bare label where that does not fit. Never wraps."""
        name = f"{palette.symbol(self.symbol)} {self.label}"
        mark = f" {palette.symbol('warn')}" if self.warned else ""
        dot = palette.symbol("dot")
        quiet = palette.style("dividerLabel")
        rest = width_cells - cell_width(f" {name}{mark} {dot} {self.hint} ")
        if rest < _LEAST_RULES:
            return line_of((cut_cells(name, max(0, width_cells), palette.symbol("ellipsis")), quiet))
        rule, style = palette.symbol("rule"), palette.style("divider")
        left = rest // 2
        return line_of(
            (rule * left, style),
            (f" {name}", quiet),
            (mark, quiet + palette.style("warning")),
            (f" {dot} {self.hint} ", palette.style("dim")),
            (rule * (rest - left), style),
        )
