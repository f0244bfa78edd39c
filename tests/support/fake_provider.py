"""A provider inside the test: each request is answered by the next script."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.types import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    Credentials,
    Model,
    ProviderSpec,
    Request,
    StreamDone,
    StreamError,
    StreamEvent,
    StreamStart,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)


@dataclass(frozen=True)
class Hang:
    """Waits here until the stream is closed or ``event`` is set."""

    event: asyncio.Event | None = None


@dataclass(frozen=True)
class Bug:
    """Raises what a stream must never raise."""


Step: TypeAlias = "Bug | str | ThinkingBlock | ToolCallBlock | Hang | ProviderError | StopReason | Usage"
Script: TypeAlias = Sequence[Step]


def failure(kind: ErrorKind = ErrorKind.OVERLOADED, text: str = "busy", **fields: Any) -> ProviderError:
    """A provider failure; retryable when its kind usually is."""
    retryable = kind in (
        ErrorKind.OVERLOADED,
        ErrorKind.RATE_LIMIT,
        ErrorKind.SERVER,
        ErrorKind.TRANSPORT,
        ErrorKind.CONFLICT,
    )
    return ProviderError(text, kind=kind, **({"retryable": retryable} | fields))


class FakeProvider:
    """Scripts in, requests out. Without a script left it answers ``done``.

    Requests without tools, those for summaries, are all answered with ``summary``.
    """

    def __init__(self, *scripts: Script, summary: Script = ("## Goal\nA summary.",)) -> None:
        self.summary = summary
        self.scripts: deque[Script] = deque(scripts)
        self.requests: list[Request] = []
        self.closed = 0

    def find(self, _: str) -> ProviderSpec:
        """For ``RuntimeOptions.find_provider``."""
        return ProviderSpec("fake", self._stream)

    def _stream(self, model: Model, _: Credentials, request: Request) -> "FakeStream":
        self.requests.append(request)
        if not request.tools:
            return FakeStream(self, model, self.summary)
        return FakeStream(self, model, self.scripts.popleft() if self.scripts else ("done",))


class FakeStream:
    """One answer."""

    def __init__(self, provider: FakeProvider, model: Model, script: Script) -> None:
        self._provider = provider
        self._model = model
        self._script = script
        self._blocks: list[Block] = []
        self._closed = asyncio.Event()
        self._stop: StopReason | None = None
        self._usage = Usage(input=100, output=10, total_tokens=110)

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        yield StreamStart()
        for step in self._script:
            await asyncio.sleep(0)
            match step:
                case Bug():
                    raise ValueError("a bug")
                case Hang(event):
                    await (event or self._closed).wait()
                case ProviderError():
                    message = replace(
                        self.partial(),
                        stop_reason=StopReason.ERROR,
                        error_message=str(step),
                        error_status=step.status,
                    )
                    yield StreamError(message, step)
                    return
                case StopReason():
                    self._stop = step
                case Usage():
                    self._usage = step
                case _:
                    for event in self._block(step):
                        yield event
        yield StreamDone(replace(self.partial(), stop_reason=self._stop or self._natural_stop()))

    async def aclose(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._provider.closed += 1

    def partial(self) -> AssistantMessage:
        return AssistantMessage(
            content=tuple(self._blocks),
            api=self._model.api,
            provider=self._model.provider,
            model=self._model.id,
            stop_reason=StopReason.ABORTED,
            usage=self._usage,
        )

    def _natural_stop(self) -> StopReason:
        has_calls = any(isinstance(block, ToolCallBlock) for block in self._blocks)
        return StopReason.TOOL_USE if has_calls else StopReason.STOP

    def _block(self, step: "str | ThinkingBlock | ToolCallBlock") -> Sequence[StreamEvent]:
        index = len(self._blocks)
        if isinstance(step, ToolCallBlock):
            self._blocks.append(step)
            start = BlockStart("toolcall", index, step.name, step.id)
            return start, BlockEnd("toolcall", index, tool_call=step)
        if isinstance(step, ThinkingBlock):
            self._blocks.append(step)
            text, kind = step.thinking, "thinking"
        else:
            self._blocks.append(TextBlock(step))
            text, kind = step, "text"
        middle = len(text) // 2
        return (
            BlockStart(kind, index),
            BlockDelta(kind, index, text[:middle]),
            BlockDelta(kind, index, text[middle:]),
            BlockEnd(kind, index, text),
        )
