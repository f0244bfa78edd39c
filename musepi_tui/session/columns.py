"""The heads of a session as columns: about 60 bytes for an entry instead of 600 (session-format 16).

What nearly all entries have in common is kept in arrays: ids of eight ASCII characters, times of 24, parents
as positions, types as small numbers. Whatever is different goes into dictionaries beside them.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import eq
from typing import cast, overload

from musepi_tui.session.entries import EntryHead

ID_BYTES = 8
TIME_BYTES = 24
NO_PARENT = -1
LOST_PARENT = -2
"""In place of a position: a root, and an entry whose parent is not here."""

_BUCKETS = 1021
_MANY = 4096
"""Keys of so many entries are sorted in buckets of some hundred. A prime, because ids may share what they
begin or end with."""

_ODD = 0
"""The key of an entry whose id is not eight ASCII characters: no such id consists of NULs."""


class HeadColumns:
    """Heads by position, in file order. Grows at its end; ``seal`` once before anything is looked up.

    ``codes`` index ``kinds``, pairs of type and role. ``parents`` hold positions, ``NO_PARENT`` or
    ``LOST_PARENT``. Ids may repeat; ``find`` is only of use when they do not.
    """

    __slots__ = (
        "_codes_by_kind",
        "_late",
        "_odd_ids",
        "_odd_places",
        "_odd_times",
        "_pending",
        "_sorted",
        "_sorted_keys",
        "_starts",
        "_times",
        "codes",
        "keys",
        "kinds",
        "lengths",
        "lost",
        "offsets",
        "parents",
    )

    def __init__(self) -> None:
        self.keys: array[int] = array("Q")
        self.parents: array[int] = array("i")
        self.codes: array[int] = array("I")
        self.offsets: array[int] = array("Q")
        self.lengths: array[int] = array("I")
        self.kinds: list[tuple[str, str | None]] = []
        self.lost: dict[int, str] = {}
        self._codes_by_kind: dict[tuple[str, str | None], int] = {}
        self._times = bytearray()
        self._odd_ids: dict[int, str] = {}
        self._odd_places: dict[str, int] = {}
        self._odd_times: dict[int, str] = {}
        self._pending: dict[int, str] = {}
        self._sorted: array[int] = array("I")
        self._sorted_keys: array[int] = array("Q")
        self._starts: array[int] = array("I", [0, 0])
        self._late: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def code_of(self, kind: str, role: str | None) -> int:
        """The number that stands for a type and a role."""
        pair = kind, role
        code = self._codes_by_kind.get(pair)
        if code is None:
            code = self._codes_by_kind[pair] = len(self.kinds)
            self.kinds.append(pair)
        return code

    def add(self, head: EntryHead) -> None:
        """One more head; its parent is looked for when everything is there."""
        position = len(self.keys)
        key = _key_of(head.id)
        if key == _ODD:
            self._odd_ids[position] = head.id
            self._odd_places[head.id] = position
        self.keys.append(key)
        time = head.timestamp.encode("ascii") if head.timestamp.isascii() else b""
        if len(time) != TIME_BYTES:
            self._odd_times[position] = head.timestamp
            time = bytes(TIME_BYTES)
        self._times += time
        self.codes.append(self.code_of(head.type, head.role))
        self.offsets.append(head.offset)
        self.lengths.append(head.length)
        if head.parent_id is None:
            self.parents.append(NO_PARENT)
        elif position and head.parent_id == self.id_at(position - 1):
            self.parents.append(position - 1)
        else:
            self.await_parent(head.parent_id)

    def add_plain(self, id_bytes: bytes, time_bytes: bytes, code: int, offset: int, length: int) -> None:
        """A head whose id and time have the usual length; the caller adds its parent."""
        # Called for every line of every file: no checks here.
        self.keys.frombytes(id_bytes)
        self._times += time_bytes
        self.codes.append(code)
        self.offsets.append(offset)
        self.lengths.append(length)

    def await_parent(self, parent_id: str) -> None:
        """Add a parent that is looked for when everything is there."""
        self._pending[len(self.parents)] = parent_id
        self.parents.append(LOST_PARENT)

    def cut(self, size: int) -> None:
        """Forget everything from position ``size`` on. Only before ``seal``."""
        for column in (self.keys, self.parents, self.codes, self.offsets, self.lengths):
            del column[size:]
        del self._times[size * TIME_BYTES :]
        for table in (self._odd_ids, self._odd_times, self._pending):
            for position in [known for known in table if known >= size]:
                del table[position]
        self._odd_places = {entry_id: place for place, entry_id in self._odd_ids.items()}

    def seal(self) -> bool:
        """Find the parents; whether it is a tree without damage: no id repeats, parents come first."""
        is_plain = self._sort() and len(self._odd_places) == len(self._odd_ids)
        for position, parent_id in self._pending.items():
            parent = self.find(parent_id)
            if parent is None:
                self.lost[position] = parent_id
            else:
                self.parents[position] = parent
            is_plain = is_plain and parent is not None and parent < position
        self._pending = {}
        return is_plain

    def _sort(self) -> bool:
        """Sort the keys into buckets; whether none of them repeats.

        One sort over all of them would keep every other thread, the screen's too, waiting for as long as it
        takes.
        """
        keys = self.keys
        self._starts = array("I", [0])
        count = _BUCKETS if len(keys) >= _MANY else 1
        buckets: list[list[int]] = [[] for _ in range(count)]
        for position, key in enumerate(keys):
            if key != _ODD:
                buckets[key % count].append(position)
        is_unique = True
        for bucket in buckets:
            bucket.sort(key=keys.__getitem__)
            in_order = [keys[position] for position in bucket]
            is_unique = is_unique and not any(map(eq, in_order, in_order[1:]))
            self._sorted.extend(bucket)
            self._sorted_keys.extend(in_order)
            self._starts.append(len(self._sorted))
        return is_unique

    def append(self, head: EntryHead) -> None:
        """One more head with a new id, after ``seal``."""
        self.add(head)
        position = len(self.keys) - 1
        self._late[head.id] = position
        awaited = self._pending.pop(position, None)
        if awaited is None:
            return
        parent = self.find(awaited)
        if parent is None:
            self.lost[position] = awaited
        else:
            self.parents[position] = parent

    def find(self, entry_id: str) -> int | None:
        """The position of an id."""
        late = self._late.get(entry_id)
        if late is not None:
            return late
        key = _key_of(entry_id)
        if key == _ODD:
            return self._odd_places.get(entry_id)
        bucket = key % (len(self._starts) - 1)
        end = self._starts[bucket + 1]
        place = bisect_left(self._sorted_keys, key, self._starts[bucket], end)
        return self._sorted[place] if place < end and self._sorted_keys[place] == key else None

    def id_at(self, position: int) -> str:
        """The id at a position."""
        key = self.keys[position]
        return key.to_bytes(ID_BYTES, sys.byteorder).decode() if key else self._odd_ids[position]

    def time_at(self, position: int) -> str:
        """The timestamp at a position."""
        if position in self._odd_times:
            return self._odd_times[position]
        start = position * TIME_BYTES
        return self._times[start : start + TIME_BYTES].decode()

    def parent_id_at(self, position: int) -> str | None:
        """The id of the parent as stored, whether it is here or not."""
        parent = self.parents[position]
        if parent >= 0:
            return self.id_at(parent)
        return self.lost.get(position, self._pending.get(position)) if parent == LOST_PARENT else None

    def kind_at(self, position: int) -> str:
        """The type at a position."""
        return self.kinds[self.codes[position]][0]

    def head_at(self, position: int) -> EntryHead:
        """The head at a position, made anew."""
        kind, role = self.kinds[self.codes[position]]
        offset, length = self.offsets[position], self.lengths[position]
        return EntryHead(
            self.id_at(position),
            self.parent_id_at(position),
            kind,
            self.time_at(position),
            offset,
            length,
            role,
        )

    def heads_at(self, positions: Iterable[int]) -> Iterator[EntryHead]:
        """The heads at many positions; an entry shares the string of its parent's id when it follows it."""
        # As head_at, spelled out: whole sessions go through here.
        keys, parents, codes, kinds = self.keys, self.parents, self.codes, self.kinds
        offsets, lengths, times, odd_times = self.offsets, self.lengths, self._times, self._odd_times
        order, make, before, before_id = sys.byteorder, EntryHead._make, NO_PARENT, None
        for position in positions:
            key, parent = keys[position], parents[position]
            entry_id = key.to_bytes(ID_BYTES, order).decode() if key else self._odd_ids[position]
            parent_id = before_id if parent == before else self.parent_id_at(position)
            if position in odd_times:
                time = odd_times[position]
            else:
                start = position * TIME_BYTES
                time = times[start : start + TIME_BYTES].decode()
            kind, role = kinds[codes[position]]
            yield make((entry_id, parent_id, kind, time, offsets[position], lengths[position], role))
            before, before_id = position, entry_id

    @property
    def memory_bytes(self) -> int:
        """What the columns take, strings of unusual entries not counted."""
        return sum(sys.getsizeof(getattr(self, name)) for name in self.__slots__)

    def copy(self) -> "HeadColumns":
        """Columns of their own with the same heads."""
        made = HeadColumns()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(made, name, value[:] if isinstance(value, array | bytearray | list) else dict(value))
        return made


class HeadList(Sequence[EntryHead]):
    """Heads at some positions, made one by one as they are asked for."""

    __slots__ = ("columns", "positions")

    def __init__(self, columns: HeadColumns, positions: Sequence[int]) -> None:
        self.columns = columns
        self.positions = positions

    @overload
    def __getitem__(self, index: int) -> EntryHead: ...
    @overload
    def __getitem__(self, index: slice) -> "HeadList": ...
    def __getitem__(self, index: int | slice) -> "EntryHead | HeadList":
        if isinstance(index, slice):
            return HeadList(self.columns, self.positions[index])
        return self.columns.head_at(self.positions[index])

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[EntryHead]:
        return self.columns.heads_at(self.positions)

    def __reversed__(self) -> Iterator[EntryHead]:
        return map(self.columns.head_at, reversed(self.positions))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeadList | tuple | list):
            return NotImplemented
        heads = cast("Sequence[object]", other)
        return len(self) == len(heads) and all(map(eq, self, heads))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"HeadList({list(self)!r})"

    @property
    def ids(self) -> list[str]:
        """The ids, in order."""
        return list(map(self.columns.id_at, self.positions))

    def index_of(self, entry_id: str) -> int | None:
        """The index of an entry."""
        position = self.columns.find(entry_id)
        if position is None or position not in self.positions:
            return None
        return self.positions.index(position)

    def places_of(self, types: Collection[str], start: int, stop: int) -> Iterator[int]:
        """Indexes of the entries of some types from ``start`` to ``stop``, in order."""
        chosen = {code for code, pair in enumerate(self.columns.kinds) if pair[0] in types}
        codes, positions = self.columns.codes, self.positions
        return (index for index in range(start, stop) if codes[positions[index]] in chosen)

    def of_types(self, types: Collection[str]) -> "HeadList":
        """Those of some types, in order; the others cost nothing."""
        return self._of_kinds({code for code, pair in enumerate(self.columns.kinds) if pair[0] in types})

    def without_types(self, types: Collection[str]) -> "HeadList":
        """Those of all other types, in order."""
        return self._of_kinds({code for code, pair in enumerate(self.columns.kinds) if pair[0] not in types})

    def with_roles(self, roles: Collection[str | None]) -> "HeadList":
        """Those with some roles, in order."""
        return self._of_kinds({code for code, pair in enumerate(self.columns.kinds) if pair[1] in roles})

    def _of_kinds(self, chosen: set[int]) -> "HeadList":
        codes = self.columns.codes
        found = (position for position in self.positions if codes[position] in chosen)
        return HeadList(self.columns, array("I", found))


def of_types(heads: Sequence[EntryHead], types: Collection[str]) -> Sequence[EntryHead]:
    """The heads of some types, in order, however they are kept."""
    return (
        heads.of_types(types)
        if isinstance(heads, HeadList)
        else [head for head in heads if head.type in types]
    )


def _key_of(entry_id: str) -> int:
    if len(entry_id) == ID_BYTES and entry_id.isascii():
        return int.from_bytes(entry_id.encode(), sys.byteorder)
    return _ODD
