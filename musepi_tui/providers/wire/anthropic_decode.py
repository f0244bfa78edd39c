"""Anthropic Messages: answers (providers 1.5 to 1.9)."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.classify import error_body_of, provider_error_of_body
from musepi_tui.providers.draft import Draft, OpenBlock
from musepi_tui.providers.partial_json import load_json
from musepi_tui.providers.protocol import cut_error, read_int, read_object, read_text, wrong_format_error
from musepi_tui.providers.sse import SseEvent
from musepi_tui.providers.types import Model
from musepi_tui.session.messages import StopReason, Usage

_STOP_WORDS = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "pause_turn": StopReason.STOP,
    "compaction": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
}
_USAGE_FIELDS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}


class AnthropicDecoder:
    """One answer. Blocks are matched by the wire's ``index``; unknown kinds of blocks are skipped."""

    def __init__(self, model: Model) -> None:
        self.draft = Draft()
        self._blocks: dict[int, OpenBlock | Literal["text", "thinking"]] = {}
        self._started = False
        self._stopped = False
        self._stop_word: str | None = None
        self._stop_details: Mapping[str, Any] = {}

    def take(self, event: SseEvent) -> None:
        """Reads one event; the name in the data counts, not the ``event:`` line."""
        try:
            data = load_json(event.data)
        except ValueError as error:
            raise cut_error("The server's answer is damaged: an event is no JSON") from error
        if isinstance(data, dict):
            self._take_object(cast("dict[str, Any]", data), event.name)

    def take_whole(self, body: Mapping[str, Any]) -> None:
        """Reads a non-streaming answer as the events it stands for."""
        if not isinstance(body.get("content"), list):
            raise wrong_format_error("The server answered with JSON that is no Messages answer")
        self._take_object({"type": "message_start", "message": body}, "")
        for index, block in enumerate(body.get("content") or ()):
            self._start_block(index, block)
            self._take_whole_block(index, block)
            self._stop_block(index)
        self._end_message(body)
        self._stopped = True

    @property
    def is_over(self) -> bool:
        """Whether the server said that nothing more comes."""
        return self._stopped

    def finish(self) -> None:
        """Maps the stop word; an answer without ``message_stop`` was cut."""
        if not self._stopped:
            raise cut_error("The stream ended before message_stop")
        word = self._stop_word or ""
        if word in ("refusal", "sensitive"):
            text = read_text(self._stop_details, "explanation") or "The model declined to answer"
            raise ProviderError(text, kind=ErrorKind.REFUSAL)
        if word not in _STOP_WORDS:
            raise ProviderError(
                f"The model stopped for an unknown reason: {word or 'none'}", kind=ErrorKind.SERVER
            )
        if word == "model_context_window_exceeded":
            self.draft.extra["overflow"] = True
        self.draft.finish(_STOP_WORDS[word])

    def _take_object(self, data: Mapping[str, Any], name: str) -> None:
        kind = read_text(data, "type") or name
        match kind:
            case "message_start":
                self._start_message(read_object(data, "message"))
            case "content_block_start":
                self._start_block(_index(data), read_object(data, "content_block"))
            case "content_block_delta":
                self._take_delta(_index(data), read_object(data, "delta"))
            case "content_block_stop":
                self._stop_block(_index(data))
            case "message_delta":
                self._end_message(read_object(data, "delta"))
                self._read_usage(read_object(data, "usage"))
            case "message_stop":
                self._stopped = True
            case "error":
                raise provider_error_of_body(error_body_of(data))
            case _:
                pass

    def _start_message(self, message: Mapping[str, Any]) -> None:
        self._started = True
        self.draft.response_id = read_text(message, "id") or None
        self.draft.response_model = read_text(message, "model") or None
        self._read_usage(read_object(message, "usage"))

    def _start_block(self, index: int, block: Mapping[str, Any]) -> None:
        match block.get("type"):
            case "tool_use":
                call = self.draft.open(
                    "toolcall", call_id=read_text(block, "id"), name=read_text(block, "name")
                )
                self._blocks[index] = call
                whole = block.get("input")
                if isinstance(whole, dict) and whole:
                    self.draft.grow(call, _dump(cast("dict[str, Any]", whole)))
            case "redacted_thinking":
                hidden = self.draft.open("thinking")
                hidden.redacted = True
                hidden.signature = read_text(block, "data")
                self._blocks[index] = hidden
            case "compaction":
                self._blocks[index] = self.draft.add_opaque(dict(block))
            case "text" | "thinking" as kind:
                # Opened by its first content: an empty text block may not be sent back.
                self._blocks[index] = kind
                self._append(index, read_text(block, kind))
            case _:
                self._blocks.pop(index, None)

    def _take_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self._append(index, read_text(delta, "text"))
            case "thinking_delta":
                self._append(index, read_text(delta, "thinking"))
            case "signature_delta":
                block = self._open_block(index)
                if block is not None:
                    block.signature = (block.signature or "") + read_text(delta, "signature")
            case "input_json_delta":
                block = self._blocks.get(index)
                if isinstance(block, OpenBlock) and block.kind == "toolcall":
                    self.draft.grow(block, read_text(delta, "partial_json"))
            case "compaction_delta":
                block = self._blocks.get(index)
                if isinstance(block, OpenBlock) and block.raw is not None:
                    so_far = read_text(block.raw, "content")
                    block.raw = {**block.raw, "content": so_far + read_text(delta, "content")}
            case _:
                pass

    def _append(self, index: int, delta: str) -> None:
        if delta:
            block = self._open_block(index)
            if block is not None:
                self.draft.grow(block, delta)

    def _open_block(self, index: int) -> OpenBlock | None:
        """The text or thinking block of ``index``, opened now when nothing of it was there yet."""
        known = self._blocks.get(index)
        if known is None or isinstance(known, OpenBlock):
            return known
        block = self._blocks[index] = self.draft.open(known)
        return block

    def _stop_block(self, index: int) -> None:
        block = self._blocks.get(index)
        if isinstance(block, OpenBlock):
            self.draft.end(block)

    def _take_whole_block(self, index: int, block: Mapping[str, Any]) -> None:
        signature = read_text(block, "signature")
        if signature:
            self._take_delta(index, {"type": "signature_delta", "signature": signature})

    def _end_message(self, delta: Mapping[str, Any]) -> None:
        self._stop_word = read_text(delta, "stop_reason") or self._stop_word
        self._stop_details = read_object(delta, "stop_details") or self._stop_details

    def _read_usage(self, wire: Mapping[str, Any]) -> None:
        if not wire:
            return
        usage = self.draft.usage or Usage()
        found = {ours: read_int(wire, theirs) for theirs, ours in _USAGE_FIELDS.items()}
        usage = replace(usage, **{name: value for name, value in found.items() if value is not None})
        reasoning = read_int(read_object(wire, "output_tokens_details"), "thinking_tokens")
        hour = read_int(read_object(wire, "cache_creation"), "ephemeral_1h_input_tokens")
        if reasoning is not None:
            usage = replace(usage, reasoning=reasoning)
        if hour:
            usage = replace(usage, cache_write_1h=hour)
        total = usage.input + usage.output + usage.cache_read + usage.cache_write
        self.draft.usage = replace(usage, total_tokens=total)


def _index(data: Mapping[str, Any]) -> int:
    return read_int(data, "index") or 0


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
