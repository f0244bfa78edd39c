"""A unified diff (without file headers) with a number gutter and the changed words of paired lines marked."""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.safe_text import reveal
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import Line, Span, with_margin, wrap

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

_MARKED_WORDS = 300
"""Words of a line above which differences inside it are not looked for: the search is quadratic."""

_SIMILAR = 0.4
"""Paired lines less alike than this are different lines: marking nearly all of them would be noise."""

_MARK = Style(reverse=True)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: ``sign`` is ``+``, ``-``, a blank, or ``@`` for the gap between hunks; ``number`` its line
    number (in the old text for ``-``)."""

    sign: str
    number: int | None
    text: str
    marks: tuple[tuple[int, int], ...] = ()


def parse_diff(body: str) -> list[DiffLine]:
    """The lines of a diff. Text that is no diff comes back as context lines without numbers."""
    lines: list[DiffLine] = []
    old = new = 0
    counted = False
    for raw in body.removesuffix("\n").split("\n"):
        hunk = _HUNK.match(raw)
        if hunk is not None:
            if counted:
                lines.append(DiffLine("@", None, ""))
            old, new, counted = int(hunk[1]), int(hunk[2]), True
            continue
        sign, text = (raw[0], raw[1:]) if raw[:1] in ("+", "-", " ") else (" ", raw)
        if raw.startswith("\\"):
            lines.append(DiffLine(" ", None, raw[1:].strip()))
            continue
        number = (old if sign == "-" else new) if counted else None
        lines.append(DiffLine(sign, number, text))
        old += sign != "+"
        new += sign != "-"
    return _mark_pairs(lines)


def diff_lines(lines: Sequence[DiffLine], palette: Palette, base: Style, width_cells: int) -> list[Line]:
    """The diff in lines of at most ``width_cells``; line numbers are margin, the sign is text."""
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
    gutter = digits + 1 if digits else 0
    if width_cells < gutter + 8:
        gutter = 0
    drawn: list[Line] = []
    for line in lines:
        number = "" if line.number is None else str(line.number)
        margin = f"{number:>{gutter - 1}} " if gutter else ""
        style = base + palette.style(_TOKENS[line.sign])
        quiet = base + palette.style("dim")
        if line.sign == "@":
            dots = palette.symbol("ellipsis").rjust(gutter - 1) if gutter else palette.symbol("ellipsis")
            drawn.append(Line(((dots, quiet),), len(dots), is_text=False))
            continue
        spans = [(f"{line.sign} ", style), *_spans(line, style, palette)]
        wrapped = _hang(wrap(spans, max(1, width_cells - gutter)), style, width_cells - gutter)
        drawn.extend(with_margin(wrapped, (margin, quiet)) if gutter else wrapped)
    return drawn


_TOKENS = {"+": "toolDiffAdded", "-": "toolDiffRemoved", " ": "toolDiffContext", "@": "dim"}


def _hang(lines: list[Line], style: Style, width: int) -> list[Line]:
    """Wrapped lines of code keep clear of the sign column when there is room for that."""
    if len(lines) < 2 or width < 12:
        return lines
    first, *others = lines
    again = wrap([span for line in others for span in line.spans], width - 2)
    joined = [line._replace(join="" if line.join is None else line.join) for line in again]
    return [first, *with_margin(joined, ("  ", style))]


def _spans(line: DiffLine, style: Style, palette: Palette) -> list[Span]:
    """The text with its marks; blanks at the end of a changed line are made visible."""
    text = line.text
    if line.sign in "+-":
        kept = text.rstrip(" \t")
        text = kept + palette.symbol("dot") * (len(text) - len(kept))
    spans: list[Span] = []
    position = 0
    for start, end in (*line.marks, (len(text), len(text))):
        if start > position:
            spans.append((reveal(text[position:start]), style))
        if end > start:
            spans.append((reveal(text[start:end]), style + _MARK))
        position = end
    return spans


def _mark_pairs(lines: list[DiffLine]) -> list[DiffLine]:
    """Each removed line of a run is compared with the added line at the same place of the next run."""
    marked = list(lines)
    index = 0
    while index < len(lines):
        removed = _run(lines, index, "-")
        added = _run(lines, index + removed, "+")
        for offset in range(min(removed, added)):
            first, second = index + offset, index + removed + offset
            marks = _word_marks(lines[first].text, lines[second].text)
            marked[first] = replace(lines[first], marks=marks[0])
            marked[second] = replace(lines[second], marks=marks[1])
        index += max(1, removed + added)
    return marked


def _run(lines: Sequence[DiffLine], start: int, sign: str) -> int:
    length = 0
    while start + length < len(lines) and lines[start + length].sign == sign:
        length += 1
    return length


_Marks = tuple[tuple[int, int], ...]


def _word_marks(old: str, new: str) -> tuple[_Marks, _Marks]:
    """The character ranges that differ, nothing when the lines have little in common."""
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    if not old_words or not new_words or max(len(old_words), len(new_words)) > _MARKED_WORDS:
        return (), ()
    before, after = _common_ends(old_words, new_words)
    old_middle, new_middle = (
        old_words[before : len(old_words) - after],
        new_words[before : len(new_words) - after],
    )
    matcher = difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False)
    kept = before + after + sum(match.size for match in matcher.get_matching_blocks())
    if kept * 2 / (len(old_words) + len(new_words)) < _SIMILAR:
        return (), ()
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        _ranges(old_words, ((before + start, before + end) for _, start, end, _, _ in changes)),
        _ranges(new_words, ((before + start, before + end) for _, _, _, start, end in changes)),
    )


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many words both begin and end with: marks then stand where a person would put them."""
    shorter = min(len(old), len(new))
    before = 0
    while before < shorter and old[before] == new[before]:
        before += 1
    after = 0
    while after < shorter - before and old[-1 - after] == new[-1 - after]:
        after += 1
    return before, after


def _ranges(words: Sequence[str], changes: Iterable[tuple[int, int]]) -> _Marks:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[start], starts[end]) for start, end in changes if end > start)
