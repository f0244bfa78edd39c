"""Carries out prompts, passes and retries of one session, one after another, until nothing is left to do."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never

from musepi_tui.base.errors import MusepiError
from musepi_tui.context.estimate import IMAGE_TOKENS
from musepi_tui.maintenance.modes import refuse_mode
from musepi_tui.maintenance.notices import ALREADY_RUNNING, HANDOFF_WHILE_BUSY
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Signal,
    Stop,
    Then,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.runtime.backlog import Backlog
from musepi_tui.runtime.continuation import append_continuation, pause
from musepi_tui.runtime.event_json import result_json
from musepi_tui.runtime.events import AgentSettled, Notice, Phase
from musepi_tui.runtime.failed_turn import failed_ids
from musepi_tui.runtime.history import History
from musepi_tui.runtime.intents import MoveLeaf, NavigateTree
from musepi_tui.runtime.jobs import CompactJob, HandoffJob, IdleJob, Job, NavigateJob, Prompt, ShakeJob
from musepi_tui.runtime.loop import INTERRUPTED, MENDED_KINDS, Turn, TurnHooks
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.runtime.navigate import navigate
from musepi_tui.runtime.post import Post
from musepi_tui.runtime.pruner import ShakeResult
from musepi_tui.runtime.queue import Delivery, MessageQueue, QueuedMessage
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import BUSY, STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.tasks import CancelKind, cancel_once
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.messages import AssistantMessage, ToolResultMessage, UserMessage

SKIPPED: Mapping[str, Any] = {"skipped": True}
"""What an idle pass settles with that had nothing to do or whose conditions did not hold (contract 3.2)."""


class Worker:
    """The one place that decides what is done next. ``last`` is the newest finished turn, None before the
    first."""

    def __init__(self, post: Post, queue: MessageQueue) -> None:
        self.last: Turn | None = None
        self._post = post
        self._queue = queue
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None
        self._turn_task: asyncio.Task[None] | None = None
        self._running = False
        self._backlog = Backlog(queue, post.services.bus.emit)

    @property
    def _services(self) -> Services:
        return self._post.services

    @property
    def _maintainer(self) -> Maintainer:
        return self._post.maintainer

    @property
    def busy(self) -> bool:
        """Whether something is being done; messages are queued then."""
        return self._running

    @property
    def occupied(self) -> bool:
        """Whether something but an idle pass is being done: that would be in its own way."""
        return self._running and not isinstance(self._current, IdleJob)

    @property
    def turn_open(self) -> bool:
        """Whether a prompt is being worked on, its retries and maintenance included."""
        return self._running and isinstance(self._current, Prompt | None)

    def move_to(self, post: Post) -> None:
        """Goes on in another session with what is being done and what waits."""
        self._post = post

    async def prepare(self) -> None:
        """Finds out what every request holds besides its messages: maintenance counts it."""
        await self._post.workplace.prepare()

    def submit(self, message: QueuedMessage, delivery: Delivery, settle: Settle) -> None:
        """Starts a turn with the message, or queues it while something is being done."""
        refusal = self._queue.refusal(message)
        if refusal is not None:
            settle(refusal)
            return
        message = self._queue.number(message)
        if self._running:
            self._queue.push(message, delivery)
            settle(None)
            self._tell_queued()
        elif len(self._queue):
            self._queue.push(message, delivery)
            settle(None)
            self._backlog.is_held = False
            self._start()
        else:
            self._start(Prompt((message,), settle))

    def compact(self, mode: str | None, focus: str | None, settle: Settle) -> None:
        """Runs a pass; a turn or an automatic pass that is under way is stopped, unless it is refused."""
        by_hand = CompactJob | ShakeJob | HandoffJob
        is_under_way = any(isinstance(job, by_hand) for job in (self._current, *self._jobs))
        refusal = refuse_mode(mode, focus) or (ALREADY_RUNNING if is_under_way else None)
        if refusal is not None:
            settle(refusal)
            return
        turn = self._turn_task
        self._maintainer.cancel()
        if turn is not None:
            cancel_once(turn)
        self._start(CompactJob(mode, focus, settle, interrupted=turn is not None))

    def compact_idle(self, settle: Settle | None = None) -> None:
        """Runs an idle pass, if its conditions hold; nothing while something else is being done."""
        if not self._running:
            self._start(IdleJob(settle))
        elif settle is not None:
            settle(None, SKIPPED)

    def keep_off_idle(self, *, cancels: bool) -> bool:
        """The person has begun to type: whether an idle pass gives way to that. One that is still being
        prepared will find it out by itself; one that runs does where it is to be cancelled."""
        is_there = any(isinstance(job, IdleJob) for job in (self._current, *self._jobs))
        return is_there and (self._maintainer.running is None or (cancels and self._maintainer.cancel()))

    def shake(self, mode: Literal["elide", "images"], settle: Settle) -> None:
        """Frees room without a model; refused while something else is being done."""
        if self._running:
            settle(BUSY)
        else:
            self._start(ShakeJob(mode, settle))

    def hand_off(self, focus: str | None, settle: Settle) -> None:
        """Goes on in a new session; refused while something else is being done."""
        if self._running:
            settle(HANDOFF_WHILE_BUSY if self.turn_open else BUSY)
        else:
            self._start(HandoffJob(focus, settle))

    def navigate(self, intent: NavigateTree | MoveLeaf, settle: Settle) -> None:
        """Goes on from another entry; refused while something else is being done."""
        if self._running:
            settle(BUSY)
        else:
            self._start(NavigateJob(intent, settle))

    def retry(self, settle: Settle) -> None:
        """Repeats the last turn when it failed, was stopped, or never got an answer."""
        history = self._services.history
        failed = None if self._running else _find_failed(history)
        if failed is None:
            settle("There is no failed turn to repeat.")
            return
        history.hide(failed)
        self._start(Prompt((), settle))

    def _start(self, job: Job | None = None) -> None:
        if job is not None:
            self._jobs.append(job)
        if not self._running:
            self._running = True
            self._post.idle.restart()
            self._services.children.start("worker", self._work())

    async def _work(self) -> None:
        had_turn = False
        try:
            while (job := self._next_job()) is not None:
                self._current = job
                had_turn = had_turn or isinstance(job, Prompt)
                await self._do(job)
                self._current = None
        finally:
            if self._current is not None:
                self._current.end(STOPPED_UNEXPECTEDLY)
            self._current = None
            self._running = False
            self._services.phase(Phase.IDLE)
            if had_turn:
                self._services.bus.emit(AgentSettled())
            self._post.idle.restart()

    async def _do(self, job: Job) -> None:
        if not isinstance(job, Prompt | NavigateJob):
            await self.prepare()
        match job:
            case Prompt():
                await self._prompt(job)
            case CompactJob():
                await self._compact(job)
            case IdleJob():
                await self._compact_idle(job)
            case ShakeJob() | HandoffJob():
                await self._work_by_hand(job)
            case NavigateJob():
                await self._navigate(job)
            case _:
                assert_never(job)

    def _next_job(self) -> Job | None:
        if self._jobs:
            return self._jobs.popleft()
        return self._backlog.next_prompt()

    async def _prompt(self, job: Prompt) -> None:
        """A turn, its maintenance, and what goes on from there by itself."""
        self._backlog.is_held = False
        following: Prompt | None = job
        while following is not None:
            turn = await self._run_turn(following)
            if turn is None:
                return
            self.last = turn
            self._services.history.saver.sync_soon()
            following = await self._after(turn)
            if following is not None and self._jobs:
                # A pass somebody asked for while this was being decided goes first.
                self._jobs.append(following)
                return

    async def _after(self, turn: Turn) -> Prompt | None:
        """Every way a turn can end comes through here: maintenance, then how it goes on."""
        stop: Stop | None = Stop()
        if turn.message is not None and turn.stop != "aborted":
            kind = None if turn.failure is None else turn.failure.kind
            stop = await self._consider(TurnFinished(turn.message, kind))
        then = Then.NOTHING if stop is None else stop.then
        if then is Then.RETRY and await pause(self._services):
            return Prompt()
        if then is Then.AUTO_CONTINUE and turn.stop == "ok" and not len(self._queue):
            append_continuation(self._services.history)
            return Prompt()
        if turn.failure is not None and turn.failure.kind in MENDED_KINDS:
            turn.report()
        if turn.stop in ("error", "aborted", "denied"):
            self._backlog.hold(turn, stop)
        return None

    async def _run_turn(self, job: Prompt) -> Turn | None:
        """The finished turn, however it ended; None when it never began."""
        started: list[Turn] = []
        task = self._services.children.start("turn", self._turn(job, started))
        self._turn_task = task
        try:
            await self._services.cancels.watch(task, CancelKind.TURN)
        finally:
            self._turn_task = None
        if started and started[0].accepted:
            return started[0]
        self._backlog.give_back(job, INTERRUPTED if task.cancelled() else STOPPED_UNEXPECTEDLY)
        return None

    async def _turn(self, job: Prompt, started: list[Turn]) -> None:
        try:
            gateway = self._services.gateway
            await gateway.prepare(gateway.require_model())
            await self.prepare()
        except MusepiError as error:
            self._services.bus.emit(Notice("error", str(error), "provider"))
            self._backlog.give_back(job, str(error))
            return
        meter = self._services.meter
        if not meter.is_exact_enough(meter.measure()):
            self._services.children.start("tokenizer", self._services.tokens.ready())
        await self._before(job)
        # Only now: the prompt may go on in another session.
        turn = await self._post.workplace.new_turn(self._queue)
        started.append(turn)
        await turn.run(
            job.messages, TurnHooks(lambda: job.end(None), self._maintainer.note_prompt, self._boundary)
        )

    async def _before(self, job: Prompt) -> None:
        """Maintenance before a prompt is sent to a conversation that goes on."""
        if job.messages and self._services.history.messages:
            newest = max(message.submission for message in job.messages)
            tokens = await asyncio.to_thread(_count, job.messages, self._services.tokens)
            await self._consider(PromptPending(tokens, newest))

    async def _boundary(self, message: AssistantMessage) -> None:
        """Maintenance between the results of a step and the next request."""
        await self._consider(ToolBoundary(message))

    async def _compact(self, job: CompactJob) -> None:
        stop = await self._consider(ManualRequested(job.mode, job.focus))
        self._backlog.is_held = False
        error = STOPPED_UNEXPECTEDLY if stop is None else stop.error
        job.settle(error, self._result_of_pass())
        resumes = job.interrupted and self._services.settings.compaction.auto_continue
        if error is None and resumes and not len(self._queue):
            append_continuation(self._services.history)
            self._jobs.append(Prompt())

    async def _compact_idle(self, job: IdleJob) -> None:
        stop = await self._consider(IdleElapsed())
        job.end(STOPPED_UNEXPECTEDLY if stop is None else stop.error, self._result_of_pass() or SKIPPED)

    async def _work_by_hand(self, job: ShakeJob | HandoffJob) -> None:
        maintainer, is_shake = self._maintainer, isinstance(job, ShakeJob)
        kind = CancelKind.COMPACTION if is_shake else CancelKind.HANDOFF
        try:
            with self._services.cancels.pushed(kind, maintainer.cancel):
                if isinstance(job, ShakeJob):
                    data = _shake_data(job.mode, await maintainer.shake(job.mode))
                else:
                    data = (await maintainer.hand_off(job.focus)).data()
        except MusepiError as error:
            job.settle(str(error))
        else:
            job.settle(None, data)

    async def _navigate(self, job: NavigateJob) -> None:
        waiting = len(self._queue)
        job.settle(*await navigate(self._services, job.intent))
        if len(self._queue) > waiting:
            self._backlog.is_held = False  # typed meanwhile: it is sent now, wherever the session stands

    def _result_of_pass(self) -> Mapping[str, Any] | None:
        """What the newest pass did, for who asked for it."""
        return result_json(self._maintainer.last_result)

    async def _consider(self, signal: Signal) -> Stop | None:
        """Maintenance in a guarded child; None when it failed unexpectedly."""
        child = self._services.children.start("maintenance", self._maintainer.consider(signal))
        await self._services.cancels.watch(child, CancelKind.COMPACTION, self._maintainer.cancel)
        self._services.meter.refresh(only_changes=True)
        return None if child.cancelled() else child.result()

    def _tell_queued(self) -> None:
        running = self._maintainer.running
        if running is not None:
            self._services.bus.emit(Notice("info", f"Queued until the {running} ends", "queue"))
        elif isinstance(self._current, NavigateJob):
            self._services.bus.emit(Notice("info", "Queued until the move is done", "queue"))


def _find_failed(history: History) -> tuple[str, ...] | None:
    """The entries of the turn that can be repeated: those of its failure, none where it never got an answer.
    None when there is no such turn."""
    failed = failed_ids(history)
    is_open = bool(history.messages) and isinstance(history.messages[-1], UserMessage | ToolResultMessage)
    return failed if failed or is_open else None


def _count(messages: Sequence[QueuedMessage], tokens: TokenService) -> int:
    """The tokens messages will take, estimated."""
    return sum(tokens.count(each.text) + IMAGE_TOKENS * len(each.images) for each in messages)


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
