"""The slots of a transcript in order, without an object for each entry of a long session. Pure."""

from collections.abc import Collection, Iterator, Sequence

from musepi_tui.session.columns import HeadList
from musepi_tui.session.entries import EntryHead
from musepi_tui.tui.transcript.slots import LocalSlot, Slot, estimate_heads, estimate_rows


class SlotList:
    """Slots by index: what stands on top, the stored path as it is, and what came after.

    A slot put into the middle of the stored path turns the path behind it into objects: that happens to
    notices of a session that is loaded again, and they are near the end.
    """

    def __init__(self, heads: Sequence[EntryHead] = ()) -> None:
        self._top: list[Slot] = []
        self._path = heads
        self._rest: list[Slot] = []

    def __len__(self) -> int:
        return len(self._top) + len(self._path) + len(self._rest)

    def __getitem__(self, index: int) -> Slot:
        if index < 0:
            index += len(self)
        in_path = index - len(self._top)
        if in_path < 0:
            return self._top[index]
        in_rest = in_path - len(self._path)
        return self._path[in_path] if in_rest < 0 else self._rest[in_rest]

    def __setitem__(self, index: int, slot: Slot) -> None:
        """Another slot in place of one. Cheap for slots that are not of the stored path."""
        if index < len(self._top):
            self._top[index] = slot
        else:
            self._open(index - len(self._top))
            self._rest[index - len(self._top) - len(self._path)] = slot

    def insert(self, index: int, slot: Slot) -> None:
        """One more slot in front of slot ``index``; at the end when there is none."""
        if index <= len(self._top):
            self._top.insert(index, slot)
        else:
            self._open(index - len(self._top))
            self._rest.insert(index - len(self._top) - len(self._path), slot)

    def append(self, slot: Slot) -> None:
        """One more slot at the end."""
        self._rest.append(slot)

    def local_slots(self) -> tuple[LocalSlot, ...]:
        """The slots no entry stands behind, in order."""
        return tuple(slot for slot in (*self._top, *self._rest) if isinstance(slot, LocalSlot))

    def last_entry_id(self) -> str | None:
        """The newest entry."""
        for slots in (self._rest, self._path, self._top):
            for slot in reversed(slots):
                if isinstance(slot, EntryHead):
                    return slot.id
        return None

    def index_of(self, slot_id: str) -> int | None:
        """The index of a slot; of the last one with that id."""
        for index in range(len(self._rest) - 1, -1, -1):
            if self._rest[index].id == slot_id:
                return len(self._top) + len(self._path) + index
        in_path = _place_in(self._path, slot_id)
        if in_path is not None:
            return len(self._top) + in_path
        return next((index for index, slot in enumerate(self._top) if slot.id == slot_id), None)

    def places_of(self, types: Collection[str], start: int, stop: int) -> Iterator[int]:
        """Indexes of the entries of some types from ``start`` to ``stop``, oldest first."""
        top, path_end = len(self._top), len(self._top) + len(self._path)
        for index in range(start, min(stop, top)):
            if _is_of(self._top[index], types):
                yield index
        for index in _of_types(self._path, types, max(start, top) - top, min(stop, path_end) - top):
            yield top + index
        for index in range(max(start, path_end), min(stop, len(self))):
            if _is_of(self._rest[index - path_end], types):
                yield index

    def estimates(self, width_cells: int, start: int, stop: int | None) -> list[int]:
        """Rows the slots from ``start`` to ``stop`` will take, guessed."""
        stop = len(self) if stop is None else min(stop, len(self))
        if start or stop < len(self) or not isinstance(self._path, HeadList):
            return estimate_rows((self[index] for index in range(start, stop)), width_cells)
        return [
            *estimate_rows(self._top, width_cells),
            *estimate_heads(self._path, width_cells),
            *estimate_rows(self._rest, width_cells),
        ]

    def _open(self, in_path: int) -> None:
        """Turn the stored path from an index on into slots that can be changed."""
        if in_path < len(self._path):
            self._rest[:0] = self._path[in_path:]
            self._path = self._path[:in_path]


def _place_in(heads: Sequence[EntryHead], entry_id: str) -> int | None:
    if isinstance(heads, HeadList):
        return heads.index_of(entry_id)
    return next((index for index, head in enumerate(heads) if head.id == entry_id), None)


def _is_of(slot: Slot, types: Collection[str]) -> bool:
    return isinstance(slot, EntryHead) and slot.type in types


def _of_types(heads: Sequence[EntryHead], types: Collection[str], start: int, stop: int) -> Iterator[int]:
    if isinstance(heads, HeadList):
        return heads.places_of(types, start, stop)
    return (index for index in range(start, stop) if heads[index].type in types)
