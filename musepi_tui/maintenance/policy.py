"""The state machine of maintenance: what is next, given what is known. No I/O, no clock (architecture 5)."""

from collections.abc import Callable, Mapping

from musepi_tui.maintenance import classify, passes, recovery
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import Facts
from musepi_tui.maintenance.guards import handed_off_tokens, has_helped
from musepi_tui.maintenance.run import Advance, Run, Stage
from musepi_tui.maintenance.steps import DeclareDeadEnd, Pass, Step
from musepi_tui.maintenance.triggers import Stop, Strategy, Then, Trigger


def next_step(run: Run, facts: Facts) -> tuple[Run, Step]:
    """The next thing to do, and the run with that noted.

    The executor does it, tells the outcome with ``run.after`` and asks again, until a ``Stop`` comes.
    """
    step: Step | None = None
    while step is None:
        run, step = _STAGES[run.stage](run, facts)
    return run, step


def chain_after(run: Run, step: Step, facts: Facts) -> Chain:
    """The counters once ``next_step`` has answered ``run`` and ``step`` to these facts."""
    chain = facts.chain
    match step:
        case Pass() if run.trigger is Trigger.OVERFLOW:
            return chain.after_overflow_pass()
        case DeclareDeadEnd():
            return chain.after_verdict()
        case Stop():
            return _chain_after_stop(_with_what_passes_left(chain, run, step, facts), run, step)
        case _:
            return chain


def _with_what_passes_left(chain: Chain, run: Run, stop: Stop, facts: Facts) -> Chain:
    if run.passed and run.strategy is Strategy.HANDOFF:
        chain = chain.after_handoff(handed_off_tokens(run, facts))
    elif run.passed and run.trigger is Trigger.MANUAL:
        chain = chain.after_handoff(None)
    if run.passed and not stop.blocked:
        return chain.after_pass(facts.stored_tokens)
    return chain.after_verdict() if run.passed or has_helped(run, facts) else chain


def _chain_after_stop(chain: Chain, run: Run, stop: Stop) -> Chain:
    match stop.then:
        case Then.RETRY if run.promoted:
            return chain.after_promotion()
        case Then.RETRY if run.trigger is Trigger.INCOMPLETE:
            return chain.after_incomplete()
        case Then.AUTO_CONTINUE:
            return chain.after_auto_continue()
        case _:
            return chain


_STAGES: Mapping[Stage, Callable[[Run, Facts], Advance]] = {
    Stage.CLASSIFY: classify.classify,
    Stage.STALE: classify.prune_stale,
    Stage.PRUNE: classify.prune_threshold,
    Stage.REPORT: classify.report,
    Stage.MEASURE: classify.measure,
    Stage.HIDE: recovery.hide,
    Stage.PROMOTE: recovery.promote,
    Stage.PROMOTED: recovery.promoted,
    Stage.RECOVER: recovery.recover,
    Stage.OFF: recovery.stay_off,
    Stage.REFUSE: recovery.refuse,
    Stage.GIVE_UP: recovery.give_up,
    Stage.REMIND: recovery.remind,
    Stage.DROP: recovery.drop,
    Stage.DEDUP: recovery.dedup,
    Stage.DEDUPED: recovery.deduped,
    Stage.PASS: passes.run_pass,
    Stage.PASSED: passes.passed,
    Stage.UNDO: passes.undo,
    Stage.FAILED: passes.failed,
    Stage.PAYLOAD: passes.reject_payload,
    Stage.GUARD: passes.guard,
    Stage.RESCUE: passes.rescue,
    Stage.RESCUED: passes.rescued,
    Stage.USELESS: passes.declare_useless,
    Stage.DEAD_END: passes.declare_dead_end,
    Stage.END: passes.end,
    Stage.RETRY: passes.retry,
    Stage.DONE: passes.done,
    Stage.BLOCKED: passes.blocked,
}
"""What each stage does; a new one is a row here and a member of ``Stage``."""
