"""Unified diffs without file headers, as results and views show them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from musepi_tui.tools.limits import split_lines

CONTEXT_LINES = 4

_DETAILED_LINES = 3_000
"""Above this many differing lines they count as replaced in one block: difflib takes quadratic time."""


@dataclass(frozen=True, slots=True)
class Diff:
    """``text`` has ``@@`` hunks. ``first_line`` is the first changed line of the new text, from 1."""

    text: str
    added: int
    removed: int
    first_line: int

    @property
    def summary(self) -> str:
        """The count as titles show it: ``+3 −1``."""
        return f"+{self.added} −{self.removed}"


def unified_diff(old: str, new: str, context_lines: int = CONTEXT_LINES) -> Diff:
    """The changes from ``old`` to ``new``, by line. Equal texts give an empty diff."""
    before, after = _lines(old), _lines(new)
    hunks: list[str] = []
    added = removed = first_line = 0
    for group in _groups(_changes(before, after), context_lines):
        lines: list[str] = []
        for tag, before_from, before_to, after_from, after_to in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[before_from:before_to]]
                continue
            first_line = first_line or after_from + 1
            removed += before_to - before_from
            added += after_to - after_from
            lines += [f"-{line}" for line in before[before_from:before_to]]
            lines += [f"+{line}" for line in after[after_from:after_to]]
        start, end = group[0], group[-1]
        hunks.append(f"@@ -{_span(start[1], end[2])} +{_span(start[3], end[4])} @@")
        hunks += lines
    return Diff("\n".join(hunks), added, removed, first_line)


def loose_diff(old: str, new: str) -> str:
    """The changed lines alone, without hunks: for texts whose place in the file is not known yet."""
    text = unified_diff(old, new, context_lines=10_000).text
    return text.split("\n", 1)[1] if "\n" in text else ""


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in split_lines(text.removeprefix("\ufeff"))]


_Change = tuple[str, int, int, int, int]


def _changes(before: Sequence[str], after: Sequence[str]) -> list[_Change]:
    """Opcodes as difflib gives them; what both ends share is taken off first, it is nearly everything."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle_before, middle_after = before[head : len(before) - tail], after[head : len(after) - tail]
    changes: list[_Change] = [("equal", 0, head, 0, head)] if head else []
    if len(middle_before) + len(middle_after) > _DETAILED_LINES:
        inner: list[_Change] = [("replace", 0, len(middle_before), 0, len(middle_after))]
    else:
        inner = list(SequenceMatcher(None, middle_before, middle_after, autojunk=False).get_opcodes())
    changes += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in inner]
    if tail:
        changes.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return changes


def _groups(changes: Sequence[_Change], context_lines: int) -> list[list[_Change]]:
    """The changes cut into hunks: at most ``context_lines`` equal lines around each."""
    groups: list[list[_Change]] = []
    current: list[_Change] = []
    for index, (tag, a, b, c, d) in enumerate(changes):
        if tag != "equal":
            current.append((tag, a, b, c, d))
            continue
        is_last = index == len(changes) - 1
        if current:
            if is_last or b - a > 2 * context_lines:
                current.append(("equal", a, min(b, a + context_lines), c, min(d, c + context_lines)))
                groups.append(current)
                current = []
            else:
                current.append((tag, a, b, c, d))
        if not current and not is_last:
            current = [("equal", max(a, b - context_lines), b, max(c, d - context_lines), d)]
    if any(tag != "equal" for tag, *_ in current):
        groups.append(current)
    return groups


def _span(start: int, end: int) -> str:
    """A range as hunk headers write it: an empty one names the line before it."""
    length = end - start
    return f"{start + 1 if length else start},{length}"
