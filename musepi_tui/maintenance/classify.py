"""The first stages: what a signal is about, pruning, and whether a pass is due (compaction 2.2, 2.4, 2.6)."""

from dataclasses import replace
from typing import assert_never

from musepi_tui.base.errors import ErrorKind
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.facts import Facts, TurnFacts
from musepi_tui.maintenance.guards import (
    has_overflowed,
    is_byte_problem,
    is_exhausted,
    is_over_threshold,
    is_overhead_too_large,
    is_usage_backed,
    may_run_idle,
)
from musepi_tui.maintenance.run import Advance, Run, Stage
from musepi_tui.maintenance.steps import DropTurn, Notify, PruneStale, PruneThreshold
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Reason,
    ToolBoundary,
    Trigger,
    TurnFinished,
)
from musepi_tui.session.messages import StopReason

_UNUSABLE = frozenset({StopReason.ERROR, StopReason.ABORTED})


def classify(run: Run, facts: Facts) -> Advance:
    """Where the run begins."""
    run = replace(run, turn=facts.turn)
    match run.signal:
        case ManualRequested():
            return run.at(Stage.PASS), None
        case IdleElapsed():
            return run.at(Stage.PASS if may_run_idle(facts) else Stage.DONE), None
        case ToolBoundary(message=message):
            usable = message.stop_reason not in _UNUSABLE
            due = usable and facts.automatic and facts.mid_turn
            return run.at(Stage.STALE if due else Stage.DONE), None
        case TurnFinished(message=message):
            if message.stop_reason is StopReason.ABORTED:
                return run.at(Stage.DONE), None
            return _classify_turn(run, facts)
        case PromptPending():
            return _classify_turn(run, facts)
        case _:
            assert_never(run.signal)


def prune_stale(run: Run, facts: Facts) -> Advance:
    """Blanks stale results after every turn, whatever the settings say about passes."""
    failed = run.turn is not None and run.turn.stop_reason is StopReason.ERROR
    return run.at(Stage.PRUNE if facts.automatic and not failed else Stage.DONE), PruneStale()


def prune_threshold(run: Run, _: Facts) -> Advance:
    """Blanks old results."""
    return run.at(Stage.REPORT), PruneThreshold()


def report(run: Run, facts: Facts) -> Advance:
    """Tells of settings that are not honoured as written."""
    return run.at(Stage.MEASURE), Notify(facts.setting_notices) if facts.setting_notices else None


def measure(run: Run, facts: Facts) -> Advance:
    """Goes on where the context is over the threshold and a pass could change that."""
    if facts.threshold is None or facts.window is None:
        return run.at(Stage.DONE), None
    if is_overhead_too_large(facts):
        notice = notices.overhead_too_large(facts.other_tokens, facts.threshold, facts.window)
        return run.at(Stage.DONE), Notify((notice,))
    due = is_over_threshold(facts) and not facts.dead_end
    return run.at(Stage.PROMOTE if due else Stage.DONE), None


def _classify_turn(run: Run, facts: Facts) -> Advance:
    turn = run.turn
    if turn is None:
        return run.at(Stage.STALE), None
    if not turn.same_model or turn.stale:
        return _classify_foreign(run, turn)
    if turn.error_kind is ErrorKind.PAYLOAD:
        return _classify_payload(run, turn, facts)
    if turn.error_kind is ErrorKind.OVERFLOW:
        return replace(run, stage=Stage.HIDE, trigger=Trigger.OVERFLOW, reason=Reason.OVERFLOW), None
    if has_overflowed(turn, facts):
        stage = Stage.REPORT if facts.automatic else Stage.PROMOTE
        return replace(run, stage=stage, reason=Reason.OVERFLOW), None
    return _classify_success(run, turn, facts)


def _classify_foreign(run: Run, turn: TurnFacts) -> Advance:
    """Errors of another model are ignored, but for the overflow a promotion has just made room for."""
    overflowed = turn.error_kind is ErrorKind.OVERFLOW and not turn.stale
    if overflowed and turn.before_promotion and isinstance(run.signal, TurnFinished):
        moved = replace(run, stage=Stage.RETRY, trigger=Trigger.OVERFLOW, reason=Reason.OVERFLOW)
        return replace(moved, dropped=True, promoted=True), DropTurn()
    return run.at(Stage.STALE), None


def _classify_payload(run: Run, turn: TurnFacts, facts: Facts) -> Advance:
    usage_backed = is_usage_backed(turn, facts)
    about = replace(run, trigger=Trigger.OVERFLOW, reason=Reason.OVERFLOW, payload=usage_backed)
    if is_byte_problem(turn, facts):
        return about.at(Stage.PAYLOAD), None
    return about.at(Stage.HIDE), None


def _classify_success(run: Run, turn: TurnFacts, facts: Facts) -> Advance:
    """A cut-off answer is given again; before a prompt it counts as it is, for the prompt follows it."""
    if turn.stop_reason is not StopReason.LENGTH or not isinstance(run.signal, TurnFinished):
        return run.at(Stage.STALE), None
    if turn.delivered and not is_exhausted(turn, facts):
        return run.at(Stage.DONE), Notify((notices.answer_cut_off(turn.model),))
    return replace(run, stage=Stage.HIDE, trigger=Trigger.INCOMPLETE, reason=Reason.INCOMPLETE), None
