"""Fan-out of events to subscribers (architecture 6)."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.providers.types import BlockDelta
from musepi_tui.runtime.events import AssistantDelta, Event, ToolProgress


@dataclass(slots=True)
class _GrowingDelta:
    """Deltas of one block that nobody fetched yet; joined once, when they are."""

    first: AssistantDelta
    delta: BlockDelta
    parts: list[str]
    arguments: Mapping[str, Any] | None = None

    def absorb(self, event: AssistantDelta) -> bool:
        """Whether ``event`` continued this block and was taken in."""
        more = event.event
        if not isinstance(more, BlockDelta) or event.live_id != self.first.live_id:
            return False
        if (more.kind, more.content_index) != (self.delta.kind, self.delta.content_index):
            return False
        self.parts.append(more.delta)
        self.arguments = more.arguments if more.arguments is not None else self.arguments
        return True

    def joined(self) -> AssistantDelta:
        """One delta with all the text."""
        whole = replace(self.delta, delta="".join(self.parts), arguments=self.arguments)
        return replace(self.first, event=whole)


_Pending: TypeAlias = Event | _GrowingDelta


@dataclass(eq=False, slots=True)
class Subscription:
    """The events of one subscriber, in order: ``async for event in subscription``.

    A subscriber that is slow gets fewer, larger text deltas and only the newest progress of a command; it
    loses nothing else. The iteration ends when the runtime has closed and everything was fetched.
    """

    _leave: Callable[["Subscription"], None]
    _pending: deque[_Pending] = field(default_factory=deque["_Pending"])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Event:
        while not self._pending:
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return _settled(self._pending.popleft())

    def drain(self) -> tuple[Event, ...]:
        """Everything that is waiting, without waiting."""
        events = tuple(_settled(item) for item in self._pending)
        self._pending.clear()
        return events

    async def wait(self) -> bool:
        """True when events are there to ``drain``, False when the runtime has closed and none will come."""
        while not self._pending and not self._closed:
            self._wake.clear()
            await self._wake.wait()
        return bool(self._pending)

    def close(self) -> None:
        """Stops listening; what is waiting is dropped."""
        self._pending.clear()
        self._leave(self)
        self.end()

    def put(self, event: Event) -> None:
        """Adds an event; called by the bus."""
        if not self._absorbed(event):
            self._pending.append(_pending(event))
        self._wake.set()

    def end(self) -> None:
        """No event will follow; called by the bus."""
        self._closed = True
        self._wake.set()

    def _absorbed(self, event: Event) -> bool:
        if not self._pending:
            return False
        last = self._pending[-1]
        if isinstance(event, AssistantDelta) and isinstance(last, _GrowingDelta):
            return last.absorb(event)
        if _is_newer_progress(event, last):
            self._pending[-1] = event
            return True
        return False


def _is_newer_progress(event: Event, last: _Pending) -> bool:
    if not isinstance(event, ToolProgress) or not isinstance(last, ToolProgress):
        return False
    return event.call_id == last.call_id


def _pending(event: Event) -> _Pending:
    if isinstance(event, AssistantDelta) and isinstance(event.event, BlockDelta):
        return _GrowingDelta(event, event.event, [event.event.delta], event.event.arguments)
    return event


def _settled(item: _Pending) -> Event:
    return item.joined() if isinstance(item, _GrowingDelta) else item


class EventBus:
    """Hands each event to every subscriber; never blocks."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []
        self._closed = False

    def emit(self, event: Event) -> None:
        """Tells everybody. After ``close`` nothing is told any more."""
        if self._closed:
            return
        for subscription in tuple(self._subscriptions):
            subscription.put(event)

    def subscribe(self) -> Subscription:
        """A new subscription; it sees what is emitted from now on."""
        subscription = Subscription(self._forget)
        if self._closed:
            subscription.end()
        else:
            self._subscriptions.append(subscription)
        return subscription

    def close(self) -> None:
        """Ends every subscription once it has fetched what is waiting."""
        self._closed = True
        for subscription in tuple(self._subscriptions):
            subscription.end()
        self._subscriptions.clear()

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
