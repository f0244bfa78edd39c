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
HANDOFF_CANCELLED = "Handoff cancelled"
NOTHING_TO_HAND_OFF = "Nothing to hand off (no messages yet)"
HANDOFF_WHILE_BUSY = "A response is still running: let it end or press esc, then hand off"
EMPTY_HANDOFF = (
    "The model returned an empty handoff document; nothing was changed. "
    "A lower thinking level may help (/thinking)."
)
LOOPING_HANDOFF = (
    "The model repeated itself instead of writing a handoff document; nothing was changed. "
    "Try again, or choose another model (/model)."
)
CUT_OFF_HANDOFF = (
    "The model reached its output limit before the handoff document was complete; nothing was changed. "
    "Choose another model (/model) or a lower thinking level (/thinking)."
)
TOO_LITTLE_TO_HAND_OFF = "this session holds too little to write a document about"
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


NO_ENDPOINT = NoticeText(
    "warning", "compaction.remoteEndpoint is not set, so the summary is written by a model as usual."
)


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


@dataclass(frozen=True, slots=True)
class HandoffFigures:
    """A session that a handoff began and that is too large already, in tokens: what it holds by itself, that
    and the message that waits, what it may hold, and the window."""

    begun_with: int
    context: int
    limit: int
    window: int | None


def handoff_without_room(figures: HandoffFigures, *, is_useless: bool) -> NoticeText:
    """The handoff freed too little (compaction 2.5); ``is_useless``: another one would not free more."""
    of_window = "" if figures.window is None else f" of a {group_digits(figures.window)}-token window"
    share = ""
    if figures.begun_with < figures.context:
        share = f" ({group_digits(figures.begun_with)} without your message)"
    instead = " From here on the history is summarised instead of handed off." if is_useless else ""
    return NoticeText(
        "warning",
        f"After the handoff the context takes {group_digits(figures.context)} tokens{share}; it should be at "
        f"most {group_digits(figures.limit)}{of_window}. Nothing continues by itself until your next "
        f"message.{instead} Raise compaction.threshold, offer fewer tools, or choose a model with a larger "
        "window (/model).",
    )


@dataclass(frozen=True, slots=True)
class BilledFigures:
    """A bill that a pass did not make smaller, in tokens: what is billed for the context and what it counts
    here, where compaction starts, and the window."""

    billed: int
    counted: int
    start: int
    window: int | None


def bill_stays(figures: BilledFigures) -> NoticeText:
    """The pass made the context smaller, and its bill is nearly as large as before (compaction 2.5)."""
    of_window = "" if figures.window is None else f" of a {group_digits(figures.window)}-token window"
    return NoticeText(
        "warning",
        f"The last compaction did not help enough: the provider bills {group_digits(figures.billed)} tokens"
        f"{of_window}, {group_digits(max(0, figures.billed - figures.counted))} more than the context counts "
        f"here; compaction starts at {group_digits(figures.start)}. No compaction reaches what is not "
        "part of the session, such as a prompt or tools that a gateway adds. Nothing continues by itself "
        "until your next message. Raise compaction.threshold, or choose a model with a larger window "
        "(/model).",
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


def large_handoff(document_tokens: int, window: int) -> str:
    """The cause of a handoff whose document would leave no room in the new session."""
    return (
        f"The model wrote a handoff document of {group_digits(document_tokens)} tokens for a context window "
        f"of {group_digits(window)}; nothing was changed. Try again, with a focus that asks for less."
    )


def no_handoff(cause: str, *, is_replaced: bool) -> NoticeText:
    """An automatic handoff is not to be had; ``is_replaced``: a summary is made instead (compaction 2.9)."""
    instead = " The history is summarised instead." if is_replaced else ""
    return NoticeText("warning", f"No handoff: {cause.rstrip('.')}.{instead}")


def handed_off(session_id: str, name: str | None) -> NoticeText:
    """Where the conversation was handed off from, and how to go back there (TUI-4.74): ``name`` is what
    ``/resume`` finds it by, None when nothing does."""
    begun = f"This is a new session, handed off from {session_id}"
    if name is None:
        return NoticeText("info", f"{begun}, which was not saved and cannot be opened again.")
    return NoticeText("info", f"{begun}, which is as it was. To return: /resume {name}")


def handoff_failed(cause: str) -> str:
    """The line a handoff ends with that somebody asked for and no model could carry out."""
    return (
        f"Handoff failed: {cause.rstrip('.')}; nothing was changed. "
        "Try again, choose another model (/model), or summarise the history instead (/compact)."
    )


def handoff_saved(path: str) -> NoticeText:
    """An automatic handoff left its document beside the old session (TUI-4.76)."""
    return NoticeText("info", f"The handoff document is also in {path}")


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
