"""A conversation too long for one summary request, cut into parts and put together again (compaction 6.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LARGEST_SEGMENT_TOKENS = 32_000
SMALLEST_SEGMENT_TOKENS = 2_000
SEGMENT_SHARE_PERCENT = 25
"""A quarter of the window leaves room for the prompt, the answer and a last message that goes over."""

HISTORY_SHARE = 8
PREFIX_SHARE = 5
"""Tenths of the reserve a history summary and a turn prefix may take (compaction 6.2): together with a short
answer they fit into what is kept free anyway. A segment may take as much as a prefix."""


@dataclass(frozen=True, slots=True)
class SerialMessage:
    """One message as it stands in a summary request; a tool result never begins a segment."""

    text: str
    tokens: int
    is_result: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of messages that one request summarises; ``indexes`` are their places among all."""

    text: str
    tokens: int
    indexes: range


class Way(StrEnum):
    """How a summary is asked for."""

    SINGLE = "single"
    STAGED = "staged"


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Tokens of a summary request besides the conversation, and the most its answer and that to a request for
    one segment may take."""

    overhead: int
    limit: int
    segment_limit: int


def answer_limits(reserve_tokens: int) -> tuple[int, int]:
    """The most a summary of the history and one of a turn prefix may take; ``reserve_tokens`` is ``R``."""
    return max(1, reserve_tokens * HISTORY_SHARE // 10), max(1, reserve_tokens * PREFIX_SHARE // 10)


def segment_budget(window: int | None) -> int:
    """Tokens of conversation one segment may hold; ``window`` None is not known."""
    if window is None:
        return LARGEST_SEGMENT_TOKENS
    share = window * SEGMENT_SHARE_PERCENT // 100
    return min(LARGEST_SEGMENT_TOKENS, max(SMALLEST_SEGMENT_TOKENS, share))


def plan_segments(messages: Sequence[SerialMessage], budget: int) -> tuple[Segment, ...]:
    """Consecutive messages in segments of at most ``budget`` tokens.

    A result stays with what is before it, and a single message over the budget is a segment of its own, so
    these may be larger.
    """
    starts: list[int] = []
    size = 0
    for index, message in enumerate(messages):
        if starts and (message.is_result or size + message.tokens <= budget):
            size += message.tokens
        else:
            starts.append(index)
            size = message.tokens
    ends = [*starts[1:], len(messages)]
    return tuple(_segment(messages, range(start, end)) for start, end in zip(starts, ends, strict=False))


def find_way(
    messages: Sequence[SerialMessage], size: RequestSize, window: int | None, *, prefers_stages: bool = False
) -> Way | None:
    """How a model with that window can be asked for a summary of the messages; None when it holds not even a
    part of them. ``window`` None is not known, and holds everything."""
    total = sum(message.tokens for message in messages)
    is_single = _fits(size.overhead + total, size.limit, window)
    if is_single and not prefers_stages:
        return Way.SINGLE
    segments = plan_segments(messages, segment_budget(window))
    largest = max((segment.tokens for segment in segments), default=0)
    is_worth_it = len(segments) > 1 or not is_single
    if segments and is_worth_it and _fits(size.overhead + largest, size.segment_limit, window):
        return Way.STAGED
    return Way.SINGLE if is_single else None


def _fits(input_tokens: int, limit_tokens: int, window: int | None) -> bool:
    return window is None or input_tokens + limit_tokens <= window


def _segment(messages: Sequence[SerialMessage], indexes: range) -> Segment:
    run = [messages[index] for index in indexes]
    return Segment("\n\n".join(each.text for each in run), sum(each.tokens for each in run), indexes)


def merge_groups(sizes: Sequence[int], budget: int) -> tuple[range, ...]:
    """Indexes of consecutive summaries that one merge request takes: together at most ``budget`` tokens, but
    at least two, so that every round leaves fewer. The last group may be a single one."""
    groups: list[range] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index - start >= 2 and total + size > budget:
            groups.append(range(start, index))
            start, total = index, 0
        total += size
    if sizes:
        groups.append(range(start, len(sizes)))
    return tuple(groups)


def segment_block(summaries: Sequence[str]) -> str:
    """The summaries of consecutive parts as one block of a merge request."""
    parts = (
        f'<segment index="{index}">\n{_inside(summary)}\n</segment>'
        for index, summary in enumerate(summaries, 1)
    )
    return "<segment-summaries>\n" + "\n\n".join(parts) + "\n</segment-summaries>"


def _inside(summary: str) -> str:
    """The text so that it cannot close the elements around it."""
    return summary.replace("</segment", "<\\/segment")
