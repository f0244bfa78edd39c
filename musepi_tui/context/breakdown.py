"""What the context consists of, for ``/context`` and its like (tui 4.6, contract 3.2)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from musepi_tui.context.estimate import IMAGE_TOKENS, Estimator, compact_json
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    ImageBlock,
    Message,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    blocks_of,
)

Share: TypeAlias = tuple[str, int]

SYSTEM, TOOLS = "system prompt", "tools"
SUMMARY, KEPT = "summary", "kept tail"
USER, ASSISTANT = "user", "assistant"
THINKING, CALLS, RESULTS = "thinking", "tool calls", "tool results"
IMAGES, OTHER = "images", "other"

ORDER: tuple[str, ...] = (
    SYSTEM,
    TOOLS,
    SUMMARY,
    KEPT,
    USER,
    ASSISTANT,
    THINKING,
    CALLS,
    RESULTS,
    IMAGES,
    OTHER,
)
"""The order parts are listed in: what never shrinks, what compaction made and kept, what was said since."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of content and its tokens, estimated."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens of a request besides its messages."""

    system: int = 0
    tools: int = 0


def break_down(
    messages: Sequence[Message], estimate: Estimator, overhead: Overhead, fresh_from: int = 0
) -> tuple[Part, ...]:
    """The parts of the context, those without any tokens left out; together they are its stored estimate.

    Messages before ``fresh_from`` (the ``fresh_index``) are the kept tail. Pictures are one part,
    wherever they are.
    """
    totals: dict[str, int] = dict.fromkeys(ORDER, 0)
    totals |= {SYSTEM: overhead.system, TOOLS: overhead.tools}
    for index, message in enumerate(messages):
        for name, tokens in _shares(message, estimate):
            is_kept = index < fresh_from and name not in (SUMMARY, IMAGES)
            totals[KEPT if is_kept else name] += tokens
    return tuple(Part(name, tokens) for name, tokens in totals.items() if tokens)


def results_by_tool(messages: Sequence[Message], estimate: Estimator) -> tuple[Part, ...]:
    """The tokens of tool results without their pictures, one part a tool, the largest first."""
    totals: Counter[str] = Counter()
    for message in messages:
        if isinstance(message, ToolResultMessage):
            shares = dict(_shares(message, estimate))
            totals[message.tool_name or "unknown"] += shares[RESULTS]
    return tuple(Part(name, tokens) for name, tokens in totals.most_common() if tokens)


def _shares(message: Message, estimate: Estimator) -> Iterable[Share]:
    """What a message adds to which parts; together its estimate without encrypted data."""
    tokens = estimate(message, exclude_encrypted=True)
    match message:
        case CompactionSummary():
            return ((SUMMARY, tokens),)
        case AssistantMessage():
            return _answer(message, estimate, tokens)
        case UserMessage():
            return _with_images(message, USER, tokens)
        case ToolResultMessage():
            return _with_images(message, RESULTS, tokens)
        case DeveloperMessage() | CustomMessage():
            return _with_images(message, OTHER, tokens)
        case BashExecution() | BranchSummary() | FileMention() | UnknownMessage():
            return ((OTHER, tokens),)
        case _:
            assert_never(message)


def _with_images(
    message: UserMessage | ToolResultMessage | DeveloperMessage | CustomMessage, name: str, tokens: int
) -> Iterator[Share]:
    images = IMAGE_TOKENS * sum(isinstance(block, ImageBlock) for block in blocks_of(message.content))
    yield IMAGES, images
    yield name, tokens - images


def _answer(message: AssistantMessage, estimate: Estimator, tokens: int) -> Iterator[Share]:
    """Reasoning and calls counted apart; the text is what is left, so that the sum stays the estimate."""
    count = estimate.count
    thinking = sum(count(block.thinking) for block in message.content if isinstance(block, ThinkingBlock))
    calls = sum(
        count(block.name) + count(compact_json(block.arguments))
        for block in message.content
        if isinstance(block, ToolCallBlock)
    )
    yield THINKING, thinking
    yield CALLS, calls
    yield ASSISTANT, tokens - thinking - calls
