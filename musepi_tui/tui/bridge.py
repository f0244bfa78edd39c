"""From the runtime's events to the view models, and from there to the screen, a few times a second."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from musepi_tui.base.clock import Clock
from musepi_tui.runtime.events import Event
from musepi_tui.session.entries import EntryHead
from musepi_tui.tui.status import Status
from musepi_tui.tui.transcript.model import TranscriptModel

if TYPE_CHECKING:
    from musepi_tui.runtime.session import SessionRuntime

FLUSH_S = 0.06
"""The pause between two paints: a shifted viewport is painted whole, so this bounds the bytes written."""
REMOTE_FLUSH_S = 0.25
"""The same over SSH, for a quarter of the bytes."""


class Painter(Protocol):
    """What the bridge asks of the app."""

    def after_event(self, event: Event) -> None:
        """The models have taken the event in."""
        ...

    def flush(self) -> None:
        """Brings the widgets up to date with the models."""
        ...

    def call_later(self, callback: Callable[[], None]) -> object:
        """Calls a function when everything that waits now is done."""
        ...


class Bridge:
    """Follows the runtime. Widgets hold no facts: they draw ``transcript`` and ``status``."""

    def __init__(self, runtime: "SessionRuntime", painter: Painter, clock: Clock, *, flush_s: float) -> None:
        self.transcript = TranscriptModel(runtime.read_entry, path_to=self._path_to, now=clock.monotonic)
        self.status = Status()
        self._runtime = runtime
        self._painter = painter
        self._clock = clock
        self._flush_s = flush_s
        self._flush_waits = False

    def show_now(self) -> None:
        """Takes over what the runtime has at the moment: the first frame needs no event."""
        view = self._runtime.view()
        self.transcript.reset(view)
        self.status.reset(view, self._clock.monotonic())

    async def follow(self) -> None:
        """Takes events in until the runtime closes: at once after a quiet time, then a batch per period.

        What comes within a period waits in the subscription, which joins the pieces of a text meanwhile.
        """
        subscription = self._runtime.subscribe()
        try:
            while await subscription.wait():
                changed = [self.take(event) for event in subscription.drain()]
                if any(changed):
                    self._painter.flush()
                    # Paints are paced by real time, whatever the clock of the runtime says.
                    await asyncio.sleep(self._flush_s)
        finally:
            subscription.close()

    def take(self, event: Event) -> bool:
        """Takes one event in; whether it changed what is shown."""
        changed = self.transcript.apply(event)
        shown = self.status.apply(event, self._clock.monotonic()) or changed
        self._painter.after_event(event)
        return shown

    def _path_to(self, entry_id: str) -> Sequence[EntryHead]:
        return self._runtime.view().tree.path(entry_id)

    def request_flush(self) -> None:
        """Paints soon, for a change that came from the screen itself."""
        if not self._flush_waits:
            self._flush_waits = True
            self._painter.call_later(self._flush)

    def _flush(self) -> None:
        self._flush_waits = False
        self._painter.flush()
