"""What the runtime tells: one-way, immutable, in order.

Every ``…Started`` has exactly one ``…Ended``, also on cancel and error.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.providers.types import BlockEvent, Model
from musepi_tui.runtime.tree_events import BranchSummaryEnded, BranchSummaryStarted, LeafMoved
from musepi_tui.session.entries import Entry, LoadIssue, SessionHeader
from musepi_tui.session.messages import Usage
from musepi_tui.session.tree import SessionTree
from musepi_tui.tools.types import ToolView


class Phase(StrEnum):
    """What the runtime is doing: one value, never a set of booleans."""

    LOADING = "loading"
    IDLE = "idle"
    STREAMING = "streaming"
    TOOLS = "tools"
    RETRYING = "retrying"
    MAINTAINING = "maintaining"
    NAVIGATING = "navigating"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True)
class Meter:
    """Figures of the footer. ``context_tokens`` None is unknown; ``estimated`` marks a local count.

    ``totals`` are all tokens of the file; ``cost`` (US dollars) None when a price is unknown.
    """

    context_tokens: int | None = None
    estimated: bool = False
    window: int | None = None
    threshold: int | None = None
    totals: Usage = Usage()
    cost: float | None = None
    auto_compaction: bool = True


@dataclass(frozen=True, slots=True)
class SessionView:
    """Everything a screen needs to draw a session it has not followed.

    While ``phase`` is ``LOADING`` only ``tail`` (the newest entries of the path, oldest first) is there and
    ``tree`` holds their heads alone; ``tail_is_whole`` tells that nothing lies before it.

    ``read_only_cause`` is why the session may only be read; ``can_wait`` says that this may end. ``cwd`` is
    where tools work when that is known: another folder than the header's when that one is gone.
    """

    header: SessionHeader
    file: Path | None
    tree: SessionTree
    phase: Phase
    meter: Meter
    model: Model | None
    thinking_level: str
    mode: str
    name: str | None = None
    tail: tuple[Entry, ...] = ()
    tail_is_whole: bool = True
    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()
    issues: tuple[LoadIssue, ...] = ()
    unsaved: int = 0
    read_only: bool = False
    read_only_cause: str | None = None
    can_wait: bool = False
    turn_open: bool = False
    compacting: bool = False
    cwd: Path | None = None


Reason: TypeAlias = Literal[
    "start", "new", "resume", "reload", "fork", "clone", "branch", "move", "import", "handoff"
]
"""Why a session is open now; ``reload``: one that may only be read was read again."""


@dataclass(frozen=True, slots=True)
class SessionReady:
    """A session is loaded: at the start, or in place of the one before."""

    view: SessionView
    reason: Reason = "start"


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """The runtime does something else now."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class EntryAppended:
    """An entry joined the path. ``saved``: its line was taken by the kernel; false means kept in memory.

    ``live_id`` links a finished answer to its ``AssistantStarted``.
    """

    entry: Entry
    saved: bool = True
    live_id: str | None = None


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """A prompt is being worked on."""


@dataclass(frozen=True, slots=True)
class AgentEnded:
    """The final answer is there (or the turn failed); maintenance may follow. Ids of the turn's entries."""

    entry_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentSettled:
    """Turn, retries, maintenance and queue are all done."""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A step begins: one request and its answer, tool results included (``turn_start`` on the wire)."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A step is over."""

    entry_id: str | None
    tool_result_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantStarted:
    """An answer begins; ``live_id`` names it until its entry exists."""

    live_id: str
    model: str
    provider: str


@dataclass(frozen=True, slots=True)
class AssistantDelta:
    """More of an answer. Pending text deltas of one block are merged for slow subscribers."""

    live_id: str
    event: BlockEvent


@dataclass(frozen=True, slots=True)
class AssistantEnded:
    """The answer is over; it comes after its ``EntryAppended``. ``entry_id`` None: nothing was kept."""

    live_id: str
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call runs (after approval)."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    view: ToolView


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """The tail of a running command's output."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call is over. Its stored result follows as ``EntryAppended`` in call order."""

    call_id: str
    tool: str
    text: str
    view: ToolView
    is_error: bool
    duration_ms: int


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call needs a person. ``rule`` is what ``allow_session`` would grant, None when not offered."""

    request_id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    reason: str
    rule: str | None
    view: ToolView


@dataclass(frozen=True, slots=True)
class ApprovalClosed:
    """The question is answered. ``decision`` is ``allow``, ``allow_session`` or ``deny``."""

    request_id: str
    decision: str
    reason: str


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """What a pass did; tokens are context tokens, ``tokens_after`` an estimate. A pass that only shortened
    messages stored no compaction: its ids are None."""

    entry_id: str | None
    first_kept_entry_id: str | None
    tokens_before: int
    tokens_after: int
    duration_ms: int
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceStarted:
    """A pass begins. ``reason`` ``manual`` or a word of compaction 12.1."""

    reason: str
    action: str
    mid_turn: bool = False


@dataclass(frozen=True, slots=True)
class MaintenanceProgress:
    """Where a pass is: ``phase`` is ``prepare``, ``summary`` (``done`` of ``total`` requests), ``window``
    (the same for a long history summarised in parts), ``write``, or ``handoff``.

    ``elapsed_ms`` counts from ``MaintenanceStarted``; tokens are those of the summary requests.
    """

    phase: str
    done: int = 0
    total: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    elapsed_ms: int = 0


@dataclass(frozen=True, slots=True)
class MaintenanceEnded:
    """A pass is over: with a ``result``, ``aborted``, ``skipped``, or an ``error`` text."""

    reason: str
    action: str
    mid_turn: bool = False
    result: MaintenanceResult | None = None
    aborted: bool = False
    will_retry: bool = False
    skipped: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The failed answer is asked for again after ``delay_s``."""

    attempt: int
    max_attempts: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True)
class RetryEnded:
    """The retries are over. ``error`` is the last failure when ``success`` is false."""

    success: bool
    attempt: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SummaryRetryScheduled:
    """A failed summary request is sent again after ``delay_s``."""

    attempt: int
    max_attempts: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True)
class SummaryRetryStarted:
    """The wait is over, the request is sent again."""

    attempt: int


@dataclass(frozen=True, slots=True)
class SummaryRetryEnded:
    """How that try ended; ``error`` when it failed or was cancelled."""

    success: bool
    attempt: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The waiting messages, in order."""

    steering: tuple[str, ...]
    follow_up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """New figures for the footer."""

    meter: Meter


@dataclass(frozen=True, slots=True)
class ModelChanged:
    """Another model or thinking level is used from now on."""

    model: Model | None
    thinking_level: str


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The approval mode changed."""

    mode: str


@dataclass(frozen=True, slots=True)
class SessionNamed:
    """The session has another name now, or none."""

    name: str | None


@dataclass(frozen=True, slots=True)
class SaveStateChanged:
    """How many entries are in memory only."""

    unsaved: int


@dataclass(frozen=True, slots=True)
class IntentSettled:
    """An intent is done. ``data`` depends on the intent; ``error`` is a line for a person when not ``ok``."""

    intent_id: str
    ok: bool
    data: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the person. ``detail`` is shown on demand."""

    level: Literal["info", "warning", "error"]
    text: str
    source: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class EndDropped:
    """These entries, the newest of the path, left it: a failed answer that is asked for again. They stay in
    the file on a branch of their own."""

    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndRestored:
    """Entries that were dropped are the newest of the path again."""

    entry_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContextPruned:
    """Messages were shortened for the model; what they were stays in the file.

    ``kind`` is ``superseded``, ``useless``, ``threshold``, ``dedup``, ``shake``, ``images`` or ``tail``;
    ``tokens_freed`` is an estimate.
    """

    kind: str
    entries: int
    tokens_freed: int


@dataclass(frozen=True, slots=True)
class ModelPromoted:
    """A model with a larger window took over by itself; names are ``provider/id``."""

    from_model: str
    to_model: str
    reason: str


@dataclass(frozen=True, slots=True)
class IdleCountdown:
    """An idle compaction starts in ``seconds`` when nobody does anything; None: none is due any more."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class ExtensionFailed:
    """A handler of an extension failed and was passed over. ``switched_off``: it is not called any more."""

    extension: str
    event: str
    error: str
    switched_off: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeFault:
    """A bug: an unexpected exception in a child task, already logged. ``text`` is safe to show."""

    where: str
    text: str


Event: TypeAlias = (
    SessionReady
    | PhaseChanged
    | EntryAppended
    | AgentStarted
    | AgentEnded
    | AgentSettled
    | TurnStarted
    | TurnEnded
    | AssistantStarted
    | AssistantDelta
    | AssistantEnded
    | ToolStarted
    | ToolProgress
    | ToolEnded
    | ApprovalAsked
    | ApprovalClosed
    | MaintenanceStarted
    | MaintenanceProgress
    | MaintenanceEnded
    | RetryScheduled
    | RetryEnded
    | SummaryRetryScheduled
    | SummaryRetryStarted
    | SummaryRetryEnded
    | QueueChanged
    | UsageChanged
    | ModelChanged
    | ModeChanged
    | SessionNamed
    | SaveStateChanged
    | IntentSettled
    | EndDropped
    | EndRestored
    | BranchSummaryStarted
    | BranchSummaryEnded
    | LeafMoved
    | ContextPruned
    | ModelPromoted
    | IdleCountdown
    | ExtensionFailed
    | Notice
    | RuntimeFault
)
