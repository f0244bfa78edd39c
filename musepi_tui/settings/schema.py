"""Every setting: its key, type, default and what it does.

Keys are the camelCase forms of the attribute names. All of it is immutable.
"""

from typing import Literal, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.settings.fields import local_path, setting, web_address

Words: TypeAlias = tuple[str, ...]
"""A list of strings: an array in JSON, a tuple here."""


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """When and how older history is summarised (compaction 13)."""

    enabled: bool = setting(default=True, description="Compact by itself when the context fills up.")
    strategy: Literal["summary", "snapcompact", "handoff", "shake", "off"] = setting(
        default="summary", description="What a pass does; off blocks every automatic one."
    )
    threshold: str | int | float = setting(
        default="auto", description="Where a pass starts: auto, a share such as 85%, or a number of tokens."
    )
    reserve_tokens: int | None = setting(
        default=None,
        above=0,
        description="Tokens kept free for the answer; unset: 16384, or 15% where that is more.",
    )
    keep_recent_tokens: int = setting(
        default=10_000, at_least=1, description="Tokens of recent history that a pass leaves as they are."
    )
    mid_turn_enabled: bool = setting(
        default=True, description="Compact also between two steps of a turn, not only after it."
    )
    auto_continue: bool = setting(
        default=True, description="Go on with the work by itself after an automatic pass."
    )
    supersede_reads: bool = setting(
        default=True, description="Blank the result of a read once the same file was read again."
    )
    drop_useless: bool = setting(
        default=True, description="Blank tool results that said nothing, such as a search without a hit."
    )
    idle_enabled: bool = setting(default=False, description="Compact when nothing has happened for a while.")
    idle_threshold_tokens: int = setting(
        default=200_000, description="Context size from which an idle pass is worth it; 0 for never."
    )
    idle_timeout_seconds: int = setting(
        default=300, description="How long nothing has to happen first, in seconds: 60 to 3600."
    )
    idle_abort_on_input: bool = setting(
        default=False, description="Cancel an idle pass that runs when something is typed into the editor."
    )
    model: str | Words | None = setting(
        default=None, description="Models that write summaries, tried in this order: provider/model[:level]."
    )
    model_context_window: int | None = setting(
        default=None,
        above=0,
        description="Context window of the summary model in tokens, where the table is wrong.",
    )
    remote: bool = setting(
        default=True,
        description="Let a provider compact on its side where it can; this version knows none that can.",
    )
    remote_endpoint: str | None = web_address(
        description="Address of a summary service of your own (http or https), asked before any model."
    )
    handoff_save_to_disk: bool = setting(
        default=False,
        description="Keep the document of an automatic handoff in a file beside the old session as well.",
    )


@dataclass(frozen=True, slots=True)
class BranchSummarySettings:
    """What becomes of a branch that /tree leaves (compaction 10)."""

    enabled: bool = setting(
        default=False, description="Ask whether to summarise the branch that /tree leaves."
    )
    reserve_tokens: int = setting(
        default=16_384,
        at_least=0,
        description="Tokens of the context window kept free of the branch that is summarised.",
    )


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """How /tree draws a session (tui 5)."""

    active_first: bool = setting(
        default=True, description="Draw the branch you are on before the others at the same place."
    )


@dataclass(frozen=True, slots=True)
class ContextPromotionSettings:
    """Going on with a larger model in place of a compaction (compaction 2.7)."""

    enabled: bool = setting(
        default=True,
        description="Switch to the larger model that a model row names before anything is summarised.",
    )


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """What happens after a failed request (providers 7)."""

    enabled: bool = setting(default=True, description="Ask again when an answer failed for a passing reason.")
    max_retries: int = setting(
        default=10, at_least=0, description="How often a failed answer is asked for again."
    )
    base_delay_ms: int = setting(
        default=2_000, at_least=0, description="Wait before the first repetition; doubles each time."
    )
    max_delay_ms: int = setting(
        default=60_000, at_least=0, description="Longest wait between two repetitions."
    )
    request_retries: int = setting(
        default=2, at_least=0, description="Repetitions of a request that never got an answer."
    )
    request_base_delay_ms: int = setting(
        default=500, at_least=0, description="Wait before the first of those."
    )


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Time-outs of model requests in seconds, 0 disables one (contract 4.1), and what connections trust."""

    connect_timeout_seconds: float = setting(
        default=10.0, at_least=0, description="Longest wait for a connection."
    )
    first_event_timeout_seconds: float = setting(
        default=100.0, at_least=0, description="Longest wait for the first part of an answer."
    )
    idle_timeout_seconds: float = setting(
        default=120.0, at_least=0, description="Longest pause inside an answer."
    )
    retry_after_cap_seconds: float = setting(
        default=60.0,
        at_least=0,
        description="Longest wait a server may ask for; beyond it the request fails at once.",
    )
    ca_file: str | None = local_path(
        description="File with certificates to trust besides the system's, for a proxy of your own."
    )
    allow_plain_http: Words = setting(
        default=(), description="Hosts outside your own network that may get a key over plain http."
    )


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """What the model's tools may do without asking (tui 8)."""

    mode: Literal["ask", "auto-edit", "yolo"] = setting(
        default="ask",
        description="ask before changes, auto-edit files inside the project, or yolo: never ask.",
    )
    allow: Words = setting(
        default=(), description="Calls that run without asking, such as bash(git status) or edit."
    )
    ask: Words = setting(default=(), description="Calls that are always asked about, also in yolo.")
    deny: Words = setting(default=(), description="Calls that are always refused, also in yolo.")
    rpc_timeout_ms: int = setting(
        default=300_000,
        at_least=0,
        description="How long a program driving musepi may take to answer a question.",
    )


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """How the transcript is drawn."""

    animations: bool = setting(default=True, description="Let the working indicator move.")
    show_model_changes: bool = setting(default=True, description="Show a row where the model was changed.")
    collapse_compacted: bool = setting(
        default=False,
        description="Fold what lies before the newest compaction behind one row, which enter opens.",
    )
    prune_notices: bool = setting(
        default=True, description="Tell when old tool results were shortened for the model."
    )
    idle_countdown: Literal["off", "last-minute", "always"] = setting(
        default="last-minute", description="When the footer counts down to an idle compaction."
    )


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How sessions are stored."""

    dir: str | None = local_path(description="Folder of the session files instead of the usual one.")
    foreign_roots: bool = setting(
        default=True,
        description="List sessions of pi, MusePi, omp, veyyon, Claude Code and Codex as well.",
    )
    fsync: Literal["turn", "entry", "never"] = setting(
        default="turn",
        description="When the file is forced to the disk: after each turn, each entry, or never.",
    )
    prune_storage: Literal["append", "rewrite"] = setting(
        default="append",
        description="How shortened older results are stored: as new lines, or by writing their lines anew.",
    )
    externalize_images: bool = setting(
        default=False,
        description="Keep large images in files of their own; programs without such files do not see them.",
    )


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """The box prompts are typed in."""

    max_rows: int = setting(default=12, at_least=1, description="Rows it grows to before it scrolls.")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Limits of one turn (contract 4.1)."""

    max_rounds: int = setting(
        default=200, at_least=0, description="Tool rounds a turn may take; 0: no limit."
    )
    max_identical_calls: int = setting(
        default=5,
        at_least=1,
        description="Equal calls in a row until the model is warned; at twice as many the turn ends.",
    )


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """How tokens are counted (compaction 3.2)."""

    estimator: Literal["auto", "o200k", "cl100k", "chars4"] = setting(
        default="auto",
        description="auto is o200k; cl100k needs its own file; chars4 is characters divided by 4.",
    )


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """What musepi asks of the terminal besides drawing."""

    title: bool = setting(default=True, description="Set the title of the terminal window.")
    progress: Literal["auto", "always", "off"] = setting(
        default="auto",
        description="Show in the taskbar or tab that something runs; auto: in terminals known to do so.",
    )


@dataclass(frozen=True, slots=True)
class ModelRoles:
    """Models by role, as provider/model, optionally with :level."""

    default: str | None = setting(default=None, description="The model new sessions start with.")
    small: str | None = setting(default=None, description="A quick model, second choice for summaries.")
    slow: str | None = setting(default=None, description="A thorough model, third choice for summaries.")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their values."""

    theme: str = setting(default="auto", description="Name of the colour theme; auto follows the terminal.")
    symbol_preset: Literal["unicode", "ascii"] = setting(
        default="unicode", description="Signs the screen is drawn with; ascii for fonts that lack the others."
    )
    hide_thinking_block: bool = setting(
        default=False, description="Show only that the model reasoned, not the text."
    )
    quiet_startup: bool = setting(default=False, description="Leave out the welcome lines of a new session.")
    default_thinking_level: Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"] = setting(
        default="medium", description="How much models that can reason do so in new sessions."
    )
    steering_mode: Literal["one-at-a-time", "all"] = setting(
        default="one-at-a-time",
        description="Whether messages typed during a turn go to the model singly or together.",
    )
    follow_up_mode: Literal["one-at-a-time", "all"] = setting(
        default="one-at-a-time", description="The same for messages that wait until the turn is over."
    )
    tree_filter_mode: Literal["default", "no-tools", "user-only", "labeled-only", "all"] = setting(
        default="default", description="What /tree shows when it opens."
    )
    double_escape_action: Literal["tree", "fork", "rewind", "none"] = setting(
        default="tree", description="What two quick presses of esc in an empty editor open."
    )
    cache_retention: Literal["none", "short", "long"] = setting(
        default="short", description="How long providers are asked to cache the conversation."
    )
    compaction: CompactionSettings = CompactionSettings()
    context_promotion: ContextPromotionSettings = ContextPromotionSettings()
    branch_summary: BranchSummarySettings = BranchSummarySettings()
    tree: TreeSettings = TreeSettings()
    retry: RetrySettings = RetrySettings()
    network: NetworkSettings = NetworkSettings()
    permissions: PermissionSettings = PermissionSettings()
    display: DisplaySettings = DisplaySettings()
    session: SessionSettings = SessionSettings()
    editor: EditorSettings = EditorSettings()
    agent: AgentSettings = AgentSettings()
    tokens: TokenSettings = TokenSettings()
    terminal: TerminalSettings = TerminalSettings()
    model_roles: ModelRoles = ModelRoles()
