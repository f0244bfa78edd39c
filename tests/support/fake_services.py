"""A session without files or network, for tests of maintenance: real history, tokens and meter, a scripted
model and an in-memory saver."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from musepi_tui.base.errors import SessionError
from musepi_tui.extensions.dispatch import Dispatcher, Failure
from musepi_tui.extensions.extensions import Extensions
from musepi_tui.maintenance.facts import IdleGates
from musepi_tui.providers.types import Model
from musepi_tui.runtime.bus import EventBus, Subscription
from musepi_tui.runtime.events import Event, Phase
from musepi_tui.runtime.history import History, Loaded
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.meter import MeterService
from musepi_tui.runtime.queue import MessageQueue
from musepi_tui.runtime.saving import Saver
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.tasks import CancelStack
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.session.messages import Message
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.session.tree import SessionTree
from musepi_tui.settings.schema import Settings
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import heads
from tests.support.clock import FakeClock
from tests.support.fake_gateway import FakeGateway, model, prompt_of

__all__ = ["Bench", "FakeArtifacts", "FakeGateway", "FakeSaver", "WatchedBus", "bench", "model", "prompt_of"]


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
    queue: MessageQueue
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
    loaded: Loaded | None = None,
    estimator: str = "chars4",
) -> Bench:
    """A session with these entries on its path, or the ``loaded`` one, on the first of ``models``; ``file``
    takes what is added. ``estimator`` counts the tokens."""
    chosen = settings or Settings()
    watchers: list[Callable[[Event], None]] = []
    bodies, clock, saver = Bodies(), FakeClock(start_ms=1_760_000_000_000), FakeSaver()
    bus = WatchedBus(watchers)
    for made in entries:
        bodies.remember(made)
    loaded = loaded or Loaded(
        header=SessionHeader("session", "", "/project"),
        tree=SessionTree.from_heads(heads(entries)),
        bodies=bodies,
        context=build_session_context(entries),
    )
    real = None if file is None else Saver(file, "never", None, clock, bus.emit)  # type: ignore[arg-type]  # no child starts
    history = History(loaded, real or saver, clock, bus.emit, lambda: ())  # type: ignore[arg-type]  # the double
    gateway, tokens = FakeGateway(*(models or (model(),))), TokenService(estimator, None, lambda _: None)
    tokens.live_messages = lambda: history.messages
    meter = MeterService(chosen, history, gateway, tokens, bus.emit)  # type: ignore[arg-type]  # the double
    phases: list[Phase] = []
    failures: list[Failure] = []
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
        extensions=Extensions(Dispatcher(None, failures.append)),  # type: ignore[arg-type]  # nobody asks it
    )
    artifacts = FakeArtifacts()
    queue = MessageQueue(lambda _: True, lambda: None)
    maintainer = Maintainer(services, artifacts, queue, IdleGates)  # type: ignore[arg-type]  # the double
    return Bench(
        services, maintainer, queue, gateway, saver, artifacts, clock, bus.subscribe(), phases, watchers
    )
