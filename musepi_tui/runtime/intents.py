"""What a person or a script wants: the only way into the runtime.

``runtime.send(intent)`` puts one on the queue and returns its id; ``IntentSettled`` ends each one.
"""

from typing import Literal, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.messages import ImageBlock


@dataclass(frozen=True, slots=True)
class SubmitPrompt:
    """Send a message. While a turn is open it is queued: ``steer`` before the next request, ``follow_up``
    when the agent would stop. Settles when it is accepted, not when the turn ends."""

    text: str
    images: tuple[ImageBlock, ...] = ()
    delivery: Literal["steer", "follow_up"] = "steer"


@dataclass(frozen=True, slots=True)
class Compact:
    """Summarise older history now. ``mode`` None is the configured strategy. Settles when finished."""

    mode: str | None = None
    focus: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the first of: compaction, retry wait, turn. ``only_maintenance`` leaves a turn alone."""

    only_maintenance: bool = False


@dataclass(frozen=True, slots=True)
class AnswerApproval:
    """The answer to an ``ApprovalAsked``. An unknown or used id settles with an error."""

    request_id: str
    decision: Literal["allow", "allow_session", "deny", "deny_and_stop"]
    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class SelectModel:
    """Use this model from the next request on."""

    provider: str
    model_id: str


@dataclass(frozen=True, slots=True)
class SetThinking:
    """Use this thinking level from the next request on."""

    level: str


@dataclass(frozen=True, slots=True)
class SetMode:
    """Set the approval mode: ``ask``, ``auto-edit`` or ``yolo``."""

    mode: str


@dataclass(frozen=True, slots=True)
class NewSession:
    """Close this session and start an empty one in the same folder with the same model."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Close this session and open the file at ``path``."""

    path: str


@dataclass(frozen=True, slots=True)
class TakeQueue:
    """Empty the queue; settles with ``data = {"text": …}``: steering first, blank line between messages."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeat the last failed turn."""


Intent: TypeAlias = (
    SubmitPrompt
    | Compact
    | Cancel
    | AnswerApproval
    | SelectModel
    | SetThinking
    | SetMode
    | NewSession
    | OpenSession
    | TakeQueue
    | Retry
)
