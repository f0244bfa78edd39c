"""Which rows a filtered tree has and what stands in front of them (tui 5.2, 5.3)."""

from array import array
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from musepi_tui.tui.tree.forest import NONE, Forest

BRANCH = "├"
LAST = "└"
LINE = "│"
FOLDED = "⊞"
FOLDABLE = "⊟"
RULE = "─"
_BLANK = "   "
_KEPT_LEADS = 64
"""So many prefixes stay at hand, more than a screen shows. Each one is as long as its branch is deep."""


@dataclass(slots=True)
class Segment:
    """Rows in a line: the first one below a branch point, or a root, and what follows without branching.

    ``start`` and ``stop`` are rows; ``parent`` is the number of the segment above, -1 for roots.
    """

    start: int
    stop: int
    parent: int
    is_last: bool
    is_folded: bool = False
    children: int = 0
    first_child: int = NONE

    @property
    def is_foldable(self) -> bool:
        """Whether there is something to hide behind its first row."""
        return self.is_folded or self.stop - self.start > 1 or self.children > 0


class Layout:
    """Visible entries as rows, in segments. ``rows`` are positions in the file."""

    def __init__(self) -> None:
        self.rows: array[int] = array("i")
        self.segments: list[Segment] = []
        self._starts: list[int] = []
        self._roots = 0
        self._leads: dict[int, str] = {}

    def segment_at(self, row: int) -> int:
        """The number of the segment a row is in."""
        return bisect_right(self._starts, row) - 1

    def row_of(self, position: int) -> int | None:
        """The row of an entry; None when it has none."""
        try:
            return self.rows.index(position)
        except ValueError:
            return None

    def prefix(self, row: int) -> str:
        """Gutters, connector and fold sign of a row; every character takes one cell."""
        number = self.segment_at(row)
        segment = self.segments[number]
        if row != segment.start:
            return self._lead(number) + self._gutter(segment) + self._step(segment)
        if segment.parent == NONE:
            return f"{FOLDED} " if segment.is_folded else ""
        sign = FOLDED if segment.is_folded else FOLDABLE if segment.is_foldable else RULE
        return f"{self._lead(number)}{LAST if segment.is_last else BRANCH}{sign} "

    def add_segment(self, parent: int, *, is_last: bool) -> int:
        """A segment without rows behind all others; its number."""
        number, start = len(self.segments), len(self.rows)
        self.segments.append(Segment(start, start, parent, is_last))
        self._starts.append(start)
        if parent == NONE:
            self._roots += 1
        else:
            above = self.segments[parent]
            above.children += 1
            above.first_child = number if above.first_child == NONE else above.first_child
        return number

    def _lead(self, number: int) -> str:
        """What stands before the connector of a segment."""
        pieces: list[str] = []
        above = number
        while above not in self._leads:
            parent = self.segments[above].parent
            if parent == NONE:
                break
            segment = self.segments[parent]
            has_more = segment.stop - segment.start > 1
            pieces.append(self._gutter(segment) + (self._step(segment) if has_more else ""))
            above = parent
        lead = self._leads.get(above, "") + "".join(reversed(pieces))
        if len(self._leads) >= _KEPT_LEADS:
            self._leads.clear()
        self._leads[number] = lead
        return lead

    def _gutter(self, segment: Segment) -> str:
        """The line that goes on below the connector of a segment, or the gap where it ends."""
        if segment.parent == NONE:
            return ""
        return _BLANK if segment.is_last else f"{LINE}  "

    def _step(self, segment: Segment) -> str:
        """What rows behind the first one are moved to the right by."""
        return "" if segment.parent == NONE and self._roots < 2 else _BLANK


def in_symbols(prefix: str, symbols: Mapping[str, str]) -> str:
    """A prefix in the signs of another preset, each of one cell."""
    branch, last = symbols["tree_branch"], symbols["tree_last"]
    signs = {BRANCH: branch[0], LAST: last[0], RULE: branch[1], LINE: symbols["tree_line"]}
    return prefix.translate(str.maketrans({**signs, FOLDED: symbols["fold"], FOLDABLE: symbols["unfold"]}))


def lay_out(forest: Forest, shown: Sequence[int] | bytes, folded: Collection[int]) -> Layout:
    """The rows of the entries whose byte in ``shown``, by position, is 1; the others' children move up.

    Behind the entries of ``folded`` nothing is shown, where they begin a segment.
    """
    flags = bytes(shown)
    above, children = _visible_parents(forest, flags)
    layout = Layout()
    numbers = [NONE] * len(above)
    left = list(children)
    for rank, parent in enumerate(above):
        start, stop = forest.starts[rank], forest.stops[rank]
        first = flags.find(1, start, stop)
        if first < 0:
            continue
        number = NONE if parent == NONE else numbers[parent]
        if number != NONE and layout.segments[number].is_folded:
            numbers[rank] = number
            continue
        left[parent] -= 1
        if parent == NONE or children[parent] > 1:
            number = layout.add_segment(number, is_last=left[parent] == 0)
        numbers[rank] = number
        segment = layout.segments[number]
        is_head = segment.start == len(layout.rows)
        if is_head and first in folded and (flags.find(1, first + 1, stop) > 0 or children[rank]):
            segment.is_folded = True
            layout.rows.append(first)
        else:
            layout.rows.extend(compress(range(first, stop), flags[first:stop]))
        segment.stop = len(layout.rows)
    return layout


def _visible_parents(forest: Forest, flags: bytes) -> tuple[list[int], list[int]]:
    """The nearest run above with visible entries for each run, and how many have each as that.

    The last count is that of the runs with none above.
    """
    size = len(forest.starts)
    nearest = [NONE] * (size + 1)
    above = [NONE] * size
    children = [0] * (size + 1)
    for rank in range(size):
        parent = nearest[forest.parents[rank]]
        above[rank] = parent
        if flags.find(1, forest.starts[rank], forest.stops[rank]) < 0:
            nearest[rank] = parent
        else:
            nearest[rank] = rank
            children[parent] += 1
    return above, children
