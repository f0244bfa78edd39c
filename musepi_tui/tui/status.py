"""The facts that footer, status line and pending area show: a pure view model of the events."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TypeAlias

from musepi_tui.base.cells import cell_width
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import duration, short_number
from musepi_tui.providers.types import Model
from musepi_tui.runtime.events import (
    AgentStarted,
    BranchSummaryEnded,
    BranchSummaryStarted,
    Event,
    IdleCountdown,
    MaintenanceEnded,
    MaintenanceProgress,
    MaintenanceStarted,
    Meter,
    ModeChanged,
    ModelChanged,
    Phase,
    PhaseChanged,
    QueueChanged,
    RetryEnded,
    RetryScheduled,
    SaveStateChanged,
    SessionNamed,
    SessionReady,
    SessionView,
    SummaryRetryEnded,
    SummaryRetryScheduled,
    SummaryRetryStarted,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)

WORKING_PHASES = frozenset(
    {Phase.STREAMING, Phase.TOOLS, Phase.RETRYING, Phase.MAINTAINING, Phase.NAVIGATING}
)
"""Phases in which something runs that esc stops."""

LEAD_WORDS = {
    "manual": "Compacting…",
    "threshold": "Auto-compacting…",
    "overflow": "Context overflow: compacting…",
    "incomplete": "Output cut off: compacting…",
    "idle": "Idle: compacting…",
    "provider_switch": "Making the compacted history readable for this model…",
}
"""What the maintenance line says per reason (tui 6.2)."""

SHAKE_WORDS = {
    "manual": "Shake…",
    "threshold": "Auto-shake…",
    "overflow": "Context overflow: shake…",
    "incomplete": "Output cut off: shake…",
    "idle": "Idle: shake…",
}
"""The same while a pass moves large outputs out of the context and summarises nothing."""

HANDOFF_WORDS = {
    "manual": "Generating handoff…",
    "threshold": "Auto-handoff…",
    "incomplete": "Output cut off: handoff…",
    "idle": "Idle: handoff…",
}
"""The same while the document is written that a new session begins with."""

_WORDS = {"shake": SHAKE_WORDS, "handoff": HANDOFF_WORDS}
_OWN_PROGRESS = frozenset({"handoff"})
"""Actions whose progress has their own name; other progress says that they went on as a summary."""


@dataclass(frozen=True, slots=True)
class Working:
    """A turn runs. ``since`` is monotonic seconds; ``tools`` the names of calls that run now."""

    since: float
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """The failed request is repeated at ``until`` (monotonic seconds)."""

    until: float
    attempt: int
    max_attempts: int


@dataclass(frozen=True, slots=True)
class Maintaining:
    """A maintenance pass runs since ``since`` (monotonic seconds)."""

    since: float
    reason: str = "manual"
    action: str = "summary"
    mid_turn: bool = False
    progress: MaintenanceProgress | None = None


@dataclass(frozen=True, slots=True)
class Summarizing:
    """The branch that is left is being summarised since ``since`` (monotonic seconds)."""

    since: float


Activity: TypeAlias = Working | Waiting | Maintaining | Summarizing


@dataclass(slots=True)
class Status:
    """What the screen knows beyond the transcript. Changed by ``reset`` and ``apply`` only, except
    ``is_waiting``: the person waits for a session that another musepi has open. ``read_only`` is why the
    session may only be read, None when it may be written; ``can_wait`` says that this may end.
    """

    phase: Phase = Phase.LOADING
    meter: Meter = field(default_factory=Meter)
    model: Model | None = None
    thinking_level: str = "off"
    mode: str = "ask"
    name: str | None = None
    cwd: str = ""
    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()
    unsaved: int = 0
    read_only: str | None = None
    can_wait: bool = False
    is_waiting: bool = False
    turn_since: float | None = None
    running: dict[str, str] = field(default_factory=dict[str, str])
    waiting: Waiting | None = None
    pass_running: Maintaining | None = None
    branch_summary: Summarizing | None = None
    idle_until: float | None = None
    """When an idle pass starts unless somebody does something (monotonic seconds); None: none is due."""

    def reset(self, view: SessionView, now: float) -> None:
        """Takes everything over from a view. ``now`` is monotonic seconds."""
        self.phase = view.phase
        self.meter = view.meter
        self.model = view.model
        self.thinking_level = view.thinking_level
        self.mode = view.mode
        self.name = view.name
        self.cwd = view.header.cwd if view.cwd is None else str(view.cwd)
        self.steering = view.steering
        self.follow_up = view.follow_up
        self.unsaved = view.unsaved
        self.read_only = view.read_only_cause
        self.can_wait = view.can_wait
        self.is_waiting = False
        self.turn_since = now if view.turn_open else None
        self.running = {}
        self.waiting = None
        # A handoff changes the session in the middle of its pass.
        self.pass_running = (self.pass_running or Maintaining(now)) if view.compacting else None
        self.branch_summary = None
        self.idle_until = None

    def apply(self, event: Event, now: float) -> bool:
        """Takes an event in; whether anything that is shown changed. ``now`` is monotonic seconds."""
        match event:
            case SessionReady():
                self.reset(event.view, now)
            case UsageChanged():
                self.meter = event.meter
            case ModelChanged():
                self.model = event.model
                self.thinking_level = event.thinking_level
            case ModeChanged():
                self.mode = event.mode
            case QueueChanged():
                self.steering, self.follow_up = event.steering, event.follow_up
            case IdleCountdown():
                self.idle_until = None if event.seconds is None else now + event.seconds
            case SaveStateChanged():
                self.unsaved = event.unsaved
            case SessionNamed():
                self.name = event.name
            case _:
                return self._apply_work(event, now)
        return True

    def _apply_work(self, event: Event, now: float) -> bool:
        match event:
            case PhaseChanged():
                self._enter(event.phase)
            case AgentStarted():
                self.turn_since = now
            case ToolStarted():
                self.running[event.call_id] = event.tool
            case ToolEnded():
                self.running.pop(event.call_id, None)
            case RetryScheduled() | SummaryRetryScheduled():
                self.waiting = Waiting(now + event.delay_s, event.attempt, event.max_attempts)
            case RetryEnded() | SummaryRetryStarted() | SummaryRetryEnded():
                self.waiting = None
            case _:
                return self._apply_maintenance(event, now)
        return True

    def _apply_maintenance(self, event: Event, now: float) -> bool:
        match event:
            case MaintenanceStarted():
                self.pass_running = Maintaining(now, event.reason, event.action, event.mid_turn)
            case MaintenanceProgress():
                self.pass_running = replace(self.pass_running or Maintaining(now), progress=event)
            case MaintenanceEnded():
                self.pass_running = self.waiting = None
            case BranchSummaryStarted():
                self.branch_summary = Summarizing(now)
            case BranchSummaryEnded():
                self.branch_summary = self.waiting = None
            case _:
                return False
        return True

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        if phase is not Phase.RETRYING:
            self.waiting = None
        if phase not in WORKING_PHASES:
            self.turn_since = None
            self.running = {}

    @property
    def activity(self) -> Activity | None:
        """The one thing the status line shows; None at rest."""
        if self.waiting is not None:
            return self.waiting  # for the turn, or for a summary of the pass that runs
        if self.pass_running is not None:
            return self.pass_running
        if self.branch_summary is not None:
            return self.branch_summary
        if self.phase in WORKING_PHASES and self.turn_since is not None:
            return Working(self.turn_since, tuple(self.running.values()))
        return None

    @property
    def is_working(self) -> bool:
        """Whether something runs that esc stops."""
        return self.phase in WORKING_PHASES or self.is_maintaining

    @property
    def is_maintaining(self) -> bool:
        """Whether a pass, a handoff or a branch summary runs: work on the session, not in a turn."""
        return self.pass_running is not None or self.branch_summary is not None

    @property
    def is_queueing(self) -> bool:
        """Whether a message sent now waits: a turn is open, a pass runs, or the session still loads."""
        return self.is_working or self.phase is Phase.LOADING


def lead_words(reason: str, *, action: str = "summary", mid_turn: bool = False) -> str:
    """How the maintenance line begins."""
    words = _WORDS.get(action, LEAD_WORDS)
    lead = words.get(reason.replace("-", "_").replace(" ", "_"), words["manual"])
    return lead.replace("…", " before the next step…") if mid_turn and reason == "threshold" else lead


def describe(activity: Activity, now: float, width_cells: int = 1_000) -> str:
    """The status line without its spinner, figures left out where ``width_cells`` are too few for them.

    ``now`` is monotonic seconds.
    """
    match activity:
        case Working():
            lead = f"Running {', '.join(dict.fromkeys(activity.tools))}…" if activity.tools else "Working…"
            return f"{lead} {duration(now - activity.since)} (esc to cancel)"
        case Waiting():
            left_s = max(0, -int(-(activity.until - now) // 1))
            return f"Retrying ({activity.attempt}/{activity.max_attempts}) in {left_s}s… (esc to cancel)"
        case Maintaining():
            lead = lead_words(activity.reason, action=current_action(activity), mid_turn=activity.mid_turn)
            parts = [f"{lead} {duration(now - activity.since)}", *_progress(activity.progress)]
            while len(parts) > 1 and cell_width(_pass_line(parts)) > width_cells:
                parts.pop()
            return _pass_line(parts)
        case Summarizing():
            return _pass_line([f"Summarizing branch… {duration(now - activity.since)}"])


def current_action(activity: Maintaining) -> str:
    """What the pass does now: a shake or a handoff that did not do goes on as a summary."""
    phase = None if activity.progress is None else activity.progress.phase
    return activity.action if phase is None or phase in _OWN_PROGRESS else "summary"


def _pass_line(parts: Sequence[str]) -> str:
    return f"{' · '.join(parts)} (esc to cancel)"


def _progress(progress: MaintenanceProgress | None) -> list[str]:
    if progress is None:
        return []
    # The request that is being answered: none is done while the first one is (tui 6.1).
    running = min(progress.done + 1, progress.total)
    name = "" if progress.phase in _OWN_PROGRESS else progress.phase
    counted = [f"{name} {running}/{progress.total}" if progress.total else name] if name else []
    if not progress.input_tokens:
        return counted
    flow = f"~{short_number(progress.input_tokens)} in"
    if progress.output_tokens:
        flow = f"{flow} → {short_number(progress.output_tokens)} out"
    return [*counted, flow]
