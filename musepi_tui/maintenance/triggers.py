"""Why maintenance runs, and what starts it (architecture 5)."""

from enum import StrEnum
from typing import TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.messages import AssistantMessage


class Reason(StrEnum):
    """The word on the events and in the entry of a pass (compaction 12.1)."""

    MANUAL = "manual"
    THRESHOLD = "threshold"


class Strategy(StrEnum):
    """What a pass does."""

    SUMMARY = "summary"


class Then(StrEnum):
    """What the runtime does when maintenance is over."""

    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ManualRequested:
    """A person or a script asked for a pass. ``mode`` None is the configured strategy."""

    mode: str | None = None
    focus: str | None = None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """A turn is over; ``message`` is its last answer, stored already."""

    message: AssistantMessage


Signal: TypeAlias = ManualRequested | TurnFinished


@dataclass(frozen=True, slots=True)
class Stop:
    """Maintenance is over. ``blocked``: nothing may go on by itself.

    ``error`` is a line for a person when the pass failed, was refused or cancelled.
    """

    then: Then = Then.NOTHING
    blocked: bool = False
    error: str | None = None
