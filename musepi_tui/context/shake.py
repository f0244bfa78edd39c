"""What can leave the live tail without a model: repeated results and large blocks (compaction 5.5, 5.6)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from musepi_tui.context.edits import EditReason
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.livetail import LiveTail, tokens_behind
from musepi_tui.context.offload import OffloadPlan, Place, Region, saving_of
from musepi_tui.context.regions import find_regions
from musepi_tui.session.messages import (
    AssistantMessage,
    CustomMessage,
    DeveloperMessage,
    ImageBlock,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)


@dataclass(frozen=True, slots=True)
class ShakeConfig:
    """How much a shake takes: nothing of the newest ``protect_tokens``, blocks from ``block_tokens`` on, and
    nothing at all where it would free less than ``min_savings``. All in tokens."""

    protect_tokens: int = 16_000
    min_savings: int = 4_000
    block_tokens: int = 400


GENTLE = ShakeConfig()
"""For passes nobody asked for (compaction 5.6)."""

AGGRESSIVE = ShakeConfig(protect_tokens=0, min_savings=0)
"""For ``/shake`` and the rescue (compaction 5.6)."""


def dedup_plan(tail: LiveTail, estimate: Estimator) -> OffloadPlan:
    """Earlier results that say the same as a later one of the same call."""
    seen: set[str] = set()
    regions: list[Region] = []
    for index in reversed(tail.live):
        result = _movable_result(tail, index)
        if result is None:
            continue
        key = _identity(tail, index, result)
        if key in seen:
            regions.append(_whole_result(index, result, estimate))
        seen.add(key)
    kept = tuple(region for region in reversed(regions) if saving_of(region) > 0)
    return OffloadPlan(tail, EditReason.DEDUP, kept)


def shake_plan(tail: LiveTail, estimate: Estimator, config: ShakeConfig) -> OffloadPlan:
    """Tool results and large blocks older than the protected window, and useless results.

    Failed and protected results stay, and results with pictures, which no artifact could hold. The newest
    message of the person stays as it is.
    """
    behind = tokens_behind(tail.items, estimate)
    newest = tail.newest_user_index()
    regions: list[Region] = []
    for index in tail.live:
        is_old = behind[index] >= config.protect_tokens
        result = _movable_result(tail, index)
        if result is not None and (is_old or result.useless):
            regions.append(_whole_result(index, result, estimate))
        elif is_old and index != newest:
            regions.extend(_blocks(tail, index, estimate, config.block_tokens))
    kept = tuple(region for region in regions if saving_of(region) > 0)
    plan = OffloadPlan(tail, EditReason.SHAKE, kept)
    return plan if plan.tokens_saved >= config.min_savings else OffloadPlan(tail, EditReason.SHAKE)


def _movable_result(tail: LiveTail, index: int) -> ToolResultMessage | None:
    """The result there, if it may move: it has text and no pictures, did not fail and is not protected."""
    result = tail.result_at(index)
    if result is None or result.is_error or result.pruned_at_ms is not None or index in tail.protected:
        return None
    has_images = any(isinstance(block, ImageBlock) for block in result.content)
    return None if has_images or not text_of(result.content) else result


def _whole_result(index: int, result: ToolResultMessage, estimate: Estimator) -> Region:
    return Region(index, result.tool_name, estimate(result), text_of(result.content))


def _identity(tail: LiveTail, index: int, result: ToolResultMessage) -> str:
    """What makes two results the same: tool, arguments whatever their order, and text."""
    call = tail.calls.get(index)
    arguments = None if call is None else call.arguments
    return json.dumps([result.tool_name, arguments, text_of(result.content)], sort_keys=True, default=str)


def _blocks(tail: LiveTail, index: int, estimate: Estimator, block_tokens: int) -> Iterator[Region]:
    message = tail.items[index].message
    if not isinstance(message, UserMessage | DeveloperMessage | AssistantMessage | CustomMessage):
        return
    content = message.content
    blocks = (TextBlock(content),) if isinstance(content, str) else content
    for number, block in enumerate(blocks):
        if not isinstance(block, TextBlock):
            continue
        for found in find_regions(block.text):
            text = block.text[found.start : found.end]
            tokens = estimate.count(text)
            if tokens >= block_tokens:
                yield Region(index, found.label, tokens, text, Place(number, found.start, found.end))
