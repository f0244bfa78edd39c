"""The tree of a session: heads, children, leaf (session-format 5).

A tree is a value: adding an entry gives another tree. Trees made from each other share one storage that only
grows at its end, so adding costs the same whatever the size; an older tree sees only its own part of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.times import unix_ms


class _Storage:
    """What trees share. ``children`` is built when first asked for and kept up to date from then on."""

    __slots__ = ("children", "heads", "is_plain", "missing", "order", "positions", "ring_roots")

    def __init__(self) -> None:
        self.heads: dict[str, EntryHead] = {}
        self.order: list[str] = []
        self.positions: dict[str, int] = {}
        self.is_plain = True
        self.missing: set[str] = set()
        self.ring_roots: frozenset[str] = frozenset()
        self.children: dict[str | None, list[str]] | None = None

    def parent_of(self, head: EntryHead) -> str | None:
        """The parent in the tree; None for roots, among them ring heads and orphans."""
        parent_id = head.parent_id
        if parent_id is None or parent_id == head.id or parent_id not in self.heads:
            return None
        return None if head.id in self.ring_roots else parent_id

    def child_lists(self) -> dict[str | None, list[str]]:
        """Children by parent, in file order; roots under None."""
        if self.children is None:
            children: dict[str | None, list[str]] = {}
            for entry_id in self.order:
                children.setdefault(self.parent_of(self.heads[entry_id]), []).append(entry_id)
            self.children = children
        return self.children

    def add(self, head: EntryHead) -> None:
        """Append a head whose id is new."""
        self.heads[head.id] = head
        self.positions[head.id] = len(self.order)
        self.order.append(head.id)
        if head.parent_id is not None and head.parent_id not in self.heads:
            self.missing.add(head.parent_id)
            self.is_plain = False
        if self.children is not None:
            self.children.setdefault(self.parent_of(head), []).append(head.id)


class _Order(Sequence[str]):
    """The ids of one tree in file order, without copying."""

    __slots__ = ("_size", "_storage")

    def __init__(self, storage: _Storage, size: int) -> None:
        self._storage = storage
        self._size = size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self._storage.order[i] for i in range(*index.indices(self._size))]
        if not -self._size <= index < self._size:
            raise IndexError(index)
        return self._storage.order[index % self._size]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        order = self._storage.order
        return (order[i] for i in range(self._size))


class _Heads(Mapping[str, EntryHead]):
    """The heads of one tree by id, without copying."""

    __slots__ = ("_size", "_storage")

    def __init__(self, storage: _Storage, size: int) -> None:
        self._storage = storage
        self._size = size

    def __getitem__(self, entry_id: str) -> EntryHead:
        if self._storage.positions.get(entry_id, self._size) >= self._size:
            raise KeyError(entry_id)
        return self._storage.heads[entry_id]

    def __iter__(self) -> Iterator[str]:
        return iter(_Order(self._storage, self._size))

    def __len__(self) -> int:
        return self._size


class SessionTree:
    """Heads of all entries in file order, and the leaf the next entry will hang under.

    Of entries with the same id the last one counts, at the place of the first. A walk towards the root stops
    at a repeated id and at a missing parent, so damaged files never hang or raise.
    """

    __slots__ = ("_size", "_storage", "leaf_id")

    def __init__(self, storage: _Storage, size: int, leaf_id: str | None) -> None:
        self._storage = storage
        self._size = size
        self.leaf_id = leaf_id

    @classmethod
    def empty(cls) -> "SessionTree":
        """A tree without entries."""
        return cls(_Storage(), 0, None)

    @classmethod
    def from_heads(cls, heads: Sequence[EntryHead], leaf_id: str | None = "") -> "SessionTree":
        """The tree of these heads, given in file order.

        ``leaf_id`` left out is the id of the last head; None is a leaf before the first entry.
        """
        storage = _Storage()
        by_id, positions, order = storage.heads, storage.positions, storage.order
        for head in heads:
            entry_id, parent_id = head[0], head[1]
            if (parent_id is not None and parent_id not in by_id) or entry_id in by_id:
                storage.is_plain = False
            by_id[entry_id] = head
            if entry_id not in positions:
                positions[entry_id] = len(order)
                order.append(entry_id)
        if not storage.is_plain:
            parents = {head.parent_id for head in storage.heads.values()}
            storage.missing = {parent for parent in parents if parent and parent not in storage.heads}
            storage.ring_roots = find_rings(storage.heads, storage.order)
        if leaf_id == "":
            leaf_id = heads[-1].id if heads else None
        return cls(storage, len(storage.order), leaf_id)

    @property
    def is_plain(self) -> bool:
        """Whether every id was new and every parent known when its entry came: a tree without damage."""
        return self._storage.is_plain

    @property
    def heads(self) -> Mapping[str, EntryHead]:
        """Heads by id, in file order."""
        return _Heads(self._storage, self._size)

    @property
    def order(self) -> Sequence[str]:
        """Ids in file order."""
        return _Order(self._storage, self._size)

    @property
    def roots(self) -> tuple[str, ...]:
        """Entries without a parent in this tree, in file order; of a ring its first entry."""
        return self.children(None)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Entries without children, in file order."""
        return tuple(entry_id for entry_id in self.order if not self.children(entry_id))

    @property
    def longest_path(self) -> int:
        """Entries on the longest way from a root to a leaf."""
        return max((depth + 1 for _, depth in self.walk()), default=0)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self.heads

    def head(self, entry_id: str) -> EntryHead:
        """The head with that id. Raises ``EntryNotFoundError``."""
        try:
            return self.heads[entry_id]
        except KeyError:
            raise EntryNotFoundError(f"Entry {entry_id} not found") from None

    def parent(self, entry_id: str) -> str | None:
        """The parent in the tree; None for a root. Raises ``EntryNotFoundError``."""
        parent_id = self._storage.parent_of(self.head(entry_id))
        return parent_id if parent_id in self else None

    def children(self, entry_id: str | None) -> tuple[str, ...]:
        """Direct children in file order; those of None are the roots."""
        found = self._storage.child_lists().get(entry_id, ())
        if self._size == len(self._storage.order):
            return tuple(found)
        positions = self._storage.positions
        return tuple(child for child in found if positions[child] < self._size)

    def path(self, entry_id: str | None = None) -> tuple[EntryHead, ...]:
        """Heads from the root to ``entry_id`` (the leaf when left out), root first.

        Raises ``EntryNotFoundError`` for an unknown id. A leaf that is unknown counts as the last entry.
        """
        current = self._leaf_or_last() if entry_id is None else self.head(entry_id).id
        # Straight to the storage: this loop runs over the whole session.
        heads, positions, size = self._storage.heads, self._storage.positions, self._size
        found: list[EntryHead] = []
        seen: set[str] = set()
        while current is not None and current not in seen:
            head = heads.get(current)
            if head is None or positions[current] >= size:
                break
            seen.add(current)
            found.append(head)
            current = head[1]
        found.reverse()
        return tuple(found)

    def common_ancestor(self, first_id: str | None, second_id: str | None) -> str | None:
        """The deepest entry on both paths; None when there is none or an id is None."""
        if first_id is None or second_id is None:
            return None
        on_first = {head.id for head in self.path(first_id)}
        shared = (head.id for head in reversed(self.path(second_id)) if head.id in on_first)
        return next(shared, None)

    def walk(self) -> Iterator[tuple[str, int]]:
        """Every entry with its depth (roots 0), depth first, siblings by time, then by file order."""
        stack = [(entry_id, 0) for entry_id in reversed(self.by_time(self.children(None)))]
        while stack:
            entry_id, depth = stack.pop()
            yield entry_id, depth
            children = self.children(entry_id)
            if len(children) == 1:
                stack.append((children[0], depth + 1))
            else:
                stack.extend((child, depth + 1) for child in reversed(self.by_time(children)))

    def by_time(self, ids: Sequence[str]) -> Sequence[str]:
        """The ids sorted by timestamp; where one of two cannot be read they keep their file order."""
        if len(ids) < 2:
            return ids
        times = [unix_ms(self._storage.heads[entry_id].timestamp) for entry_id in ids]
        if None in times:
            return ids
        return [entry_id for _, entry_id in sorted(zip(times, ids, strict=True), key=_first_of_pair)]

    def with_entry(self, head: EntryHead) -> "SessionTree":
        """This tree with one more entry, which becomes the leaf."""
        storage = self._storage
        shared = self._size == len(storage.order)
        if shared and head.id not in storage.positions and head.id not in storage.missing:
            storage.add(head)
            return SessionTree(storage, self._size + 1, head.id)
        return SessionTree.from_heads([*self.heads.values(), head], head.id)

    def with_leaf(self, leaf_id: str | None) -> "SessionTree":
        """This tree with another leaf. Raises ``EntryNotFoundError`` for an unknown id."""
        if leaf_id is not None and leaf_id not in self:
            raise EntryNotFoundError(f"Entry {leaf_id} not found")
        return SessionTree(self._storage, self._size, leaf_id)

    def _leaf_or_last(self) -> str | None:
        if self.leaf_id is None or self.leaf_id in self:
            return self.leaf_id
        return self.order[-1] if self._size else None


def find_rings(heads: Mapping[str, EntryHead], order: Sequence[str]) -> frozenset[str]:
    """The first entry, in file order, of every ring of parents longer than one entry."""
    done: set[str] = set()
    positions = {entry_id: index for index, entry_id in enumerate(order)}
    rings: set[str] = set()
    for start in order:
        way: dict[str, int] = {}
        current: str | None = start
        while current is not None and current in heads and current not in done and current not in way:
            way[current] = len(way)
            parent_id = heads[current].parent_id
            current = None if parent_id == current else parent_id
        if current is not None and current in way:
            ring = [entry_id for entry_id, step in way.items() if step >= way[current]]
            rings.add(min(ring, key=positions.__getitem__))
        done.update(way)
    return frozenset(rings)


def relink_orphans(heads: Sequence[EntryHead]) -> tuple[tuple[EntryHead, ...], tuple[int, ...]]:
    """The heads with every missing parent replaced by the readable entry before it, and the indexes changed.

    An orphan that is the first entry becomes a root (session-format 7.3). ``heads`` are in file order.
    """
    known = {head.id for head in heads}
    linked = list(heads)
    changed: list[int] = []
    for index, head in enumerate(heads):
        if head.parent_id is None or head.parent_id in known:
            continue
        before = next((i for i in range(index - 1, -1, -1) if heads[i].id != head.id), None)
        linked[index] = head._replace(parent_id=None if before is None else heads[before].id)
        changed.append(index)
    return tuple(linked), tuple(changed)


def _first_of_pair(pair: tuple[int | None, str]) -> int:
    return pair[0] or 0
