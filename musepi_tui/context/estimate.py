"""How many tokens a message takes, counted locally (compaction 3.2, 3.4)."""

import json
from collections.abc import Iterable, Iterator
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

CACHE_LIMIT = 50_000
"""Messages remembered by one ``Estimator`` before it starts over; above any live context, so that a full
count is not repeated every turn, and a bound on what the cache keeps alive."""


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
    return other_tokens + sum(estimate(message, exclude_encrypted=True) for message in messages)


class Estimator:
    """``estimate_tokens`` with a memory: a message object is counted once.

    Messages are immutable, so identity is enough. The memory keeps the objects alive; ``retain`` trims it
    after a compaction, when most of them left the context.
    """

    def __init__(self, count: Tokenizer) -> None:
        self.count = count
        self._known: dict[tuple[int, bool], tuple[Message, int]] = {}

    def __call__(self, message: Message, *, exclude_encrypted: bool = False) -> int:
        """Tokens of one message, estimated."""
        key = (id(message), exclude_encrypted)
        found = self._known.get(key)
        if found is not None:
            return found[1]
        tokens = estimate_tokens(message, self.count, exclude_encrypted=exclude_encrypted)
        if len(self._known) >= CACHE_LIMIT:
            self._known = {}
        self._known[key] = (message, tokens)
        return tokens

    def retain(self, messages: Iterable[Message]) -> None:
        """Forgets every message but these."""
        kept = {id(message) for message in messages}
        self._known = {key: value for key, value in tuple(self._known.items()) if key[0] in kept}


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
