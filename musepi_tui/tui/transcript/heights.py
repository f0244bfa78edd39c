"""Row counts of the transcript's slots, with prefix sums in O(log n) (a Fenwick tree)."""

from collections.abc import Iterable


class HeightTable:
    """How many rows each slot takes. Slots of zero rows are allowed and never found by a row."""

    __slots__ = ("_heights", "_tree", "total")

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._tree: list[int] = []
        self.total = 0
        """Rows of all slots together."""
        self._build()

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def set(self, index: int, height: int) -> int:
        """Gives slot ``index`` a new height; returns by how many rows it grew."""
        grown = height - self._heights[index]
        if grown:
            self._heights[index] = height
            self.total += grown
            node = index + 1
            while node < len(self._tree):
                self._tree[node] += grown
                node += node & -node
        return grown

    def append(self, height: int) -> None:
        """One more slot at the end."""
        self._heights.append(height)
        self.total += height
        node = len(self._heights)
        value = height
        child = node - 1
        stop = node - (node & -node)
        while child > stop:
            value += self._tree[child]
            child -= child & -child
        self._tree.append(value)

    def insert(self, index: int, height: int) -> None:
        """One more slot before slot ``index``. At the end it is cheap, anywhere else O(n)."""
        if index >= len(self._heights):
            self.append(height)
            return
        self._heights.insert(index, height)
        self._build()

    def start_of(self, index: int) -> int:
        """Rows before slot ``index``; ``len(self)`` gives the total."""
        rows = 0
        node = index
        while node > 0:
            rows += self._tree[node]
            node -= node & -node
        return rows

    def find(self, row: int) -> tuple[int, int]:
        """The slot that holds ``row`` and the row's place inside it, counted from 0.

        Rows before the first and behind the last are clamped. Raises ``IndexError`` when there are no rows.
        """
        if not self.total:
            raise IndexError("the table has no rows")
        rest = min(max(row, 0), self.total - 1)
        position = 0
        step = 1 << (len(self._tree) - 1).bit_length()
        while step:
            following = position + step
            if following < len(self._tree) and self._tree[following] <= rest:
                position = following
                rest -= self._tree[following]
            step >>= 1
        return position, rest

    def _build(self) -> None:
        tree = [0, *self._heights]
        size = len(tree)
        for node in range(1, size):
            parent = node + (node & -node)
            if parent < size:
                tree[parent] += tree[node]
        self._tree = tree
        self.total = sum(self._heights)
