"""The demo's answer as a stream, word by word at the pace of a quick model."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.demo.reply import Reply
from musepi_tui.providers.draft import Draft
from musepi_tui.providers.protocol import build_message
from musepi_tui.providers.types import (
    Model,
    Request,
    StreamDone,
    StreamError,
    StreamEvent,
    StreamStart,
    ThinkingLevel,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    blocks_of,
)

_WORDS = re.compile(r"\s*\S+\s*")
_ARGUMENT_CHARS = 48
_IMAGE_TOKENS = 1_200
_CHARS_PER_TOKEN = 3.7
"""Of the demo's mixture of prose and code. At 4 its figures would lie a tenth under an exact count."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds before the first word, and between two portions of ``words`` words."""

    first_s: float = 0.4
    portion_s: float = 0.016
    words: int = 2


class DemoStream:
    """One answer. ``compose`` gives it and may block on the disk: it runs in a thread."""

    def __init__(
        self, model: Model, request: Request, compose: Callable[[], Reply], *, pace: Pace, clock: Clock
    ) -> None:
        self._model = model
        self._request = request
        self._compose = compose
        self._pace = pace
        self._clock = clock
        self._draft = Draft()
        self._started_ms = clock.now_ms()
        self._running: AsyncGenerator[StreamEvent, None] | None = None

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        """The events; a stream is read once."""
        self._running = self._events()
        return self._running

    async def aclose(self) -> None:
        """Ends the answer where it is."""
        if self._running is not None:
            # It is being advanced right now when its reader was cancelled: then it ends by itself.
            with contextlib.suppress(RuntimeError):
                await self._running.aclose()

    def partial(self) -> AssistantMessage:
        """What was said so far, as an aborted message."""
        error = ProviderError("The answer was stopped.", kind=ErrorKind.ABORTED)
        self._draft.usage = estimate_usage(self._request, self._draft.content())
        return build_message(self._draft, self._model, self._started_ms, error=error)

    async def _events(self) -> AsyncGenerator[StreamEvent, None]:
        self._started_ms = self._clock.now_ms()
        yield StreamStart()
        try:
            reply = await asyncio.to_thread(self._compose)
        except OSError as failure:
            error = ProviderError(
                f"The demo cannot make its project in the temporary folder: {failure}. "
                "Free some space there, or set TMPDIR to a folder that can be written.",
                kind=ErrorKind.INVALID_REQUEST,
            )
            yield StreamError(build_message(self._draft, self._model, self._started_ms, error=error), error)
            return
        await self._clock.sleep(self._pace.first_s)
        for _ in self._portions(reply):
            for event in self._draft.take_events():
                yield event
            await self._clock.sleep(self._pace.portion_s)
        self._draft.finish(StopReason.TOOL_USE if reply.calls else StopReason.STOP)
        for event in self._draft.take_events():
            yield event
        self._draft.usage = estimate_usage(self._request, self._draft.content())
        yield StreamDone(build_message(self._draft, self._model, self._started_ms))

    def _portions(self, reply: Reply) -> Iterator[None]:
        """Puts the reply into the draft, one portion at each step."""
        if self._request.thinking is not ThinkingLevel.OFF:
            for portion in _split(reply.thinking, self._pace.words):
                self._draft.add_thinking(portion)
                yield
        for portion in _split(reply.text, self._pace.words):
            self._draft.add_text(portion)
            yield
        for call in reply.calls:
            block = self._draft.open("toolcall", name=call.tool)
            text = json.dumps(call.arguments, ensure_ascii=False)
            for start in range(0, len(text), _ARGUMENT_CHARS):
                self._draft.grow(block, text[start : start + _ARGUMENT_CHARS])
                yield
            self._draft.end(block)


def estimate_usage(request: Request, answer: Sequence[Block]) -> Usage:
    """The tokens of a request, estimated, as a server that caches its prefix would report them.

    Everything up to the newest answer was in the request before, so it counts as read from the cache.
    """
    fixed = _count(request.system) + sum(
        _count(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}") for tool in request.tools
    )
    sizes = [_message_tokens(message) for message in request.messages]
    answers = [
        place for place, message in enumerate(request.messages) if isinstance(message, AssistantMessage)
    ]
    cached = fixed + sum(sizes[: answers[-1]]) if answers else 0
    prompt = fixed + sum(sizes)
    output = _block_tokens(answer)
    return Usage(
        input=prompt - cached, output=output, cache_read=cached, total_tokens=prompt + output, estimated=False
    )


def _count(text: str) -> int:
    return round(len(text) / _CHARS_PER_TOKEN)


def _message_tokens(message: Message) -> int:
    match message:
        case AssistantMessage() | ToolResultMessage():
            return _block_tokens(message.content)
        case UserMessage():
            return _block_tokens(blocks_of(message.content))
        case _:
            content = getattr(message, "content", "")
            return _block_tokens(blocks_of(content))


def _block_tokens(blocks: Sequence[Block]) -> int:
    return sum(_tokens_of(block) for block in blocks)


def _tokens_of(block: Block) -> int:
    match block:
        case TextBlock():
            return _count(block.text)
        case ThinkingBlock():
            return _count(block.thinking)
        case ToolCallBlock():
            return _count(block.name + json.dumps(dict(block.arguments), ensure_ascii=False))
        case ImageBlock():
            return _IMAGE_TOKENS
        case OpaqueBlock():
            return 0


def _split(text: str, words: int) -> Iterator[str]:
    """The text in portions of a few words, blanks and line breaks kept."""
    found = _WORDS.findall(text)
    for start in range(0, len(found), words):
        yield "".join(found[start : start + words])
