"""The clock of idle compaction: armed when nothing is going on, started over by any key (compaction 2.11)."""

import asyncio
from collections.abc import Callable

from musepi_tui.maintenance.facts import IdleGates
from musepi_tui.maintenance.triggers import Strategy
from musepi_tui.runtime.events import IdleCountdown
from musepi_tui.runtime.maintenance_facts import strategy_of
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.tasks import cancel_once

SHORTEST_S = 60
LONGEST_S = 3600
"""Bounds of ``compaction.idleTimeoutSeconds``: a pass must not start under the hands of somebody who reads,
and must still come within the lifetime of a prompt cache."""


class IdleClock:
    """Calls ``elapsed`` when the session was left alone for the configured time and its context is large.

    Once for what was said last: a pass that failed, or freed too little, would else come again and again
    while nobody looks. ``is_busy`` tells whether something is being done; ``keep_off`` says whether an idle
    pass gives way to what is typed, and cancels one that runs where its argument is true.
    """

    def __init__(
        self,
        services: Services,
        elapsed: Callable[[], None],
        is_busy: Callable[[], bool],
        keep_off: Callable[[bool], bool],
    ) -> None:
        self._services = services
        self._elapsed = elapsed
        self._is_busy = is_busy
        self._keep_off = keep_off
        self._editor_empty = True
        self._waiting: asyncio.Task[None] | None = None
        self._spent_on: str | None = None

    def gates(self) -> IdleGates:
        """What an idle pass depends on besides the context."""
        compaction = self._services.settings.compaction
        return IdleGates(
            enabled=compaction.idle_enabled,
            threshold_tokens=compaction.idle_threshold_tokens,
            editor_empty=self._editor_empty,
            busy=self._is_busy(),
        )

    def note_editor(self, *, empty: bool) -> None:
        """The same as ``set_editor_empty`` while another session is being opened: nothing begins here, but
        this session may stay."""
        self._editor_empty = empty

    def set_editor_empty(self, *, empty: bool) -> None:
        """The person has typed something that is not sent, or has not.

        An idle pass begins with an empty editor only, so the first character that is typed while one runs
        comes through here (TUI-6.7). A pass that made way for it may come again.
        """
        self._editor_empty = empty
        if not empty and self._keep_off(self._services.settings.compaction.idle_abort_on_input):
            self._spent_on = None
        self.restart()

    def touch(self) -> None:
        """The person did something: the time starts over."""
        if self._waiting is not None:
            self.restart()

    def stop(self) -> None:
        """The session is left: what was waited for must not come any more."""
        if self._waiting is not None:
            cancel_once(self._waiting)
            self._waiting = None
            self._services.bus.emit(IdleCountdown(None))

    def restart(self) -> None:
        """Starts over where an idle pass may come, else stops: something has begun, ended or changed."""
        was_waiting = self._waiting is not None
        if self._waiting is not None:
            cancel_once(self._waiting)
            self._waiting = None
        if self._may_wait():
            seconds = min(LONGEST_S, max(SHORTEST_S, self._services.settings.compaction.idle_timeout_seconds))
            task = self._services.children.start("idle clock", self._wait(seconds))
            self._waiting = task
            self._services.bus.emit(IdleCountdown(seconds))
        elif was_waiting:
            self._services.bus.emit(IdleCountdown(None))

    def _may_wait(self) -> bool:
        gates = self.gates()
        compaction = self._services.settings.compaction
        allowed = gates.enabled and strategy_of(compaction) is not Strategy.OFF
        if not allowed or gates.busy or not gates.editor_empty or self._newest_message() == self._spent_on:
            return False
        return 0 < gates.threshold_tokens <= self._services.meter.measure().decision

    def _newest_message(self) -> str | None:
        ids = self._services.history.message_entry_ids
        return ids[-1] if ids else None

    async def _wait(self, seconds: float) -> None:
        await self._services.clock.sleep(seconds)
        self._waiting = None
        self._spent_on = self._newest_message()
        self._services.bus.emit(IdleCountdown(None))
        self._elapsed()
