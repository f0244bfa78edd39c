"""Long texts shown in part: their first or last rows, and how much is hidden (TUI-2.31)."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import plural
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import Line, Span, line_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Preview(Generic[T]):
    """Which of the source lines are drawn: at most ``rows`` screen rows of them (None: all)."""

    sources: Sequence[T]
    draw: Callable[[T], list[Line]]
    rows: int | None

    def head(self) -> tuple[list[Line], int]:
        """The first rows, and how many source lines are not, or not wholly, drawn."""
        drawn: list[Line] = []
        for number, source in enumerate(self.sources):
            lines = self.draw(source)
            if self.rows is not None and len(drawn) + len(lines) > self.rows:
                hidden = len(self.sources) - number
                return [*drawn, *lines[: self.rows - len(drawn)]], hidden
            drawn += lines
        return drawn, 0

    def tail(self) -> tuple[list[Line], int]:
        """The last rows, and how many source lines are not, or not wholly, drawn."""
        parts: list[list[Line]] = []
        count = 0
        hidden = 0
        for number in range(len(self.sources) - 1, -1, -1):
            lines = self.draw(self.sources[number])
            if self.rows is not None and count + len(lines) > self.rows:
                room = self.rows - count
                parts.append(lines[len(lines) - room :])
                hidden = number + 1
                break
            parts.append(lines)
            count += len(lines)
        return [line for part in reversed(parts) for line in part], hidden


def hidden_line(hidden: int, where: str, palette: Palette, base: Style, hint: str) -> Line:
    """``… 34 more lines · ctrl+o``; ``where`` is ``more`` or ``earlier``."""
    count = plural(hidden, f"{where} line")
    text = f"{palette.symbol('ellipsis')} {count} {palette.symbol('dot')} {hint}"
    return line_of((text, base + palette.style("dim")))


def spans_of_sgr(text: str, base: Style) -> list[list[Span]]:
    """The lines of a command's output as spans; its colours (SGR sequences) are kept."""
    if "\x1b" not in text:
        return [[(line, base)] for line in text.split("\n")]
    from rich.ansi import AnsiDecoder  # only few outputs are coloured, and no start needs it

    decoder = AnsiDecoder()
    lines: list[list[Span]] = []
    for line in text.split("\n"):
        decoded = decoder.decode_line(line)
        plain = decoded.plain
        spans: list[Span] = []
        position = 0
        for span in sorted(decoded.spans, key=lambda span: span.start):
            if span.start > position:
                spans.append((plain[position : span.start], base))
            style = span.style if isinstance(span.style, Style) else Style()
            spans.append((plain[max(position, span.start) : span.end], base + style))
            position = max(position, span.end)
        spans.append((plain[position:], base))
        lines.append([span for span in spans if span[0]])
    return lines


def last_rewrites(text: str) -> str:
    """Lines that a carriage return wrote over, as a terminal would leave them: only their last version."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
