"""From the answers of the model to a summary that may be stored (compaction 6.4, 6.5)."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from musepi_tui.base.errors import EmptySummaryError, SummaryRejectedError
from musepi_tui.base.text import group_digits
from musepi_tui.context.llm import strip_summary_wrapper

NO_PRIOR_HISTORY = "No prior history."

LOOP_LINE_CHARS = 20
LOOP_REPEATS = 12
LOOP_SHARE = 0.6
"""A summary is a loop when a line of at least 20 characters comes 12 times and fills 60 % of the text
(compaction 6.5). Shorter lines (list marks, rules) and lower counts are met in honest summaries."""

PROVIDER_KEYS = frozenset({"remoteCompaction", "openaiRemoteCompaction", "snapcompact"})
"""Keys of ``preserve_data`` that stand for a summary of their own; they do not outlive it."""

_OPENING = re.compile(r"\A<summary\b[^>]*>\s*", re.IGNORECASE)
_CLOSING = re.compile(r"\s*</summary\s*>\Z", re.IGNORECASE)


def clean_answer(text: str) -> str:
    """The summary in a model's answer: without the tags around it, closed or not."""
    inner = strip_summary_wrapper(text)
    lowered = inner.lower()
    if lowered.count("<summary") > lowered.count("</summary"):
        return _OPENING.sub("", inner)
    if lowered.count("</summary") > lowered.count("<summary"):
        return _CLOSING.sub("", inner)
    return inner


LARGEST_SHARE = 0.5
"""Share of the context window a summary may take. Requests ask for far less, but some servers ignore that;
with a summary near the window nothing fits behind it, and the next pass is fed the whole of it."""


def merge_split_turn(history: str, prefix: str | None) -> str:
    """The summary of the history, and below it what happened in the turn the cut went through."""
    if prefix is None:
        return history
    return f"{history}\n\n---\n\n**Turn Context (split turn):**\n\n{prefix}"


def validate_summary(summary: str) -> None:
    """Raises ``EmptySummaryError`` for a blank summary, ``SummaryRejectedError`` for one that is a loop."""
    if not summary.strip():
        raise EmptySummaryError(
            "The model returned an empty summary; nothing was changed. "
            "A lower thinking level may help: compaction.model takes provider/model:low."
        )
    if is_degenerate(summary):
        raise SummaryRejectedError(
            "The model repeated itself instead of writing a summary; nothing was changed. "
            "Try again, or choose another model for summaries with compaction.model."
        )


def check_summary_size(summary_tokens: int, window: int | None) -> None:
    """Raises ``SummaryRejectedError`` for a summary that leaves no room; ``window`` None is not known."""
    if window is not None and summary_tokens > LARGEST_SHARE * window:
        raise SummaryRejectedError(
            f"The model wrote a summary of {group_digits(summary_tokens)} tokens for a context window of "
            f"{group_digits(window)}; nothing was changed. "
            "Try again, or choose another model for summaries with compaction.model."
        )


def is_degenerate(summary: str) -> bool:
    """Whether one line, repeated over and over, makes up most of the text."""
    lines = [line.strip() for line in summary.splitlines()]
    counts = Counter(line for line in lines if len(line) >= LOOP_LINE_CHARS)
    total_chars = sum(len(line) for line in lines)
    return any(
        times >= LOOP_REPEATS and times * len(line) > LOOP_SHARE * total_chars
        for line, times in counts.items()
    )


def inherited_data(previous: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The part of the previous ``preserve_data`` that the next compaction carries on; None when empty."""
    kept = {key: value for key, value in (previous or {}).items() if key not in PROVIDER_KEYS}
    return kept or None
