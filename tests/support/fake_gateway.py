"""A model without a network: answers of a script, and the requests it got."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.types import (
    BlockDelta,
    Model,
    Request,
    StreamDone,
    StreamError,
    StreamEvent,
    StreamStart,
    ThinkingLevel,
)
from musepi_tui.session.messages import AssistantMessage, Message, StopReason, text_of
from tests.support.builders import a

Answer = AssistantMessage | ProviderError
Reply = Callable[[Model, Request], Answer]


def model(name: str = "model", provider: str = "test", **fields: Any) -> Model:
    """A model of a test provider with a 200,000-token window."""
    row = Model(provider=provider, id=name, api="test", base_url="", context_window=200_000)
    return replace(row, **fields)


class FakeStream:
    """Gives one answer in two parts; ``gate`` holds it back before the first."""

    def __init__(self, answer: Answer, gate: asyncio.Event | None) -> None:
        self._answer = answer
        self._gate = gate
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        yield StreamStart()
        if self._gate is not None:
            await self._gate.wait()
        await asyncio.sleep(0)
        if isinstance(self._answer, ProviderError):
            partial = a("", stop=StopReason.ERROR, error_message=str(self._answer))
            yield StreamError(partial, self._answer)
            return
        text = text_of(self._answer.content)
        for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
            yield BlockDelta("text", 0, piece)
        yield StreamDone(self._answer)

    async def aclose(self) -> None:
        self.closed = True


class FakeGateway:
    """Answers summary requests with ``reply``; ``requests`` are those it got; ``gate`` holds answers back."""

    def __init__(self, *models: Model) -> None:
        self.model: Model | None = models[0] if models else None
        self.wanted_thinking = ThinkingLevel.OFF
        self.rows = list(models)
        self.reply: Reply = lambda _, request: a(f"## Goal\nSummary of {len(prompt_of(request))} characters.")
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Event()
        self.requests: list[tuple[Model, Request]] = []
        self.streams: list[FakeStream] = []
        self.refused: set[str] = set()
        self.recorded: tuple[str | None, str | None] = (None, None)

    def available(self) -> tuple[Model, ...]:
        return tuple(self.rows)

    def find(self, text: str) -> Model | None:
        return next((row for row in self.rows if text in (row.key, row.id)), None)

    def require_model(self) -> Model:
        if self.model is None:
            raise ProviderError("no model", kind=ErrorKind.AUTH)
        return self.model

    def note_recorded(self, model_key: str | None, thinking: str | None) -> None:
        self.recorded = (model_key, thinking)

    async def prepare(self, row: Model) -> None:
        if row.key in self.refused:
            raise ProviderError("no key", kind=ErrorKind.AUTH)

    def request(self, system: str, messages: Sequence[Message], **fields: Any) -> Request:
        return Request(system, tuple(messages), **fields)

    def open(self, row: Model, request: Request) -> FakeStream:
        self.requests.append((row, request))
        self.asked.set()
        self.streams.append(FakeStream(self.reply(row, request), self.gate))
        return self.streams[-1]

    async def wait_for_requests(self, number: int) -> None:
        """Returns once that many requests were opened."""
        while len(self.requests) < number:
            self.asked.clear()
            await self.asked.wait()

    @property
    def prompts(self) -> list[str]:
        return [prompt_of(request) for _, request in self.requests]


def prompt_of(request: Request) -> str:
    """The text of a summary request."""
    return text_of(request.messages[0].content)
