"""Runs of the maintenance policy without a session: facts in, steps out.

``Scene`` answers each step as an executor would: what a pass or a rescue leaves, whether a promotion works.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from musepi_tui.base.errors import MaintenanceError, NothingToCompactError
from musepi_tui.context.threshold import Threshold, ThresholdKind
from musepi_tui.maintenance.facts import Facts, Outcome, TurnFacts
from musepi_tui.maintenance.policy import next_step
from musepi_tui.maintenance.run import Run
from musepi_tui.maintenance.steps import Dedup, Pass, Promote, Rescue, Step
from musepi_tui.maintenance.triggers import Signal, Stop
from musepi_tui.session.messages import StopReason

WINDOW = 200_000
THRESHOLD = Threshold(170_000, clamped=False, kind=ThresholdKind.AUTO)
DONE = Outcome(ok=True)
COMMITTED = Outcome(ok=True, changed=True)
FAILED = Outcome(ok=False, error=MaintenanceError("boom"))
NOTHING = Outcome(ok=False, error=NothingToCompactError("Already compacted"))
CANCELLED = Outcome(ok=False, cancelled=True)
REFUSED = Outcome(ok=False)
FINISHED = TurnFacts(StopReason.STOP, model="test/model", used_tokens=180_000, prompt_tokens=179_000)
MOST_STEPS = 14
"""Steps a run may take: three prunes, a promotion, two passes, three tiers, two turns moved, two notices, and
the ``Stop``; never all of them in one run."""


def facts(context_tokens: int = 180_000, **fields: object) -> Facts:
    """A context over the default threshold of a 200,000-token window."""
    base = Facts(context_tokens, context_tokens, 12_000, WINDOW, THRESHOLD, 30_000, turn=FINISHED)
    return replace(base, **fields)  # pyright: ignore[reportArgumentType]  names are checked by replace


@dataclass
class Scene:
    """What becomes of the steps. ``left`` is the context after each thing that frees, in order."""

    before: Facts
    passes: Sequence[Outcome] = (COMMITTED,)
    left: Sequence[int] = (24_000,)
    promotes: bool = False
    dedup: Outcome = DONE
    rescues: Mapping[int, Outcome] = field(default_factory=dict[int, Outcome])

    def run(self, signal: Signal) -> list[Step]:
        """The steps of the whole run."""
        run, now, steps = Run.start(signal), self.before, list[Step]()
        passes, left = list(self.passes), list(self.left)
        while len(steps) < 2 * MOST_STEPS:
            run, step = next_step(run, now)
            steps.append(step)
            outcome = DONE
            match step:
                case Stop():
                    return steps
                case Promote():
                    outcome = DONE if self.promotes else REFUSED
                case Dedup():
                    outcome = self.dedup
                    now = replace(now, stored_tokens=max(0, now.stored_tokens - outcome.tokens_freed))
                case Pass():
                    outcome = passes.pop(0) if passes else COMMITTED
                case Rescue(tier=tier):
                    outcome = self.rescues.get(tier, COMMITTED)
                case _:
                    pass
            if isinstance(step, Pass | Rescue) and outcome.ok and outcome.changed and left:
                tokens = left.pop(0)
                now = replace(now, context_tokens=tokens, stored_tokens=tokens)
            run = run.after(outcome)
        raise AssertionError("no end")


def names(steps: Sequence[Step]) -> list[str]:
    """The steps by name; passes with their strategy, rescues with their tier, the stop with what follows."""
    return [_name(step) for step in steps]


def _name(step: Step) -> str:
    match step:
        case Pass(strategy=strategy):
            return f"Pass {strategy}"
        case Rescue(tier=tier):
            return f"Rescue {tier}"
        case Stop(then=then, blocked=blocked):
            return "Stop blocked" if blocked else f"Stop {then}"
        case _:
            return type(step).__name__
