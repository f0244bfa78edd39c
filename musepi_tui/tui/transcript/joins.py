"""What the entries of a path say about each other: results to calls, answers to failures, warnings. Pure.

Only neighbours are looked at, so that a session of any length opens without reading its middle.
"""

from collections.abc import Mapping
from typing import Any, cast

from musepi_tui.session.entries import EntryHead, MessageEntry, StateEntry
from musepi_tui.session.messages import (
    AssistantMessage,
    Message,
    StopReason,
    ToolResultMessage,
    UserMessage,
    tool_calls_of,
)
from musepi_tui.tui.transcript.live import LiveAnswer
from musepi_tui.tui.transcript.path import SlotPath
from musepi_tui.tui.transcript.slots import LocalSlot

_TURN_SLOTS = 500
"""Slots of a turn that are looked through when it ends."""

COMPACTION_WARNING = "compaction.warning"
"""``customType`` of a warning found after its compaction was written (compaction 1.6)."""


def results_of(path: SlotPath, index: int) -> dict[str, tuple[str, ToolResultMessage]]:
    """Results of the calls of the answer in slot ``index``: call id → entry id and message.

    They lie between that answer and the next one.
    """
    found: dict[str, tuple[str, ToolResultMessage]] = {}
    for known in range(index + 1, len(path)):
        slot = path[known]
        if not isinstance(slot, EntryHead) or slot.type != "message":
            continue
        if slot.role in ("assistant", "user"):
            break
        message = _message(path, slot)
        if isinstance(message, AssistantMessage | UserMessage):
            break
        if isinstance(message, ToolResultMessage):
            found.setdefault(message.tool_call_id, (slot.id, message))
    return found


def unanswered(path: SlotPath, since: str | None) -> list[int]:
    """The answers behind the entry ``since`` that hold a call without result, looked for among the
    newest slots."""
    found: list[int] = []
    for index in range(len(path) - 1, max(-1, len(path) - 1 - _TURN_SLOTS), -1):
        slot = path[index]
        if slot.id == since:
            break
        if not isinstance(slot, EntryHead) or slot.role != "assistant":
            continue
        message = _message(path, slot)
        results = results_of(path, index)
        if isinstance(message, AssistantMessage) and any(
            call.id not in results for call in tool_calls_of(message)
        ):
            found.append(index)
    return found


def failure_at(path: SlotPath, index: int) -> str | None:
    """The message of the failed answer in slot ``index``; None when there is no failed answer."""
    slot = path[index]
    if not isinstance(slot, EntryHead) or slot.role not in ("assistant", None):
        return None
    message = _message(path, slot)
    if isinstance(message, AssistantMessage) and message.stop_reason is StopReason.ERROR:
        return message.error_message or ""
    return None


def answer_behind(path: SlotPath, index: int) -> int | None:
    """The slot of the answer that was given, or is being given, in place of the one in slot ``index``."""
    for known in range(index + 1, len(path)):
        slot = path[known]
        if isinstance(slot, LocalSlot):
            if isinstance(slot.content, LiveAnswer):
                return known
        elif slot.type == "message":
            is_answer = slot.role == "assistant" or isinstance(_message(path, slot), AssistantMessage)
            return known if is_answer else None
    return None


def failed_last(path: SlotPath) -> int | None:
    """The slot of the newest message when it is a failed answer."""
    for index in range(len(path) - 1, -1, -1):
        slot = path[index]
        if isinstance(slot, EntryHead) and slot.type == "message":
            return index if failure_at(path, index) is not None else None
    return None


def owner_of(path: SlotPath, index: int, call_id: str) -> int | None:
    """The slot of the answer whose call the result in slot ``index`` answers."""
    for before in range(index - 1, -1, -1):
        slot = path[before]
        if not isinstance(slot, EntryHead) or slot.role not in ("assistant", None):
            continue
        message = _message(path, slot)
        if isinstance(message, AssistantMessage):
            return before if any(call.id == call_id for call in tool_calls_of(message)) else None
    return None


def late_warning(path: SlotPath, index: int) -> str | None:
    """The warning stored between the compaction in slot ``index`` and the next one."""
    for known in path.places_of(("custom", "compaction"), index + 1, len(path)):
        slot = path[known]
        if not isinstance(slot, EntryHead) or slot.type == "compaction":
            return None
        entry = path.entry(slot.id)
        data = entry.fields.get("data") if isinstance(entry, StateEntry) else None
        if isinstance(data, Mapping) and is_compaction_warning(entry):
            return str(cast("Mapping[str, Any]", data).get("warning") or "") or None
    return None


def is_compaction_warning(entry: object) -> bool:
    """Whether an entry adds a warning to a compaction."""
    return isinstance(entry, StateEntry) and entry.fields.get("customType") == COMPACTION_WARNING


def _message(path: SlotPath, head: EntryHead) -> Message | None:
    if head.type != "message":
        return None
    entry = path.entry(head.id)
    return entry.message if isinstance(entry, MessageEntry) else None
