"""The only door to context maintenance: facts in, steps performed, until a Stop (architecture 5)."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import assert_never

from musepi_tui.base.errors import ErrorKind, MusepiError, NothingToCompactError, ProviderError
from musepi_tui.context.threshold import (
    Threshold,
    ThresholdSetting,
    parse_threshold,
    resolve_threshold,
)
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.facts import Facts, Outcome
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.policy import DeclareDeadEnd, Notify, Pass, Run, next_step
from musepi_tui.maintenance.triggers import ManualRequested, Reason, Signal, Stop, Strategy
from musepi_tui.runtime.compaction import CompactionPass, PassHooks
from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceResult, MaintenanceStarted, Notice, Phase
from musepi_tui.runtime.services import Services
from musepi_tui.session.messages import UserMessage
from musepi_tui.settings.schema import CompactionSettings
from musepi_tui.tools.types import ArtifactSink

MANUAL_MODES = frozenset({"summary", "soft"})
"""Modes of ``/compact`` this version has; both mean a summary written by a model over the ordinary path."""


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


class _Announcement:
    """The start and the end of a pass on the bus: exactly one end for each start."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._end: MaintenanceEnded | None = None
        self.entry_id: str | None = None

    def start(self, step: Pass) -> None:
        """Tells that the pass begins. Until something better is known it counts as aborted."""
        reason, action = step.reason.value, step.strategy.value
        self._end = MaintenanceEnded(reason, action, aborted=True, will_retry=step.will_retry)
        self._services.phase(Phase.MAINTAINING)
        self._services.bus.emit(MaintenanceStarted(reason, action))

    def done(self, result: MaintenanceResult) -> None:
        """The pass was committed."""
        self.entry_id = result.entry_id
        self._finish(result=result)

    def skipped(self) -> None:
        """There was nothing to do."""
        self._finish(skipped=True)

    def failed(self, text: str) -> None:
        """The pass failed."""
        self._finish(error=text)

    def close(self) -> None:
        """Tells how it ended, if it began."""
        if self._end is None:
            return
        end, self._end = self._end, None
        self._services.bus.emit(end)

    def _finish(
        self, *, result: MaintenanceResult | None = None, skipped: bool = False, error: str | None = None
    ) -> None:
        if self._end is not None:
            self._end = replace(self._end, aborted=False, result=result, skipped=skipped, error=error)


class Maintainer:
    """Maintains the context of one session, one pass at a time.

    It assumes that nothing else changes the history while a pass runs; a pass notices when something did.
    """

    def __init__(self, services: Services, artifacts: ArtifactSink) -> None:
        self._services = services
        self._artifacts = artifacts
        self._lock = asyncio.Lock()
        self._handles: list[_Handle] = []
        self._told: set[str] = set()
        self._dead_end: _Situation | None = None

    @property
    def running(self) -> bool:
        """Whether a pass runs; true already while ``MaintenanceStarted`` is handled."""
        return bool(self._handles)

    def cancel(self) -> bool:
        """Cancels what is running; history stays as it was. False when nothing can be cancelled."""
        return any([handle.cancel() for handle in self._handles])

    async def consider(self, signal: Signal) -> Stop:
        """Does what the signal calls for, and says how the runtime goes on.

        A manual pass replaces a running automatic one; a second manual one is refused.
        """
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
        if signal.mode is not None and signal.mode.lower() not in MANUAL_MODES:
            return f'There is no compaction mode "{signal.mode}"; use {" or ".join(sorted(MANUAL_MODES))}.'
        return None

    async def _drive(self, signal: Signal, handle: _Handle | None) -> Stop:
        announcement = _Announcement(self._services)
        run = Run.start(signal)
        try:
            while True:
                run, step = next_step(run, await self._facts())
                match step:
                    case Stop():
                        return step
                    case Notify():
                        self._tell_all(step.notices)
                        outcome = Outcome(ok=True)
                    case DeclareDeadEnd():
                        self._declare_dead_end(step, announcement.entry_id)
                        outcome = run.outcome or Outcome(ok=True)
                    case Pass():
                        outcome = await self._perform(step, run, handle, announcement)
                    case _:
                        assert_never(step)
                run = run.after(outcome)
        finally:
            announcement.close()

    async def _facts(self) -> Facts:
        services = self._services
        if not services.meter.is_exact_enough():
            await services.tokens.ready()
        measured = await asyncio.to_thread(services.meter.measure)
        compaction = services.settings.compaction
        window = services.meter.window
        setting = parse_threshold(compaction.threshold)
        threshold = None if window is None else resolve_threshold(setting, window, compaction.reserve_tokens)
        return Facts(
            context_tokens=measured.decision,
            other_tokens=services.tokens.non_message_tokens(),
            window=window,
            threshold=threshold,
            automatic=compaction.enabled and compaction.strategy != "off",
            dead_end=self._dead_end is not None and self._dead_end == self._situation(),
            setting_notices=_setting_notices(compaction.strategy, setting, threshold, window),
        )

    async def _perform(
        self, step: Pass, run: Run, handle: _Handle | None, announcement: _Announcement
    ) -> Outcome:
        """Runs one pass; whatever happens, the announcement knows how it ended."""
        if handle is None:
            with self._handle(step.reason) as own:
                return await self._perform(step, run, own, announcement)
        focus = run.signal.focus if isinstance(run.signal, ManualRequested) else None
        hooks = PassHooks(self._tell, handle.seal)
        announcement.start(step)
        try:
            result = await CompactionPass(self._services, self._artifacts, step.reason, focus, hooks).run()
        except asyncio.CancelledError:
            if handle.was_ours():
                return Outcome(ok=False, cancelled=True)
            raise
        except NothingToCompactError as error:
            announcement.skipped()
            return Outcome(ok=False, error=error)
        except MusepiError as error:
            return self._failed(step, error, announcement)
        announcement.done(result)
        self._services.tokens.estimate.retain(self._services.history.messages)
        self._dead_end = None
        return Outcome(ok=True)

    def _failed(self, step: Pass, error: MusepiError, announcement: _Announcement) -> Outcome:
        if isinstance(error, ProviderError) and error.kind is ErrorKind.ABORTED:
            return Outcome(ok=False, cancelled=True)
        announcement.failed(notices.failure_text(step.reason, str(error)))
        return Outcome(ok=False, error=error)

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


def _setting_notices(
    strategy: str, setting: ThresholdSetting, threshold: Threshold | None, window: int | None
) -> tuple[NoticeText, ...]:
    """What the settings ask for and do not get."""
    found: list[NoticeText] = []
    if threshold is not None and window is not None:
        if setting.invalid_raw is not None:
            found.append(notices.invalid_threshold(setting, threshold))
        if threshold.clamped:
            found.append(notices.clamped_threshold(setting, threshold, window))
    if strategy not in ("off", *Strategy):
        found.append(notices.unavailable_strategy(strategy, Strategy.SUMMARY.value))
    return tuple(found)
