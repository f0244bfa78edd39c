"""Parts of the live tail that move to an artifact, and what is left in their place (compaction 5.5, 5.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from musepi_tui.context.edits import Edit, EditReason, Edits, SavingEdit, collect_edits
from musepi_tui.context.livetail import LiveTail
from musepi_tui.session.dangling import without_signatures
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    Block,
    BranchSummary,
    CompactionSummary,
    Content,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    Message,
    TextBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
)

PLACEHOLDER_TOKENS = 16
"""What a placeholder takes (compaction 5.6); smaller parts stay where they are."""


@dataclass(frozen=True, slots=True)
class Place:
    """The characters ``[start, end)`` of the text block with the index ``block``; 0 where all is one text."""

    block: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the message at ``index`` of the path, its text and its tokens, estimated.

    ``place`` None is a whole tool result. ``label`` says for people what it is. ``apart``: the text goes on
    before and behind it, so what is left in its place stands between blank lines.
    """

    index: int
    label: str
    tokens: int
    text: str
    place: Place | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """What moves to one artifact. ``regions`` are in the order of the path and numbered from 1."""

    tail: LiveTail
    reason: EditReason
    regions: tuple[Region, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.regions)

    @property
    def tokens_saved(self) -> int:
        """Tokens it frees, estimated."""
        return sum(saving_of(region) for region in self.regions)

    @property
    def result_count(self) -> int:
        """How many whole tool results it takes."""
        return sum(region.place is None for region in self.regions)

    @property
    def block_count(self) -> int:
        """How many parts of texts it takes."""
        return len(self.regions) - self.result_count

    def artifact_text(self) -> str:
        """The artifact: every region with its number."""
        return "".join(
            f"### region {number} ({region.label}, ~{region.tokens} tok)\n\n{region.text}\n\n"
            for number, region in enumerate(self.regions, start=1)
        )

    def edits(self, artifact_id: str | None) -> Edits:
        """The changes, once the artifact is stored under that id; None when it could not be."""
        by_index: dict[int, list[tuple[Region, str]]] = {}
        for number, region in enumerate(self.regions, start=1):
            by_index.setdefault(region.index, []).append((region, placeholder(region, number, artifact_id)))
        found = [self._edit(index, parts) for index, parts in by_index.items()]
        return collect_edits(self.tail.items, found)

    def _edit(self, index: int, parts: Sequence[tuple[Region, str]]) -> SavingEdit:
        item = self.tail.items[index]
        whole = next((text for region, text in parts if region.place is None), None)
        tokens = sum(saving_of(region) for region, _ in parts)
        if whole is not None or item.message is None:
            return SavingEdit(Edit(item.id, whole, self.reason), tokens)
        places = {region.place: text for region, text in parts if region.place is not None}
        return SavingEdit(Edit(item.id, replace_places(item.message, places), self.reason), tokens)


def saving_of(region: Region) -> int:
    """Tokens that go when the region does; never below 0."""
    return max(0, region.tokens - PLACEHOLDER_TOKENS)


def placeholder(region: Region, number: int, artifact_id: str | None) -> str:
    """What is left in the place of a region."""
    where = "" if artifact_id is None else f"; recover: artifact://{artifact_id} (region {number})"
    text = f"[shaken ~{region.tokens} tokens{where}]"
    return f"\n\n{text}\n\n" if region.apart else text


def content_of(message: Message) -> Content | None:
    """The content an edit of the message replaces; None where an edit can change nothing."""
    match message:
        case UserMessage() | DeveloperMessage() | CustomMessage() | AssistantMessage() | ToolResultMessage():
            return message.content
        case BashExecution():
            return message.output
        case BranchSummary():
            return message.summary
        case CompactionSummary() | FileMention() | UnknownMessage():
            return None


def texts_of(message: Message) -> tuple[tuple[int, str], ...]:
    """The texts of a message with the index of their block."""
    content = content_of(message)
    if content is None or isinstance(content, str):
        return ((0, content),) if content else ()
    return tuple((index, block.text) for index, block in enumerate(content) if isinstance(block, TextBlock))


def replace_places(message: Message, places: Mapping[Place, str]) -> Content | None:
    """The content of the message with these texts at these places."""
    content = content_of(message)
    if content is None:
        return None
    if isinstance(content, str):
        return _replaced(content, places)
    by_block: dict[int, dict[Place, str]] = {}
    for place, text in places.items():
        by_block.setdefault(place.block, {})[place] = text
    blocks = tuple(_replaced_block(block, by_block.get(index, {})) for index, block in enumerate(content))
    return without_signatures(blocks) if isinstance(message, AssistantMessage) else blocks


def _replaced_block(block: Block, places: Mapping[Place, str]) -> Block:
    if not places or not isinstance(block, TextBlock):
        return block
    return replace(block, text=_replaced(block.text, places), signature=None)


def _replaced(text: str, places: Mapping[Place, str]) -> str:
    """From the end to the start, so that the places stay true."""
    for place in sorted(places, key=lambda place: place.start, reverse=True):
        text = f"{text[: place.start]}{places[place]}{text[place.end :]}"
    return text
