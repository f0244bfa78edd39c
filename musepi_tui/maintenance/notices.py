"""What people are told about maintenance; each problem with its remedy."""

from typing import Literal

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import duration, group_digits
from musepi_tui.context.threshold import Threshold, ThresholdKind, ThresholdSetting
from musepi_tui.maintenance.triggers import Reason

ALREADY_RUNNING = "Compaction already in progress"
ALREADY_COMPACTED = "Already compacted"
TOO_SMALL = "Nothing to compact (session too small)"
CANCELLED = "Compaction cancelled"
NO_MODEL = "Compaction needs a model with credentials (/model)"


@dataclass(frozen=True, slots=True)
class NoticeText:
    """A line for a person. Notices with the same ``once`` are shown once in a session."""

    level: Literal["info", "warning", "error"]
    text: str
    once: str | None = None


def failure_text(reason: Reason, cause: str) -> str:
    """The line a failed pass ends with; a manual one names only the cause."""
    return cause if reason is Reason.MANUAL else f"Auto-compaction failed: {cause}"


def success_text(tokens_before: int, tokens_after: int | None, duration_ms: int, cost: float | None) -> str:
    """What a manual pass did: ``Compacted 231,785 → 24,100 tokens in 12s ($0.08)`` (TUI-4.66)."""
    if tokens_after is None:
        return f"Compacted {group_digits(tokens_before)} tokens"
    price = "" if not cost else f" (${cost:.2f})" if cost >= 0.005 else " (<$0.01)"
    figures = f"{group_digits(tokens_before)} → {group_digits(tokens_after)}"
    return f"Compacted {figures} tokens in {duration(duration_ms / 1000)}{price}"


def invalid_threshold(setting: ThresholdSetting, threshold: Threshold) -> NoticeText:
    """The threshold setting cannot be read."""
    return NoticeText(
        "warning",
        f'compaction.threshold "{setting.invalid_raw}" is neither auto, a share such as 85%, nor a number of '
        f"tokens; {group_digits(threshold.tokens)} tokens (auto) are used.",
        once=f"invalid-threshold:{setting.invalid_raw}",
    )


def clamped_threshold(setting: ThresholdSetting, threshold: Threshold, window: int) -> NoticeText:
    """The threshold setting does not fit the window (compaction 3.6)."""
    if setting.kind is ThresholdKind.PERCENT:
        configured = f"{float(setting.amount):g}%"
    else:
        configured = f"{group_digits(int(setting.amount))} tokens"
    return NoticeText(
        "warning",
        f"compaction.threshold is {configured}, which does not fit a context window of "
        f"{group_digits(window)} tokens; {group_digits(threshold.tokens)} are used for this model.",
        once=f"clamped-threshold:{window}",
    )


def unavailable_strategy(name: str, used: str) -> NoticeText:
    """The configured strategy is none this version has."""
    return NoticeText(
        "warning",
        f'compaction.strategy "{name}" is not available in this version; "{used}" is used.',
        once=f"strategy:{name}",
    )


def overhead_too_large(other_tokens: int, threshold: Threshold, window: int) -> NoticeText:
    """System prompt and tools alone reach the threshold (compaction 3.5)."""
    return NoticeText(
        "warning",
        f"The system prompt and tools take {group_digits(other_tokens)} tokens, and compaction starts at "
        f"{group_digits(threshold.tokens)} of a {group_digits(window)}-token window. No compaction can "
        "shrink that, so none starts by itself. Raise compaction.threshold, lower "
        "compaction.reserveTokens, offer fewer tools, or use a model with a larger window.",
        once=f"overhead:{window}",
    )


def dead_end(context_tokens: int, threshold: Threshold, window: int | None) -> NoticeText:
    """The pass freed too little (TUI-6.9)."""
    of_window = "" if window is None else f" of a {group_digits(window)}-token window"
    return NoticeText(
        "warning",
        f"After compaction the context still takes {group_digits(context_tokens)} tokens; it should be at "
        f"most {group_digits(threshold.recovery_tokens)}{of_window}. Nothing continues by itself "
        "until your next message. Choose a model with a larger window (/model) or start a new one (/new).",
    )


def nothing_left(context_tokens: int, threshold: Threshold) -> NoticeText:
    """The context is over the threshold, and there is nothing a pass could summarise."""
    return NoticeText(
        "warning",
        f"The context takes {group_digits(context_tokens)} tokens; compaction starts at "
        f"{group_digits(threshold.tokens)}, but nothing in it could be summarised. Choose a model with a "
        "larger window (/model), lower compaction.keepRecentTokens, or start a new session (/new).",
    )


def next_candidate(failed: str, following: str, cause: str) -> NoticeText:
    """Another model is asked for the summary."""
    return NoticeText(
        "warning",
        f"{failed} could not write the summary ({cause.rstrip('.')}); {following} is asked instead.",
    )


def unknown_candidates(names: tuple[str, ...]) -> NoticeText:
    """Models of ``compaction.model`` that cannot be asked."""
    listed = ", ".join(names)
    return NoticeText(
        "warning",
        f"compaction.model names {listed}, which is no model with credentials; it is passed over.",
        once=f"candidates:{listed}",
    )
