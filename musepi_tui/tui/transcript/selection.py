"""Selected text: positions that survive scrolling, and the text between two of them as people expect it.

A position is a character of a row's text (without gutter) and a row code: slot and row in the slot in one
number, since rows counted from the top would move whenever an estimated height is corrected.
"""

import re
from collections.abc import Iterable

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from musepi_tui.tui.transcript.lines import PLAIN, Row
from musepi_tui.tui.transcript.viewport import Placed, Viewport

_SLOT_ROWS = 1 << 24
"""Row codes per slot; no slot has as many rows."""

_WORD = re.compile(r"[\w./~@:+-]+|\S")
"""What a double click takes: words, paths and addresses in one piece."""


def row_code(placed: Placed) -> int:
    """The number that stands for a row in a ``Selection``."""
    return placed.slot * _SLOT_ROWS + placed.slot_row


def cells_of_span(row: Row, span: tuple[int, int]) -> tuple[int, int]:
    """Start and end cell of a selected span (characters of the row's text, -1 is its end)."""
    text = row.text
    start, end = span
    end = len(text) if end < 0 else min(end, len(text))
    strip = row.strip
    first = strip.index_to_cell_position(row.margin + min(start, len(text)))
    return first, strip.index_to_cell_position(row.margin + end)


def selected_strip(strip: Strip, row: Row, span: tuple[int, int], style: Style) -> Strip:
    """The strip of a row with a selected span in the style of selections."""
    start, end = cells_of_span(row, span)
    if end <= start:
        return strip
    inside = [Segment(text, (old or PLAIN) + style) for text, old, _ in strip.crop(start, end)]
    before, after = strip.crop(0, start), strip.crop(end, strip.cell_length)
    return Strip([*before, *inside, *after], strip.cell_length)


def character_at(row: Row, cell: int) -> int:
    """The character of the row's text in a cell; the gutter counts as 0, behind the text as its length."""
    position = 0
    for character, column in enumerate(_cells(row.strip.text)):
        if column > cell:
            break
        position = character
    return min(max(0, position - row.margin), len(row.text))


def word_at(row: Row, character: int) -> tuple[int, int]:
    """Start and end of the word at a character, an empty span where there is none."""
    for match in _WORD.finditer(row.text):
        if match.start() <= character < match.end():
            return match.span()
    return character, character


def selection_at(placed: Placed, cell: int, *, whole_row: bool) -> Selection | None:
    """The word in a cell of a row, or the row; None where there is no text."""
    text, code = placed.row.text, row_code(placed)
    start, end = (0, len(text)) if whole_row else word_at(placed.row, character_at(placed.row, cell))
    return Selection(Offset(start, code), Offset(end, code)) if end > start else None


def selected_text(viewport: Viewport, selection: Selection) -> str:
    """The text of a selection, wrapped rows joined. A missing end is the edge of the screen."""
    rows = viewport.rows
    if not rows:
        return ""
    start, end = selection
    if start is None:
        start = Offset(0, row_code(rows[0]))
    if end is None:
        end = Offset(len(rows[-1].row.text), row_code(rows[-1]))
    return join_rows(_selected_parts(viewport, Selection(start, end)))


def join_rows(parts: Iterable[tuple[Row, str]]) -> str:
    """Rows and the part of each that is wanted, as one text."""
    text = ""
    is_first = True
    for row, part in parts:
        if not row.is_text:
            continue
        if not is_first:
            text += "\n" if row.join is None else row.join
        text += part
        is_first = False
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _selected_parts(viewport: Viewport, selection: Selection) -> Iterable[tuple[Row, str]]:
    assert selection.start is not None
    assert selection.end is not None
    first = selection.start.y // _SLOT_ROWS
    last = min(selection.end.y // _SLOT_ROWS, len(viewport.heights) - 1)
    for slot in range(first, last + 1):
        for placed in viewport.slot_rows(slot):
            span = selection.get_span(row_code(placed))
            if span is not None:
                start, end = span
                yield placed.row, placed.row.text[start : None if end < 0 else end]


def _cells(text: str) -> Iterable[int]:
    """The cell each character starts in."""
    cell = 0
    for character in text:
        yield cell
        cell += get_character_cell_size(character)
