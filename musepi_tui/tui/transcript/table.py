"""Markdown tables: natural widths, else wrapped cells, else one ``key: value`` line per cell."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.tui.transcript.lines import BLANK, BOLD, Line, Span, hanging, wrap

_NARROWEST_COLUMN = 8
"""Cells below which wrapped cells are hard to read: then each row becomes key/value lines."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as spans, the first row is the header. ``alignments`` are ``left``, ``right`` or ``center``."""

    rows: Sequence[Sequence[list[Span]]]
    alignments: Sequence[str]
    border: Style
    rule: str
    bar: str

    def lines(self, width_cells: int) -> list[Line]:
        """The table in lines of at most ``width_cells``."""
        columns = max((len(row) for row in self.rows), default=0)
        if not columns:
            return []
        natural = [
            max((_cell_width(row[column]) for row in self.rows if column < len(row)), default=0)
            for column in range(columns)
        ]
        widths = fit_columns(natural, width_cells - 3 * (columns - 1))
        if widths is None:
            return self._pairs(width_cells)
        return self._grid([max(1, width) for width in widths])

    def _grid(self, widths: Sequence[int]) -> list[Line]:
        lines: list[Line] = []
        for number, row in enumerate(self.rows):
            lines.extend(self._grid_row(row, widths, BOLD if number == 0 else None))
            if number == 0:
                cross = "┼" if self.rule == "─" else "+"
                rule = f"{self.rule}{cross}{self.rule}".join(self.rule * width for width in widths)
                lines.append(Line(((rule, self.border),), cell_len(rule), is_text=False))
        return lines

    def _grid_row(self, row: Sequence[list[Span]], widths: Sequence[int], extra: Style | None) -> list[Line]:
        cells = [
            wrap([(text, style + extra if extra else style) for text, style in _cell(row, column)], width)
            for column, width in enumerate(widths)
        ]
        lines: list[Line] = []
        for number in range(max(len(cell) for cell in cells)):
            spans: list[Span] = []
            for column, width in enumerate(widths):
                line = cells[column][number] if number < len(cells[column]) else BLANK
                if column:
                    spans.append((f" {self.bar} ", self.border))
                spans.extend(_aligned(line, width, self._alignment(column)))
            lines.append(Line(tuple(spans), sum(widths) + 3 * (len(widths) - 1)))
        return lines

    def _pairs(self, width_cells: int) -> list[Line]:
        header, *rows = self.rows
        lines: list[Line] = []
        for row in rows or [[[] for _ in header]]:
            if lines:
                lines.append(BLANK)
            for column, cell in enumerate(row):
                name = [(text, style + BOLD) for text, style in _cell(header, column)]
                spans = [*name, (": ", self.border), *cell]
                lines.extend(hanging(wrap(spans, max(1, width_cells - 2)), ("", self.border)))
        return lines

    def _alignment(self, column: int) -> str:
        return self.alignments[column] if column < len(self.alignments) else "left"


def fit_columns(natural: Sequence[int], room_cells: int) -> list[int] | None:
    """Column widths that fill at most ``room_cells``: small columns keep theirs, big ones share the rest.

    None when that would leave a column under eight cells that needs more.
    """
    if sum(natural) <= room_cells:
        return list(natural)
    widths = [0] * len(natural)
    open_columns = sorted(range(len(natural)), key=lambda column: natural[column])
    rest = room_cells
    for position, column in enumerate(open_columns):
        share = rest // (len(open_columns) - position)
        widths[column] = min(natural[column], share)
        if widths[column] < min(natural[column], _NARROWEST_COLUMN):
            return None
        rest -= widths[column]
    return widths


def _cell(row: Sequence[list[Span]], column: int) -> list[Span]:
    return row[column] if column < len(row) else []


def _cell_width(cell: Sequence[Span]) -> int:
    return max(cell_len(line) for line in "".join(text for text, _ in cell).split("\n"))


def _aligned(line: Line, width: int, alignment: str) -> list[Span]:
    rest = max(0, width - line.cells)
    before = rest if alignment == "right" else rest // 2 if alignment == "center" else 0
    style = line.spans[0][1] if line.spans else Style()
    spans = [(" " * before, style)] if before else []
    return [*spans, *line.spans, *([(" " * (rest - before), style)] if rest > before else [])]
