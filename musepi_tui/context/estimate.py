"""How many tokens a message takes, counted locally (compaction 3.2, 3.4)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import assert_never

from musepi_tui.base.types import Tokenizer
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    Block,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    blocks_of,
)

IMAGE_TOKENS = 1200
"""Tokens of an image in any role (compaction C12). Providers bill by size; this is a middle figure."""

ARCHIVE_IMAGE_TOKENS = 5024
"""Tokens of an image that belongs to a compaction summary (compaction 3.2): the dearest frame size."""

SPARE_COUNTS = 1_000
"""Counts an ``Estimator`` may hold for messages that are gone before they are thrown out."""


def compact_json(value: object) -> str:
    """The value as JSON without blanks, keys in stored order, text unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def estimate_tokens(message: Message, count: Tokenizer, *, exclude_encrypted: bool = False) -> int:
    """Tokens of one message, estimated. A message of an unknown role counts 0.

    ``exclude_encrypted`` leaves out thinking signatures and redacted data: they are sent, but servers bill
    them in ways nobody can know, so the stored estimate does without them.
    """
    if isinstance(message, CompactionSummary):
        return count(message.summary) + ARCHIVE_IMAGE_TOKENS * len(message.images)
    if isinstance(message, AssistantMessage):
        fragments = _assistant_fragments(message.content, exclude_encrypted=exclude_encrypted)
        return sum(count(text) for text in fragments if text)
    return sum(count(text) for text in _fragments(message) if text) + IMAGE_TOKENS * _image_count(message)


def stored_estimate(messages: Iterable[Message], estimate: "Estimator", other_tokens: int) -> int:
    """Tokens of a request with these messages, counted locally without encrypted parts (compaction 3.4).

    ``other_tokens`` are the tokens of everything else in it: system prompt, tool schemas, pending texts.
    """
    return other_tokens + estimate.total(tuple(messages))


class Estimator:
    """``estimate_tokens`` with a memory: a message object is counted once.

    Messages are immutable, so identity is enough. The memory keeps the objects alive; ``retain`` and ``trim``
    let go of those that left the context.
    """

    def __init__(self, count: Tokenizer) -> None:
        self.count = count
        self._known: dict[tuple[int, bool], tuple[Message, int]] = {}
        self._summed: tuple[tuple[Message, ...], int] = (), 0

    def __call__(self, message: Message, *, exclude_encrypted: bool = False) -> int:
        """Tokens of one message, estimated."""
        # Only answers have encrypted parts; all others are counted once for both questions.
        key = (id(message), exclude_encrypted and isinstance(message, AssistantMessage))
        found = self._known.get(key)
        if found is not None:
            return found[1]
        tokens = estimate_tokens(message, self.count, exclude_encrypted=exclude_encrypted)
        self._known[key] = (message, tokens)
        return tokens

    def total(self, messages: tuple[Message, ...]) -> int:
        """Tokens of all of them, without encrypted parts.

        The context is summed up at every step of a turn; where it only grew since, the rest is added to what
        was found then.
        """
        before, tokens = self._summed
        if len(before) > len(messages) or not all(map(is_, before, messages)):
            before, tokens = (), 0
        tokens += sum(self(message, exclude_encrypted=True) for message in messages[len(before) :])
        self._summed = messages, tokens
        return tokens

    def retain(self, messages: Iterable[Message]) -> None:
        """Forgets every message but these."""
        kept = {id(message) for message in messages}
        self._known = {key: value for key, value in tuple(self._known.items()) if key[0] in kept}

    def trim(self, messages: Sequence[Message]) -> None:
        """The same, once it remembers so many others that this is worth the walk over all of them."""
        if len(self._known) > 2 * len(messages) + SPARE_COUNTS:
            self.retain(messages)


def _fragments(message: Message) -> Iterator[str]:
    match message:
        case UserMessage() | DeveloperMessage() | CustomMessage() | ToolResultMessage():
            yield from (block.text for block in blocks_of(message.content) if isinstance(block, TextBlock))
        case BashExecution():
            yield from (message.command, message.output)
        case FileMention():
            for file in message.files:
                yield from (str(file.get("path", "")), str(file.get("content", "")))
        case BranchSummary() | CompactionSummary():
            yield message.summary
        case UnknownMessage() | AssistantMessage():
            return
        case _:
            assert_never(message)


def _assistant_fragments(blocks: Iterable[Block], *, exclude_encrypted: bool) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextBlock():
                yield block.text
            case ThinkingBlock():
                yield block.thinking
                if block.signature and not exclude_encrypted:
                    yield block.signature
            case ToolCallBlock():
                yield from (block.name, compact_json(block.arguments))
            case ImageBlock() | OpaqueBlock():
                continue
            case _:
                assert_never(block)


def _image_count(message: Message) -> int:
    match message:
        case UserMessage() | DeveloperMessage() | CustomMessage() | ToolResultMessage():
            return sum(isinstance(block, ImageBlock) for block in blocks_of(message.content))
        case _:
            return 0
