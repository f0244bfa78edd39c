"""Messages to JSON objects and back (session-format 4).

Decoding never raises for an odd shape: what does not fit stays in ``extra`` and comes back on encoding.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

from musepi_tui.session.block_codec import (
    decode_blocks,
    decode_content,
    decode_usage,
    encode_content,
    encode_usage,
)
from musepi_tui.session.fields import Fields, as_object, as_text, put, with_rest
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    Message,
    StopReason,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
)

_STOP_REASONS: Mapping[str | None, StopReason] = {reason.value: reason for reason in StopReason}

_Stored: TypeAlias = (
    UserMessage
    | DeveloperMessage
    | AssistantMessage
    | ToolResultMessage
    | BashExecution
    | FileMention
    | CustomMessage
)


def decode_message(obj: Mapping[str, Any]) -> Message:
    """The message of a stored object; an unknown role gives ``UnknownMessage``."""
    fields = Fields(obj)
    role = fields.take_text("role") or ""
    timestamp_ms = fields.take_int("timestamp") or 0
    decode = _DECODERS.get(role)
    if decode is None:
        return UnknownMessage(role, dict(obj), timestamp_ms)
    return decode(fields, timestamp_ms)


def encode_message(message: Message) -> dict[str, Any]:
    """The stored object of a message, ``role`` first, ``timestamp`` before unknown fields."""
    if isinstance(message, UnknownMessage):
        return dict(message.raw) or {"role": message.role, "timestamp": message.timestamp_ms}
    if isinstance(message, BranchSummary | CompactionSummary):
        return _encode_summary(message)
    out = _encode_known(message)
    if "timestamp" not in message.extra:
        out["timestamp"] = message.timestamp_ms
    return with_rest(out, message.extra)


def _encode_known(message: _Stored) -> dict[str, Any]:
    match message:
        case UserMessage():
            return {"role": "user", "content": encode_content(message.content)}
        case DeveloperMessage():
            return {"role": "developer", "content": encode_content(message.content)}
        case FileMention():
            return {"role": "fileMention", "files": [dict(file) for file in message.files]}
        case AssistantMessage() | ToolResultMessage():
            return _encode_answer(message)
        case BashExecution() | CustomMessage():
            return _encode_injected(message)
        case _:
            assert_never(message)


def _encode_answer(message: AssistantMessage | ToolResultMessage) -> dict[str, Any]:
    return (
        _encode_assistant(message) if isinstance(message, AssistantMessage) else _encode_tool_result(message)
    )


def _encode_injected(message: BashExecution | CustomMessage) -> dict[str, Any]:
    return _encode_execution(message) if isinstance(message, BashExecution) else _encode_custom(message)


def _decode_user(fields: Fields, timestamp_ms: int) -> UserMessage:
    return UserMessage(decode_content(fields.rest.pop("content", None)), timestamp_ms, fields.rest)


def _decode_developer(fields: Fields, timestamp_ms: int) -> DeveloperMessage:
    return DeveloperMessage(decode_content(fields.rest.pop("content", None)), timestamp_ms, fields.rest)


def _decode_mention(fields: Fields, timestamp_ms: int) -> FileMention:
    files = [as_object(file) for file in fields.take_list("files") or ()]
    return FileMention(tuple(file for file in files if file is not None), timestamp_ms, fields.rest)


def _decode_assistant(fields: Fields, timestamp_ms: int) -> AssistantMessage:
    known = _STOP_REASONS.get(as_text(fields.rest.get("stopReason")))
    if known is not None:
        del fields.rest["stopReason"]
    usage = decode_usage(fields.rest.get("usage"))
    if usage is not None:
        del fields.rest["usage"]
    return AssistantMessage(
        content=decode_blocks(fields.rest.pop("content", None)),
        api=fields.take_text("api") or "",
        provider=fields.take_text("provider") or "",
        model=fields.take_text("model") or "",
        stop_reason=known or StopReason.STOP,
        usage=usage,
        timestamp_ms=timestamp_ms,
        error_message=fields.take_text("errorMessage"),
        error_status=fields.take_int("errorStatus"),
        response_id=fields.take_text("responseId"),
        provider_payload=fields.take_object("providerPayload"),
        duration_ms=fields.take_int("duration"),
        extra=fields.rest,
    )


def _encode_assistant(message: AssistantMessage) -> dict[str, Any]:
    out: dict[str, Any] = {
        "role": "assistant",
        "content": encode_content(message.content),
        "api": message.api,
        "provider": message.provider,
        "model": message.model,
    }
    if message.usage is not None:
        out["usage"] = encode_usage(message.usage)
    if message.stop_reason is not StopReason.STOP or "stopReason" not in message.extra:
        out["stopReason"] = message.stop_reason.value
    put(out, "errorMessage", message.error_message)
    put(out, "errorStatus", message.error_status)
    put(out, "responseId", message.response_id)
    put(out, "providerPayload", message.provider_payload)
    put(out, "duration", message.duration_ms)
    return out


def _decode_tool_result(fields: Fields, timestamp_ms: int) -> ToolResultMessage:
    is_error = fields.take_bool("isError", default=False)
    return ToolResultMessage(
        tool_call_id=fields.take_text("toolCallId") or "",
        tool_name=fields.take_text("toolName") or "",
        content=decode_blocks(fields.rest.pop("content", None)),
        is_error=is_error,
        details=fields.take_any("details"),
        useless=fields.take_true("useless") and not is_error,
        pruned_at_ms=fields.take_int("prunedAt"),
        timestamp_ms=timestamp_ms,
        extra=fields.rest,
    )


def _encode_tool_result(message: ToolResultMessage) -> dict[str, Any]:
    out: dict[str, Any] = {
        "role": "toolResult",
        "toolCallId": message.tool_call_id,
        "toolName": message.tool_name,
        "content": encode_content(message.content),
        "isError": message.is_error,
    }
    put(out, "details", message.details)
    put(out, "useless", (message.useless and not message.is_error) or None)
    put(out, "prunedAt", message.pruned_at_ms)
    return out


def _decode_bash(fields: Fields, timestamp_ms: int) -> BashExecution:
    return _decode_execution(fields, timestamp_ms, kind="bash")


def _decode_python(fields: Fields, timestamp_ms: int) -> BashExecution:
    return _decode_execution(fields, timestamp_ms, kind="python")


def _decode_execution(fields: Fields, timestamp_ms: int, *, kind: str) -> BashExecution:
    return BashExecution(
        command=fields.take_text("command" if kind == "bash" else "code") or "",
        output=fields.take_text("output") or "",
        exit_code=fields.take_int("exitCode"),
        cancelled=fields.take_bool("cancelled", default=False),
        truncated=fields.take_bool("truncated", default=False),
        excluded=fields.take_bool("excludeFromContext", default=False),
        kind=kind,
        timestamp_ms=timestamp_ms,
        extra=fields.rest,
    )


def _encode_execution(message: BashExecution) -> dict[str, Any]:
    is_bash = message.kind == "bash"
    out: dict[str, Any] = {
        "role": "bashExecution" if is_bash else "pythonExecution",
        "command" if is_bash else "code": message.command,
        "output": message.output,
    }
    put(out, "exitCode", message.exit_code)
    out["cancelled"] = message.cancelled
    out["truncated"] = message.truncated
    put(out, "excludeFromContext", message.excluded or None)
    return out


def _decode_custom(fields: Fields, timestamp_ms: int) -> CustomMessage:
    return CustomMessage(
        custom_type=fields.take_text("customType") or "",
        content=decode_content(fields.rest.pop("content", None)),
        display=fields.take_bool("display", default=True),
        details=fields.take_any("details"),
        attribution=fields.take_text("attribution"),
        timestamp_ms=timestamp_ms,
        extra=fields.rest,
    )


def _encode_custom(message: CustomMessage) -> dict[str, Any]:
    out: dict[str, Any] = {
        "role": "custom",
        "customType": message.custom_type,
        "content": encode_content(message.content),
        "display": message.display,
    }
    put(out, "details", message.details)
    put(out, "attribution", message.attribution)
    return out


def _encode_summary(message: BranchSummary | CompactionSummary) -> dict[str, Any]:
    """The shape in which rebuilt summaries are shown to scripts; they are never stored."""
    match message:
        case BranchSummary():
            out: dict[str, Any] = {"role": "branchSummary", "summary": message.summary}
            put(out, "fromId", message.from_id)
        case CompactionSummary():
            out = {
                "role": "compactionSummary",
                "summary": message.summary,
                "tokensBefore": message.tokens_before,
            }
            put(out, "shortSummary", message.short_summary)
            if message.images:
                out["images"] = encode_content(message.images)
        case _:
            assert_never(message)
    out["timestamp"] = message.timestamp_ms
    return out


_DECODERS: Mapping[str, Callable[[Fields, int], Message]] = {
    "user": _decode_user,
    "developer": _decode_developer,
    "assistant": _decode_assistant,
    "toolResult": _decode_tool_result,
    "bashExecution": _decode_bash,
    "pythonExecution": _decode_python,
    "custom": _decode_custom,
    "hookMessage": _decode_custom,
    "fileMention": _decode_mention,
}
