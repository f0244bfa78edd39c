"""The stages of a pass and after it: failure, progress guards, rescue, continuation (compaction 2.5-2.9)."""

from dataclasses import replace

from musepi_tui.base.errors import NothingToCompactError
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.chain import MAX_AUTO_CONTINUES
from musepi_tui.maintenance.facts import Facts
from musepi_tui.maintenance.guards import (
    choose_strategy,
    excess_tokens,
    handed_off_tokens,
    has_headroom,
    is_handoff_useless,
    limit_tokens,
    residual_tokens,
)
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.run import Advance, Run, Stage
from musepi_tui.maintenance.steps import DeclareDeadEnd, HideTurn, Notify, Pass, Rescue, RestoreTurn
from musepi_tui.maintenance.triggers import Reason, Stop, Strategy, Then, Tier, Trigger, TurnFinished
from musepi_tui.session.messages import StopReason


def run_pass(run: Run, facts: Facts) -> Advance:
    """Asks for the pass."""
    strategy = choose_strategy(run, facts)
    mid_turn = run.trigger is Trigger.MID_TURN
    step = Pass(strategy, run.reason, will_retry=run.will_retry, mid_turn=mid_turn)
    return replace(run, stage=Stage.PASSED, strategy=strategy), step


def passed(run: Run, facts: Facts) -> Advance:
    """Whether the pass failed, achieved too little, or has to be measured.

    After a handoff the facts are those of the new session.
    """
    outcome = run.outcome
    if not outcome.ok:
        return replace(run, stage=Stage.UNDO, failure=outcome), None
    run = replace(run, passed=run.passed or outcome.changed)
    if run.strategy is Strategy.HANDOFF:
        return run.at(Stage.GUARD if outcome.changed else Stage.PASS), None
    if run.strategy is Strategy.SHAKE:
        return _shaken(replace(run, rewritten=run.rewritten or outcome.changed), facts)
    return replace(run, stage=Stage.GUARD, committed=True), None


def _shaken(run: Run, facts: Facts) -> Advance:
    changed = run.outcome.changed
    if run.trigger is Trigger.MANUAL and not changed:
        return replace(run, stage=Stage.BLOCKED, error=notices.NOTHING_TO_SHAKE), None
    if run.trigger in (Trigger.IDLE, Trigger.MANUAL):
        return run.at(Stage.DONE), None
    return run.at(Stage.GUARD if changed and has_headroom(run, facts) else Stage.PASS), None


def undo(run: Run, _: Facts) -> Advance:
    """Puts a dropped turn back where the pass changed nothing (compaction 2.3, step 7).

    A failed turn without any text stays dropped: its error has been shown, and nothing of it is lost. After a
    cancel everything is put back.
    """
    cancelled = run.failure is not None and run.failure.cancelled
    turn = run.turn
    empty_error = turn is not None and turn.stop_reason is StopReason.ERROR and not turn.delivered
    if run.dropped and (cancelled or not (run.rewritten or empty_error)):
        return replace(run, stage=Stage.FAILED, dropped=False, hidden=False), RestoreTurn()
    return run.at(Stage.FAILED), None


def failed(run: Run, _: Facts) -> Advance:
    """How a run ends whose pass changed nothing."""
    failure = run.failure
    if failure is None or failure.cancelled or failure.error is None:
        return replace(run, stage=Stage.BLOCKED, error=notices.cancelled_text(run.reason)), None
    if run.payload is not None and not run.rewritten:
        return run.at(Stage.PAYLOAD), None
    if isinstance(failure.error, NothingToCompactError) and run.trigger is not Trigger.MANUAL:
        return run.at(Stage.DONE if run.trigger is Trigger.IDLE else Stage.DEAD_END), None
    text = notices.failure_text(run.reason, str(failure.error))
    return replace(run, stage=Stage.BLOCKED, error=text), None


def reject_payload(run: Run, facts: Facts) -> Advance:
    """Leaves the rejected turn out of the live messages and tells what to do (compaction 2.6)."""
    if not run.hidden and not run.dropped:
        return replace(run, hidden=True), HideTurn()
    notice = notices.payload_rejected(facts.window, is_token_problem=bool(run.payload))
    return run.at(Stage.BLOCKED), Notify((notice,))


def guard(run: Run, facts: Facts) -> Advance:
    """Whether the context is small enough for what comes next.

    Where the session a handoff began is too large there is nothing to rescue: it holds the document alone.
    """
    if excess_tokens(run, facts):
        return run.at(Stage.DEAD_END if run.strategy is Strategy.HANDOFF else Stage.RESCUE), None
    if run.tier is None:
        return run.at(Stage.END), None
    return run.at(Stage.END), Notify((notices.rescued(run.tier, residual_tokens(run, facts)),))


def rescue(run: Run, facts: Facts) -> Advance:
    """Asks for the next tier; after the last one nothing is left to try."""
    if run.tier is Tier.TRUNCATE_TEXTS:
        return run.at(Stage.DEAD_END), None
    tier = Tier.SHAKE if run.tier is None else Tier(run.tier + 1)
    return replace(run, stage=Stage.RESCUED, tier=tier), Rescue(tier, excess_tokens(run, facts))


def rescued(run: Run, _: Facts) -> Advance:
    """Measures again where the tier changed something."""
    if run.outcome.cancelled:
        return replace(run, stage=Stage.BLOCKED, error=notices.cancelled_text(run.reason)), None
    return run.at(Stage.GUARD if run.outcome.changed else Stage.RESCUE), None


def declare_useless(run: Run, facts: Facts) -> Advance:
    """Tells that the newest pass did not make the bill smaller, so that the next one would not either."""
    start = 0 if facts.threshold is None else facts.threshold.tokens
    figures = notices.BilledFigures(facts.context_tokens, facts.stored_tokens, start, facts.window)
    return run.at(Stage.BLOCKED), DeclareDeadEnd(notices.bill_stays(figures), changed=False, for_waiting=True)


def declare_dead_end(run: Run, facts: Facts) -> Advance:
    """Tells the numbers; nothing goes on by itself."""
    return run.at(Stage.BLOCKED), DeclareDeadEnd(_dead_end_notice(run, facts), changed=run.committed)


def end(run: Run, facts: Facts) -> Advance:
    """Chooses the continuation after a pass that freed enough."""
    if run.retries:
        return run.at(Stage.RETRY), None
    after_turn = isinstance(run.signal, TurnFinished) and run.reason is Reason.THRESHOLD
    if not after_turn or not facts.auto_continue or facts.queued_input:
        return run.at(Stage.DONE), None
    if facts.chain.auto_continues >= MAX_AUTO_CONTINUES:
        return run.at(Stage.DONE), Notify((notices.continued_enough(MAX_AUTO_CONTINUES),))
    return run, Stop(Then.AUTO_CONTINUE, reason=run.reason)


def retry(run: Run, _: Facts) -> Advance:
    """Has the dropped turn asked for again; before a prompt, that prompt follows anyway."""
    return run, Stop(Then.RETRY if run.will_retry else Then.NOTHING, reason=run.reason)


def done(run: Run, _: Facts) -> Advance:
    """Nothing more to do."""
    return run, Stop(reason=run.reason)


def blocked(run: Run, _: Facts) -> Advance:
    """Nothing more to do, and nothing may go on by itself."""
    return run, Stop(blocked=True, error=run.error, reason=run.reason)


def _dead_end_notice(run: Run, facts: Facts) -> NoticeText:
    tokens, limit = residual_tokens(run, facts), limit_tokens(run, facts)
    if run.strategy is Strategy.HANDOFF and run.passed and limit is not None:
        figures = notices.HandoffFigures(handed_off_tokens(run, facts), tokens, limit, facts.window)
        is_useless = is_handoff_useless(figures.begun_with, facts)
        return notices.handoff_without_room(figures, is_useless=is_useless)
    if run.committed and limit is not None:
        return notices.dead_end(tokens, limit, facts.window)
    start = None if facts.threshold is None else facts.threshold.tokens
    return notices.nothing_left(tokens, start, facts.window)
