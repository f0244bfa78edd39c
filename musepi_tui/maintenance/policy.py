"""The state machine of maintenance: what is next, given what is known. No I/O, no clock (architecture 5)."""

from collections.abc import Callable, Mapping

from musepi_tui.maintenance import classify, passes, recovery
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import Facts
from musepi_tui.maintenance.run import Advance, Run, Stage
from musepi_tui.maintenance.steps import Pass, Step
from musepi_tui.maintenance.triggers import Stop, Then, Trigger


def next_step(run: Run, facts: Facts) -> tuple[Run, Step]:
    """The next thing to do, and the run with that noted.

    The executor does it, tells the outcome with ``run.after`` and asks again, until a ``Stop`` comes.
    """
    step: Step | None = None
    while step is None:
        run, step = _STAGES[run.stage](run, facts)
    return run, step


def chain_after(chain: Chain, run: Run, step: Step) -> Chain:
    """The counters once ``next_step`` has answered ``run`` and ``step``."""
    match step:
        case Pass() if run.trigger is Trigger.OVERFLOW:
            return chain.after_overflow_pass()
        case Stop(then=Then.RETRY) if run.promoted:
            return chain.after_promotion()
        case Stop(then=Then.RETRY) if run.trigger is Trigger.INCOMPLETE:
            return chain.after_incomplete()
        case Stop(then=Then.AUTO_CONTINUE):
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
    Stage.DEAD_END: passes.declare_dead_end,
    Stage.END: passes.end,
    Stage.RETRY: passes.retry,
    Stage.DONE: passes.done,
    Stage.BLOCKED: passes.blocked,
}
"""What each stage does; a new one is a row here and a member of ``Stage``."""
