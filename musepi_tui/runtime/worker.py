"""Carries out prompts, passes and retries of one session, one after another, until nothing is left to do."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, assert_never

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.text import cut
from musepi_tui.maintenance.triggers import ManualRequested, Stop, TurnFinished
from musepi_tui.runtime.events import AgentSettled, Notice, Phase
from musepi_tui.runtime.history import History
from musepi_tui.runtime.loop import INTERRUPTED, Turn
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.queue import Delivery, MessageQueue, QueuedMessage
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.tasks import CancelKind, cancel_once
from musepi_tui.session.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage

CANCEL_WITHIN_S = 2.5
"""How long a turn may take to store what it has when the runtime closes (SAF-12: 5 s for everything)."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """Messages that start a turn; none goes on from what is there. ``settle`` None: they came from the
    queue."""

    messages: tuple[QueuedMessage, ...]
    settle: Settle | None

    def end(self, error: str | None) -> None:
        """Settles the intent it came with, if any."""
        if self.settle is not None:
            self.settle(error)


@dataclass(frozen=True, slots=True)
class _Compact:
    """A pass somebody asked for."""

    mode: str | None
    focus: str | None
    settle: Settle

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


_Job: TypeAlias = _Prompt | _Compact


class Worker:
    """The one place that decides what is done next. ``new_turn`` makes a turn once its briefing is ready.

    ``last`` is the newest finished turn, None before the first.
    """

    def __init__(
        self,
        services: Services,
        queue: MessageQueue,
        maintainer: Maintainer,
        new_turn: Callable[[], Coroutine[Any, Any, Turn]],
    ) -> None:
        self.last: Turn | None = None
        self._services = services
        self._queue = queue
        self._maintainer = maintainer
        self._new_turn = new_turn
        self._jobs: deque[_Job] = deque()
        self._current: _Job | None = None
        self._turn_task: asyncio.Task[None] | None = None
        self._running = False
        self._queue_held = False

    @property
    def busy(self) -> bool:
        """Whether something is being done; messages are queued then."""
        return self._running

    @property
    def turn_open(self) -> bool:
        """Whether a prompt is being worked on, its retries and maintenance included."""
        return self._running and not isinstance(self._current, _Compact)

    def submit(self, message: QueuedMessage, delivery: Delivery, settle: Settle) -> None:
        """Starts a turn with the message, or queues it while something is being done."""
        refusal = self._queue.refusal(message)
        if refusal is not None:
            settle(refusal)
        elif self._running:
            self._queue.push(message, delivery)
            settle(None)
            self._tell_queued()
        elif len(self._queue):
            self._queue.push(message, delivery)
            settle(None)
            self._queue_held = False
            self._start()
        else:
            self._start(_Prompt((message,), settle))

    def compact(self, mode: str | None, focus: str | None, settle: Settle) -> None:
        """Runs a pass; a turn or an automatic pass that is under way is stopped first."""
        if isinstance(self._current, _Compact) or any(isinstance(job, _Compact) for job in self._jobs):
            settle("Compaction already in progress")
            return
        if self._running and not self._maintainer.cancel() and self._turn_task is not None:
            cancel_once(self._turn_task)
        self._start(_Compact(mode, focus, settle))

    def retry(self, settle: Settle) -> None:
        """Repeats the last turn when it failed, was stopped, or never got an answer."""
        history = self._services.history
        failed = () if self._running else _failed_ids(history)
        is_open = bool(history.messages) and isinstance(history.messages[-1], UserMessage | ToolResultMessage)
        if self._running or not (failed or is_open):
            settle("There is no failed turn to repeat.")
            return
        history.hide(failed)
        self._start(_Prompt((), settle))

    def _start(self, job: _Job | None = None) -> None:
        if job is not None:
            self._jobs.append(job)
        if not self._running:
            self._running = True
            self._services.children.start("worker", self._work())

    async def _work(self) -> None:
        had_turn = False
        try:
            while (job := self._next_job()) is not None:
                self._current = job
                match job:
                    case _Prompt():
                        had_turn = True
                        await self._prompt(job)
                    case _Compact():
                        await self._compact(job)
                    case _:
                        assert_never(job)
                self._current = None
        finally:
            if self._current is not None:
                self._current.end(STOPPED_UNEXPECTEDLY)
            self._current = None
            self._running = False
            self._services.phase(Phase.IDLE)
            if had_turn:
                self._services.bus.emit(AgentSettled())

    def _next_job(self) -> _Job | None:
        if self._jobs:
            return self._jobs.popleft()
        if self._queue_held or not len(self._queue):
            return None
        return _Prompt(self._queue.take_next(), None)

    async def _prompt(self, job: _Prompt) -> None:
        self._queue_held = False
        turn = await self._run_turn(job)
        if turn is None:
            return
        self.last = turn
        self._services.history.saver.sync_soon()
        if turn.stop in ("error", "aborted", "denied"):
            self._hold_queue(turn)
        if turn.message is not None and turn.stop != "aborted":
            await self._consider(TurnFinished(turn.message))

    async def _run_turn(self, job: _Prompt) -> Turn | None:
        """The finished turn, however it ended; None when it never began."""
        started: list[Turn] = []
        task = self._services.children.start("turn", self._turn(job, started))
        self._turn_task = task
        try:
            with self._services.cancels.pushed(CancelKind.TURN, partial(cancel_once, task)):
                await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancel_once(task)
            await asyncio.wait((task,), timeout=CANCEL_WITHIN_S)
            raise
        finally:
            self._turn_task = None
        if started and started[0].accepted:
            return started[0]
        self._give_back(job, INTERRUPTED if task.cancelled() else STOPPED_UNEXPECTEDLY)
        return None

    async def _turn(self, job: _Prompt, started: list[Turn]) -> None:
        try:
            gateway = self._services.gateway
            await gateway.prepare(gateway.require_model())
            turn = await self._new_turn()
        except MusepiError as error:
            self._services.bus.emit(Notice("error", str(error), "provider"))
            self._give_back(job, str(error))
            return
        if not self._services.meter.is_exact_enough():
            self._services.children.start("tokenizer", self._services.tokens.ready())
        started.append(turn)
        await turn.run(job.messages, lambda: job.end(None))

    def _give_back(self, job: _Prompt, error: str) -> None:
        """A prompt that was not accepted goes back: to who sent it, or to the front of the queue."""
        self._queue_held = True
        if job.settle is None:
            self._queue.put_back(job.messages)
        else:
            job.settle(error)

    def _hold_queue(self, turn: Turn) -> None:
        """Leaves what waits in the queue: the person decides whether it still makes sense."""
        self._queue_held = True
        texts = [*self._queue.texts("steer"), *self._queue.texts("follow_up")]
        if texts and turn.stop == "error":
            others = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
            text = (
                f'Not sent, because the turn failed: "{cut(texts[0], 60)}"{others}. '
                "What waits in the queue is sent before your next message."
            )
            self._services.bus.emit(Notice("error", text, "queue"))

    async def _compact(self, job: _Compact) -> None:
        stop = await self._consider(ManualRequested(job.mode, job.focus))
        self._queue_held = False
        job.settle(STOPPED_UNEXPECTEDLY if stop is None else stop.error)

    async def _consider(self, signal: ManualRequested | TurnFinished) -> Stop | None:
        """Maintenance in a guarded child; None when it failed unexpectedly."""
        child = self._services.children.start("maintenance", self._maintainer.consider(signal))
        with self._services.cancels.pushed(CancelKind.COMPACTION, self._maintainer.cancel):
            await asyncio.wait((child,))
        self._services.meter.refresh(only_changes=True)
        return None if child.cancelled() else child.result()

    def _tell_queued(self) -> None:
        if self._maintainer.running:
            self._services.bus.emit(Notice("info", "Queued until the compaction ends", "queue"))


def _failed_ids(history: History) -> tuple[str, ...]:
    """Entries of a failed answer at the end of the context, results of its calls included."""
    ids: list[str] = []
    for entry_id, message in zip(
        reversed(history.message_entry_ids), reversed(history.messages), strict=True
    ):
        if isinstance(message, ToolResultMessage):
            ids.append(entry_id)
        elif isinstance(message, AssistantMessage) and message.stop_reason in _FAILED_STOPS:
            return (*ids, entry_id)
        else:
            break
    return ()


_FAILED_STOPS = frozenset({StopReason.ERROR, StopReason.ABORTED})
