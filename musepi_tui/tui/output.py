"""Fewer bytes for the same picture: blanks at the end of a row become one short sequence.

Textual writes every row to its full width. While an answer streams, four of ten bytes are those blanks; over
a slow link they are the difference one sees.
"""

import re

from musepi_tui.base.cells import cell_width

MIN_BLANKS = 8
"""Fewer are not worth looking at: the sequence itself has three bytes."""

_START = ";1H"
_ERASE_TO_END = "\x1b[K"
_PLAIN = "\x1b[0m"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MOVE = re.compile(r"\x1b\[\d+;\d+H")


def shorten_rows(frame: str, columns: int) -> str:
    """The frame, with rows that end in blanks of the terminal's own ground cut and erased to the end.

    Only rows that begin in column 1 and fill all ``columns``: what stands behind a shorter one must stay.
    """
    return "\n".join(_shorten(line, columns) for line in frame.split("\n"))


def _shorten(line: str, columns: int) -> str:
    head, start, rest = line.partition(_START)
    last = rest.rfind("\x1b[") if rest.endswith("H") else -1
    row = rest[:last] if last >= 0 and _MOVE.fullmatch(rest, last) else rest
    kept = row.rstrip(" ")
    if not start or len(row) - len(kept) < MIN_BLANKS:
        return line
    last_colours = kept.rfind("\x1b[")
    if last_colours >= 0 and not kept.startswith(_PLAIN, last_colours):
        return line
    text = _COLOURS.sub("", row)
    cells = len(text) if text.isascii() else cell_width(text)
    if "\x1b" in text or cells != columns:
        return line
    return f"{head}{start}{kept}{_ERASE_TO_END}{rest[len(row) :]}"
