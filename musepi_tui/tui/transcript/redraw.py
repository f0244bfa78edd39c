"""Which slots are drawn again because of what happened elsewhere: a result came, a try failed. Pure."""

from musepi_tui.session.entries import ContextEditEntry, Entry, EntryHead, MessageEntry, StateEntry
from musepi_tui.session.messages import ToolResultMessage
from musepi_tui.tui.transcript.fold import Shown
from musepi_tui.tui.transcript.joins import failed_last, is_compaction_warning, owner_of, unanswered
from musepi_tui.tui.transcript.live import LiveAnswer
from musepi_tui.tui.transcript.path import SlotPath
from musepi_tui.tui.transcript.slots import LocalSlot


class Redraw:
    """Finds the slots of a path that an event says something about, and has them drawn again."""

    def __init__(self, path: SlotPath, shown: Shown) -> None:
        self._path = path
        self._shown = shown

    def failure(self) -> bool:
        """A failed answer at the end: it is tried again, or not any more. Whether there is one."""
        index = failed_last(self._path)
        if index is not None:
            self._shown.touch(index)
        return index is not None

    def unanswered(self, since: str | None) -> bool:
        """The answers behind the entry ``since`` that hold a call without result. Whether there are any."""
        touched = unanswered(self._path, since)
        for index in touched:
            self._shown.touch(index)
        return bool(touched)

    def said_of(self, entry: Entry) -> None:
        """The items that a new entry says something about."""
        match entry:
            case MessageEntry(message=ToolResultMessage() as result):
                self._result(entry.id, result.tool_call_id)
            case ContextEditEntry():
                target = self._path.entry(entry.target_id)
                if isinstance(target, MessageEntry) and isinstance(target.message, ToolResultMessage):
                    self._result(target.id, target.message.tool_call_id)
            case StateEntry() if is_compaction_warning(entry):
                self._newest_compaction()
            case _:
                return

    def call(self, call_id: str) -> None:
        """The answer that holds a call."""
        for index in range(len(self._path) - 1, -1, -1):
            slot = self._path[index]
            if isinstance(slot, LocalSlot):
                answer = slot.content
                if isinstance(answer, LiveAnswer) and any(call.id == call_id for call in answer.calls()):
                    self._shown.touch(index)
                    return
            elif slot.role == "assistant":
                owner = owner_of(self._path, index + 1, call_id)
                if owner is not None:
                    self._shown.touch(owner)
                return

    def _result(self, entry_id: str, call_id: str) -> None:
        """A result and the call it answers."""
        index = self._path.index_of(entry_id)
        if index is None:
            return
        self._shown.touch(index)
        owner = owner_of(self._path, index, call_id)
        if owner is not None:
            self._shown.touch(owner)

    def _newest_compaction(self) -> None:
        for index in range(len(self._path) - 1, -1, -1):
            slot = self._path[index]
            if isinstance(slot, EntryHead) and slot.type == "compaction":
                self._shown.touch(index)
                return
