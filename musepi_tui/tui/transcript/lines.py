"""Styled text cut into screen lines, and lines made into full-width strips.

Spans hold safe text without tabs. Every segment has a style: without one a terminal without colours fails.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Span: TypeAlias = tuple[str, Style]

BOLD = Style(bold=True)
ITALIC = Style(italic=True)
PLAIN = Style()

_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_NARROW_WORD = re.compile(r"\S+\s*|\s+")
"""Where a line may end: after blanks. For text without a character from ``_FIRST_WIDE`` on."""

_FIRST_WIDE = _WIDE[0]


class Line(NamedTuple):
    """One line of text, not wider than it was asked to be.

    ``margin`` counts the leading characters (one cell each) that are no text: bars and gutters. ``join`` is
    what stood between this line and the one before in the text: None for a line break, else a blank or
    nothing, since the text was only wrapped. ``is_text`` false: a border, which nobody wants to copy.
    """

    spans: tuple[Span, ...]
    cells: int
    join: str | None = None
    margin: int = 0
    is_text: bool = True


BLANK = Line((), 0)

_JOINER, _EMOJI = "\u200d", "\ufe0f"
"""What makes one glyph of several characters: its width is not the sum of theirs."""


class Row(NamedTuple):
    """A line as it is drawn: full width. The other fields are those of ``Line``."""

    strip: Strip
    join: str | None = None
    margin: int = 0
    is_text: bool = True

    @property
    def text(self) -> str:
        """The text of the row: without margin and trailing blanks; nothing for a border."""
        return self.strip.text[self.margin :].rstrip() if self.is_text else ""


def line_of(*spans: Span) -> Line:
    """A line that is not wrapped. It may turn out wider than the screen, then it is cropped."""
    return Line(spans, sum(cell_len(text) for text, _ in spans))


def wrap(spans: Sequence[Span], width_cells: int) -> list[Line]:
    """The text in lines of at most ``width_cells``, broken at blanks where possible and at every newline.

    An empty text gives one empty line.
    """
    width = max(1, width_cells)
    lines: list[Line] = []
    for paragraph in _paragraphs(spans):
        text = "".join(part for part, _ in paragraph)
        cursor = _SpanCursor(_glue_glyphs(paragraph) if _JOINER in text or _EMOJI in text else paragraph)
        for start, end, join in _breaks(text, width):
            part = text[start:end]
            lines.append(Line(cursor.take(start, end), len(part) if part.isascii() else cell_len(part), join))
    return lines


def with_margin(lines: Iterable[Line], first: Span, rest: Span | None = None) -> list[Line]:
    """The lines with ``first`` before the first one and ``rest`` (else blanks) before the others, as margin.

    Margins consist of characters of one cell.
    """
    cells = len(first[0])
    before = first
    after = rest if rest is not None else (" " * cells, first[1])
    moved: list[Line] = []
    for spans, width, join, margin, is_text in lines:
        moved.append(Line((before, *spans), width + cells, join, margin + cells, is_text))
        before = after
    return moved


def hanging(lines: Iterable[Line], first: Span) -> list[Line]:
    """The lines behind a bullet: it belongs to the text of the first line, the others hang below."""
    cells = cell_len(first[0])
    before = first
    blanks = (" " * cells, first[1])
    moved: list[Line] = []
    for spans, width, join, margin, is_text in lines:
        # blanks before a wrapped line are no text; before a bar they are part of the margin
        in_margin = margin or (before is blanks and join is not None)
        moved.append(Line((before, *spans), width + cells, join, margin + cells if in_margin else 0, is_text))
        before = blanks
    return moved


def to_rows(lines: Iterable[Line], width_cells: int, fill: Style = PLAIN, fill_cells: int = 0) -> list[Row]:
    """The lines as rows of exactly ``width_cells``, the first ``fill_cells`` of each over ``fill``."""
    rows: list[Row] = []
    for line in lines:
        segments = [
            Segment(text, fill + style if fill_cells else style) for text, style in joined(line.spans)
        ]
        cells = line.cells
        if cells < fill_cells:
            segments.append(Segment(" " * (fill_cells - cells), fill))
            cells = fill_cells
        if cells < width_cells:
            segments.append(Segment(" " * (width_cells - cells), PLAIN))
            cells = width_cells
        strip = Strip(segments, cells)
        if cells > width_cells:
            strip = Strip(segments).crop(0, width_cells).adjust_cell_length(width_cells, PLAIN)
        rows.append(Row(strip, line.join, min(line.margin, len(strip.text)), line.is_text))
    return rows


def joined(spans: Iterable[Span]) -> list[Span]:
    """The spans with neighbours that look the same in one: each span costs some 25 bytes of colour codes.

    Blanks look the same in any colour, unless something is drawn on them.
    """
    runs: list[Span] = []
    for text, style in spans:
        if not text:
            continue
        if runs:
            before, look = runs[-1]
            if style is look or style == look or (text.isspace() and _on_blanks(style) == _on_blanks(look)):
                runs[-1] = (before + text, look)
                continue
        runs.append((text, style))
    return runs


@lru_cache(maxsize=512)
def _on_blanks(style: Style) -> tuple[object, ...]:
    """What one sees of a style where there are only blanks."""
    return (
        style.bgcolor,
        style.reverse or None,
        style.underline or style.underline2 or None,
        style.strike or style.overline or None,
        style.link,
        style.meta,
    )


class _SpanCursor:
    """Slices of a run of spans, taken from left to right."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._index = 0
        self._start = 0

    def take(self, start: int, end: int) -> tuple[Span, ...]:
        taken: list[Span] = []
        while self._index < len(self._spans):
            text, style = self._spans[self._index]
            stop = self._start + len(text)
            if self._start < end and stop > start:
                part = text[max(0, start - self._start) : end - self._start]
                taken.append((part, style))
            if stop > end:
                break
            self._index += 1
            self._start = stop
        return tuple(taken)


def _glue_glyphs(spans: Sequence[Span]) -> list[Span]:
    """The spans with no glyph divided between two of them, as a highlighter may do."""
    glued: list[Span] = []
    for text, style in spans:
        rest = text
        while glued and rest and (rest[0] in (_JOINER, _EMOJI) or glued[-1][0].endswith(_JOINER)):
            glued[-1] = (glued[-1][0] + rest[0], glued[-1][1])
            rest = rest[1:]
        if rest:
            glued.append((rest, style))
    return glued


def _paragraphs(spans: Sequence[Span]) -> Iterator[list[Span]]:
    paragraph: list[Span] = []
    for text, style in spans:
        if "\n" not in text:
            paragraph.append((text, style))
            continue
        first, *others = text.split("\n")
        paragraph.append((first, style))
        for part in others:
            yield paragraph
            paragraph = [(part, style)]
    yield paragraph


def _breaks(text: str, width: int) -> Iterator[tuple[int, int, str | None]]:
    """Start, end and join of each line of a text without newlines."""
    if text.isascii():
        return _ascii_breaks(text, width)
    if cell_len(text) <= width:
        return iter([(0, len(text), None)])
    return _word_breaks(text, width)


def _ascii_breaks(text: str, width: int) -> Iterator[tuple[int, int, str | None]]:
    start = 0
    join = None
    while len(text) - start > width:
        end = text.rfind(" ", start + 1, start + width + 1)
        if end < 0 or not text[start:end].strip():
            yield start, start + width, join
            start, join = start + width, ""
            continue
        yield start, start + len(text[start:end].rstrip()), join
        start, join = end + len(text[end:]) - len(text[end:].lstrip()), " "
    yield start, len(text), join


@cache
def _any_word() -> re.Pattern[str]:
    """Where any line may end: also around characters of scripts that are written without blanks.

    Compiled late: it is slow to compile, and the first frame does without it.
    """
    return re.compile(f"[{_WIDE}]\\s*|[^\\s{_WIDE}]+\\s*|\\s+")


def _word_breaks(text: str, width: int) -> Iterator[tuple[int, int, str | None]]:
    start = end = cells = 0
    join: str | None = None
    pattern = _NARROW_WORD if text.isascii() or max(text) < _FIRST_WIDE else _any_word()
    for match in pattern.finditer(text):
        word = match[0].rstrip()
        word_cells = cell_len(word)
        if cells + word_cells > width and end > start:
            yield start, end, join
            join = " " if match.start() > end else ""
            start = end = match.start()
            cells = 0
        elif cells + word_cells > width:
            start = end = match.start()  # blanks at the start of a line that leave no room for its first word
            cells = 0
        if word_cells > width:
            for piece in chop_cells(word, width)[:-1]:
                yield start, start + len(piece), join
                start, join = start + len(piece), ""
            word_cells = cell_len(text[start : match.start() + len(word)])
        if word:
            end = match.start() + len(word)
        cells += word_cells + cell_len(match[0][len(word) :])
    yield start, max(end, start), join
