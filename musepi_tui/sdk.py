"""What scripts may use (contract 6). Everything else of the package is private.

Reading a recorded answer of a provider::

    from musepi_tui.sdk import parse_wire_response

    body = b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    found = parse_wire_response("anthropic-messages", 529, {}, body)
    assert found["error"]["kind"] == "overloaded"
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from musepi_tui.base.errors import ErrorKind, ProviderError, UsageError
from musepi_tui.providers.apis import load_provider
from musepi_tui.providers.types import StreamError
from musepi_tui.session.messages import AssistantMessage, TextBlock, ThinkingBlock, tool_calls_of

__all__ = ["parse_wire_response"]


def parse_wire_response(
    api: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes | str,
    splits: Sequence[int] | None = None,
) -> dict[str, Any]:
    """What the decoder of live streams makes of a recorded response.

    ``body`` is the whole body, cut at the byte offsets ``splits`` before it is fed. Returns ``text``,
    ``thinking``, ``toolCalls`` (``id``, ``name``, ``arguments``), ``stopReason``, ``usage`` (None when none
    was reported) and ``error`` (None, or ``kind``, ``retryable``, ``message``, ``type``, ``code`` and
    ``retryAfter`` in seconds).

    Raises ProviderError for an unknown api, UsageError for one whose answers are not on a wire.
    """
    decode = load_provider(api).decode
    if decode is None:
        raise UsageError(f"Answers of the api {api!r} are not recorded on a wire")
    raw = body.encode("utf-8") if isinstance(body, str) else body
    final = decode(status, headers, cut_bytes(raw, splits or ()))
    message = final.message
    return {
        "text": "".join(block.text for block in message.content if isinstance(block, TextBlock)),
        "thinking": "".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock)),
        "toolCalls": [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
            for call in tool_calls_of(message)
        ],
        "stopReason": message.stop_reason.value,
        "usage": _usage_of(message),
        "error": _error_of(final.error) if isinstance(final, StreamError) else _silent_overflow(message),
    }


def cut_bytes(body: bytes, splits: Sequence[int]) -> tuple[bytes, ...]:
    """``body`` in pieces that begin at the offsets ``splits``; their order does not matter."""
    borders = [0, *sorted({offset for offset in splits if 0 < offset < len(body)}), len(body)]
    return tuple(body[start:end] for start, end in pairwise(borders))


def _usage_of(message: AssistantMessage) -> dict[str, int] | None:
    usage = message.usage
    if usage is None:
        return None
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total_tokens,
    }


def _silent_overflow(message: AssistantMessage) -> dict[str, Any] | None:
    """An answer that stopped because the window was full: kept as it is, but an overflow (providers 1.6)."""
    if not message.extra.get("overflow"):
        return None
    return _error_of(ProviderError("model_context_window_exceeded", kind=ErrorKind.OVERFLOW))


def _error_of(error: ProviderError) -> dict[str, Any]:
    return {
        "kind": error.kind.value,
        "retryable": error.retryable,
        "message": error.server_message or str(error),
        "type": error.error_type,
        "code": error.code,
        "retryAfter": error.retry_after_s,
    }
