"""One course of maintenance: what it is about, where it is, and what it has done so far."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias, assert_never

from musepi_tui.maintenance.facts import Outcome, TurnFacts
from musepi_tui.maintenance.steps import Step
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Reason,
    Signal,
    Strategy,
    Tier,
    ToolBoundary,
    Trigger,
    TurnFinished,
)


class Stage(StrEnum):
    """Where a run is."""

    CLASSIFY = "classify"
    STALE = "stale"
    PRUNE = "prune"
    REPORT = "report"
    MEASURE = "measure"
    HIDE = "hide"
    PROMOTE = "promote"
    PROMOTED = "promoted"
    RECOVER = "recover"
    OFF = "off"
    REFUSE = "refuse"
    GIVE_UP = "give_up"
    REMIND = "remind"
    DROP = "drop"
    DEDUP = "dedup"
    DEDUPED = "deduped"
    PASS = "pass"
    PASSED = "passed"
    UNDO = "undo"
    FAILED = "failed"
    PAYLOAD = "payload"
    GUARD = "guard"
    RESCUE = "rescue"
    RESCUED = "rescued"
    USELESS = "useless"
    DEAD_END = "dead_end"
    END = "end"
    RETRY = "retry"
    DONE = "done"
    BLOCKED = "blocked"


RETRY_TRIGGERS = frozenset({Trigger.OVERFLOW, Trigger.INCOMPLETE})
"""Triggers whose failed turn is dropped and asked for again (compaction 2.1)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One course of maintenance, from a signal to its ``Stop``.

    ``turn`` is the answer it is about, as it was at the start. ``outcome`` is that of the last step.
    ``failure`` is the outcome of the pass that ended the run. ``payload``: the run is about a rejected
    payload, and whether usage proves that tokens were the problem. ``strategy`` and ``tier`` are those of
    the newest pass and rescue. ``freed_tokens`` is what edits have saved and a billed figure does not show.

    ``hidden``, ``dropped``: where the turn is. ``rewritten``: edits were stored after the drop.
    ``committed``: a summary was stored. ``passed``: a pass has changed the context.
    ``error``: the line for a person the run ends with.
    """

    signal: Signal
    trigger: Trigger
    reason: Reason
    stage: Stage = Stage.CLASSIFY
    turn: TurnFacts | None = None
    outcome: Outcome = Outcome(ok=True)
    failure: Outcome | None = None
    payload: bool | None = None
    strategy: Strategy | None = None
    tier: Tier | None = None
    freed_tokens: int = 0
    hidden: bool = False
    dropped: bool = False
    rewritten: bool = False
    promoted: bool = False
    committed: bool = False
    passed: bool = False
    error: str | None = None

    @classmethod
    def start(cls, signal: Signal) -> "Run":
        """The beginning of a run."""
        match signal:
            case ManualRequested():
                return cls(signal, Trigger.MANUAL, Reason.MANUAL)
            case TurnFinished():
                return cls(signal, Trigger.THRESHOLD, Reason.THRESHOLD)
            case PromptPending():
                return cls(signal, Trigger.PROMPT, Reason.THRESHOLD)
            case ToolBoundary():
                return cls(signal, Trigger.MID_TURN, Reason.THRESHOLD)
            case IdleElapsed():
                return cls(signal, Trigger.IDLE, Reason.IDLE)
            case _:
                assert_never(signal)

    @property
    def retries(self) -> bool:
        """Whether the run is about a failed turn that was dropped to be given again."""
        return self.trigger in RETRY_TRIGGERS

    @property
    def will_retry(self) -> bool:
        """Whether the turn is asked for again at the end; before a prompt, that prompt follows instead."""
        return self.retries and isinstance(self.signal, TurnFinished)

    def at(self, stage: Stage) -> "Run":
        """The same run in another stage."""
        return replace(self, stage=stage)

    def after(self, outcome: Outcome) -> "Run":
        """The same run once its step has ended so."""
        return replace(self, outcome=outcome, freed_tokens=self.freed_tokens + outcome.tokens_freed)


Advance: TypeAlias = tuple[Run, Step | None]
"""The run in its next stage, and the step to do before it goes on there, if any."""
