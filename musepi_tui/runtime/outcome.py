"""How a run ended, for exit codes (contract 7)."""

from typing import Literal

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.messages import AssistantMessage


@dataclass(frozen=True, slots=True)
class Outcome:
    """``stop`` of the last turn: ``ok`` ``error`` ``aborted`` ``denied`` ``budget``, or ``none`` without a
    turn.

    ``withheld`` counts calls of the whole run that were refused because nobody could be asked. ``message`` is
    the last answer; ``error`` is a line for a person when it failed.
    """

    stop: Literal["none", "ok", "error", "aborted", "denied", "budget"] = "none"
    withheld: int = 0
    message: AssistantMessage | None = None
    error: str | None = None
