"""What people are told about maintenance; each problem with its remedy."""

from typing import Literal

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import duration, group_digits, plural
from musepi_tui.context.threshold import Threshold, ThresholdKind, ThresholdSetting
from musepi_tui.maintenance.triggers import Reason, Tier

ALREADY_RUNNING = "Compaction already in progress"
ALREADY_COMPACTED = "Already compacted"
TOO_SMALL = "Nothing to compact (session too small)"
NOTHING_TO_SHAKE = "Nothing to shake"
CANCELLED = "Compaction cancelled"
AUTO_CANCELLED = "Auto-compaction cancelled"
NO_MODEL = "Compaction needs a model with credentials (/login, /model)"
ALREADY_RECOVERED = (
    "history was compacted and the request sent again once, and it is still too long. "
    "Reduce the context (/compact, /shake) or choose a model with a larger window (/model)"
)

_FAILURE_LEAD = {
    Reason.OVERFLOW: "Context overflow recovery failed",
    Reason.INCOMPLETE: "Incomplete response recovery failed",
    Reason.THRESHOLD: "Auto-compaction failed",
    Reason.IDLE: "Auto-compaction failed",
}

_TIER_WORDS = {
    Tier.SHAKE: "large tool results and blocks were moved to an artifact",
    Tier.DROP_IMAGES: "every picture was dropped from it",
    Tier.TRUNCATE_TEXTS: "the longest texts were cut down and kept whole in an artifact",
}


@dataclass(frozen=True, slots=True)
class NoticeText:
    """A line for a person. Notices with the same ``once`` are shown once in a session."""

    level: Literal["info", "warning", "error"]
    text: str
    once: str | None = None


def failure_text(reason: Reason, cause: str) -> str:
    """The line a failed pass ends with; a manual one names only the cause (compaction 12.2)."""
    lead = _FAILURE_LEAD.get(reason)
    return cause if lead is None else f"{lead}: {cause}"


def cancelled_text(reason: Reason) -> str:
    """The line a cancelled pass ends with."""
    return CANCELLED if reason is Reason.MANUAL else AUTO_CANCELLED


def save_failure(cause: str) -> str:
    """The cause of a pass that could not be written (TUI 6.4)."""
    return f"Could not save the compaction: {cause}"


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


def dead_end(context_tokens: int, limit_tokens: int, window: int | None) -> NoticeText:
    """The pass freed too little, and so did the rescue (TUI-6.9)."""
    of_window = "" if window is None else f" of a {group_digits(window)}-token window"
    return NoticeText(
        "warning",
        f"After compaction the context still takes {group_digits(context_tokens)} tokens; it should be at "
        f"most {group_digits(limit_tokens)}{of_window}. Nothing continues by itself until your next message. "
        "Free more with /shake, choose a model with a larger window (/model), or start a new session (/new).",
    )


def nothing_left(context_tokens: int, start_tokens: int | None, window: int | None) -> NoticeText:
    """The context is too large, and there is nothing a pass could summarise (compaction 2.5)."""
    start = "" if start_tokens is None else f"; compaction starts at {group_digits(start_tokens)}"
    of_window = "" if window is None else f" of a {group_digits(window)}-token window"
    return NoticeText(
        "warning",
        f"The context takes {group_digits(context_tokens)} tokens{of_window}{start}, but nothing in it could "
        "be summarised. Nothing continues by itself until your next message. Free more with /shake, choose "
        "a model with a larger window (/model), lower compaction.keepRecentTokens, or start a new session "
        "(/new).",
    )


def rescued(tier: Tier, context_tokens: int) -> NoticeText:
    """What had to be taken out beyond the summary for the context to fit (compaction 2.5)."""
    return NoticeText(
        "info",
        f"The summary alone did not free enough, so {_TIER_WORDS[tier]}; the context takes "
        f"{group_digits(context_tokens)} tokens now.",
    )


def answer_cut_off(model: str) -> NoticeText:
    """The output limit ended the answer (compaction 2.4)."""
    return NoticeText(
        "warning",
        f"The answer was cut off by the output limit of {model or 'the model'}; the context window is not "
        "the reason. Ask it to go on, or to work in smaller steps.",
    )


def cut_off_while_off(model: str) -> NoticeText:
    """The answer was cut off, and it is not given again by itself because maintenance is off."""
    return NoticeText(
        "warning",
        f"The answer of {model or 'the model'} was cut off, and automatic compaction is off, so it is not "
        "asked for again. /compact makes room; then ask it to go on.",
    )


def incomplete_given_up(model: str, attempts: int) -> NoticeText:
    """Every attempt ran into the output limit (compaction 2.4)."""
    return NoticeText(
        "error",
        f"{model or 'The model'} reached its output limit without an answer again after "
        f"{plural(attempts, 'attempt')}. Choose another model (/model), a lower thinking level (/thinking), "
        "or a larger output limit for it.",
    )


def overflow_while_off(model: str) -> NoticeText:
    """The context is longer than the window, and nothing is done about it by itself (TUI-6.14)."""
    return NoticeText(
        "warning",
        f"The context is too long for {model or 'the model'}, and automatic compaction is off. "
        "/compact summarises older history; a model with a larger window (/model) could go on as it is.",
    )


def payload_rejected(window: int | None, *, is_token_problem: bool) -> NoticeText:
    """The server refused the request for its size, and a pass did not or would not help (compaction 2.6)."""
    if is_token_problem:
        of_window = "" if window is None else f" of {group_digits(window)} tokens"
        return NoticeText(
            "warning",
            f"The server refused the request: it is longer than the context window{of_window}, and it could "
            "not be made shorter. Choose a model with a larger window (/model) or start a new one (/new).",
        )
    return NoticeText(
        "warning",
        "The server refused the request for its size in bytes or for its pictures, not for its tokens, so a "
        "summary would not help. Drop pictures with /shake images, free large outputs with /shake, or send a "
        "smaller attachment. Nothing continues by itself until your next message.",
    )


def continued_enough(limit: int) -> NoticeText:
    """The cap on automatic continuations (compaction 2.8)."""
    return NoticeText(
        "info",
        f"The work was continued by itself {plural(limit, 'time')} after a compaction; it waits for you now.",
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
