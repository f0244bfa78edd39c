"""The tree of a session: heads, children, leaf (session-format 5).

A tree is a value: adding an entry gives another tree. Trees made from each other share one storage that only
grows at its end, so adding costs the same whatever the size; an older tree sees only its own part of it.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import overload

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.session.columns import LOST_PARENT, HeadColumns, HeadList
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.times import unix_ms

LEAF_MARK = "musepi.leaf"
"""``customType``, and role of the head, of the entry that keeps a moved leaf over a restart (session-format
5)."""


class _Links:
    """Children by parent, in file order: the first and last child of each position, the next sibling.

    The index of a parent is its position + 1; 0 is in place of the parent of roots.
    """

    __slots__ = ("_last", "_next", "first")

    def __init__(self, storage: "_Storage") -> None:
        size = len(storage.columns)
        self.first = array("i", [_NONE]) * (size + 1)
        self._last = array("i", [_NONE]) * (size + 1)
        self._next = array("i", [_NONE]) * size
        for position in range(size):
            self._link(storage.parent_of(position), position)

    def add(self, parent: int, position: int) -> None:
        """One more entry, at the next position."""
        for column in (self.first, self._last, self._next):
            column.append(_NONE)
        self._link(parent, position)

    def children(self, parent: int, size: int) -> Iterator[int]:
        """The children among the first ``size`` entries, in file order."""
        child = self.first[parent + 1]
        while _NONE < child < size:
            yield child
            child = self._next[child]

    def _link(self, parent: int, position: int) -> None:
        before = self._last[parent + 1]
        if before == _NONE:
            self.first[parent + 1] = position
        else:
            self._next[before] = position
        self._last[parent + 1] = position


_NONE = -1


class _Storage:
    """What trees share. The links are made when first asked for and kept up to date from then on."""

    __slots__ = ("_links", "columns", "is_plain", "missing", "ring_roots")

    def __init__(self, columns: HeadColumns, *, is_plain: bool, ring_roots: frozenset[int]) -> None:
        self.columns = columns
        self.is_plain = is_plain
        self.missing = set(columns.lost.values())
        self.ring_roots = ring_roots
        self._links: _Links | None = None

    def parent_of(self, position: int) -> int:
        """The parent in the tree; -1 for roots, among them ring heads and orphans."""
        parent = self.columns.parents[position]
        return _NONE if parent < 0 or parent == position or position in self.ring_roots else parent

    @property
    def links(self) -> _Links:
        """Children by parent."""
        if self._links is None:
            self._links = _Links(self)
        return self._links

    def add(self, head: EntryHead) -> None:
        """Append a head whose id is new."""
        position = len(self.columns)
        self.columns.append(head)
        if position in self.columns.lost:
            self.missing.add(self.columns.lost[position])
            self.is_plain = False
        if self._links is not None:
            self._links.add(self.parent_of(position), position)


class _Order(Sequence[str]):
    """The ids of one tree in file order, without copying."""

    __slots__ = ("_columns", "_size")

    def __init__(self, columns: HeadColumns, size: int) -> None:
        self._columns = columns
        self._size = size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        places = range(self._size)[index]
        return (
            self._columns.id_at(places) if isinstance(places, int) else list(map(self._columns.id_at, places))
        )

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        return map(self._columns.id_at, range(self._size))


class _Heads(Mapping[str, EntryHead]):
    """The heads of one tree by id, made as they are asked for."""

    __slots__ = ("columns", "size")

    def __init__(self, columns: HeadColumns, size: int) -> None:
        self.columns = columns
        self.size = size

    def __getitem__(self, entry_id: str) -> EntryHead:
        position = self.columns.find(entry_id)
        if position is None or position >= self.size:
            raise KeyError(entry_id)
        return self.columns.head_at(position)

    def __iter__(self) -> Iterator[str]:
        return map(self.columns.id_at, range(self.size))

    def __len__(self) -> int:
        return self.size

    def values(self) -> "ValuesView[EntryHead]":
        """The heads in file order."""
        return _Values(self)


class _Values(ValuesView[EntryHead]):
    """The heads without a look-up for each."""

    def __init__(self, heads: _Heads) -> None:
        super().__init__(heads)
        self._heads = heads

    def __iter__(self) -> Iterator[EntryHead]:
        return self._heads.columns.heads_at(range(self._heads.size))


class SessionTree:
    """Heads of all entries in file order, and the leaf the next entry will hang under.

    Of entries with the same id the last one counts, at the place of the first. A walk towards the root stops
    at a repeated id and at a missing parent, so damaged files never hang or raise. Heads are made when they
    are asked for: equal ones need not be the same object.
    """

    __slots__ = ("_size", "_storage", "leaf_id")

    def __init__(self, storage: _Storage, size: int, leaf_id: str | None) -> None:
        self._storage = storage
        self._size = size
        self.leaf_id = leaf_id

    @classmethod
    def empty(cls) -> "SessionTree":
        """A tree without entries."""
        return cls.from_heads(())

    @classmethod
    def from_heads(cls, heads: Iterable[EntryHead], leaf_id: str | None = "") -> "SessionTree":
        """The tree of these heads, given in file order.

        ``leaf_id`` left out is the id of the last head; None is a leaf before the first entry.
        """
        columns, by_id = HeadColumns(), dict[str, EntryHead]()
        count, last_id = 0, None
        for head in heads:
            by_id[head.id] = head
            count, last_id = count + 1, head.id
        for head in by_id.values():
            columns.add(head)
        is_plain = columns.seal() and count == len(by_id)
        rings = frozenset[int]() if is_plain else _ring_positions(columns)
        storage = _Storage(columns, is_plain=is_plain, ring_roots=rings)
        return cls(storage, len(columns), last_id if leaf_id == "" else leaf_id)

    @classmethod
    def from_columns(cls, columns: HeadColumns) -> "SessionTree":
        """The tree of heads that were collected in columns, which belong to it from here on."""
        if not columns.seal():
            return cls.from_heads(HeadList(columns, range(len(columns))))
        size = len(columns)
        storage = _Storage(columns, is_plain=True, ring_roots=frozenset())
        return cls(storage, size, columns.id_at(size - 1) if size else None)

    @property
    def is_plain(self) -> bool:
        """Whether every id was new and every parent known when its entry came: a tree without damage."""
        return self._storage.is_plain

    @property
    def heads(self) -> Mapping[str, EntryHead]:
        """Heads by id, in file order."""
        return _Heads(self._storage.columns, self._size)

    @property
    def all_heads(self) -> HeadList:
        """The heads in file order."""
        return HeadList(self._storage.columns, range(self._size))

    @property
    def order(self) -> Sequence[str]:
        """Ids in file order."""
        return _Order(self._storage.columns, self._size)

    @property
    def parents(self) -> Sequence[int]:
        """The parent of each entry, as indexes of ``order``; -1 for roots, ring heads and orphans."""
        storage, size = self._storage, self._size
        if storage.is_plain:
            return storage.columns.parents[:size]
        found = map(storage.parent_of, range(size))
        return array("i", (parent if parent < size else _NONE for parent in found))

    @property
    def roots(self) -> tuple[str, ...]:
        """Entries without a parent in this tree, in file order; of a ring its first entry."""
        return self.children(None)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Entries without children, in file order."""
        first, size = self._storage.links.first, self._size
        alone = (position for position in range(size) if not _NONE < first[position + 1] < size)
        return tuple(map(self._storage.columns.id_at, alone))

    @property
    def longest_path(self) -> int:
        """Entries on the longest way from a root to a leaf."""
        return max((depth + 1 for _, depth in self._walk()), default=0)

    @property
    def display_leaf(self) -> str | None:
        """The entry people see as the current one: a mark that only remembers a move counts as its parent."""
        columns = self._storage.columns
        position = _NONE if self.leaf_id is None else self._leaf_or_last()
        while position >= 0 and columns.kinds[columns.codes[position]] == ("custom", LEAF_MARK):
            position = self._storage.parent_of(position)
        return None if position < 0 else columns.id_at(position)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, entry_id: object) -> bool:
        return isinstance(entry_id, str) and self._find(entry_id) is not None

    def head(self, entry_id: str) -> EntryHead:
        """The head with that id. Raises ``EntryNotFoundError``."""
        return self._storage.columns.head_at(self._position(entry_id))

    def parent(self, entry_id: str) -> str | None:
        """The parent in the tree; None for a root. Raises ``EntryNotFoundError``."""
        parent = self._storage.parent_of(self._position(entry_id))
        return self._storage.columns.id_at(parent) if _NONE < parent < self._size else None

    def children(self, entry_id: str | None) -> tuple[str, ...]:
        """Direct children in file order; those of None are the roots."""
        parent = _NONE if entry_id is None else self._find(entry_id)
        if parent is None:
            return ()
        return tuple(map(self._storage.columns.id_at, self._storage.links.children(parent, self._size)))

    def path(self, entry_id: str | None = None) -> HeadList:
        """Heads from the root to ``entry_id`` (the leaf when left out), root first.

        Raises ``EntryNotFoundError`` for an unknown id. A leaf that is unknown counts as the last entry.
        """
        position = self._leaf_or_last() if entry_id is None else self._position(entry_id)
        # Straight to the column: this loop runs over the whole session.
        parents, size = self._storage.columns.parents, self._size
        found = array("i")
        if self._storage.is_plain:
            while position >= 0:
                found.append(position)
                position = parents[position]
        seen: set[int] = set()
        while _NONE < position < size and position not in seen:
            seen.add(position)
            found.append(position)
            position = parents[position]
        found.reverse()
        return HeadList(self._storage.columns, found)

    def common_ancestor(self, first_id: str | None, second_id: str | None) -> str | None:
        """The deepest entry on both paths; None when there is none or an id is None."""
        if first_id is None or second_id is None:
            return None
        on_first = set(self.path(first_id).positions)
        shared = (position for position in reversed(self.path(second_id).positions) if position in on_first)
        return next(map(self._storage.columns.id_at, shared), None)

    def walk(self) -> Iterator[tuple[str, int]]:
        """Every entry with its depth (roots 0), depth first, siblings by time, then by file order."""
        id_at = self._storage.columns.id_at
        return ((id_at(position), depth) for position, depth in self._walk())

    def by_time(self, ids: Sequence[str]) -> Sequence[str]:
        """The ids sorted by timestamp; where one of two cannot be read they keep their file order."""
        return list(map(self._storage.columns.id_at, self._by_time(list(map(self._position, ids)))))

    def with_entry(self, head: EntryHead) -> "SessionTree":
        """This tree with one more entry, which becomes the leaf."""
        storage = self._storage
        shared = self._size == len(storage.columns)
        if shared and self._find(head.id) is None and head.id not in storage.missing:
            storage.add(head)
            return SessionTree(storage, self._size + 1, head.id)
        return SessionTree.from_heads([*self.all_heads, head], head.id)

    def with_leaf(self, leaf_id: str | None) -> "SessionTree":
        """This tree with another leaf. Raises ``EntryNotFoundError`` for an unknown id."""
        if leaf_id is not None and leaf_id not in self:
            raise EntryNotFoundError(f"Entry {leaf_id} not found")
        return SessionTree(self._storage, self._size, leaf_id)

    def with_places(self, moved: Mapping[str, EntryHead]) -> "SessionTree":
        """This tree with the heads of ``moved`` in place of its own, by id; unknown ids are passed over.

        Cheap when only places in the file differ, as after a rewrite.
        """
        old = self._storage.columns
        changes = {self._find(entry_id): head for entry_id, head in moved.items()}
        changes.pop(None, None)
        if self._size != len(old) or any(
            not _is_same(old, at, head) for at, head in changes.items() if at is not None
        ):
            heads = (moved.get(head.id, head) for head in self.all_heads)
            return SessionTree.from_heads(heads, self.leaf_id)
        columns = old.copy()
        for position, head in changes.items():
            if position is not None:
                columns.offsets[position], columns.lengths[position] = head.offset, head.length
        storage = _Storage(columns, is_plain=self._storage.is_plain, ring_roots=self._storage.ring_roots)
        return SessionTree(storage, self._size, self.leaf_id)

    def _find(self, entry_id: str) -> int | None:
        position = self._storage.columns.find(entry_id)
        return position if position is not None and position < self._size else None

    def _position(self, entry_id: str) -> int:
        position = self._find(entry_id)
        if position is None:
            raise EntryNotFoundError(f"Entry {entry_id} not found")
        return position

    def _leaf_or_last(self) -> int:
        if self.leaf_id is None:
            return _NONE
        found = self._find(self.leaf_id)
        return self._size - 1 if found is None else found

    def _walk(self) -> Iterator[tuple[int, int]]:
        links, size = self._storage.links, self._size
        stack = [(position, 0) for position in reversed(self._by_time(list(links.children(_NONE, size))))]
        while stack:
            position, depth = stack.pop()
            yield position, depth
            children = self._by_time(list(links.children(position, size)))
            stack.extend((child, depth + 1) for child in reversed(children))

    def _by_time(self, positions: list[int]) -> list[int]:
        if len(positions) < 2:
            return positions
        times = [unix_ms(self._storage.columns.time_at(position)) for position in positions]
        if None in times:
            return positions
        return [position for _, position in sorted(zip(times, positions, strict=True), key=_first_of_pair)]


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


def _first_of_pair(pair: tuple[int | None, int]) -> int:
    return pair[0] or 0


def _is_same(columns: HeadColumns, position: int, head: EntryHead) -> bool:
    """Whether a head differs in its place only."""
    return columns.head_at(position) == head._replace(
        offset=columns.offsets[position], length=columns.lengths[position]
    )


def _ring_positions(columns: HeadColumns) -> frozenset[int]:
    """The first entry of every ring longer than one."""
    done = bytearray(len(columns))
    rings: set[int] = set()
    for start in range(len(columns)):
        way: dict[int, int] = {}
        current = start
        while current >= 0 and not done[current] and current not in way:
            way[current] = len(way)
            parent = columns.parents[current]
            current = LOST_PARENT if parent == current else parent
        if current in way:
            rings.add(min(position for position, step in way.items() if step >= way[current]))
        for position in way:
            done[position] = 1
    return frozenset(rings)
