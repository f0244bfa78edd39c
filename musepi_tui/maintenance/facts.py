"""What the policy knows: plain numbers and flags (architecture 4)."""

from dataclasses import dataclass, field

from musepi_tui.base.errors import ErrorKind, MusepiError
from musepi_tui.context.threshold import Threshold
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.triggers import Strategy
from musepi_tui.session.messages import StopReason


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """The last answer of the path.

    ``model`` is its name for people; ``same_model``: the current one gave it. ``before_promotion``: it came
    from the model whose promotion target is the current one, with a larger window (compaction 2.2, step 6).
    ``stale``: it is older than the newest compaction. ``error_kind`` is set on failed answers only, as
    classified; ``names_media``: its text is about an image limit. ``delivered``: it has text or a tool call.
    ``used_tokens`` is what the server billed for prompt and answer, ``prompt_tokens`` its prompt alone
    (input, cache read and cache write), both 0 when it told nothing.
    """

    stop_reason: StopReason
    model: str = ""
    same_model: bool = True
    before_promotion: bool = False
    stale: bool = False
    error_kind: ErrorKind | None = None
    names_media: bool = False
    delivered: bool = True
    output_tokens: int = 0
    used_tokens: int = 0
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class IdleGates:
    """What an idle pass depends on besides the context. ``busy``: streaming, maintaining or navigating."""

    enabled: bool = False
    threshold_tokens: int = 0
    editor_empty: bool = True
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """The session as it is at this moment; tokens are context tokens.

    ``context_tokens`` is the decision figure: the larger of what was billed (void when older than the newest
    compaction) and ``stored_tokens``, the local count of the messages as they are after every edit; both hold
    the pending prompt. ``threshold`` and ``window`` are None when the window of the model is unknown;
    ``reserve_tokens`` is what has to stay free of the window for a request to be made again.
    ``other_tokens`` are the system prompt and tool schemas, which no pass can shrink.

    ``enabled`` and ``strategy`` are the settings; ``strategies_usable`` those strategies a pass can run with
    now. ``promotion_target`` is the key of a model with a larger window that could take over. ``dead_end``:
    the last pass could not free enough and nothing has changed since. ``queued_input``: a message of the
    person waits. ``setting_notices`` tell of settings that are not honoured as written.
    """

    context_tokens: int
    stored_tokens: int
    other_tokens: int
    window: int | None
    threshold: Threshold | None
    reserve_tokens: int = 0
    enabled: bool = True
    strategy: Strategy = Strategy.SUMMARY
    strategies_usable: frozenset[Strategy] = frozenset({Strategy.SUMMARY, Strategy.SHAKE})
    mid_turn: bool = True
    auto_continue: bool = True
    turn: TurnFacts | None = None
    idle: IdleGates = IdleGates()
    chain: Chain = field(default_factory=Chain)
    promotion_target: str | None = None
    dead_end: bool = False
    queued_input: bool = False
    setting_notices: tuple[NoticeText, ...] = ()

    @property
    def automatic(self) -> bool:
        """Whether passes nobody asked for are allowed at all."""
        return self.enabled and self.strategy is not Strategy.OFF


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended. ``changed``: something of the context is different now.

    ``tokens_freed`` is what an edit saved, estimated; 0 for a committed summary.
    """

    ok: bool
    changed: bool = False
    tokens_freed: int = 0
    error: MusepiError | None = None
    cancelled: bool = False
