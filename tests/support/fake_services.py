"""A session without files or network, for tests of maintenance: real history, tokens and meter, a scripted
model and an in-memory saver."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from musepi_tui.base.errors import ErrorKind, ProviderError, SessionError
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
from musepi_tui.runtime.bus import EventBus, Subscription
from musepi_tui.runtime.events import Event, Phase
from musepi_tui.runtime.history import History, Loaded
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.meter import MeterService
from musepi_tui.runtime.saving import Saver
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.tasks import CancelStack
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.session.messages import AssistantMessage, Message, StopReason, text_of
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.session.tree import SessionTree
from musepi_tui.settings.schema import Settings
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import a, heads
from tests.support.clock import FakeClock

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
        self.thinking = ThinkingLevel.OFF
        self.rows = list(models)
        self.reply: Reply = lambda _, request: a(f"## Goal\nSummary of {len(prompt_of(request))} characters.")
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Event()
        self.requests: list[tuple[Model, Request]] = []
        self.streams: list[FakeStream] = []
        self.refused: set[str] = set()

    def available(self) -> tuple[Model, ...]:
        return tuple(self.rows)

    def find(self, text: str) -> Model | None:
        return next((row for row in self.rows if text in (row.key, row.id)), None)

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


class FakeSaver:
    """Takes entries; ``refuse`` makes the next write fail. ``written`` is one item a write."""

    def __init__(self) -> None:
        self.written: list[tuple[Entry, ...]] = []
        self.refuse = False
        self.rewrites_edits = False
        self.syncs = 0
        self.wrote = asyncio.Event()
        self.hold: asyncio.Event | None = None

    def write(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...]:
        return self.write_or_raise(entries)

    def write_or_raise(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...]:
        if self.refuse:
            raise SessionError("No space left on device")
        self.written.append(tuple(entries))
        self.wrote.set()
        return heads(entries)

    def sync_soon(self) -> None:
        self.syncs += 1

    async def sync_through_cancel(self) -> None:
        self.syncs += 1
        if self.hold is not None:
            await self.hold.wait()


class FakeArtifacts:
    """Keeps texts; ids count from 1."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def save(self, tool: str, text: str) -> str:
        artifact_id = str(len(self.texts) + 1)
        self.texts[artifact_id] = text
        return artifact_id


class WatchedBus(EventBus):
    """A bus that calls ``watchers`` while an event is emitted."""

    def __init__(self, watchers: list[Callable[[Event], None]]) -> None:
        super().__init__()
        self._watchers = watchers

    def emit(self, event: Event) -> None:
        super().emit(event)
        for watch in self._watchers:
            watch(event)


@dataclass
class Bench:
    """Everything a maintenance test touches."""

    services: Services
    maintainer: Maintainer
    gateway: FakeGateway
    saver: FakeSaver
    artifacts: FakeArtifacts
    clock: FakeClock
    subscription: Subscription
    phases: list[Phase]
    watchers: list[Callable[[Event], None]]
    seen: list[Event] = field(default_factory=list)

    @property
    def history(self) -> History:
        return self.services.history

    def events(self, *kinds: type) -> list[Any]:
        """The events so far, of these kinds."""
        self.seen.extend(self.subscription.drain())
        return [event for event in self.seen if not kinds or isinstance(event, kinds)]

    def say(self, *messages: Message) -> None:
        """Appends messages."""
        for message in messages:
            self.history.append_message(message)


def bench(
    entries: Sequence[Entry] = (),
    *,
    models: Sequence[Model] = (),
    settings: Settings | None = None,
    file: SessionFile | None = None,
) -> Bench:
    """A session with these entries on its path, on the first of ``models``; ``file`` takes what is added."""
    chosen = settings or Settings()
    watchers: list[Callable[[Event], None]] = []
    bodies, clock, saver = Bodies(), FakeClock(start_ms=1_760_000_000_000), FakeSaver()
    bus = WatchedBus(watchers)
    for made in entries:
        bodies.remember(made)
    loaded = Loaded(
        header=SessionHeader("session", "", "/project"),
        tree=SessionTree.from_heads(heads(entries)),
        bodies=bodies,
        context=build_session_context(entries),
    )
    real = None if file is None else Saver(file, "never", None, clock, bus.emit)  # type: ignore[arg-type]  # no child starts
    history = History(loaded, real or saver, clock, bus.emit, lambda: ())  # type: ignore[arg-type]  # the double
    gateway, tokens = FakeGateway(*(models or (model(),))), TokenService("chars4", None, lambda _: None)
    meter = MeterService(chosen, history, gateway, tokens, bus.emit)  # type: ignore[arg-type]  # the double
    phases: list[Phase] = []
    services = Services(
        settings=chosen,
        clock=clock,
        bus=bus,
        children=None,  # type: ignore[arg-type]  # maintenance starts no children
        cancels=CancelStack(),
        history=history,
        gateway=gateway,  # type: ignore[arg-type]  # the double
        tokens=tokens,
        meter=meter,
        phase=phases.append,
    )
    artifacts = FakeArtifacts()
    maintainer = Maintainer(services, artifacts)  # type: ignore[arg-type]  # the double
    return Bench(services, maintainer, gateway, saver, artifacts, clock, bus.subscribe(), phases, watchers)
