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
class SetAutoCompaction:
    """Let passes start by themselves in this run, or not."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class MeasureContext:
    """Count what the context consists of; settles with the figures of contract 3.2."""


@dataclass(frozen=True, slots=True)
class MoveLeaf:
    """Go on from exactly this entry of the session. Settles when it is done."""

    entry_id: str


@dataclass(frozen=True, slots=True)
class NavigateTree:
    """Go on from another entry of this session (compaction 10.1). Settles when it is done or cancelled.

    A user message, and a custom message the agent did not inject, are gone on from before them: their text
    comes back to be edited. ``summarize`` leaves a summary of the branch that is left at the new place;
    ``instructions`` replace the prompt for it. Settles with ``cancelled``, ``leafId`` (the entry gone on
    from, None before the first one), ``oldLeafId``, and where they apply ``aborted`` (the person cancelled
    the summary), ``unchanged`` (already there), ``editorText`` and ``summaryEntryId``.
    """

    target_id: str
    summarize: bool = False
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Handoff:
    """Go on in a new session that begins with a document about this one (compaction 9).

    Settles when the new session is open, with ``document``, ``sessionFile``, ``sessionId`` and, when it was
    written, ``savedPath``.
    """

    focus: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the first of: handoff, compaction, branch summary, retry wait, turn. ``only_maintenance`` leaves a
    turn alone."""

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
    """Close this session and open the file at ``path``; one of another tool's format is imported first.

    ``how`` is for a session of another folder: open it ``there``, ``move`` it here, or go on here in a
    ``fork`` of it; an imported one is a copy already, so both make it one of this folder. ``folder`` is what
    here means, empty the folder musepi was started in. ``again`` is for the open session that may only be
    read: what is in its file now.
    """

    path: str
    how: Literal["there", "move", "fork", "again"] = "there"
    folder: str = ""


@dataclass(frozen=True, slots=True)
class ForkSession:
    """Go on in a copy of this session, in a file of its own: whole without ``entry_id``.

    With the id of a user message: the path up to, not including, it; settles with ``data["text"]``, its text.
    With the id of another entry: the path up to and including it.
    """

    entry_id: str | None = None


@dataclass(frozen=True, slots=True)
class CloneSession:
    """Go on in a copy of the path from the root to the leaf, in a file of its own."""


@dataclass(frozen=True, slots=True)
class MoveSession:
    """Make ``folder`` the working folder of this session; its file moves along."""

    folder: str


@dataclass(frozen=True, slots=True)
class WaitForSession:
    """Wait until the session can be written, then open it for writing. Settles then; with
    ``data["cancelled"]`` when ``Cancel`` or another session ends the wait."""


@dataclass(frozen=True, slots=True)
class DeleteSession:
    """Move a stored session, not the open one, to the trash; without a trash only ``permanently`` helps."""

    path: str
    permanently: bool = False


@dataclass(frozen=True, slots=True)
class RenameSession:
    """Name a stored session, not the open one; an empty text takes the name away. Settles with
    ``data["name"]``."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class SetName:
    """Name this session; an empty text takes the name away."""

    name: str


@dataclass(frozen=True, slots=True)
class SetLabel:
    """Label an entry, the current leaf without ``entry_id``; an empty label clears it."""

    label: str
    entry_id: str | None = None


@dataclass(frozen=True, slots=True)
class Flush:
    """Write everything that is in memory only; settles with ``data["unsaved"]``."""


@dataclass(frozen=True, slots=True)
class TakeQueue:
    """Empty the queue; settles with ``data = {"text": …}``: steering first, blank line between messages."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeat the last failed turn."""


@dataclass(frozen=True, slots=True)
class CompactIdle:
    """Run the pass of an idle session now, if its conditions hold. Settles when finished, with what the pass
    did, or ``{"skipped": true}``."""


@dataclass(frozen=True, slots=True)
class Shake:
    """Take large outputs (``elide``) or every image out of the context, without a model.

    Told as a manual pass of action ``shake``. Settles with ``mode``, ``regions``, ``toolResults``,
    ``blocks``, ``images``, ``tokensFreed`` and, when something was stored, ``artifactId``.
    """

    mode: Literal["elide", "images"] = "elide"


@dataclass(frozen=True, slots=True)
class EditorChanged:
    """The editor holds something unsent, or nothing any more: an idle pass waits for an empty one."""

    empty: bool


@dataclass(frozen=True, slots=True)
class Touch:
    """The person did something: the time to an idle pass starts over."""


@dataclass(frozen=True, slots=True)
class ExportSession:
    """Write this session to a file; settles with ``data["path"]`` once it is synced.

    ``path`` is relative to the working folder; empty makes a name for a page there. Its ending says what is
    written. ``force`` may replace a file, ``raw`` masks nothing, ``inline`` is for ``.jsonl``: with blobs.
    """

    path: str = ""
    force: bool = False
    raw: bool = False
    inline: bool = False


Intent: TypeAlias = (
    SubmitPrompt
    | Compact
    | SetAutoCompaction
    | MeasureContext
    | MoveLeaf
    | NavigateTree
    | Handoff
    | Cancel
    | AnswerApproval
    | SelectModel
    | SetThinking
    | SetMode
    | NewSession
    | OpenSession
    | ForkSession
    | CloneSession
    | MoveSession
    | WaitForSession
    | DeleteSession
    | RenameSession
    | SetName
    | SetLabel
    | Flush
    | TakeQueue
    | Retry
    | CompactIdle
    | Shake
    | EditorChanged
    | Touch
    | ExportSession
)
