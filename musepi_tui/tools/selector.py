"""Line selectors behind a path: ``:40``, ``:40-``, ``:5-16,40-80``, ``:5..16``, ``:5+10``, ``:raw``."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.paths import Workspace

_SELECTOR = re.compile(r":(raw|\d+(?:-\d*|\.\.\d+|\+\d+)?(?:,\d+(?:-\d*|\.\.\d+|\+\d+)?)*)$")
_RANGE = re.compile(r"(\d+)(?:(-|\.\.|\+)(\d*))?")


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines ``first`` to ``last``, from 1, both included; ``last`` None is the end of the file."""

    first: int
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Selector:
    """What of a file is wanted: no ``ranges`` is all of it. ``text`` is the selector as written."""

    ranges: tuple[LineRange, ...] = ()
    raw: bool = False
    text: str = ""


WHOLE = Selector()

ARTIFACT = "artifact://"
"""How results name a full output that was kept."""


def split_path(text: str, workspace: Workspace) -> tuple[str, Selector]:
    """The path and the selector behind it; a file whose own name ends like a selector goes first."""
    if not text.startswith(ARTIFACT) and os.path.lexists(workspace.resolve(text).path):
        return text, WHOLE
    return split_selector(text)


def split_selector(path: str) -> tuple[str, Selector]:
    """The path and the selector at its end. Raises ``ToolError`` for line 0 and ranges that run backwards."""
    match = _SELECTOR.search(path)
    if match is None or match.start() == 0:
        return path, WHOLE
    rest = path[: match.start()]
    if match[1] == "raw":
        below, selector = split_selector(rest)
        return below, Selector(selector.ranges, raw=True, text=f"{selector.text}:raw")
    parts = match[1].split(",")
    ranges = [_parse_range(part, alone=len(parts) == 1) for part in parts]
    return rest, Selector(merge_ranges(ranges), text=match[0])


def merge_ranges(ranges: Sequence[LineRange]) -> tuple[LineRange, ...]:
    """The ranges in order, those that touch or overlap as one."""
    merged: list[LineRange] = []
    for item in sorted(ranges, key=lambda item: item.first):
        previous = merged[-1] if merged else None
        if previous is None or (previous.last is not None and item.first > previous.last + 1):
            merged.append(item)
        elif previous.last is not None:
            last = None if item.last is None else max(previous.last, item.last)
            merged[-1] = LineRange(previous.first, last)
    return tuple(merged)


def _parse_range(part: str, *, alone: bool) -> LineRange:
    """One range. A number alone is everything from that line on, in a list that line only."""
    match = _RANGE.fullmatch(part)
    if match is None:
        raise ToolError(f":{part} is no line selector.")
    first, sign, second = int(match[1]), match[2], match[3]
    if first < 1:
        raise ToolError(f":{part}: lines are counted from 1.")
    if sign is None:
        return LineRange(first) if alone else LineRange(first, first)
    if second == "":
        return LineRange(first)
    last = first + int(second) - 1 if sign == "+" else int(second)
    if last < first:
        raise ToolError(f":{part} runs backwards.")
    return LineRange(first, last)
