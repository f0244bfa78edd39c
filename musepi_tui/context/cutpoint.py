"""Where a compaction cuts the history (compaction 3.7, 4.2)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from musepi_tui.context.threshold import RECOVERY_BAND, Threshold, ThresholdKind
from musepi_tui.context.window import PathItem
from musepi_tui.session.entries import BranchSummaryEntry, CustomMessageEntry
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    FileMention,
    Message,
    UserMessage,
)

Estimate: TypeAlias = Callable[[Message], int]

SUMMARY_SHARE = 10
"""A tenth of the window is left free for the summary itself when the kept tail is sized (compaction 3.7).
Without it a pass at a small window ends above the recovery band: a dead end each time."""

_CUTTABLE = (
    UserMessage,
    AssistantMessage,
    BashExecution,
    FileMention,
    CustomMessage,
    BranchSummary,
    CompactionSummary,
)


@dataclass(frozen=True, slots=True)
class Span:
    """The part ``[start, end)`` of a path for the cut; turns are looked for from ``turn_search_start``."""

    start: int
    end: int
    turn_search_start: int


@dataclass(frozen=True, slots=True)
class Cut:
    """``index``: the first kept entry; the end of the span when nothing is kept.

    ``turn_start`` is the index the turn begins at that the cut splits, None when it splits none.
    """

    index: int
    turn_start: int | None = None


@dataclass(frozen=True, slots=True)
class KeepFacts:
    """What ``adapt_keep_recent`` needs to know, all in tokens; None is unknown.

    ``prompt`` is the prompt of the newest billed answer, ``estimated`` the local count of the same messages.
    """

    window: int | None
    threshold: Threshold | None
    other_tokens: int | None
    prompt: int | None = None
    estimated: int = 0


def is_valid_cut(item: PathItem) -> bool:
    """Whether the kept tail may begin at this entry: never at a tool result or a developer message."""
    return isinstance(item.message, _CUTTABLE)


def is_turn_start(item: PathItem) -> bool:
    """Whether a turn begins here: something a person or the program put in, or a branch summary."""
    if item.message is None:
        return False
    if isinstance(item.entry, CustomMessageEntry | BranchSummaryEntry):
        return True
    return isinstance(item.message, UserMessage | BashExecution)


def turn_start(items: Sequence[PathItem], index: int, lower: int) -> int | None:
    """The index of the turn start at or before ``index``, not before ``lower``; None when there is none."""
    return next((i for i in range(index, lower - 1, -1) if is_turn_start(items[i])), None)


def find_cut_point(items: Sequence[PathItem], span: Span, keep_tokens: int, estimate: Estimate) -> Cut:
    """The first entry of the kept tail.

    Walks from the newest entry back until ``keep_tokens`` (estimated) are covered, then forward to the next
    entry where a cut is allowed, and back over state entries. ``items`` is one path, oldest first.
    """
    crossed = _find_crossing(items, span, keep_tokens, estimate)
    cut = _first_candidate(items, span, crossed)
    while span.start < cut < span.end and items[cut - 1].message is None and not items[cut - 1].is_compaction:
        cut -= 1
    if crossed is not None and cut == span.start:
        cut = _next_valid(items, span.start + 1, span.end, otherwise=span.end)
    if cut == span.end:
        return Cut(span.end)
    first = next((i for i in range(cut, span.end) if items[i].message is not None), None)
    if first is None:
        return Cut(cut)
    start = turn_start(items, first, span.turn_search_start)
    return Cut(cut, start if start is not None and start < first else None)


def adapt_keep_recent(keep_tokens: int, facts: KeepFacts) -> int:
    """The size of the kept tail that fits this window, in estimated tokens, at least 1.

    Under an automatic threshold it leaves room for everything that cannot shrink and for the summary. Where
    the server bills more than the local estimate, it shrinks by the same ratio.
    """
    return _scale_keep(_cap_keep(keep_tokens, facts), facts)


def _find_crossing(items: Sequence[PathItem], span: Span, keep_tokens: int, estimate: Estimate) -> int | None:
    covered = 0
    for index in range(span.end - 1, span.start - 1, -1):
        message = items[index].message
        if message is None:
            continue
        covered += estimate(message)
        if covered >= keep_tokens:
            return index
    return None


def _first_candidate(items: Sequence[PathItem], span: Span, crossed: int | None) -> int:
    if crossed is None:
        return _next_valid(items, span.start, span.end, otherwise=span.start)
    valid = _next_valid(items, crossed, span.end, otherwise=-1)
    if valid >= 0:
        return valid
    start = turn_start(items, crossed, span.start)
    return span.end if start is None else start


def _next_valid(items: Sequence[PathItem], start: int, end: int, *, otherwise: int) -> int:
    return next((i for i in range(start, end) if is_valid_cut(items[i])), otherwise)


def _cap_keep(keep_tokens: int, facts: KeepFacts) -> int:
    threshold = facts.threshold
    if threshold is None or threshold.kind is not ThresholdKind.AUTO:
        return keep_tokens
    if facts.window is None or facts.other_tokens is None:
        return keep_tokens
    below_threshold = threshold.tokens - facts.other_tokens
    if below_threshold <= 0:
        return keep_tokens
    keep_tokens = min(keep_tokens, below_threshold)
    room = math.floor(threshold.tokens * RECOVERY_BAND) - facts.other_tokens - facts.window // SUMMARY_SHARE
    return min(keep_tokens, room if room > 0 else max(1, below_threshold // 2))


def _scale_keep(keep_tokens: int, facts: KeepFacts) -> int:
    if facts.prompt is None or facts.other_tokens is None or facts.estimated <= 0:
        return keep_tokens
    ratio = Fraction(facts.prompt - facts.other_tokens, facts.estimated)
    return max(1, math.floor(keep_tokens / ratio)) if ratio > 1 else keep_tokens
