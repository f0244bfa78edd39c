"""The stages before a pass: hiding a failed turn, a larger model, caps, dropping it (compaction 2.3, 2.4)."""

from dataclasses import replace

from musepi_tui.maintenance import notices
from musepi_tui.maintenance.chain import MAX_INCOMPLETE
from musepi_tui.maintenance.facts import Facts, TurnFacts
from musepi_tui.maintenance.guards import has_not_helped, is_exhausted, residual_tokens
from musepi_tui.maintenance.run import Advance, Run, Stage
from musepi_tui.maintenance.steps import (
    Dedup,
    DropTurn,
    HideTurn,
    Notify,
    Promote,
    Refuse,
    Remind,
    RestoreTurn,
)
from musepi_tui.maintenance.triggers import Reason, Trigger


def hide(run: Run, facts: Facts) -> Advance:
    """Takes the failed turn out of the live messages, where something can follow."""
    if facts.promotion_target is None and not facts.automatic:
        return run.at(Stage.OFF), None
    return replace(run, stage=Stage.PROMOTE, hidden=True), HideTurn()


def promote(run: Run, facts: Facts) -> Advance:
    """Asks for the larger model, where there is one."""
    if facts.promotion_target is None:
        return run.at(Stage.RECOVER), None
    return run.at(Stage.PROMOTED), Promote(facts.promotion_target)


def promoted(run: Run, _: Facts) -> Advance:
    """With the larger model no pass is needed."""
    if not run.outcome.ok:
        return run.at(Stage.RECOVER), None
    if not run.retries:
        return run.at(Stage.DONE), None
    return replace(run, stage=Stage.RETRY, promoted=True, dropped=True), DropTurn()


def recover(run: Run, facts: Facts) -> Advance:
    """Whether a pass may follow, and what else where it may not."""
    if not facts.automatic:
        return run.at(Stage.OFF), None
    if run.trigger is Trigger.OVERFLOW:
        return run.at(Stage.REFUSE if facts.chain.overflow_recovered else Stage.DROP), None
    if run.trigger is Trigger.INCOMPLETE and run.turn is not None:
        return _recover_incomplete(run, run.turn, facts)
    return run.at(Stage.USELESS if has_not_helped(run, facts) else Stage.DEDUP), None


def stay_off(run: Run, _: Facts) -> Advance:
    """Leaves the turn as it is: automatic passes are switched off."""
    if run.hidden:
        return replace(run, hidden=False), RestoreTurn()
    if run.payload is not None:
        return run.at(Stage.PAYLOAD), None
    model = "" if run.turn is None else run.turn.model
    match run.reason:
        case Reason.OVERFLOW if run.retries:
            return run.at(Stage.DONE), Notify((notices.overflow_while_off(model),))
        case Reason.INCOMPLETE:
            return run.at(Stage.DONE), Notify((notices.cut_off_while_off(model),))
        case _:
            return run.at(Stage.DONE), None


def refuse(run: Run, _: Facts) -> Advance:
    """A second overflow of the chain does not compact again (compaction C16)."""
    if run.payload is not None:
        return run.at(Stage.PAYLOAD), None
    text = notices.failure_text(run.reason, notices.ALREADY_RECOVERED)
    return replace(run, stage=Stage.BLOCKED, error=text), Refuse(run.reason, text)


def give_up(run: Run, _: Facts) -> Advance:
    """Tells that the model only ever runs into its output limit."""
    model = "" if run.turn is None else run.turn.model
    return run.at(Stage.BLOCKED), Notify((notices.incomplete_given_up(model, MAX_INCOMPLETE),))


def remind(run: Run, facts: Facts) -> Advance:
    """Tells the model to act in smaller steps, where it spent output on reasoning."""
    spent = run.turn is not None and run.turn.output_tokens > 0
    reminder = Remind(facts.chain.incomplete_attempts + 1, MAX_INCOMPLETE)
    return run.at(Stage.RETRY), reminder if spent else None


def drop(run: Run, _: Facts) -> Advance:
    """Takes the failed turn off the branch, before edits are stored behind it."""
    return replace(run, stage=Stage.DEDUP, dropped=True), DropTurn()


def dedup(run: Run, _: Facts) -> Advance:
    """Offloads repeated results."""
    return run.at(Stage.DEDUPED), Dedup()


def deduped(run: Run, facts: Facts) -> Advance:
    """Stops where that was enough for the threshold; no pass is announced then."""
    changed = run.outcome.changed
    run = replace(run, rewritten=changed)
    threshold = facts.threshold
    enough = threshold is not None and residual_tokens(run, facts) <= threshold.tokens
    if changed and enough and run.reason is Reason.THRESHOLD:
        return run.at(Stage.DONE), None
    return run.at(Stage.PASS), None


def _recover_incomplete(run: Run, turn: TurnFacts, facts: Facts) -> Advance:
    if facts.chain.incomplete_attempts >= MAX_INCOMPLETE:
        return replace(run, stage=Stage.GIVE_UP, dropped=True), DropTurn()
    if not is_exhausted(turn, facts):
        return replace(run, stage=Stage.REMIND, dropped=True), DropTurn()
    return run.at(Stage.DROP), None
