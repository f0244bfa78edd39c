"""Tool calls without results and results without calls (compaction 1.3 steps 7 and 8).

Call ids are matched in order, because some servers use the same id again in every turn: a result answers the
newest call before it that has its id and no result yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    Message,
    OpaqueBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
)

CallPlace = tuple[int, int]
"""Index of the message in its list, index of the block in the message."""


def find_dangling(messages: Sequence[Message]) -> tuple[frozenset[CallPlace], frozenset[int]]:
    """Places of the calls without a result, and indexes of the results without a call before them."""
    waiting: dict[str, list[CallPlace]] = {}
    answered: set[str] = set()
    orphans: set[int] = set()
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for place, block in enumerate(message.content):
                if isinstance(block, ToolCallBlock):
                    waiting.setdefault(block.id, []).append((index, place))
        elif isinstance(message, ToolResultMessage):
            call_id = message.tool_call_id
            if waiting.get(call_id):
                waiting[call_id].pop()
                answered.add(call_id)
            elif call_id not in answered:
                orphans.add(index)
    unanswered = frozenset(place for places in waiting.values() for place in places)
    return unanswered, frozenset(orphans)


def strip_dangling(
    messages: Sequence[Message], entry_ids: Sequence[str]
) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages with only calls that have results and results that have calls, ids kept parallel.

    A rewritten answer loses its thinking signatures and redacted thinking, which providers reject in a
    changed turn; an answer left without blocks is dropped.
    """
    calls, orphans = find_dangling(messages)
    if not calls and not orphans:
        return tuple(messages), tuple(entry_ids)
    changed = {index for index, _ in calls}
    kept: list[Message] = []
    kept_ids: list[str] = []
    for index, (message, entry_id) in enumerate(zip(messages, entry_ids, strict=True)):
        if index in orphans:
            continue
        if index in changed and isinstance(message, AssistantMessage):
            content = _without_calls(message, {place for at, place in calls if at == index})
            if not content:
                continue
            kept.append(replace(message, content=content))
        else:
            kept.append(message)
        kept_ids.append(entry_id)
    return tuple(kept), tuple(kept_ids)


def without_signatures(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks of an answer that was changed: no thinking signatures, no redacted thinking."""
    return tuple(
        replace(block, signature=None)
        if isinstance(block, ThinkingBlock) and block.signature is not None
        else block
        for block in blocks
        if not _is_redacted(block)
    )


def _without_calls(message: AssistantMessage, dropped: set[int]) -> tuple[Block, ...]:
    return without_signatures(block for place, block in enumerate(message.content) if place not in dropped)


def _is_redacted(block: Block) -> bool:
    if isinstance(block, ThinkingBlock):
        return block.redacted
    return isinstance(block, OpaqueBlock) and block.raw.get("type") == "redactedThinking"
