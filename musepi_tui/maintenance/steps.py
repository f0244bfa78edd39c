"""What the policy can ask the executor to do (architecture 4).

``Outcome.ok`` false is looked at after ``Promote`` (refused) and ``Pass`` (failed, cancelled);
``Outcome.changed`` and ``tokens_freed`` after every step that edits.
"""

from dataclasses import dataclass
from typing import TypeAlias

from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.triggers import Reason, Stop, Strategy, Tier


@dataclass(frozen=True, slots=True)
class PruneStale:
    """Blank superseded reads and useless results (compaction 5.3)."""


@dataclass(frozen=True, slots=True)
class PruneThreshold:
    """Blank old results beyond the protected window (compaction 5.4)."""


@dataclass(frozen=True, slots=True)
class Dedup:
    """Offload results that are repeated later (compaction 5.5)."""


@dataclass(frozen=True, slots=True)
class HideTurn:
    """Take the last answer out of the live messages; it stays on the branch."""


@dataclass(frozen=True, slots=True)
class DropTurn:
    """Take the last answer off the branch: the leaf goes to its parent, the line stays in the file."""


@dataclass(frozen=True, slots=True)
class RestoreTurn:
    """Put the hidden or dropped answer back where it was."""


@dataclass(frozen=True, slots=True)
class Promote:
    """Switch to the model with the larger window. Refused (``ok`` false) when it cannot be used."""

    model_key: str


@dataclass(frozen=True, slots=True)
class Pass:
    """Run maintenance once, between one start and one end event.

    A handoff that is not to be had ends ``ok`` and unchanged; one that was done has ``changed``.
    """

    strategy: Strategy
    reason: Reason
    will_retry: bool = False
    mid_turn: bool = False


@dataclass(frozen=True, slots=True)
class Rescue:
    """Free more by force, after a pass that did not free enough: at least ``needed_tokens``, where it can."""

    tier: Tier
    needed_tokens: int


@dataclass(frozen=True, slots=True)
class Remind:
    """Append the reminder that output was spent on reasoning; attempt ``attempt`` of ``limit``."""

    attempt: int
    limit: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Announce a pass and end it at once with this error."""

    reason: Reason
    error: str


@dataclass(frozen=True, slots=True)
class Notify:
    """Tell the person."""

    notices: tuple[NoticeText, ...]


@dataclass(frozen=True, slots=True)
class DeclareDeadEnd:
    """Tell the person, and start no threshold pass by itself until something changes.

    ``changed``: a summary was committed, whose divider gets the warning. ``for_waiting``: it holds for the
    messages that wait in the queue as well, because what they add could not be taken out either.
    """

    notice: NoticeText
    changed: bool
    for_waiting: bool = False


TurnStep: TypeAlias = HideTurn | DropTurn | RestoreTurn | Promote | Remind
"""Steps about the last turn."""

WorkStep: TypeAlias = (
    PruneStale | PruneThreshold | Dedup | TurnStep | Pass | Rescue | Refuse | Notify | DeclareDeadEnd
)
"""Everything the executor does before the end."""

Step: TypeAlias = WorkStep | Stop
