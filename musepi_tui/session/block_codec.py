"""Content blocks and usage to JSON objects and back (session-format 4).

Decoding never raises for an odd shape: what does not fit stays in ``extra`` and comes back on encoding.
"""

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from musepi_tui.session.fields import Fields, as_list, as_object, put, with_rest
from musepi_tui.session.messages import (
    Block,
    Content,
    Cost,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)

_COUNTS = ("input", "output", "cacheRead", "cacheWrite")
_REDACTED_TYPE = "redactedThinking"


def decode_usage(value: object) -> Usage | None:
    """Usage of a stored object; None when it is not an object of numbers (shown as unknown).

    A missing total is the sum of the four counts, missing cost is None.
    """
    obj = as_object(value)
    if obj is None:
        return None
    fields = Fields(obj)
    given: list[int] = []
    for key in _COUNTS:
        if key in obj and fields.take_number(key) is None:
            return None
        given.append(int(obj.get(key, 0)))
    if len(fields.rest) == len(obj):
        return None
    total = fields.take_number("totalTokens")
    reasoning = fields.take_number("reasoning")
    written_1h = fields.take_number("cacheWrite1h")
    return Usage(
        input=given[0],
        output=given[1],
        cache_read=given[2],
        cache_write=given[3],
        total_tokens=sum(given) if total is None else int(total),
        cost=_decode_cost(fields),
        reasoning=None if reasoning is None else int(reasoning),
        cache_write_1h=None if written_1h is None else int(written_1h),
        extra=fields.rest,
    )


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The stored object of usage; a total of 0 is written as the sum of the four counts."""
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    out: dict[str, Any] = dict(zip(_COUNTS, counts, strict=True))
    out["totalTokens"] = usage.total_tokens or sum(counts)
    if usage.cost is not None:
        cost = usage.cost
        parts = (cost.input, cost.output, cost.cache_read, cost.cache_write, cost.total)
        out["cost"] = dict(zip((*_COUNTS, "total"), parts, strict=True))
    if usage.reasoning is not None:
        out["reasoning"] = usage.reasoning
    if usage.cache_write_1h is not None:
        out["cacheWrite1h"] = usage.cache_write_1h
    return with_rest(out, usage.extra)


def decode_block(value: object) -> Block:
    """One content block; a kind or shape that is not known becomes an opaque block."""
    raw = as_object(value)
    if raw is None:
        return OpaqueBlock({"type": "text", "text": value} if isinstance(value, str) else {"value": value})
    fields = Fields(raw)
    decode = _DECODERS.get(fields.take_text("type") or "")
    block = None if decode is None else decode(fields)
    return OpaqueBlock(raw) if block is None else block


def encode_block(block: Block) -> dict[str, Any]:
    """The stored object of a block; ``parse_error`` of a tool call is not stored."""
    match block:
        case TextBlock():
            out: dict[str, Any] = {"type": "text", "text": block.text}
            put(out, "textSignature", block.signature)
        case ThinkingBlock() if block.extra.get("type") == _REDACTED_TYPE:
            out = {"type": _REDACTED_TYPE, "data": block.signature or ""}
        case ThinkingBlock():
            out = {"type": "thinking", "thinking": block.thinking}
            put(out, "thinkingSignature", block.signature)
            put(out, "redacted", block.redacted or None)
        case ToolCallBlock():
            out = {"type": "toolCall", "id": block.id, "name": block.name}
            kept_aside = block.extra.get("arguments") if not block.arguments else None
            out["arguments"] = dict(block.arguments) if kept_aside is None else kept_aside
            put(out, "thoughtSignature", block.thought_signature)
        case ImageBlock():
            out = {"type": "image", "data": block.data, "mimeType": block.mime_type}
        case OpaqueBlock():
            return dict(block.raw)
        case _:
            assert_never(block)
    return with_rest(out, block.extra)


def decode_content(value: object) -> Content:
    """A string as it is, a list as blocks, anything else as no blocks."""
    return value if isinstance(value, str) else decode_blocks(value)


def decode_blocks(value: object) -> tuple[Block, ...]:
    """Blocks of stored content; a non-empty string becomes one text block, anything else gives none."""
    if isinstance(value, str):
        return (TextBlock(value),) if value else ()
    return tuple(decode_block(item) for item in as_list(value) or ())


def encode_content(content: Content) -> str | list[dict[str, Any]]:
    """The stored form of content."""
    return content if isinstance(content, str) else [encode_block(block) for block in content]


def _decode_cost(fields: Fields) -> Cost | None:
    stored = as_object(fields.rest.get("cost"))
    if stored is None:
        return None
    parts = Fields(stored)
    numbers = [parts.take_number(key) for key in (*_COUNTS, "total")]
    if parts.rest:
        return Cost(*(float(number or 0) for number in numbers))
    del fields.rest["cost"]
    given = [float(number or 0) for number in numbers]
    if numbers[4] is None:
        given[4] = sum(given[:4])
    return Cost(*given)


def _decode_text(fields: Fields) -> TextBlock | None:
    text = fields.take_text("text")
    return None if text is None else TextBlock(text, fields.take_text("textSignature"), fields.rest)


def _decode_thinking(fields: Fields) -> ThinkingBlock | None:
    thinking = fields.take_text("thinking")
    if thinking is None:
        return None
    signature = fields.take_text("thinkingSignature")
    return ThinkingBlock(thinking, signature, redacted=fields.take_true("redacted"), extra=fields.rest)


def _decode_redacted(fields: Fields) -> ThinkingBlock | None:
    data = fields.take_text("data")
    if data is None:
        return None
    return ThinkingBlock("", data, redacted=True, extra={"type": _REDACTED_TYPE} | fields.rest)


def _decode_call(fields: Fields) -> ToolCallBlock | None:
    call_id, name = fields.take_text("id"), fields.take_text("name")
    if call_id is None or name is None:
        return None
    return ToolCallBlock(
        id=call_id,
        name=name,
        arguments=fields.take_object("arguments") or {},
        thought_signature=fields.take_text("thoughtSignature"),
        extra=fields.rest,
    )


def _decode_image(fields: Fields) -> ImageBlock | None:
    data, mime_type = fields.take_text("data"), fields.take_text("mimeType")
    return None if data is None or mime_type is None else ImageBlock(data, mime_type, fields.rest)


_DECODERS: Mapping[str, Callable[[Fields], Block | None]] = {
    "text": _decode_text,
    "thinking": _decode_thinking,
    "redactedThinking": _decode_redacted,
    "toolCall": _decode_call,
    "image": _decode_image,
}
