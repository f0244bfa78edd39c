"""Messages of Claude Code as messages of a session. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from musepi_tui.session.fields import Fields, as_list, as_object, as_text
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from musepi_tui.storage.importers.claude_records import ClaudeRecord
from musepi_tui.storage.importers.content import image_block, is_shown, left_out
from musepi_tui.storage.importers.tally import Tally

_STOP_REASONS = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
}


def answer_of(records: Sequence[ClaudeRecord], time_ms: int, tally: Tally) -> AssistantMessage:
    """One answer of all records of a message, which hold a block each.

    Their usage is a running figure: the last one counts. Never invented: zeros where there is none.
    """
    messages = [record.message for record in records]
    blocks = [block for record in records for block in _answer_blocks(record, tally)]
    usages = [usage for usage in (_usage(message.get("usage")) for message in messages) if usage is not None]
    reasons = [reason for message in messages if (reason := as_text(message.get("stop_reason")))]
    fallback = (
        StopReason.TOOL_USE if any(isinstance(block, ToolCallBlock) for block in blocks) else StopReason.STOP
    )
    stop_reason = _STOP_REASONS.get(reasons[-1], fallback) if reasons else fallback
    error = None
    if any(record.fields.get("isApiErrorMessage") is True for record in records):
        stop_reason = StopReason.ERROR
        error = "".join(block.text for block in blocks if isinstance(block, TextBlock)) or None
    tally.carry("assistant")
    return AssistantMessage(
        content=tuple(blocks),
        api="anthropic-messages",
        provider="anthropic",
        model=as_text(messages[0].get("model")) or "",
        stop_reason=stop_reason,
        usage=usages[-1] if usages else Usage(),
        timestamp_ms=time_ms,
        error_message=error,
        response_id=as_text(messages[0].get("id")),
    )


def prompt_of(record: ClaudeRecord, time_ms: int, tally: Tally) -> UserMessage | None:
    """What the person wrote, results left aside; None when nothing is left."""
    given = [block for block in record.blocks if block.get("type") != "tool_result"]
    blocks = tuple(filter(is_shown, (_shown_block(block, tally) for block in given)))
    if not blocks:
        tally.skip("user/empty")
        return None
    tally.carry("user")
    only = blocks[0]
    is_plain = isinstance(record.message.get("content"), str)
    return UserMessage(only.text if is_plain and isinstance(only, TextBlock) else blocks, time_ms)


def result_of(
    block: Mapping[str, Any], names: Mapping[str, str], time_ms: int, tally: Tally
) -> ToolResultMessage:
    """The result a block holds; ``names`` are those of the tools by the ids of their calls."""
    call_id = as_text(block.get("tool_use_id")) or ""
    content = block.get("content")
    blocks: list[TextBlock | ImageBlock] = []
    if isinstance(content, str):
        blocks = [TextBlock(content)]
    else:
        parts = (as_object(part) for part in as_list(content) or ())
        blocks = [_shown_block(part, tally) for part in parts if part is not None]
    tally.carry("toolResult")
    shown = tuple(filter(is_shown, blocks))
    name, is_error = names.get(call_id, ""), block.get("is_error") is True
    return ToolResultMessage(call_id, name, shown, is_error, timestamp_ms=time_ms)


def summary_text(record: ClaudeRecord) -> str:
    """The text of a compaction."""
    return "\n\n".join(text for block in record.blocks if (text := as_text(block.get("text"))))


def tokens_before(metadata: Mapping[str, Any] | None) -> int:
    """Context tokens before a compaction; 0 when they were not noted."""
    return max(0, Fields(metadata or {}).take_int("preTokens") or 0)


def _answer_blocks(record: ClaudeRecord, tally: Tally) -> list[Block]:
    found = (_answer_block(block, tally) for block in record.blocks)
    return [block for block in found if block is not None]


def _answer_block(block: Mapping[str, Any], tally: Tally) -> Block | None:
    match block.get("type"):
        case "text":
            text = as_text(block.get("text")) or ""
            return TextBlock(text) if text else None
        case "thinking":
            text, signature = as_text(block.get("thinking")) or "", as_text(block.get("signature"))
            if not text and not signature:
                return None
            tally.carry("thinking")
            return ThinkingBlock(text, signature or None)
        case "redacted_thinking" if data := as_text(block.get("data")):
            tally.carry("thinking")
            return ThinkingBlock("", data, redacted=True)
        case "tool_use" if call_id := as_text(block.get("id")):
            tally.carry("toolCall")
            arguments = as_object(block.get("input")) or {}
            return ToolCallBlock(call_id, as_text(block.get("name")) or "", arguments)
        case kind:
            tally.skip(f"assistant/{as_text(kind) or '?'}")
            return None


def _shown_block(block: Mapping[str, Any], tally: Tally) -> TextBlock | ImageBlock:
    """A block of a prompt or a result."""
    kind = as_text(block.get("type")) or "block"
    if kind == "text":
        return TextBlock(as_text(block.get("text")) or "")
    if kind != "image":
        return left_out(kind, tally)
    origin = as_object(block.get("source")) or {}
    return image_block(as_text(origin.get("data")), as_text(origin.get("media_type")), tally)


def _usage(stored: object) -> Usage | None:
    obj = as_object(stored)
    if obj is None:
        return None
    fields = Fields(obj)
    sizes = [
        fields.take_int(key)
        for key in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    ]
    if all(size is None for size in sizes):
        return None
    given = [max(0, size or 0) for size in sizes]
    by_age = Fields(as_object(obj.get("cache_creation")) or {})
    return Usage(*given, total_tokens=sum(given), cache_write_1h=by_age.take_int("ephemeral_1h_input_tokens"))
