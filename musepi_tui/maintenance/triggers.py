"""Why maintenance runs, what starts it, and how it ends (architecture 5)."""

from enum import IntEnum, StrEnum
from typing import TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import ErrorKind
from musepi_tui.session.messages import AssistantMessage


class Reason(StrEnum):
    """The word on the events and in the entry of a pass (compaction 12.1)."""

    MANUAL = "manual"
    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    INCOMPLETE = "incomplete"
    IDLE = "idle"


class Trigger(StrEnum):
    """What a run is about. ``PROMPT`` and ``MID_TURN`` are threshold triggers with rules of their own."""

    MANUAL = "manual"
    OVERFLOW = "overflow"
    INCOMPLETE = "incomplete"
    THRESHOLD = "threshold"
    PROMPT = "prompt"
    MID_TURN = "mid_turn"
    IDLE = "idle"


class Strategy(StrEnum):
    """What a pass does, spelled as in ``compaction.strategy``."""

    SUMMARY = "summary"
    HANDOFF = "handoff"
    SHAKE = "shake"
    OFF = "off"


class Tier(IntEnum):
    """How hard more is freed after a pass that did not free enough (compaction 2.5), in order."""

    SHAKE = 1
    DROP_IMAGES = 2
    TRUNCATE_TEXTS = 3


class Then(StrEnum):
    """What the runtime does when maintenance is over."""

    NOTHING = "nothing"
    RETRY = "retry"
    AUTO_CONTINUE = "auto_continue"


@dataclass(frozen=True, slots=True)
class ManualRequested:
    """A person or a script asked for a pass. ``mode`` None is the configured strategy."""

    mode: str | None = None
    focus: str | None = None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A turn is over; ``message`` is its last answer, stored already.

    ``error_kind`` is that of a failed one, as its request was classified; None leaves it to be told from the
    stored text.
    """

    message: AssistantMessage
    error_kind: ErrorKind | None = None


@dataclass(frozen=True, slots=True)
class PromptPending:
    """A prompt is about to be sent; ``pending_tokens`` is its estimate, counted in the facts already.

    ``submission`` is the number of its newest message among all that were submitted.
    """

    pending_tokens: int
    submission: int = 0


@dataclass(frozen=True, slots=True)
class ToolBoundary:
    """The results of the calls of ``message`` are stored, and the turn goes on with another request."""

    message: AssistantMessage


@dataclass(frozen=True, slots=True)
class IdleElapsed:
    """Nobody did anything for as long as ``compaction.idleTimeoutSeconds`` says."""


Signal: TypeAlias = ManualRequested | TurnFinished | PromptPending | ToolBoundary | IdleElapsed


@dataclass(frozen=True, slots=True)
class Stop:
    """Maintenance is over. ``blocked``: nothing may go on by itself; queued messages are still delivered.

    ``error`` is a line for a person when the pass failed, was refused or cancelled. ``reason`` is that of the
    run, so that a screen can tell a failed overflow recovery from the rest.
    """

    then: Then = Then.NOTHING
    blocked: bool = False
    error: str | None = None
    reason: Reason | None = None
