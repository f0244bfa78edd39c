"""The state machine of maintenance: what is next, given what is known. No I/O, no clock (architecture 5)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias, assert_never

from musepi_tui.base.errors import NothingToCompactError
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.facts import Facts, Outcome
from musepi_tui.maintenance.guards import has_headroom, is_over_threshold, is_overhead_too_large
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.triggers import ManualRequested, Reason, Signal, Stop, Strategy, TurnFinished
from musepi_tui.session.messages import StopReason

_NO_USABLE_TURN = frozenset({StopReason.ERROR, StopReason.ABORTED})


class Stage(StrEnum):
    """Where a run is."""

    CLASSIFY = "classify"
    REPORT = "report"
    MEASURE = "measure"
    PASS = "pass"
    FAILED = "failed"
    GUARD = "guard"
    DEAD_END = "dead_end"
    END = "end"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Pass:
    """Run maintenance once."""

    strategy: Strategy
    reason: Reason
    will_retry: bool = False


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell the person."""

    notices: tuple[NoticeText, ...]


@dataclass(frozen=True, slots=True)
class DeclareDeadEnd:
    """Tell the person, and start no pass by itself until something changes.

    ``changed``: a pass was committed, whose divider gets the warning.
    """

    notice: NoticeText
    changed: bool


Step: TypeAlias = Pass | Notify | DeclareDeadEnd | Stop


@dataclass(frozen=True, slots=True)
class Run:
    """One course of maintenance, from a signal to its ``Stop``. ``outcome`` is that of the last step."""

    signal: Signal
    reason: Reason
    stage: Stage = Stage.CLASSIFY
    outcome: Outcome | None = None

    @classmethod
    def start(cls, signal: Signal) -> "Run":
        """The beginning of a run."""
        match signal:
            case ManualRequested():
                return cls(signal, Reason.MANUAL)
            case TurnFinished():
                return cls(signal, Reason.THRESHOLD)
            case _:
                assert_never(signal)

    def at(self, stage: Stage) -> "Run":
        """The same run in another stage."""
        return replace(self, stage=stage)

    def after(self, outcome: Outcome) -> "Run":
        """The same run once its step has ended so."""
        return replace(self, outcome=outcome)


def next_step(run: Run, facts: Facts) -> tuple[Run, Step]:
    """The next thing to do, and the run with that noted.

    The executor does it, tells the outcome with ``run.after`` and asks again, until a ``Stop`` comes.
    """
    step: Step | None = None
    while step is None:
        run, step = _STAGES[run.stage](run, facts)
    return run, step


_Advance: TypeAlias = tuple[Run, Step | None]


def _classify(run: Run, facts: Facts) -> _Advance:
    match run.signal:
        case ManualRequested():
            return run.at(Stage.PASS), None
        case TurnFinished(message=message):
            usable = message.stop_reason not in _NO_USABLE_TURN
            return run.at(Stage.REPORT if usable and facts.automatic else Stage.END), None
        case _:
            assert_never(run.signal)


def _report(run: Run, facts: Facts) -> _Advance:
    return run.at(Stage.MEASURE), Notify(facts.setting_notices) if facts.setting_notices else None


def _measure(run: Run, facts: Facts) -> _Advance:
    if facts.threshold is None or facts.window is None:
        return run.at(Stage.END), None
    if is_overhead_too_large(facts):
        notice = notices.overhead_too_large(facts.other_tokens, facts.threshold, facts.window)
        return run.at(Stage.END), Notify((notice,))
    due = is_over_threshold(facts) and not facts.dead_end
    return replace(run, stage=Stage.PASS if due else Stage.END, outcome=None), None


def _pass(run: Run, _: Facts) -> _Advance:
    outcome = run.outcome
    if outcome is None:
        return run, Pass(Strategy.SUMMARY, run.reason)
    if outcome.ok:
        return run.at(Stage.GUARD), None
    nothing_left = run.reason is not Reason.MANUAL and isinstance(outcome.error, NothingToCompactError)
    return run.at(Stage.DEAD_END if nothing_left else Stage.FAILED), None


def _failed(run: Run, _: Facts) -> _Advance:
    outcome = run.outcome
    if outcome is None or outcome.error is None or outcome.cancelled:
        return run, Stop(blocked=True, error=notices.CANCELLED)
    return run, Stop(blocked=True, error=notices.failure_text(run.reason, str(outcome.error)))


def _guard(run: Run, facts: Facts) -> _Advance:
    held = run.reason is Reason.MANUAL or has_headroom(facts)
    return run.at(Stage.END if held else Stage.DEAD_END), None


def _dead_end(run: Run, facts: Facts) -> _Advance:
    blocked = run.at(Stage.BLOCKED)
    if facts.threshold is None:
        return blocked, None
    if run.outcome is not None and run.outcome.ok:
        notice = notices.dead_end(facts.context_tokens, facts.threshold, facts.window)
        return blocked, DeclareDeadEnd(notice, changed=True)
    notice = notices.nothing_left(facts.context_tokens, facts.threshold)
    return blocked, DeclareDeadEnd(notice, changed=False)


def _end(run: Run, _: Facts) -> _Advance:
    return run, Stop()


def _blocked(run: Run, _: Facts) -> _Advance:
    return run, Stop(blocked=True)


_STAGES: Mapping[Stage, Callable[[Run, Facts], _Advance]] = {
    Stage.CLASSIFY: _classify,
    Stage.REPORT: _report,
    Stage.MEASURE: _measure,
    Stage.PASS: _pass,
    Stage.FAILED: _failed,
    Stage.GUARD: _guard,
    Stage.DEAD_END: _dead_end,
    Stage.END: _end,
    Stage.BLOCKED: _blocked,
}
"""What each stage does; a new one is a row here and a member of ``Stage``."""
