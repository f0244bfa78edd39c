"""The slots in order, the entries that stand in them and what edits put in their place. Pure."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    ContextEditEntry,
    Entry,
    EntryHead,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.messages import text_of
from musepi_tui.session.places import PLACE_TYPES
from musepi_tui.session.tree import LEAF_MARK
from musepi_tui.tui.transcript.blocks import NoticeBlock
from musepi_tui.tui.transcript.live import LiveAnswer
from musepi_tui.tui.transcript.slot_list import SlotList
from musepi_tui.tui.transcript.slots import LocalSlot, Slot, head_of, message_role

_KEPT_BODIES = 600
"""Entries kept in memory: the newest and those around the reader. More would keep alive what the runtime
has let go."""

RECENT = 64
"""An entry that is told twice (in the view and as an event) is among so many of the newest slots."""

PathTo: TypeAlias = Callable[[str], Sequence[EntryHead]]
"""Gives the heads from the root to an entry, root first. May raise ``SessionError``."""


class SlotPath:
    """Slots oldest first. ``read`` gives an entry by id and may raise ``SessionError``.

    Without ``path_to`` the way to another branch is found by reading its entries one by one.
    """

    def __init__(self, read: Callable[[str], Entry], path_to: PathTo | None = None) -> None:
        self._read = read
        self._path_to = path_to or self._read_path
        self._slots = SlotList()
        self._aside: list[LocalSlot] = []
        self._bodies: OrderedDict[str, Entry] = OrderedDict()
        self._edits: dict[str, ContextEditEntry] = {}
        self._edits_known_from = 0

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: int) -> Slot:
        return self._slots[index]

    def estimates(self, width_cells: int, start: int, stop: int | None) -> list[int]:
        """Rows the slots of a range will take, guessed."""
        return self._slots.estimates(width_cells, start, stop)

    def replace_all(self, heads: Sequence[EntryHead], locals_: Iterable[LocalSlot]) -> None:
        """Other entries; each local slot is put behind the entry it followed, or at the end."""
        self._slots = SlotList(heads)
        self._aside = []
        self._edits.clear()
        for slot in locals_:
            self._slots.insert(self._place_of(slot), slot)
        self._edits_known_from = len(self._slots)

    def go_to(self, entry_id: str | None, stays: Callable[[LocalSlot], bool]) -> bool:
        """Makes the path end with an entry, or with None before the first one; false when it does already.

        Notices of a branch that is left go with it, and come again with it; those ``stays`` is true for stand
        at the end. An entry nobody knows changes nothing.
        """
        if entry_id == self.last_entry_id():
            return False
        try:
            heads = self._path_to(entry_id) if entry_id is not None else ()
        except SessionError:
            return False
        locals_, self._slots = (*self._aside, *self.local_slots()), SlotList(heads)
        here: list[LocalSlot] = []
        aside: list[LocalSlot] = []
        for slot in locals_:
            is_here = slot.after is None or self.index_of(slot.after) is not None
            is_left = not is_here and isinstance(slot.content, NoticeBlock) and not stays(slot)
            (aside if is_left else here).append(slot)
            if not is_here and not is_left:
                slot.after = self.last_entry_id()
        self.replace_all(heads, here)
        self._aside = aside
        return True

    def stands_at(self, place_id: str | None) -> bool:
        """Whether people see the path end at this entry; None: before the first one."""
        for index in range(len(self._slots) - 1, -1, -1):
            slot = self._slots[index]
            if slot.id == place_id:
                return True
            if isinstance(slot, EntryHead) and slot.type in PLACE_TYPES:
                return False
        return place_id is None

    def index_of(self, slot_id: str) -> int | None:
        """The index of a slot."""
        return self._slots.index_of(slot_id)

    def places_of(self, types: Collection[str], start: int, stop: int) -> Iterator[int]:
        """Indexes of the entries of some types from ``start`` to ``stop``, oldest first."""
        return self._slots.places_of(types, start, stop)

    def last_entry_id(self) -> str | None:
        """The newest entry."""
        return self._slots.last_entry_id()

    def local_slots(self) -> tuple[LocalSlot, ...]:
        """The slots no entry stands behind, in order."""
        return self._slots.local_slots()

    def insert_first(self, slot: LocalSlot) -> None:
        """A slot of the screen only, at the top."""
        self._slots.insert(0, slot)
        self._edits_known_from += 1

    def append_local(self, slot: LocalSlot) -> int:
        """A slot of the screen only, at the end. Returns its index."""
        slot.after = self.last_entry_id()
        self._slots.append(slot)
        return len(self._slots) - 1

    def append_entry(self, entry: Entry) -> int:
        """A new entry, before an answer that is still being received: entries keep their order.

        Returns its index. Whoever keeps indexes must count one more from there on.
        """
        self.remember(entry)
        index = len(self._slots)
        while index and self._is_open_answer(self._slots[index - 1]):
            index -= 1
        self._slots.insert(index, head_of(entry))
        if index < self._edits_known_from:
            self._edits_known_from += 1
        if isinstance(entry, ContextEditEntry):
            self._edits[entry.target_id] = entry
        return index

    def settle(self, index: int, entry: Entry) -> None:
        """The answer received in slot ``index`` became an entry."""
        self.remember(entry)
        self._slots[index] = head_of(entry)

    def remember(self, entry: Entry) -> None:
        """Keeps a body at hand."""
        self._bodies[entry.id] = entry
        self._bodies.move_to_end(entry.id)
        if len(self._bodies) > _KEPT_BODIES:
            self._bodies.popitem(last=False)

    def entry(self, entry_id: str) -> Entry | SessionError:
        """The entry of that id, or why it cannot be read."""
        known = self._bodies.get(entry_id)
        if known is not None:
            return known
        try:
            entry = self._read(entry_id)
        except SessionError as error:
            return error
        self.remember(entry)
        return entry

    def placeholder(self, entry_id: str, index: int) -> str | None:
        """What the session shows instead of an entry behind slot ``index``: the text of its newest edit."""
        self._learn_edits(index)
        edit = self._edits.get(entry_id)
        if edit is None or edit.replacement is None:
            return None
        place = self.index_of(edit.id)
        # An edit holds only behind its target (compaction 1.6); a damaged file may have it before.
        return text_of(edit.replacement) if place is not None and place > index else None

    def _learn_edits(self, index: int) -> None:
        """Reads the edits behind slot ``index`` that were not read yet; a newer edit of a target wins."""
        places = tuple(self._slots.places_of(("context_edit",), index + 1, self._edits_known_from))
        for known in reversed(places):
            edit = self.entry(self._slots[known].id)
            if isinstance(edit, ContextEditEntry):
                self._edits.setdefault(edit.target_id, edit)
        self._edits_known_from = min(self._edits_known_from, index + 1)

    def _read_path(self, entry_id: str) -> Sequence[EntryHead]:
        found: dict[str, EntryHead] = {}
        parent_id: str | None = entry_id
        while parent_id is not None and parent_id not in found:
            parent = self.entry(parent_id)
            if isinstance(parent, SessionError):
                if not found:
                    raise parent
                break
            found[parent_id] = head_of(parent)
            parent_id = parent.parent_id
        return tuple(reversed(found.values()))

    def _place_of(self, slot: LocalSlot) -> int:
        if slot.after is None:
            first = (self._slots[index] for index in range(min(8, len(self._slots))))
            return sum(1 for known in first if isinstance(known, LocalSlot) and known.after is None)
        place = self.index_of(slot.after)
        if place is None:
            return len(self._slots)
        place += 1
        while place < len(self._slots) and isinstance(self._slots[place], LocalSlot):
            place += 1
        return place

    @staticmethod
    def _is_open_answer(slot: Slot) -> bool:
        return isinstance(slot, LocalSlot) and isinstance(slot.content, LiveAnswer) and not slot.hidden


def live_index(path: SlotPath, live_id: str) -> int | None:
    """The slot of an answer that is still being received."""
    for index in range(len(path) - 1, max(-1, len(path) - 1 - RECENT), -1):
        slot = path[index]
        if slot.id == live_id and isinstance(slot, LocalSlot) and isinstance(slot.content, LiveAnswer):
            return index
    return None


def is_recent(path: SlotPath, entry_id: str) -> bool:
    """Whether an entry is among the newest slots."""
    return any(path[index].id == entry_id for index in range(max(0, len(path) - RECENT), len(path)))


def is_move(entry: Entry) -> bool:
    """Whether an entry says that the person went elsewhere, not that an answer is asked for again."""
    match entry:
        case BranchSummaryEntry():
            return True
        case StateEntry():
            return entry.fields.get("customType") == LEAF_MARK
        case _:
            return False


def is_result(entry: Entry) -> bool:
    """Whether an entry holds the result of a call."""
    return isinstance(entry, MessageEntry) and message_role(entry.message) == "toolResult"
