"""Going over all entries in short stretches of time."""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

CHUNK = 64
"""Entries between two looks at the clock: a millisecond or two where each of them is read from the file."""


class Sweep:
    """One pass over the entries in ``order``, those nearest to the index ``center`` first."""

    def __init__(self, order: Sequence[int], center: int) -> None:
        self._chunks = _outward(order, center)

    def go_on(self, take: Callable[[Sequence[int]], None], deadline: float) -> bool:
        """Give further entries to ``take`` until then (seconds of ``perf_counter``); whether some are left.

        One chunk at least is taken, so that every call gets on.
        """
        for chunk in self._chunks:
            take(chunk)
            if perf_counter() > deadline:
                return True
        return False


def _outward(order: Sequence[int], center: int) -> Iterator[Sequence[int]]:
    below = above = center
    while below < len(order) or above > 0:
        if below < len(order):
            yield order[below : below + CHUNK]
        if above > 0:
            yield order[max(0, above - CHUNK) : above]
        below, above = below + CHUNK, above - CHUNK
