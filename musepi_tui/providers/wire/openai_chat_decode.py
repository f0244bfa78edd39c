"""Chat Completions and compatibles: answers (providers 2.2 to 2.4)."""

import json
from collections.abc import Mapping
from typing import Any, cast

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.classify import error_body_of, provider_error_of_body
from musepi_tui.providers.compat import compat_of
from musepi_tui.providers.draft import Draft, OpenBlock
from musepi_tui.providers.partial_json import load_json
from musepi_tui.providers.protocol import cut_error, read_int, read_object, read_text, wrong_format_error
from musepi_tui.providers.sse import SseEvent
from musepi_tui.providers.think_tags import ThinkTags
from musepi_tui.providers.types import Model
from musepi_tui.session.messages import Cost, StopReason, Usage

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_STOP_WORDS = {
    "stop": StopReason.STOP,
    "end": StopReason.STOP,
    "eos": StopReason.STOP,
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
}


class ChatDecoder:
    """One answer. Tool calls are matched by ``index``, else by id; the first reasoning field seen is used."""

    def __init__(self, model: Model) -> None:
        self.draft = Draft()
        self._compat = compat_of(model)
        self._tags = ThinkTags(opened=self._compat.think_tag_open) if self._compat.parse_think_tags else None
        self._calls: list[_Call] = []
        self._stop_word: str | None = None
        self._done = False
        self._reasoning_field: str | None = None
        self._reasoning_text = ""
        self._details: dict[int, dict[str, Any]] = {}

    def take(self, event: SseEvent) -> None:
        """Reads one chunk; ``[DONE]`` ends the answer."""
        if self._done:
            return
        if event.data.strip() == "[DONE]":
            self._done = True
            return
        try:
            data = load_json(event.data)
        except ValueError as error:
            raise cut_error("The server's answer is damaged: a chunk is no JSON") from error
        if isinstance(data, dict):
            self._take_chunk(cast("dict[str, Any]", data))

    def take_whole(self, body: Mapping[str, Any]) -> None:
        """Reads a non-streaming answer as one chunk."""
        if not isinstance(body.get("choices"), list):
            raise wrong_format_error("The server answered with JSON that is no chat completion")
        self._take_chunk(body)

    @property
    def is_over(self) -> bool:
        """Whether the server said that nothing more comes."""
        return self._done

    def finish(self) -> None:
        """Maps the finish reason; an answer without one was cut."""
        if self._tags is not None:
            self._add_tagged(self._tags.finish())
        if self._details:
            merged = [self._details[index] for index in sorted(self._details)]
            self.draft.payload["reasoning_details"] = merged
        word = self._stop_word
        if word is None:
            raise cut_error("The stream ended without finish_reason")
        if word not in _STOP_WORDS:
            raise _stop_error(word)
        stop = _STOP_WORDS[word]
        if stop is StopReason.STOP and self._calls:
            stop = StopReason.TOOL_USE
        if stop is StopReason.LENGTH and self._compat.empty_length_is_overflow and not self.draft.has_content:
            raise ProviderError(
                "The prompt does not fit the server's context window (empty answer at the length limit)",
                kind=ErrorKind.OVERFLOW,
            )
        self.draft.finish(stop)

    def _take_chunk(self, chunk: Mapping[str, Any]) -> None:
        if self.draft.response_id is None:
            self.draft.response_id = read_text(chunk, "id") or None
            self.draft.response_model = read_text(chunk, "model") or None
        choices = chunk.get("choices")
        choice: Mapping[str, Any] = {}
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            choice = cast("dict[str, Any]", choices[0])
        self._take_usage(chunk, choice)
        delta = read_object(choice, "delta") or read_object(choice, "message")
        self._take_delta(delta)
        self._stop_word = self._stop_word or read_text(choice, "finish_reason") or None
        if chunk.get("error"):
            self._take_error(chunk)

    def _take_error(self, chunk: Mapping[str, Any]) -> None:
        failure = provider_error_of_body(error_body_of(chunk))
        if self._stop_word is None:
            raise failure
        # The answer was already over: kept as it is (recording openrouter-chat-stream-length-then-error).
        self.draft.extra["diagnostic"] = str(failure)[:500]

    def _take_usage(self, chunk: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        wire = (
            read_object(chunk, "usage")
            or read_object(choice, "usage")
            or read_object(read_object(chunk, "x_groq"), "usage")
        )
        if wire:
            self.draft.usage = read_usage(wire)

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        self._take_reasoning(delta)
        content = delta.get("content")
        if isinstance(content, str):
            self._take_content(content)
        elif isinstance(content, list):
            for part in cast("list[object]", content):
                if isinstance(part, dict):
                    self._take_part(cast("dict[str, Any]", part))
        for position, item in enumerate(_object_list(delta.get("tool_calls"))):
            self._take_call(item, position)
        legacy = read_object(delta, "function_call")
        if legacy:
            self._take_call({"index": 0, "function": legacy}, 0)
        for item in _object_list(delta.get("reasoning_details")):
            self._merge_details(item)

    def _take_content(self, text: str) -> None:
        if self._tags is None:
            self.draft.add_text(text)
        elif text:
            self._add_tagged(self._tags.feed(text))

    def _add_tagged(self, pieces: "list[tuple[bool, str]]") -> None:
        for is_thinking, text in pieces:
            if is_thinking:
                self.draft.add_thinking(text)
            else:
                self.draft.add_text(text)

    def _take_part(self, part: Mapping[str, Any]) -> None:
        if part.get("type") == "text":
            self._take_content(read_text(part, "text"))
        elif part.get("type") == "thinking":
            inner = part.get("thinking")
            texts = [read_text(item, "text") for item in _object_list(inner)]
            self.draft.add_thinking(inner if isinstance(inner, str) else "".join(texts))

    def _take_reasoning(self, delta: Mapping[str, Any]) -> None:
        names = (self._reasoning_field,) if self._reasoning_field else REASONING_FIELDS
        for name in names:
            text = read_text(delta, name)
            if not text:
                continue
            self._reasoning_field = name
            if self._compat.cumulative_reasoning and text.startswith(self._reasoning_text):
                text, self._reasoning_text = text[len(self._reasoning_text) :], text
            else:
                self._reasoning_text += text
            self.draft.add_thinking(text, name)
            return

    def _merge_details(self, item: Mapping[str, Any]) -> None:
        index = read_int(item, "index") or 0
        merged = self._details.setdefault(index, {})
        for name, value in item.items():
            if name in ("text", "summary", "data") and isinstance(value, str):
                merged[name] = merged.get(name, "") + value
            elif value is not None or name not in merged:
                merged[name] = value

    def _take_call(self, item: Mapping[str, Any], position: int) -> None:
        function = read_object(item, "function")
        call = self._find_call(item, position, read_text(function, "name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, str) and arguments:
            self.draft.grow(call.block, arguments)

    def _find_call(self, item: Mapping[str, Any], position: int, name: str) -> "_Call":
        index = read_int(item, "index")
        call_id = read_text(item, "id")
        for call in reversed(self._calls):
            if call.matches(index, call_id, name):
                if not call.block.name:
                    call.block.name = name
                return call
        if not self._calls or call_id or name or index is not None:
            block = self.draft.open("toolcall", call_id=call_id, name=name)
            self._calls.append(_Call(block, index if index is not None else position, call_id))
        return self._calls[-1]


class _Call:
    """One tool call of the wire: its block, and what later pieces name it by."""

    __slots__ = ("block", "call_id", "index")

    def __init__(self, block: OpenBlock, index: int, call_id: str) -> None:
        self.block = block
        self.index = index
        self.call_id = call_id

    def matches(self, index: int | None, call_id: str, name: str) -> bool:
        """Whether a piece with these names belongs here: same index and no other id, or the same id."""
        if call_id and self.call_id:
            return call_id == self.call_id and (index is None or index == self.index)
        if index is not None:
            return index == self.index
        return not name or not self.block.name


def read_usage(wire: Mapping[str, Any]) -> Usage:
    """Token figures in our form: ``input`` without the cached tokens (providers 2.4)."""
    prompt = read_int(wire, "prompt_tokens") or 0
    details = read_object(wire, "prompt_tokens_details")
    cached = next(
        (
            value
            for value in (
                read_int(details, "cached_tokens"),
                read_int(wire, "prompt_cache_hit_tokens"),
                read_int(wire, "cached_tokens"),
            )
            if value is not None
        ),
        0,
    )
    written = read_int(details, "cache_write_tokens") or 0
    output = read_int(wire, "completion_tokens") or 0
    fresh = max(0, prompt - cached - written)
    price = wire.get("cost")
    return Usage(
        input=fresh,
        output=output,
        cache_read=cached,
        cache_write=written,
        total_tokens=fresh + output + cached + written,
        cost=Cost(total=float(price)) if isinstance(price, int | float) else None,
        reasoning=read_int(read_object(wire, "completion_tokens_details"), "reasoning_tokens"),
    )


def _stop_error(word: str) -> ProviderError:
    match word:
        case "content_filter":
            return ProviderError("The provider's content filter stopped the answer", kind=ErrorKind.REFUSAL)
        case "model_context_window_exceeded":
            return ProviderError(
                "The prompt does not fit the context window (model_context_window_exceeded)",
                kind=ErrorKind.OVERFLOW,
            )
        case _:
            return ProviderError(
                f"The provider stopped the answer: {word}", kind=ErrorKind.SERVER, retryable=True
            )


def _object_list(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", item) for item in cast("list[object]", value) if isinstance(item, dict)]
