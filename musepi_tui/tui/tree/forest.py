"""A session's tree cut into runs, in the order it is drawn (tui 5.2).

A run is a stretch of the file in which every entry hangs under the one before it and only the last one has
other children. A session of 50,000 entries has a few hundred of them, so whatever goes run by run is fast.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from musepi_tui.session.times import unix_ms
from musepi_tui.session.tree import SessionTree

NONE = -1


@dataclass(frozen=True, slots=True)
class Forest:
    """Runs by rank: a parent before its children, siblings by time, the branch with the leaf first if wanted.

    ``starts`` and ``stops`` are positions in the file, ``parents`` the ranks of the runs above, -1 for roots.
    """

    starts: Sequence[int]
    stops: Sequence[int]
    parents: Sequence[int]

    def order(self) -> "array[int]":
        """All positions in the order they are drawn."""
        positions: array[int] = array("i")
        for start, stop in zip(self.starts, self.stops, strict=True):
            positions.extend(range(start, stop))
        return positions

    def index_of(self, position: int) -> int:
        """Where an entry comes in that order; behind all others for -1."""
        index = 0
        for start, stop in zip(self.starts, self.stops, strict=True):
            if start <= position < stop:
                return index + position - start
            index += stop - start
        return index


def plant(tree: SessionTree, parents: Sequence[int], leaf: int) -> Forest:
    """The runs of a tree with these parents; the branch with ``leaf`` (-1 for none) comes first."""
    cuts = _Cuts(parents)
    children: defaultdict[int, list[int]] = defaultdict(list)
    for run in range(len(cuts.starts)):
        children[cuts.parent_of(run)].append(run)
    active = cuts.way_up(leaf)
    starts: list[int] = []
    stops: list[int] = []
    above_of: list[int] = []
    waiting = [(NONE, NONE)]
    while waiting:
        run, above = waiting.pop()
        rank = len(starts) if run != NONE else NONE
        if run != NONE:
            starts.append(cuts.starts[run])
            stops.append(cuts.stop_of(run))
            above_of.append(above)
        below = children.get(run, [])
        if len(below) > 1:
            below = _by_time(tree, cuts, below)
            below.sort(key=lambda child: child not in active)
        waiting.extend((child, rank) for child in reversed(below))
    return Forest(starts, stops, above_of)


class _Cuts:
    """Where runs begin. Runs are in file order here."""

    def __init__(self, parents: Sequence[int]) -> None:
        self._parents = parents
        breaks = [position for position, parent in enumerate(parents) if parent != position - 1]
        behind = (parents[position] + 1 for position in breaks if parents[position] != NONE)
        size = len(parents)
        self.starts = sorted({0, *breaks, *(start for start in behind if start < size)} if size else ())

    def parent_of(self, run: int) -> int:
        """The run whose last entry a run hangs under."""
        parent = self._parents[self.starts[run]]
        return NONE if parent == NONE else self.run_at(parent)

    def run_at(self, position: int) -> int:
        """The run an entry is in."""
        return bisect_right(self.starts, position) - 1

    def stop_of(self, run: int) -> int:
        """The position behind the last entry of a run."""
        return self.starts[run + 1] if run + 1 < len(self.starts) else len(self._parents)

    def way_up(self, leaf: int) -> frozenset[int]:
        """The runs from that of the leaf to the root."""
        found: set[int] = set()
        run = NONE if leaf == NONE else self.run_at(leaf)
        while run != NONE:
            found.add(run)
            run = self.parent_of(run)
        return frozenset(found)


def _by_time(tree: SessionTree, cuts: _Cuts, runs: Sequence[int]) -> list[int]:
    """Runs by the time of their first entries; in file order where one of them cannot be read."""
    columns = tree.all_heads.columns
    times = {run: unix_ms(columns.time_at(cuts.starts[run])) for run in runs}
    if None in times.values():
        return list(runs)
    return sorted(runs, key=lambda run: times[run] or 0)
