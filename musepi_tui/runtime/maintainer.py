"""The only door to context maintenance: facts in, steps performed, until a Stop (architecture 5)."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, assert_never

from musepi_tui.base.errors import (
    CompactionStoppedError,
    ErrorKind,
    MusepiError,
    NothingToCompactError,
    ProviderError,
)
from musepi_tui.base.resources import render_prompt
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import Facts, IdleGates, Outcome
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
    Reason,
    Signal,
    Stop,
    Strategy,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.runtime.announce import Announcement
from musepi_tui.runtime.compaction import CompactionPass, PassHooks, PassOrder
from musepi_tui.runtime.events import MaintenanceResult, Notice
from musepi_tui.runtime.failed_turn import FailedTurn
from musepi_tui.runtime.maintenance_facts import Standing, has_delivered, read_facts
from musepi_tui.runtime.promotion import try_promote
from musepi_tui.runtime.pruner import Pruner, ShakeResult
from musepi_tui.runtime.relief import Relief
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.staging import SummaryMemory
from musepi_tui.session.messages import StopReason, UserMessage
from musepi_tui.settings.schema import CompactionSettings
from musepi_tui.tools.types import ArtifactSink

REMINDER = "incomplete-reminder"
"""Custom type of the message that asks for smaller steps (compaction 2.4), and the name of its prompt."""

MANUAL_MODES = frozenset({"summary", "soft", "shake"})
"""Modes of ``/compact``; the first two mean a summary written by a model over the ordinary path."""

_SUCCESS = frozenset({StopReason.STOP, StopReason.TOOL_USE})


@dataclass(frozen=True, slots=True)
class _Situation:
    """What a dead end holds for: the newest user message, the model and the settings."""

    user_entry_id: str | None
    model: str | None
    settings: CompactionSettings


class _Handle:
    """Cancels the task that is maintaining, until the pass is sealed."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        self.requested = False
        self._task = asyncio.current_task()
        self._sealed = False

    def cancel(self) -> bool:
        """Whether there was something to cancel."""
        if self._sealed or self._task is None:
            return False
        if not self.requested:
            self.requested = True
            self._task.cancel()
        return True

    def seal(self) -> None:
        """From now on it is too late: the pass is being written."""
        self._sealed = True

    def was_ours(self) -> bool:
        """Whether a ``CancelledError`` came from here alone; then it is used up."""
        return self.requested and self._task is not None and self._task.uncancel() == 0


@dataclass(slots=True)
class _Course:
    """One course of maintenance. ``handle`` is that of a manual pass, ``focus`` what it shall heed."""

    announcement: Announcement
    failed_turn: FailedTurn
    handle: _Handle | None
    focus: str | None = None


class Maintainer:
    """Maintains the context of one session, one pass at a time.

    It assumes that nothing else changes the history while a pass runs; a pass notices when something did.
    ``last_result`` is what the newest course of maintenance did, None when it ran no pass.
    ``has_queued_input`` tells whether a message of the person waits, ``idle_gates`` what the idle clock
    knows.
    """

    def __init__(
        self,
        services: Services,
        artifacts: ArtifactSink,
        has_queued_input: Callable[[], bool],
        idle_gates: Callable[[], IdleGates],
    ) -> None:
        self._services = services
        self._artifacts = artifacts
        self._has_queued_input = has_queued_input
        self._idle_gates = idle_gates
        self._pruner = Pruner(services, artifacts)
        self._relief = Relief(services.history)
        self._memory = SummaryMemory()
        self._chain = Chain()
        self._lock = asyncio.Lock()
        self._handles: list[_Handle] = []
        self._told: set[str] = set()
        self._dead_end: _Situation | None = None
        self.last_result: MaintenanceResult | None = None

    @property
    def running(self) -> bool:
        """Whether a pass runs; true already while ``MaintenanceStarted`` is handled."""
        return bool(self._handles)

    async def shake(self, mode: Literal["elide", "images"]) -> ShakeResult:
        """Frees room for a person; told as a pass, which stores no summary.

        Raises ``CompactionStoppedError`` when it was cancelled, ``MusepiError`` when it failed.
        """
        with self._handle(Reason.MANUAL) as handle:
            try:
                async with self._lock:
                    return await self._shake_by_hand(mode, handle)
            except asyncio.CancelledError:
                if handle.was_ours():
                    raise CompactionStoppedError(notices.CANCELLED) from None
                raise

    def cancel(self) -> bool:
        """Cancels what is running; history stays as it was. False when nothing can be cancelled."""
        return any([handle.cancel() for handle in self._handles])

    def note_prompt(self) -> None:
        """A message of the person was stored: what earlier ones have cost does not count any more."""
        self._chain = Chain()

    async def consider(self, signal: Signal) -> Stop:
        """Does what the signal calls for, and says how the runtime goes on.

        A manual pass replaces a running automatic one; a second manual one is refused.
        """
        self._note_answer(signal)
        if not isinstance(signal, ManualRequested):
            async with self._lock:
                return await self._drive(signal, None)
        refusal = self._refusal(signal)
        if refusal is not None:
            return Stop(blocked=True, error=refusal)
        with self._handle(Reason.MANUAL) as handle:
            for other in self._handles:
                if other is not handle:
                    other.cancel()
            try:
                async with self._lock:
                    return await self._drive(signal, handle)
            except asyncio.CancelledError:
                if handle.was_ours():
                    return Stop(blocked=True, error=notices.CANCELLED)
                raise

    def _refusal(self, signal: ManualRequested) -> str | None:
        if any(handle.reason is Reason.MANUAL for handle in self._handles):
            return notices.ALREADY_RUNNING
        if signal.mode is None:
            return None
        if signal.mode.lower() not in MANUAL_MODES:
            return f'There is no compaction mode "{signal.mode}"; use {", ".join(sorted(MANUAL_MODES))}.'
        if signal.mode.lower() == Strategy.SHAKE and signal.focus:
            return "shake takes no focus: nothing is summarised. Use /compact shake, or /compact FOCUS."
        return None

    def _note_answer(self, signal: Signal) -> None:
        if isinstance(signal, TurnFinished | ToolBoundary):
            message = signal.message
            succeeded = message.stop_reason in _SUCCESS
            # A cut-off answer is dropped and given again; if it counted, that could go on for ever.
            delivered = succeeded and has_delivered(message)
            self._chain = self._chain.after_answer(delivered=delivered, succeeded=succeeded)

    async def _drive(self, signal: Signal, handle: _Handle | None) -> Stop:
        focus = signal.focus if isinstance(signal, ManualRequested) else None
        announcement = Announcement(self._services)
        course = _Course(announcement, FailedTurn(self._services.history), handle, focus)
        run = Run.start(signal)
        relieved_tokens = self._relief.tokens
        stop: Stop | None = None
        try:
            while True:
                run, step = next_step(run, await self._facts(signal, relieved_tokens))
                self._chain = chain_after(self._chain, run, step)
                if isinstance(step, Stop):
                    stop = step
                    return step
                run = run.after(await self._perform(step, course, run.outcome))
        finally:
            self.last_result = announcement.result
            announcement.close(stop)
            self._services.tokens.estimate.trim(self._services.history.messages)

    async def _facts(self, signal: Signal, relieved_tokens: int) -> Facts:
        standing = Standing(
            self._chain,
            self._idle_gates(),
            dead_end=self._dead_end is not None and self._dead_end == self._situation(),
            queued_input=self._has_queued_input(),
            relieved_tokens=relieved_tokens,
        )
        return await read_facts(self._services, signal, standing)

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
                self._tell_all(texts)
                return before
            case DeclareDeadEnd():
                self._declare_dead_end(step, course.announcement.entry_id)
                return before
            case Refuse():
                course.announcement.refuse(step)
                return before
            case _:
                return self._perform_turn_step(step, course)

    def _perform_turn_step(self, step: TurnStep, course: _Course) -> Outcome:
        changed = True
        match step:
            case HideTurn():
                changed = course.failed_turn.hide()
            case DropTurn():
                changed = course.failed_turn.drop()
            case RestoreTurn():
                changed = course.failed_turn.restore()
            case Promote(model_key):
                changed = try_promote(self._services, model_key, course.failed_turn.drop_hidden)
                return Outcome(ok=changed, changed=changed)
            case Remind(attempt, limit):
                text = render_prompt(REMINDER, attempt=str(attempt), limit=str(limit))
                self._services.history.append_custom(REMINDER, text, display=False)
            case _:
                assert_never(step)
        return Outcome(ok=True, changed=changed)

    async def _run_pass(self, step: Pass, course: _Course) -> Outcome:
        """Runs one pass; whatever happens, the announcement knows how it ended."""
        if course.handle is None:
            with self._handle(step.reason) as handle:
                return await self._run_guarded(step, course, handle)
        return await self._run_guarded(step, course, course.handle)

    async def _run_guarded(self, step: Pass, course: _Course, handle: _Handle) -> Outcome:
        announcement = course.announcement
        announcement.start(step)
        try:
            if step.strategy is Strategy.SHAKE:
                return await self._shake(announcement, handle, by_hand=step.reason is Reason.MANUAL)
            result = await self._compact(step, course, handle)
        except asyncio.CancelledError:
            if handle.was_ours():
                return self._gave_up(step, Outcome(ok=False, cancelled=True))
            raise
        except NothingToCompactError as error:
            announcement.skipped()
            return Outcome(ok=False, error=error)
        except CompactionStoppedError as error:
            self._tell(NoticeText("info", str(error)))
            return self._gave_up(step, Outcome(ok=False, cancelled=True))
        except MusepiError as error:
            return self._gave_up(step, self._failed(step, error, announcement))
        announcement.done(result)
        self._services.tokens.estimate.retain(self._services.history.messages)
        self._dead_end = None
        return Outcome(ok=True, changed=True)

    async def _compact(self, step: Pass, course: _Course, handle: _Handle) -> MaintenanceResult:
        order = PassOrder(step.reason, course.focus, step.mid_turn)
        hooks = PassHooks(self._tell, handle.seal, self._memory)
        return await CompactionPass(self._services, self._artifacts, order, hooks).run()

    async def _shake_by_hand(self, mode: Literal["elide", "images"], handle: _Handle) -> ShakeResult:
        announcement = Announcement(self._services)
        announcement.start(Pass(Strategy.SHAKE, Reason.MANUAL))
        begun = self._services.clock.monotonic(), self._services.meter.measure().decision
        free = self._pruner.shake_all if mode == "elide" else self._pruner.drop_images
        try:
            result = await free(handle.seal)
            self._relief.note(result.tokens_freed)
            self._note_shake(announcement, begun, changed=bool(result.regions or result.images))
        except MusepiError as error:
            announcement.failed(str(error))
            raise
        finally:
            announcement.close(None)
        return result

    async def _shake(self, announcement: Announcement, handle: _Handle, *, by_hand: bool) -> Outcome:
        begun = self._services.clock.monotonic(), self._services.meter.measure().decision
        outcome = await self._pruner.shake(handle.seal, by_hand=by_hand)
        self._relief.note(outcome.tokens_freed)
        self._note_shake(announcement, begun, changed=outcome.changed)
        return outcome

    def _note_shake(self, announcement: Announcement, begun: tuple[float, int], *, changed: bool) -> None:
        """``begun``: when it began (monotonic seconds), and the context then (tokens)."""
        if not changed:
            announcement.skipped()
            return
        started_s, before = begun
        elapsed_ms = round((self._services.clock.monotonic() - started_s) * 1000)
        after = self._services.meter.measure().stored
        announcement.done(
            MaintenanceResult(None, None, tokens_before=before, tokens_after=after, duration_ms=elapsed_ms)
        )
        self._dead_end = None

    def _failed(self, step: Pass, error: MusepiError, announcement: Announcement) -> Outcome:
        if isinstance(error, ProviderError) and error.kind is ErrorKind.ABORTED:
            return Outcome(ok=False, cancelled=True)
        announcement.failed(notices.failure_text(step.reason, str(error)))
        return Outcome(ok=False, error=error)

    def _gave_up(self, step: Pass, outcome: Outcome) -> Outcome:
        """Keeps a threshold pass that failed or was stopped from coming again at every answer."""
        if step.reason is Reason.THRESHOLD:
            self._dead_end = self._situation()
        return outcome

    @contextmanager
    def _handle(self, reason: Reason) -> Generator[_Handle]:
        """A cancel handle for the block."""
        handle = _Handle(reason)
        self._handles.append(handle)
        try:
            yield handle
        finally:
            self._handles.remove(handle)

    def _declare_dead_end(self, step: DeclareDeadEnd, entry_id: str | None) -> None:
        if step.changed and entry_id is not None:
            data = {"targetId": entry_id, "warning": step.notice.text}
            self._services.history.append_state("custom", {"customType": "compaction.warning", "data": data})
        self._tell(step.notice)
        self._dead_end = self._situation()

    def _situation(self) -> _Situation:
        services = self._services
        pairs = zip(services.history.message_entry_ids, services.history.messages, strict=True)
        user_ids = [entry_id for entry_id, message in pairs if isinstance(message, UserMessage)]
        model = services.gateway.model
        return _Situation(
            user_ids[-1] if user_ids else None,
            None if model is None else model.key,
            services.settings.compaction,
        )

    def _tell_all(self, texts: Sequence[NoticeText]) -> None:
        for text in texts:
            self._tell(text)

    def _tell(self, text: NoticeText) -> None:
        if text.once is not None:
            if text.once in self._told:
                return
            self._told.add(text.once)
        self._services.bus.emit(Notice(text.level, text.text, "compaction"))
