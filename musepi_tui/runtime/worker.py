"""Carries out prompts, passes and retries of one session, one after another, until nothing is left to do."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, assert_never

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.resources import read_prompt
from musepi_tui.base.text import cut
from musepi_tui.context.estimate import IMAGE_TOKENS
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Reason,
    Signal,
    Stop,
    Then,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.runtime.event_json import result_json
from musepi_tui.runtime.events import AgentSettled, Notice, Phase
from musepi_tui.runtime.failed_turn import failed_ids
from musepi_tui.runtime.loop import INTERRUPTED, MENDED_KINDS, Turn, TurnHooks
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.pruner import ShakeResult
from musepi_tui.runtime.queue import Delivery, MessageQueue, QueuedMessage
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import BUSY, STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.tasks import CancelKind, cancel_once
from musepi_tui.session.messages import AssistantMessage, ToolResultMessage, UserMessage

CANCEL_WITHIN_S = 2.5
"""How long a turn may take to store what it has when the runtime closes (SAF-12: 5 s for everything)."""

CONTINUE_AFTER_S = 0.1
"""Seconds before a turn is asked for again: esc and a new prompt still reach it (compaction 2.8)."""

AUTO_CONTINUE = "auto-continue"
"""Custom type of the message that goes on by itself, and the name of its prompt."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """Messages that start a turn; none goes on from what is there. ``settle`` None: they came from the
    queue, or from nobody."""

    messages: tuple[QueuedMessage, ...] = ()
    settle: Settle | None = None

    def end(self, error: str | None) -> None:
        """Settles the intent it came with, if any."""
        if self.settle is not None:
            self.settle(error)


@dataclass(frozen=True, slots=True)
class _Compact:
    """A pass somebody asked for. ``interrupted``: a turn was stopped for it."""

    mode: str | None
    focus: str | None
    settle: Settle
    interrupted: bool = False

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


@dataclass(frozen=True, slots=True)
class _Idle:
    """A pass because nobody did anything. ``settle`` None: the clock asked for it."""

    settle: Settle | None = None

    def end(self, error: str | None) -> None:
        """Settles the intent it came with, if any."""
        if self.settle is not None:
            self.settle(error)


@dataclass(frozen=True, slots=True)
class _Shake:
    """Somebody wants large outputs, or the images, out of the context."""

    mode: Literal["elide", "images"]
    settle: Settle

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


_Job: TypeAlias = _Prompt | _Compact | _Idle | _Shake


class Worker:
    """The one place that decides what is done next. ``new_turn`` makes a turn once its briefing is ready.

    ``last`` is the newest finished turn, None before the first. ``busy_changed`` is called when something
    begins and when everything is done. ``prepare`` finds out what every request holds besides its messages:
    maintenance counts it, also before the first turn.
    """

    def __init__(
        self,
        services: Services,
        queue: MessageQueue,
        maintainer: Maintainer,
        new_turn: Callable[[], Coroutine[Any, Any, Turn]],
    ) -> None:
        self.last: Turn | None = None
        self.busy_changed: Callable[[], None] = _ignore
        self.prepare: Callable[[], Coroutine[Any, Any, None]] = _prepared
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
    def occupied(self) -> bool:
        """Whether something but an idle pass is being done: that would be in its own way."""
        return self._running and not isinstance(self._current, _Idle)

    @property
    def turn_open(self) -> bool:
        """Whether a prompt is being worked on, its retries and maintenance included."""
        return self._running and not isinstance(self._current, _Compact | _Idle | _Shake)

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
        turn = self._turn_task
        self._maintainer.cancel()
        if turn is not None:
            cancel_once(turn)
        self._start(_Compact(mode, focus, settle, interrupted=turn is not None))

    def compact_idle(self, settle: Settle | None = None) -> None:
        """Runs an idle pass, if its conditions hold; nothing while something else is being done."""
        if not self._running:
            self._start(_Idle(settle))
        elif settle is not None:
            settle(None, {"skipped": True})

    def shake(self, mode: Literal["elide", "images"], settle: Settle) -> None:
        """Frees room without a model; refused while something else is being done."""
        if self._running:
            settle(BUSY)
        else:
            self._start(_Shake(mode, settle))

    def retry(self, settle: Settle) -> None:
        """Repeats the last turn when it failed, was stopped, or never got an answer."""
        history = self._services.history
        failed = () if self._running else failed_ids(history)
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
            self.busy_changed()
            self._services.children.start("worker", self._work())

    async def _work(self) -> None:
        had_turn = False
        try:
            while (job := self._next_job()) is not None:
                self._current = job
                if not isinstance(job, _Prompt):
                    await self.prepare()
                match job:
                    case _Prompt():
                        had_turn = True
                        await self._prompt(job)
                    case _Compact():
                        await self._compact(job)
                    case _Idle():
                        await self._compact_idle(job)
                    case _Shake():
                        await self._shake(job)
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
            self.busy_changed()

    def _next_job(self) -> _Job | None:
        if self._jobs:
            return self._jobs.popleft()
        if self._queue_held or not len(self._queue):
            return None
        return _Prompt(self._queue.take_next(), None)

    async def _prompt(self, job: _Prompt) -> None:
        """A turn, its maintenance, and what goes on from there by itself."""
        self._queue_held = False
        following: _Prompt | None = job
        while following is not None:
            turn = await self._run_turn(following)
            if turn is None:
                return
            self.last = turn
            self._services.history.saver.sync_soon()
            following = await self._after(turn)

    async def _after(self, turn: Turn) -> _Prompt | None:
        """Every way a turn can end comes through here: maintenance, then how it goes on."""
        stop: Stop | None = Stop()
        if turn.message is not None and turn.stop != "aborted":
            kind = None if turn.failure is None else turn.failure.kind
            stop = await self._consider(TurnFinished(turn.message, kind))
        then = Then.NOTHING if stop is None else stop.then
        if then is Then.RETRY and await self._pause():
            return _Prompt()
        if then is Then.AUTO_CONTINUE and turn.stop == "ok" and not len(self._queue):
            self._append_continuation()
            return _Prompt()
        if turn.failure is not None and turn.failure.kind in MENDED_KINDS:
            turn.report()
        if turn.stop in ("error", "aborted", "denied"):
            self._hold_queue(turn, stop)
        return None

    async def _pause(self) -> bool:
        """Waits a moment before a retry; false when it was cancelled meanwhile."""
        child = self._services.children.start("retry", self._services.clock.sleep(CONTINUE_AFTER_S))
        with self._services.cancels.pushed(CancelKind.RETRY, partial(cancel_once, child)):
            await asyncio.wait((child,))
        return not child.cancelled()

    def _append_continuation(self) -> None:
        self._services.history.append_custom(AUTO_CONTINUE, read_prompt(AUTO_CONTINUE), display=True)

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
        meter = self._services.meter
        if not meter.is_exact_enough(meter.measure()):
            self._services.children.start("tokenizer", self._services.tokens.ready())
        await self._before(job)
        started.append(turn)
        await turn.run(
            job.messages, TurnHooks(lambda: job.end(None), self._maintainer.note_prompt, self._boundary)
        )

    async def _before(self, job: _Prompt) -> None:
        """Maintenance before a prompt is sent to a conversation that goes on."""
        if not job.messages or not self._services.history.messages:
            return
        count = self._services.tokens.count
        pending = sum(count(each.text) + IMAGE_TOKENS * len(each.images) for each in job.messages)
        await self._consider(PromptPending(pending))

    async def _boundary(self, message: AssistantMessage) -> None:
        """Maintenance between the results of a step and the next request."""
        await self._consider(ToolBoundary(message))

    def _give_back(self, job: _Prompt, error: str) -> None:
        """A prompt that was not accepted goes back: to who sent it, or to the front of the queue."""
        self._queue_held = True
        if job.settle is None:
            self._queue.put_back(job.messages)
        else:
            job.settle(error)

    def _hold_queue(self, turn: Turn, stop: Stop | None) -> None:
        """Leaves what waits in the queue: the person decides whether it still makes sense."""
        self._queue_held = True
        texts = [*self._queue.texts("steer"), *self._queue.texts("follow_up")]
        if texts and turn.stop == "error":
            lost = stop is not None and stop.error is not None and stop.reason is Reason.OVERFLOW
            self._services.bus.emit(Notice("error", _unsent(texts, stays=not lost), "queue"))

    async def _compact(self, job: _Compact) -> None:
        stop = await self._consider(ManualRequested(job.mode, job.focus))
        self._queue_held = False
        error = STOPPED_UNEXPECTEDLY if stop is None else stop.error
        job.settle(error, self._result_of_pass())
        resumes = job.interrupted and self._services.settings.compaction.auto_continue
        if error is None and resumes and not len(self._queue):
            self._append_continuation()
            self._jobs.append(_Prompt())

    async def _compact_idle(self, job: _Idle) -> None:
        stop = await self._consider(IdleElapsed())
        if job.settle is not None:
            result = self._result_of_pass()
            job.settle(None if stop is None else stop.error, result or {"skipped": True})

    async def _shake(self, job: _Shake) -> None:
        try:
            with self._services.cancels.pushed(CancelKind.COMPACTION, self._maintainer.cancel):
                result = await self._maintainer.shake(job.mode)
        except MusepiError as error:
            job.settle(str(error))
        else:
            job.settle(None, _shake_data(job.mode, result))

    def _result_of_pass(self) -> Mapping[str, Any] | None:
        """What the newest pass did, for who asked for it."""
        return result_json(self._maintainer.last_result)

    async def _consider(self, signal: Signal) -> Stop | None:
        """Maintenance in a guarded child; None when it failed unexpectedly.

        Who is cancelled while waiting takes the child along.
        """
        child = self._services.children.start("maintenance", self._maintainer.consider(signal))
        with self._services.cancels.pushed(CancelKind.COMPACTION, self._maintainer.cancel):
            try:
                await asyncio.wait((child,))
            except asyncio.CancelledError:
                cancel_once(child)
                await asyncio.wait((child,), timeout=CANCEL_WITHIN_S)
                raise
        self._services.meter.refresh(only_changes=True)
        return None if child.cancelled() else child.result()

    def _tell_queued(self) -> None:
        if self._maintainer.running:
            self._services.bus.emit(Notice("info", "Queued until the compaction ends", "queue"))


def _unsent(texts: Sequence[str], *, stays: bool) -> str:
    """What is told of messages that wait. ``stays`` false: a screen takes them back into its editor."""
    others = f" and {len(texts) - 1} more" if len(texts) > 1 else ""
    text = f'Not sent, because the turn failed: "{cut(texts[0], 60)}"{others}.'
    return f"{text} What waits in the queue is sent before your next message." if stays else text


def _shake_data(mode: str, result: ShakeResult) -> dict[str, Any]:
    """What an intent to shake settles with (contract 3.2)."""
    data = {
        "mode": mode,
        "regions": result.regions,
        "toolResults": result.tool_results,
        "blocks": result.blocks,
        "images": result.images,
        "tokensFreed": result.tokens_freed,
    }
    return data if result.artifact_id is None else {**data, "artifactId": result.artifact_id}


def _ignore() -> None:
    return None


async def _prepared() -> None:
    return None
