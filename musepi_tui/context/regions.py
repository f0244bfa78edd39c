"""Large blocks inside a text that can be put aside: fenced code and XML elements (compaction 5.6)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FENCES = ("```", "~~~")
_OPENING = re.compile(r"<([a-z_-]+)(?:\s[^<>]*)?(?<!/)>\s*")
_CLOSING = re.compile(r"</([a-z_-]+)>\s*")


@dataclass(frozen=True, slots=True)
class TextRegion:
    """A block of a text: the characters ``[start, end)``, whole lines without the last line break."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class _Lines:
    """A run of lines, both ends included."""

    first: int
    last: int
    label: str


def find_regions(text: str) -> tuple[TextRegion, ...]:
    """The outermost fenced blocks and XML elements, in order; those that are not closed do not count.

    A fence is a line that starts with three backticks or tildes and ends at the next such line. An element
    begins with a line that holds nothing but its opening tag, in lower case, and ends with one that holds
    nothing but the closing tag.
    """
    lines = text.splitlines(keepends=True)
    fences = tuple(_fences(lines))
    found = sorted([*fences, *_elements(lines, fences)], key=lambda run: (run.first, -run.last))
    offsets = _offsets(lines)
    regions: list[TextRegion] = []
    behind = 0
    for run in found:
        if run.first < behind:
            continue
        behind = run.last + 1
        end = offsets[run.last] + len(lines[run.last].rstrip("\r\n"))
        regions.append(TextRegion(offsets[run.first], end, run.label))
    return tuple(regions)


def _fences(lines: Sequence[str]) -> Iterator[_Lines]:
    opened: tuple[int, str] | None = None
    for index, line in enumerate(lines):
        if not line.startswith(_FENCES):
            continue
        if opened is None:
            opened = (index, line[:3])
        elif line.startswith(opened[1]):
            yield _Lines(opened[0], index, "code")
            opened = None


def _elements(lines: Sequence[str], fences: Sequence[_Lines]) -> Iterator[_Lines]:
    """Every element outside of fences; a closing tag belongs to the newest open one of its name."""
    fenced = {index for run in fences for index in range(run.first, run.last + 1)}
    opened: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        if index in fenced or not line.startswith("<"):
            continue
        if opening := _OPENING.fullmatch(line):
            opened.setdefault(opening[1], []).append(index)
        elif (closing := _CLOSING.fullmatch(line)) and opened.get(closing[1]):
            yield _Lines(opened[closing[1]].pop(), index, closing[1])


def _offsets(lines: Sequence[str]) -> list[int]:
    offsets: list[int] = []
    position = 0
    for line in lines:
        offsets.append(position)
        position += len(line)
    return offsets
