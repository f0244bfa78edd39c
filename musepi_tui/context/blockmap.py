"""The parts of the context window as a map of a hundred blocks (tui 4.6)."""

from collections.abc import Sequence

from musepi_tui.context.breakdown import Share

BLOCKS = 100
"""Ten rows of ten: each block stands for about one percent of the window."""


def map_blocks(parts: Sequence[Share], blocks: int = BLOCKS) -> tuple[str, ...]:
    """The part each block belongs to, part after part in the order given; nothing when all are empty."""
    counts = divide_blocks([tokens for _, tokens in parts], blocks)
    return tuple(name for (name, _), count in zip(parts, counts, strict=True) for _ in range(count))


def divide_blocks(sizes: Sequence[int], blocks: int = BLOCKS) -> tuple[int, ...]:
    """How many blocks each size gets: ``blocks`` in all, none where every size is 0 or below.

    Every size above 0 gets at least one, where there are enough; else the largest do. The others are divided
    by the largest remainder, so that a larger size never gets fewer.
    """
    present = [index for index, size in enumerate(sizes) if size > 0]
    largest_first = sorted(present, key=lambda index: -sizes[index])
    if len(present) >= blocks:
        chosen = frozenset(largest_first[:blocks])
        return tuple(int(index in chosen) for index in range(len(sizes)))
    whole = sum(sizes[index] for index in present)
    counts = {index: max(1, blocks * sizes[index] // whole) for index in present}

    def missing(index: int) -> int:
        """What a size is short of, in parts of a block as large as ``whole``."""
        return blocks * sizes[index] - counts[index] * whole

    while present and (left := blocks - sum(counts.values())) != 0:
        if left > 0:
            counts[max(largest_first, key=missing)] += 1
        else:
            # The smallest took more than their share: who has the least reason to keep a block gives one.
            counts[min((index for index in largest_first if counts[index] > 1), key=missing)] -= 1
    return tuple(counts.get(index, 0) for index in range(len(sizes)))
