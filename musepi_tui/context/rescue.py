"""The last ways to make a context smaller: no pictures, and long texts cut down (compaction 2.5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from musepi_tui.context.edits import Edit, EditReason, Edits, SavingEdit, collect_edits
from musepi_tui.context.estimate import IMAGE_TOKENS, Estimator
from musepi_tui.context.livetail import LiveTail
from musepi_tui.context.offload import OffloadPlan, Place, Region, content_of, saving_of, texts_of
from musepi_tui.session.dangling import without_signatures
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    Content,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
)

IMAGE_REMOVED = "[image removed]"
"""What a message says that held nothing but pictures."""

HEAD_CHARS = 2_000
TAIL_CHARS = 1_000
"""What is left of a text that is cut down (compaction 2.5): what it is stands at its start, how it ended at
its end."""

SHORTEST_CUT_CHARS = 200
"""The middle has to be longer than this: what stands for it takes about 70 characters."""


@dataclass(frozen=True, slots=True)
class ImageDrop:
    """The edits that drop pictures, and how many pictures those are."""

    edits: Edits
    images: int


def drop_images(tail: LiveTail) -> ImageDrop:
    """Every picture of the live tail goes, but for those of protected results; no artifact holds them."""
    found = [found for index in tail.live if (found := _without_images(tail, index)) is not None]
    edits = collect_edits(tail.items, [edit for edit, _ in found])
    return ImageDrop(edits, sum(images for _, images in found))


def truncation_plan(tail: LiveTail, estimate: Estimator, needed_tokens: int) -> OffloadPlan:
    """The middle of the longest texts, longest first, until ``needed_tokens`` are freed.

    The newest message of the person and protected results stay as they are.
    """
    longest = sorted(_middles(tail, estimate), key=lambda region: -region.tokens)
    chosen: list[Region] = []
    for region in longest:
        if needed_tokens <= 0:
            break
        chosen.append(region)
        needed_tokens -= saving_of(region)
    return OffloadPlan(tail, EditReason.TAIL, tuple(sorted(chosen, key=_position)))


def _without_images(tail: LiveTail, index: int) -> tuple[SavingEdit, int] | None:
    message = tail.items[index].message
    content = None if message is None or index in tail.protected else content_of(message)
    if message is None or content is None or isinstance(content, str):
        return None
    kept = tuple(block for block in content if not isinstance(block, ImageBlock))
    images = len(content) - len(kept)
    if not images:
        return None
    edit = Edit(tail.items[index].id, _left(message, kept), EditReason.IMAGES)
    return SavingEdit(edit, images * IMAGE_TOKENS), images


def _left(message: Message, kept: tuple[Block, ...]) -> Content:
    says_something = any(not isinstance(block, TextBlock) or block.text.strip() for block in kept)
    if not says_something:
        return IMAGE_REMOVED
    return without_signatures(kept) if isinstance(message, AssistantMessage) else kept


def _middles(tail: LiveTail, estimate: Estimator) -> Iterator[Region]:
    newest = tail.newest_user_index()
    for index in tail.live:
        message = tail.items[index].message
        if message is None or index == newest or index in tail.protected:
            continue
        for block, text in texts_of(message):
            end = len(text) - TAIL_CHARS
            if end - HEAD_CHARS <= SHORTEST_CUT_CHARS:
                continue
            middle = text[HEAD_CHARS:end]
            place = Place(block, HEAD_CHARS, end)
            tokens = estimate.count(middle)
            region = Region(index, _label(message), tokens, middle, place, apart=True)
            if saving_of(region) > 0:
                yield region


def _label(message: Message) -> str:
    return message.tool_name if isinstance(message, ToolResultMessage) else "text"


def _position(region: Region) -> tuple[int, int]:
    return region.index, 0 if region.place is None else region.place.block
