"""Finds the places an edit names and replaces them, all other bytes kept (tui 7.1). Pure.

A file is looked at as lines with their ends apart, so that texts are compared in LF form while every line
keeps its own end. The exact view compares lines as they are, the normalised one with look-alikes made equal.
"""

import re
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.diff import loose_diff

BYTE_ORDER_MARK = "\ufeff"

_LIKENESS = 0.6
"""Ratio from which a region is worth showing as the closest one."""

_SEARCH_TIME_S = 0.5
"""The closest region is a courtesy of an error message; a huge file may not make it slow."""

_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u202f\u205f\u3000", " "),
        **{chr(code): " " for code in range(0x2002, 0x200B)},
    }
)


@dataclass(frozen=True, slots=True)
class Replacement:
    """One edit: ``old`` is replaced by ``new``, everywhere with ``everywhere``, else it must occur once."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """The new content, and whether look-alikes had to be made equal to find the places."""

    text: str
    normalised: bool


def apply_replacements(text: str, replacements: Sequence[Replacement], shown: str) -> Edited:
    """The content after all edits; each is looked for in the original. ``shown`` names the file in errors.

    Raises ``ToolError``: no edits, an empty ``old``, a text that is not there or not unique, edits that
    overlap, no change.
    """
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    file = _File.split(text.removeprefix(mark))
    wanted = [Replacement(_lf(item.old), _lf(item.new), item.everywhere) for item in replacements]
    if not wanted:
        raise ToolError(f"{shown}: no edits were given.")
    for index, item in enumerate(wanted):
        if not item.old:
            raise ToolError(f"{shown}: {_name(index, wanted)}oldText is empty. Use write to make a new file.")
    exact = _View(file.bodies)
    spans, missing = _find_all(exact, wanted, shown)
    view = exact
    if missing is not None:
        view = _View([normalise(body) for body in file.bodies])
        plain = [Replacement(normalise(item.old), item.new, item.everywhere) for item in wanted]
        spans, missing = _find_all(view, plain, shown)
    if missing is not None:
        raise ToolError(_not_found(file, wanted, missing, shown))
    spans.sort(key=lambda span: (span.start, span.end))
    _refuse_overlaps(spans, shown)
    result = mark + _assemble(file, view, spans)
    if result == text:
        raise ToolError(f"No changes made to {shown}: the new text is the same as the old one.")
    return Edited(result, normalised=view is not exact)


def normalise(text: str) -> str:
    """NFKC, look-alike quotes, dashes and blanks made equal, trailing blanks of lines removed."""
    plain = "\n".join(
        unicodedata.normalize("NFKC", line.translate(_LOOK_ALIKES)) for line in text.split("\n")
    )
    return re.sub(r"[^\S\n]+$", "", plain, flags=re.MULTILINE)


def line_ending(text: str) -> str:
    """The line ending of a file by its first line break."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


@dataclass(frozen=True, slots=True)
class _File:
    """Line bodies and their ends (the last end is empty); ``ending`` is given to new lines."""

    bodies: list[str]
    ends: list[str]
    ending: str

    @classmethod
    def split(cls, text: str) -> "_File":
        bodies: list[str] = []
        ends: list[str] = []
        lines = text.split("\n")
        for line in lines[:-1]:
            has_cr = line.endswith("\r")
            bodies.append(line[:-1] if has_cr else line)
            ends.append("\r\n" if has_cr else "\n")
        return cls([*bodies, lines[-1]], [*ends, ""], line_ending(text))


@dataclass(slots=True)
class _View:
    """Line bodies as they are compared, joined by LF, and where each line starts."""

    bodies: list[str]
    text: str = field(init=False)
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.text = "\n".join(self.bodies)
        self.starts = [0]
        for body in self.bodies[:-1]:
            self.starts.append(self.starts[-1] + len(body) + 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Line index and column of an offset."""
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]

    def line_number(self, offset: int) -> int:
        """The line of an offset, from 1."""
        return self.place(offset)[0] + 1


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    new: str
    edit: int


def _find_all(view: _View, wanted: Sequence[Replacement], shown: str) -> tuple[list[_Span], int | None]:
    """The places of all edits, and the index of the first edit that has none."""
    spans: list[_Span] = []
    for index, item in enumerate(wanted):
        starts = _occurrences(view.text, item.old, overlapping=not item.everywhere)
        if not starts:
            return [], index
        if len(starts) > 1 and not item.everywhere:
            lines = ", ".join(str(view.line_number(start)) for start in starts[:10])
            raise ToolError(
                f"{shown}: {_name(index, wanted)}oldText occurs {len(starts)} times (lines {lines}). "
                "Add lines around it until it is unique, or set replaceAll."
            )
        spans += [_Span(start, start + len(item.old), item.new, index) for start in starts]
    return spans, None


def _occurrences(text: str, part: str, *, overlapping: bool) -> list[int]:
    starts: list[int] = []
    at = text.find(part) if part else -1
    while at >= 0:
        starts.append(at)
        at = text.find(part, at + (1 if overlapping else len(part)))
    return starts


def _refuse_overlaps(spans: Sequence[_Span], shown: str) -> None:
    for left, right in zip(spans, spans[1:], strict=False):
        if right.start < left.end:
            first, second = sorted((left.edit, right.edit))
            raise ToolError(f"{shown}: edits[{first}] and edits[{second}] overlap. Join them into one edit.")


def _assemble(file: _File, view: _View, spans: Sequence[_Span]) -> str:
    """New texts at the spans, the file's own lines between; the view's only where a span cuts a line."""
    pieces: list[str] = []
    position: tuple[int, int] | None = None
    for span in spans:
        start = view.place(span.start)
        pieces += [_between(file, view, position, start), span.new.replace("\n", file.ending)]
        position = view.place(span.end)
    pieces.append(_between(file, view, position, None))
    return "".join(pieces)


def _between(file: _File, view: _View, left: tuple[int, int] | None, right: tuple[int, int] | None) -> str:
    """The text from one place to the next; None is the beginning or the end of the file."""
    first, column = left or (0, 0)
    last, end = right or (len(file.bodies) - 1, -1)
    if first == last and (column or end >= 0):
        body = view.bodies[first]
        if end >= 0:
            return body[column:end]
        return body[column:] + file.ends[first]
    pieces: list[str] = []
    if column:
        pieces.append(view.bodies[first][column:] + file.ends[first])
        first += 1
    pieces += [
        body + line_end for body, line_end in zip(file.bodies[first:last], file.ends[first:last], strict=True)
    ]
    if end < 0:
        pieces.append(file.bodies[last] + file.ends[last])
    elif end:
        pieces.append(view.bodies[last][:end])
    return "".join(pieces)


def _not_found(file: _File, wanted: Sequence[Replacement], index: int, shown: str) -> str:
    old = wanted[index].old
    message = f"{shown}: {_name(index, wanted)}oldText was not found."
    closest = _closest_region(file.bodies, old)
    if closest is None:
        return f"{message} Nothing like it is in the file; read it again and copy the text exactly."
    first, count, ratio = closest
    found = "\n".join(file.bodies[first : first + count])
    where = f"line {first + 1}" if count == 1 else f"lines {first + 1}-{first + count}"
    return (
        f"{message} The closest text is {where} ({ratio:.0%} alike), - is what was given, + what is there:\n"
        f"{loose_diff(old, found)}\nCopy the text of the file exactly."
    )


def _closest_region(bodies: Sequence[str], old: str) -> tuple[int, int, float] | None:
    """First line (from 0), number of lines and likeness of the region most like ``old``."""
    count = len(old.strip("\n").split("\n"))
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(old.strip("\n"))
    deadline = time.monotonic() + _SEARCH_TIME_S
    best: tuple[int, int, float] | None = None
    best_ratio = _LIKENESS
    for first in range(max(1, len(bodies) - count + 1)):
        if time.monotonic() > deadline:
            break
        matcher.set_seq1("\n".join(bodies[first : first + count]))
        if matcher.real_quick_ratio() < best_ratio or matcher.quick_ratio() < best_ratio:
            continue
        ratio = matcher.ratio()
        if ratio > best_ratio or (best is None and ratio >= best_ratio):
            best, best_ratio = (first, count, ratio), ratio
    return best


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _name(index: int, wanted: Sequence[Replacement]) -> str:
    return f"edits[{index}]." if len(wanted) > 1 else ""
