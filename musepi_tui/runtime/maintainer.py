"""The only door to context maintenance: facts in, steps performed, until a Stop (architecture 5)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, assert_never

from musepi_tui.base.errors import (
    CompactionStoppedError,
    ErrorKind,
    MusepiError,
    NothingToCompactError,
    ProviderError,
)
from musepi_tui.base.resources import read_prompt, render_prompt
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import Facts, IdleGates, Outcome
from musepi_tui.maintenance.modes import refuse_mode, shuns_endpoint, wants_endpoint
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.policy import chain_after, next_step
from musepi_tui.maintenance.run import Run
from musepi_tui.maintenance.steps import (
    DeclareDeadEnd,
    Dedup,
    DropTurn,
    HideTurn,
    Notify,
    Pass,
    Promote,
    PruneStale,
    PruneThreshold,
    Refuse,
    Remind,
    Rescue,
    RestoreTurn,
    TurnStep,
    WorkStep,
)
from musepi_tui.maintenance.triggers import (
    ManualRequested,
    PromptPending,
    Reason,
    Signal,
    Stop,
    Strategy,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.runtime.announce import Announcement
from musepi_tui.runtime.compaction import CompactionPass, PassHooks, PassOrder
from musepi_tui.runtime.dead_end import DeadEnd
from musepi_tui.runtime.events import MaintenanceResult
from musepi_tui.runtime.failed_turn import FailedTurn
from musepi_tui.runtime.handles import Handle, Handles
from musepi_tui.runtime.handoff import HandedOff, HandoffDoor, HandoffOrder, hand_off
from musepi_tui.runtime.maintenance_facts import Standing, has_delivered, read_facts
from musepi_tui.runtime.notifier import Notifier
from musepi_tui.runtime.promotion import try_promote
from musepi_tui.runtime.pruner import Pruner, ShakeResult
from musepi_tui.runtime.queue import MessageQueue
from musepi_tui.runtime.relief import Relief
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.shaker import Shaker
from musepi_tui.runtime.staging import SummaryMemory
from musepi_tui.session.messages import StopReason
from musepi_tui.tools.types import ArtifactSink

REMINDER = "incomplete-reminder"
"""Custom type of the message that asks for smaller steps (compaction 2.4), and the name of its prompt."""

AUTO_FOCUS = "handoff-auto-focus"
"""The prompt that says what an automatic handoff dwells on (compaction 9.1)."""

_SUCCESS = frozenset({StopReason.STOP, StopReason.TOOL_USE})


@dataclass(slots=True)
class Ledger:
    """What is counted from one session into the one it was handed off to: a handoff must not lift a cap."""

    chain: Chain = field(default_factory=Chain)
    dead_end: DeadEnd = field(default_factory=DeadEnd)
    last_result: MaintenanceResult | None = None

    def note_by_hand(self) -> None:
        """Somebody has freed room: what earlier passes did and could not do says nothing any more."""
        self.dead_end.lift()
        self.chain = self.chain.after_handoff(None).after_verdict()


@dataclass(slots=True)
class _Course:
    """One course of maintenance. ``handle`` is that of a manual pass.

    ``services`` are those of the session that is open: after a handoff it is another one. ``refused`` is why
    a handoff is not to be had, until that was told.
    """

    signal: Signal
    services: Services
    announcement: Announcement
    failed_turn: FailedTurn
    handle: Handle | None
    refused: MusepiError | None = None

    def order(self, step: Pass) -> PassOrder:
        """A summary as this course wants it."""
        signal = self.signal
        if not isinstance(signal, ManualRequested):
            return PassOrder(step.reason, mid_turn=step.mid_turn)
        return PassOrder(step.reason, signal.focus, step.mid_turn, shuns_endpoint(signal.mode))

    def handed_off(self, result: MaintenanceResult, services: Services) -> None:
        """The course goes on in another session."""
        self.services = services
        self.announcement.handed_off(result, services)

    def take_refusal(self, *, is_replaced: bool) -> tuple[NoticeText, ...]:
        """What is to be told, once, of a handoff that is not to be had. That there is too little for one goes
        without saying where there is nothing to summarise either."""
        error, self.refused = self.refused, None
        if error is None or (isinstance(error, NothingToCompactError) and not is_replaced):
            return ()
        is_small = isinstance(error, NothingToCompactError)
        cause = notices.TOO_LITTLE_TO_HAND_OFF if is_small else str(error)
        return (notices.no_handoff(cause, is_replaced=is_replaced),)


class Maintainer:
    """Maintains the context of one session, one pass at a time.

    It assumes that nothing else changes the history while a pass runs; a pass notices when something did.
    ``queue`` is where messages of the person wait, ``idle_gates`` tells what the idle clock knows. ``ledger``
    goes on in the session a handoff opens; ``door`` leads there, None when nothing does.
    """

    def __init__(
        self,
        services: Services,
        artifacts: ArtifactSink,
        queue: MessageQueue,
        idle_gates: Callable[[], IdleGates],
    ) -> None:
        self._services = services
        self._artifacts = artifacts
        self._queue = queue
        self._idle_gates = idle_gates
        self._pruner = Pruner(services, artifacts)
        self._relief = Relief(services.history)
        self._shaker = Shaker(services, self._pruner, self._relief)
        self._memory = SummaryMemory()
        self._lock = asyncio.Lock()
        self._handles = Handles()
        self._notifier = Notifier(services.bus)
        self.ledger = Ledger()
        self.door: HandoffDoor | None = None

    @property
    def last_result(self) -> MaintenanceResult | None:
        """What the newest course of maintenance did, None when it ran no pass."""
        return self.ledger.last_result

    @property
    def running(self) -> str | None:
        """The word for the pass that runs, already while ``MaintenanceStarted`` is handled; None at rest."""
        return self._handles.word

    async def shake(self, mode: Literal["elide", "images"]) -> ShakeResult:
        """Frees room for a person; told as a pass, which stores no summary.

        Raises ``CompactionStoppedError`` when it was cancelled, ``MusepiError`` when it failed.
        """
        async with self._by_hand(notices.CANCELLED) as handle:
            result = await self._shaker.by_hand(mode, handle.seal)
        if result.regions or result.images:
            self.ledger.note_by_hand()
        return result

    async def hand_off(self, focus: str | None) -> HandedOff:
        """Goes on in a new session, for a person; told as a pass.

        Raises ``CompactionStoppedError`` when it was cancelled, ``MusepiError`` when it failed; nothing was
        changed then.
        """
        async with self._by_hand(notices.HANDOFF_CANCELLED) as handle:
            return await self._hand_off_by_hand(focus, handle)

    def cancel(self) -> bool:
        """Cancels what is running; history stays as it was. False when nothing can be cancelled."""
        return self._handles.cancel()

    def note_prompt(self, submission: int) -> None:
        """A message of the person was stored: what earlier ones have cost does not count any more.

        ``submission`` is its number, which tells whether it waited already when maintenance gave up.
        """
        self.ledger.chain = self.ledger.chain.after_prompt()
        self.ledger.dead_end.note_prompt(self._services, submission)

    async def consider(self, signal: Signal) -> Stop:
        """Does what the signal calls for, and says how the runtime goes on.

        A manual pass replaces a running automatic one; a second manual one is refused.
        """
        self._note_answer(signal)
        self.ledger.dead_end.begin(self._services)
        if not isinstance(signal, ManualRequested):
            async with self._lock:
                return await self._drive(signal, None)
        refusal = self._refusal(signal)
        if refusal is not None:
            return Stop(blocked=True, error=refusal)
        if wants_endpoint(signal.mode) and not self._services.settings.compaction.remote_endpoint:
            self._notifier.tell(notices.NO_ENDPOINT)
        try:
            async with self._by_hand(notices.CANCELLED) as handle:
                return await self._drive(signal, handle)
        except CompactionStoppedError as error:
            return Stop(blocked=True, error=str(error))

    @asynccontextmanager
    async def _by_hand(self, cancelled: str) -> AsyncGenerator[Handle]:
        """A pass somebody asked for, once those that run are over; they are cancelled.

        Raises ``CompactionStoppedError`` with the text ``cancelled`` when it is cancelled itself.
        """
        with self._handles.opened(Reason.MANUAL) as handle:
            self._handles.cancel(but=handle)
            try:
                async with self._lock:
                    yield handle
            except asyncio.CancelledError:
                if handle.was_ours():
                    raise CompactionStoppedError(cancelled) from None
                raise

    def _refusal(self, signal: ManualRequested) -> str | None:
        return notices.ALREADY_RUNNING if self._handles.has_manual else refuse_mode(signal.mode, signal.focus)

    def _note_answer(self, signal: Signal) -> None:
        if isinstance(signal, TurnFinished | ToolBoundary):
            message = signal.message
            succeeded = message.stop_reason in _SUCCESS
            # A cut-off answer is dropped and given again; if it counted, that could go on for ever.
            delivered = succeeded and has_delivered(message)
            self.ledger.chain = self.ledger.chain.after_answer(delivered=delivered, succeeded=succeeded)

    async def _drive(self, signal: Signal, handle: Handle | None) -> Stop:
        announcement = Announcement(self._services)
        failed_turn = FailedTurn(self._services.history)
        course = _Course(signal, self._services, announcement, failed_turn, handle)
        run = Run.start(signal)
        relieved_tokens = self._relief.tokens
        stop: Stop | None = None
        try:
            while True:
                facts = await self._facts(course, relieved_tokens)
                run, step = next_step(run, facts)
                self.ledger.chain = chain_after(run, step, facts)
                if isinstance(step, Stop):
                    stop = step
                    return step
                run = run.after(await self._perform(step, course, run.outcome))
        finally:
            self.ledger.last_result = announcement.result
            announcement.close(stop)
            self._services.tokens.estimate.trim(self._services.history.messages)

    async def _facts(self, course: _Course, relieved_tokens: int) -> Facts:
        standing = Standing(
            self.ledger.chain,
            self._idle_gates,
            dead_end=self.ledger.dead_end.holds(course.signal, course.services),
            queued_input=len(self._queue) > 0,
            relieved_tokens=relieved_tokens,
            can_hand_off=self.door is not None,
        )
        return await read_facts(course.services, course.signal, standing)

    async def _perform(self, step: WorkStep, course: _Course, before: Outcome) -> Outcome:
        """Does one step. A step that only tells something leaves the outcome as it was ``before``."""
        match step:
            case PruneStale() | PruneThreshold() | Dedup() | Rescue():
                outcome = await self._pruner.perform(step)
                if isinstance(step, Dedup | Rescue):  # pruning never hides what was billed (compaction 2.2)
                    self._relief.note(outcome.tokens_freed)
                return outcome
            case Pass():
                return await self._run_pass(step, course)
            case Notify(texts):
                self._notifier.tell_all(texts)
                return before
            case DeclareDeadEnd():
                self._declare_dead_end(step, course)
                return before
            case Refuse():
                course.announcement.refuse(step)
                return before
            case _:
                return _perform_turn_step(step, course)

    async def _run_pass(self, step: Pass, course: _Course) -> Outcome:
        """Runs one pass; whatever happens, the announcement knows how it ended."""
        if course.handle is None:
            with self._handles.opened(step.reason) as handle:
                return await self._run_guarded(step, course, handle)
        return await self._run_guarded(step, course, course.handle)

    async def _run_guarded(self, step: Pass, course: _Course, handle: Handle) -> Outcome:
        announcement = course.announcement
        announcement.start(step)
        try:
            return await self._produce(step, course, handle)
        except asyncio.CancelledError:
            if handle.was_ours():
                return self._gave_up(step, course, Outcome(ok=False, cancelled=True))
            raise
        except NothingToCompactError as error:
            self._notifier.tell_all(course.take_refusal(is_replaced=False))
            announcement.skipped()
            return Outcome(ok=False, error=error)
        except CompactionStoppedError as error:
            self._notifier.tell(NoticeText("info", str(error)))
            return self._gave_up(step, course, Outcome(ok=False, cancelled=True))
        except MusepiError as error:
            return self._gave_up(step, course, _failed(step, error, announcement))

    async def _produce(self, step: Pass, course: _Course, handle: Handle) -> Outcome:
        match step.strategy:
            case Strategy.SHAKE:
                by_hand = step.reason is Reason.MANUAL
                outcome = await self._shaker.within(course.announcement, handle.seal, by_hand=by_hand)
            case Strategy.HANDOFF:
                outcome = await self._hand_off(step, course, handle)
            case _:
                hooks = PassHooks(
                    self._notifier.tell,
                    handle.seal,
                    self._memory,
                    lambda: self._notifier.tell_all(course.take_refusal(is_replaced=True)),
                    course.announcement.done,
                )
                await CompactionPass(self._services, self._artifacts, course.order(step), hooks).run()
                self._services.tokens.estimate.retain(self._services.history.messages)
                outcome = Outcome(ok=True, changed=True)
        if outcome.changed:
            self.ledger.dead_end.lift()
        return outcome

    async def _hand_off(self, step: Pass, course: _Course, handle: Handle) -> Outcome:
        """A handoff nobody asked for; unchanged when it is not to be had."""
        order = HandoffOrder(step.reason, read_prompt(AUTO_FOCUS), handle.seal, course.handed_off)
        handle.is_handoff = True
        try:
            await hand_off(self._services, self.door, order)
        except MusepiError as error:
            handle.is_handoff = False
            if handle.is_sealed or _is_stop(error):
                raise
            course.refused = error
            return Outcome(ok=True)
        return Outcome(ok=True, changed=True)

    async def _hand_off_by_hand(self, focus: str | None, handle: Handle) -> HandedOff:
        announcement = Announcement(self._services)
        order = HandoffOrder(Reason.MANUAL, focus, handle.seal, announcement.handed_off)
        handle.is_handoff = True
        announcement.start(Pass(Strategy.HANDOFF, Reason.MANUAL))
        try:
            done = await hand_off(self._services, self.door, order)
        except NothingToCompactError:
            announcement.skipped()
            raise
        except CompactionStoppedError:
            raise  # it counts as aborted
        except MusepiError as error:
            announcement.failed(str(error))
            raise
        finally:
            announcement.close(None)
        self.ledger.note_by_hand()
        return done

    def _gave_up(self, step: Pass, course: _Course, outcome: Outcome) -> Outcome:
        """Keeps an automatic pass that failed or was stopped from coming again at every answer."""
        if step.reason not in (Reason.MANUAL, Reason.IDLE):
            self.ledger.dead_end.declare(course.services, self._queue.last_submission)
        return outcome

    def _declare_dead_end(self, step: DeclareDeadEnd, course: _Course) -> None:
        entry_id = course.announcement.entry_id
        if step.changed and entry_id is not None:
            data = {"targetId": entry_id, "warning": step.notice.text}
            self._services.history.append_state("custom", {"customType": "compaction.warning", "data": data})
        self._notifier.tell(step.notice)
        signal = course.signal
        about = signal.submission if isinstance(signal, PromptPending) else 0
        newest = self._queue.last_submission if step.for_waiting else about
        self.ledger.dead_end.declare(course.services, newest)


def _perform_turn_step(step: TurnStep, course: _Course) -> Outcome:
    changed = True
    match step:
        case HideTurn():
            changed = course.failed_turn.hide()
        case DropTurn():
            changed = course.failed_turn.drop()
        case RestoreTurn():
            changed = course.failed_turn.restore()
        case Promote(model_key):
            changed = try_promote(course.services, model_key, course.failed_turn.drop_hidden)
            return Outcome(ok=changed, changed=changed)
        case Remind(attempt, limit):
            text = render_prompt(REMINDER, attempt=str(attempt), limit=str(limit))
            course.services.history.append_custom(REMINDER, text, display=False)
        case _:
            assert_never(step)
    return Outcome(ok=True, changed=changed)


def _is_stop(error: MusepiError) -> bool:
    """Whether somebody wanted the pass to end."""
    is_abort = isinstance(error, ProviderError) and error.kind is ErrorKind.ABORTED
    return is_abort or isinstance(error, CompactionStoppedError)


def _failed(step: Pass, error: MusepiError, announcement: Announcement) -> Outcome:
    if _is_stop(error):
        return Outcome(ok=False, cancelled=True)
    announcement.failed(notices.failure_text(step.reason, str(error)))
    return Outcome(ok=False, error=error)
