"""The slots in order, and what entries say about each other: results to calls, edits to results. Pure.

Joins look at neighbours only, so that a session of any length opens without reading its middle.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import ContextEditEntry, Entry, EntryHead, MessageEntry, StateEntry
from musepi_tui.session.messages import (
    AssistantMessage,
    Message,
    StopReason,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)
from musepi_tui.tui.transcript.live import LiveAnswer
from musepi_tui.tui.transcript.slot_list import SlotList
from musepi_tui.tui.transcript.slots import LocalSlot, Slot, head_of, message_role

_KEPT_BODIES = 600
"""Entries kept in memory: the newest and those around the reader. More would keep alive what the runtime
has let go."""

_TURN_SLOTS = 500
"""Slots of a turn that are looked through when it ends."""

RECENT = 64
"""An entry that is told twice (in the view and as an event) is among so many of the newest slots."""

COMPACTION_WARNING = "compaction.warning"
"""``customType`` of a warning found after its compaction was written (compaction 1.6)."""


class SlotPath:
    """Slots oldest first. ``read`` gives an entry by id and may raise ``SessionError``."""

    def __init__(self, read: Callable[[str], Entry]) -> None:
        self._read = read
        self._slots = SlotList()
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
        self._edits.clear()
        for slot in locals_:
            self._slots.insert(self._place_of(slot), slot)
        self._edits_known_from = len(self._slots)

    def index_of(self, slot_id: str) -> int | None:
        """The index of a slot."""
        return self._slots.index_of(slot_id)

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

    def follow_branch(self, entry: Entry) -> bool:
        """Makes the path end where a new entry is attached; false when it does already.

        A failed answer is taken off the branch before a retry, and put back when a pass was cancelled.
        """
        parent_id = entry.parent_id
        if parent_id is None or parent_id == self.last_entry_id():
            return False
        back: list[EntryHead] = []
        while (place := self.index_of(parent_id)) is None:
            parent = self.entry(parent_id)
            if isinstance(parent, SessionError) or parent.parent_id is None or len(back) == RECENT:
                return False
            back.append(head_of(parent))
            parent_id = parent.parent_id
        kept = (self._slots[index] for index in range(place + 1))
        heads = [slot for slot in kept if isinstance(slot, EntryHead)]
        self.replace_all([*heads, *reversed(back)], self.local_slots())
        return True

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

    def results_of(self, index: int) -> dict[str, tuple[str, ToolResultMessage]]:
        """Results of the calls of the answer in slot ``index``: call id → entry id and message.

        They lie between that answer and the next one.
        """
        found: dict[str, tuple[str, ToolResultMessage]] = {}
        for known in range(index + 1, len(self._slots)):
            slot = self._slots[known]
            if not isinstance(slot, EntryHead) or slot.type != "message":
                continue
            if slot.role in ("assistant", "user"):
                break
            message = self._message(slot)
            if isinstance(message, AssistantMessage | UserMessage):
                break
            if isinstance(message, ToolResultMessage):
                found.setdefault(message.tool_call_id, (slot.id, message))
        return found

    def unanswered(self, since: str | None) -> list[int]:
        """The answers behind the entry ``since`` that hold a call without result, looked for among the
        newest slots."""
        found: list[int] = []
        for index in range(len(self._slots) - 1, max(-1, len(self._slots) - 1 - _TURN_SLOTS), -1):
            slot = self._slots[index]
            if slot.id == since:
                break
            if not isinstance(slot, EntryHead) or slot.role != "assistant":
                continue
            message = self._message(slot)
            results = self.results_of(index)
            if isinstance(message, AssistantMessage) and any(
                call.id not in results for call in tool_calls_of(message)
            ):
                found.append(index)
        return found

    def failure_at(self, index: int) -> str | None:
        """The message of the failed answer in slot ``index``; None when there is no failed answer."""
        slot = self._slots[index]
        if not isinstance(slot, EntryHead) or slot.role not in ("assistant", None):
            return None
        message = self._message(slot)
        if isinstance(message, AssistantMessage) and message.stop_reason is StopReason.ERROR:
            return message.error_message or ""
        return None

    def answer_behind(self, index: int) -> int | None:
        """The slot of the answer that was given, or is being given, in place of the one in slot ``index``."""
        for known in range(index + 1, len(self._slots)):
            slot = self._slots[known]
            if isinstance(slot, LocalSlot):
                if isinstance(slot.content, LiveAnswer):
                    return known
            elif slot.type == "message":
                is_answer = slot.role == "assistant" or isinstance(self._message(slot), AssistantMessage)
                return known if is_answer else None
        return None

    def failed_last(self) -> int | None:
        """The slot of the newest message when it is a failed answer."""
        for index in range(len(self._slots) - 1, -1, -1):
            slot = self._slots[index]
            if isinstance(slot, EntryHead) and slot.type == "message":
                return index if self.failure_at(index) is not None else None
        return None

    def owner_of(self, index: int, call_id: str) -> int | None:
        """The slot of the answer whose call the result in slot ``index`` answers."""
        for before in range(index - 1, -1, -1):
            slot = self._slots[before]
            if not isinstance(slot, EntryHead) or slot.role not in ("assistant", None):
                continue
            message = self._message(slot)
            if isinstance(message, AssistantMessage):
                return before if any(call.id == call_id for call in tool_calls_of(message)) else None
        return None

    def placeholder(self, entry_id: str, index: int) -> str | None:
        """What the session shows instead of an entry behind slot ``index``: the text of its newest edit."""
        self._learn_edits(index)
        edit = self._edits.get(entry_id)
        if edit is None or edit.replacement is None:
            return None
        place = self.index_of(edit.id)
        # An edit holds only behind its target (compaction 1.6); a damaged file may have it before.
        return text_of(edit.replacement) if place is not None and place > index else None

    def late_warning(self, index: int) -> str | None:
        """The warning stored between the compaction in slot ``index`` and the next one."""
        for known in self._slots.places_of(("custom", "compaction"), index + 1, len(self._slots)):
            slot = self._slots[known]
            if not isinstance(slot, EntryHead) or slot.type == "compaction":
                return None
            entry = self.entry(slot.id)
            data = entry.fields.get("data") if isinstance(entry, StateEntry) else None
            if isinstance(data, Mapping) and is_compaction_warning(entry):
                return str(cast("Mapping[str, Any]", data).get("warning") or "") or None
        return None

    def _learn_edits(self, index: int) -> None:
        """Reads the edits behind slot ``index`` that were not read yet; a newer edit of a target wins."""
        places = tuple(self._slots.places_of(("context_edit",), index + 1, self._edits_known_from))
        for known in reversed(places):
            edit = self.entry(self._slots[known].id)
            if isinstance(edit, ContextEditEntry):
                self._edits.setdefault(edit.target_id, edit)
        self._edits_known_from = min(self._edits_known_from, index + 1)

    def _message(self, head: EntryHead) -> Message | None:
        if head.type != "message":
            return None
        entry = self.entry(head.id)
        return entry.message if isinstance(entry, MessageEntry) else None

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


def is_compaction_warning(entry: object) -> bool:
    """Whether an entry adds a warning to a compaction."""
    return isinstance(entry, StateEntry) and entry.fields.get("customType") == COMPACTION_WARNING


def is_result(entry: Entry) -> bool:
    """Whether an entry holds the result of a call."""
    return isinstance(entry, MessageEntry) and message_role(entry.message) == "toolResult"
