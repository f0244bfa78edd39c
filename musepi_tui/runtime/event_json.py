"""Events as the JSON objects scripts read (contract 4, tui 9.3): one row an event.

Used by JSON mode and RPC. ``message_end`` is made only from entries whose line the kernel has taken.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from musepi_tui.providers.types import BlockDelta, BlockEnd, BlockEvent, BlockStart
from musepi_tui.runtime import events as ev
from musepi_tui.session import codec
from musepi_tui.session.entries import CustomMessageEntry, Entry, MessageEntry
from musepi_tui.session.messages import AssistantMessage, Usage

ReadEntry = Callable[[str], Entry]
JsonEvent = dict[str, Any]


def to_json(event: ev.Event, read: ReadEntry) -> tuple[JsonEvent, ...]:
    """The JSON events of one runtime event, in order; none for events that concern screens only.

    ``read`` gives the entry of an id, for events that name entries.
    """
    row = _ROWS.get(type(event))
    return () if row is None else row(event, read)


def dump_line(value: JsonEvent) -> bytes:
    """One JSON line with its LF. Everything outside ASCII is escaped, so no control reaches a terminal."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def message_json(entry: Entry) -> JsonEvent | None:
    """The message of an entry as stored; None for entries that carry none."""
    if isinstance(entry, MessageEntry):
        return codec.encode_message(entry.message)
    if isinstance(entry, CustomMessageEntry):
        stored = codec.encode_entry(entry)
        kept = ("customType", "content", "display", "details", "attribution")
        return {"role": "custom", **{key: stored[key] for key in kept if key in stored}}
    return None


def usage_json(usage: Usage | None) -> JsonEvent | None:
    """Tokens and cost as stored; None when unknown."""
    return None if usage is None else codec.encode_usage(usage)


def result_json(result: ev.MaintenanceResult | None) -> JsonEvent | None:
    """The ``result`` of a compaction end event (contract 4); ``cost`` in US dollars or null."""
    if result is None:
        return None
    cost = result.usage.cost.total if result.usage and result.usage.cost else None
    return {
        "entryId": result.entry_id,
        "firstKeptEntryId": result.first_kept_entry_id,
        "tokensBefore": result.tokens_before,
        "tokensAfter": result.tokens_after,
        "durationMs": result.duration_ms,
        "cost": cost,
        "usage": usage_json(result.usage),
    }


def _messages(ids: Iterable[str], read: ReadEntry) -> list[JsonEvent]:
    found = (message_json(read(entry_id)) for entry_id in ids)
    return [message for message in found if message is not None]


def _session_ready(event: ev.SessionReady, read: ReadEntry) -> tuple[JsonEvent, ...]:
    if event.reason == "start":
        return ()
    view = event.view
    changed: JsonEvent = {
        "type": "session_changed",
        "id": view.header.id,
        "file": str(view.file) if view.file else None,
        "reason": event.reason,
    }
    document = view.tree.leaf_id if event.reason == "handoff" else None
    if document is None:
        return (changed,)
    # The only message that is stored before its session is open.
    return (changed, *_entry_appended(ev.EntryAppended(read(document)), read))


def _entry_appended(event: ev.EntryAppended, _: ReadEntry) -> tuple[JsonEvent, ...]:
    message = message_json(event.entry)
    if message is None or not event.saved:
        return ()
    end = {"type": "message_end", "message": message, "entryId": event.entry.id}
    answers = isinstance(event.entry, MessageEntry) and isinstance(event.entry.message, AssistantMessage)
    if answers and event.live_id is not None:
        return (end,)
    return ({"type": "message_start", "message": message}, end)


def _agent_ended(event: ev.AgentEnded, read: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "agent_end", "messages": _messages(event.entry_ids, read)},)


def _turn_ended(event: ev.TurnEnded, read: ReadEntry) -> tuple[JsonEvent, ...]:
    message = None if event.entry_id is None else message_json(read(event.entry_id))
    results = _messages(event.tool_result_ids, read)
    return ({"type": "turn_end", "message": message, "toolResults": results},)


def _assistant_started(event: ev.AssistantStarted, _: ReadEntry) -> tuple[JsonEvent, ...]:
    message: JsonEvent = {"role": "assistant", "content": []}
    message |= {"provider": event.provider, "model": event.model}
    return ({"type": "message_start", "message": message},)


def _assistant_delta(event: ev.AssistantDelta, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "message_update", "assistantMessageEvent": _block_json(event.event)},)


def _block_json(event: BlockEvent) -> JsonEvent:
    base: JsonEvent = {"contentIndex": event.content_index}
    match event:
        case BlockStart(kind="toolcall"):
            return {"type": "toolcall_start", **base, "id": event.call_id, "name": event.name}
        case BlockStart():
            return {"type": f"{event.kind}_start", **base}
        case BlockDelta():
            return {"type": f"{event.kind}_delta", **base, "delta": event.delta}
        case BlockEnd(tool_call=call):
            if call is None:
                return {"type": f"{event.kind}_end", **base, "content": event.content}
            stored = {"type": "toolCall", "id": call.id, "name": call.name, "arguments": dict(call.arguments)}
            return {"type": "toolcall_end", **base, "toolCall": stored}


def _tool_started(event: ev.ToolStarted, _: ReadEntry) -> tuple[JsonEvent, ...]:
    args = dict(event.arguments)
    return (
        {"type": "tool_execution_start", "toolCallId": event.call_id, "toolName": event.tool, "args": args},
    )


def _tool_progress(event: ev.ToolProgress, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "tool_execution_update", "toolCallId": event.call_id, "partialResult": event.text},)


def _tool_ended(event: ev.ToolEnded, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return (
        {
            "type": "tool_execution_end",
            "toolCallId": event.call_id,
            "toolName": event.tool,
            "result": event.text,
            "isError": event.is_error,
        },
    )


def _approval_asked(event: ev.ApprovalAsked, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return (
        {
            "type": "approval_request",
            "requestId": event.request_id,
            "toolCallId": event.call_id,
            "toolName": event.tool,
            "args": dict(event.arguments),
            "reason": event.reason,
            "rule": event.rule,
        },
    )


def _approval_closed(event: ev.ApprovalClosed, _: ReadEntry) -> tuple[JsonEvent, ...]:
    closed = {"requestId": event.request_id, "decision": event.decision, "reason": event.reason}
    return ({"type": "approval_result", **closed},)


def _prefix(reason: str) -> str:
    return "compaction" if reason == "manual" else "auto_compaction"


def _maintenance_started(event: ev.MaintenanceStarted, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape = {"reason": event.reason, "action": event.action, "midTurn": event.mid_turn}
    return ({"type": f"{_prefix(event.reason)}_start", **shape},)


def _maintenance_progress(event: ev.MaintenanceProgress, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape = {"phase": event.phase, "done": event.done, "total": event.total, "elapsed": event.elapsed_ms}
    return ({"type": "compaction_progress", **shape},)


def _maintenance_ended(event: ev.MaintenanceEnded, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape: JsonEvent = {
        "type": f"{_prefix(event.reason)}_end",
        "reason": event.reason,
        "action": event.action,
        "midTurn": event.mid_turn,
        "result": result_json(event.result),
        "aborted": event.aborted,
        "willRetry": event.will_retry,
    }
    if event.skipped:
        shape["skipped"] = True
    if event.error is not None:
        shape["errorMessage"] = event.error
    return (shape,)


def _retry_scheduled(event: ev.RetryScheduled, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return (
        {
            "type": "auto_retry_start",
            "attempt": event.attempt,
            "maxAttempts": event.max_attempts,
            "delayMs": round(event.delay_s * 1000),
            "errorMessage": event.error,
        },
    )


def _retry_ended(event: ev.RetryEnded, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape: JsonEvent = {"type": "auto_retry_end", "success": event.success, "attempt": event.attempt}
    if event.error is not None:
        shape["finalError"] = event.error
    return (shape,)


def _summary_retry_scheduled(event: ev.SummaryRetryScheduled, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return (
        {
            "type": "summarization_retry_scheduled",
            "attempt": event.attempt,
            "maxAttempts": event.max_attempts,
            "delayMs": round(event.delay_s * 1000),
            "errorMessage": event.error,
        },
    )


def _summary_retry_started(event: ev.SummaryRetryStarted, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "summarization_retry_attempt_start", "attempt": event.attempt},)


def _summary_retry_ended(event: ev.SummaryRetryEnded, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape: JsonEvent = {
        "type": "summarization_retry_finished",
        "success": event.success,
        "attempt": event.attempt,
    }
    return (shape if event.error is None else shape | {"errorMessage": event.error},)


def _queue_changed(event: ev.QueueChanged, _: ReadEntry) -> tuple[JsonEvent, ...]:
    waiting = {"steering": list(event.steering), "followUp": list(event.follow_up)}
    return ({"type": "queue_update", **waiting},)


def usage_event(meter: ev.Meter) -> JsonEvent:
    """The ``context_usage`` event: ``percent`` of the window with one decimal, nulls where unknown."""
    percent = None
    if meter.context_tokens is not None and meter.window:
        percent = round(100 * meter.context_tokens / meter.window, 1)
    return {
        "type": "context_usage",
        "tokens": meter.context_tokens,
        "window": meter.window,
        "percent": percent,
        "threshold": meter.threshold,
    }


def _usage_changed(event: ev.UsageChanged, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return (usage_event(event.meter),)


def _context_pruned(event: ev.ContextPruned, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape = {"kind": event.kind, "entries": event.entries, "tokensFreed": event.tokens_freed}
    return ({"type": "context_pruned", **shape},)


def _branch_summary_started(event: ev.BranchSummaryStarted, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "branch_summary_start", "targetId": event.target_id},)


def _branch_summary_ended(event: ev.BranchSummaryEnded, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape: JsonEvent = {"type": "branch_summary_end", "aborted": event.aborted}
    if event.entry_id is not None:
        shape["summaryEntryId"] = event.entry_id
    if event.error is not None:
        shape["errorMessage"] = event.error
    return (shape,)


def _leaf_moved(event: ev.LeafMoved, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape: JsonEvent = {"type": "tree_moved", "from": event.old_leaf_id, "to": event.new_leaf_id}
    return (shape if event.summary_entry_id is None else shape | {"summaryEntryId": event.summary_entry_id},)


def _model_promoted(event: ev.ModelPromoted, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape = {"from": event.from_model, "to": event.to_model, "reason": event.reason}
    return ({"type": "model_promoted", **shape},)


def _extension_failed(event: ev.ExtensionFailed, _: ReadEntry) -> tuple[JsonEvent, ...]:
    shape = {"extension": event.extension, "event": event.event, "error": event.error}
    return ({"type": "extension_error", **shape},)


def _notice(event: ev.Notice, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "notice", "level": event.level, "message": event.text, "source": event.source},)


def _fault(event: ev.RuntimeFault, _: ReadEntry) -> tuple[JsonEvent, ...]:
    return ({"type": "notice", "level": "error", "message": event.text, "source": "internal"},)


def _plain(name: str) -> Callable[[Any, ReadEntry], tuple[JsonEvent, ...]]:
    return lambda _event, _read: ({"type": name},)


_ROWS: dict[type[Any], Callable[[Any, ReadEntry], tuple[JsonEvent, ...]]] = {
    ev.SessionReady: _session_ready,
    ev.EntryAppended: _entry_appended,
    ev.AgentStarted: _plain("agent_start"),
    ev.AgentEnded: _agent_ended,
    ev.AgentSettled: _plain("agent_settled"),
    ev.TurnStarted: _plain("turn_start"),
    ev.TurnEnded: _turn_ended,
    ev.AssistantStarted: _assistant_started,
    ev.AssistantDelta: _assistant_delta,
    ev.ToolStarted: _tool_started,
    ev.ToolProgress: _tool_progress,
    ev.ToolEnded: _tool_ended,
    ev.ApprovalAsked: _approval_asked,
    ev.ApprovalClosed: _approval_closed,
    ev.MaintenanceStarted: _maintenance_started,
    ev.MaintenanceProgress: _maintenance_progress,
    ev.MaintenanceEnded: _maintenance_ended,
    ev.RetryScheduled: _retry_scheduled,
    ev.RetryEnded: _retry_ended,
    ev.SummaryRetryScheduled: _summary_retry_scheduled,
    ev.SummaryRetryStarted: _summary_retry_started,
    ev.SummaryRetryEnded: _summary_retry_ended,
    ev.QueueChanged: _queue_changed,
    ev.UsageChanged: _usage_changed,
    ev.ContextPruned: _context_pruned,
    ev.BranchSummaryStarted: _branch_summary_started,
    ev.BranchSummaryEnded: _branch_summary_ended,
    ev.LeafMoved: _leaf_moved,
    ev.ModelPromoted: _model_promoted,
    ev.ExtensionFailed: _extension_failed,
    ev.Notice: _notice,
    ev.RuntimeFault: _fault,
}
