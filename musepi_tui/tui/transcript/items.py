"""One entry becomes the items the transcript shows for it. Pure."""

from collections.abc import Iterator
from typing import Protocol

from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    Content,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    ImageBlock,
    Message,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    text_of,
)
from musepi_tui.tui.transcript import blocks
from musepi_tui.tui.transcript.blocks import Block, Item, ItemKind
from musepi_tui.tui.transcript.facts import (
    branch_divider,
    compaction_divider,
    error_block,
    handoff_divider,
    image_captions,
    length_notice,
    state_notice,
)
from musepi_tui.tui.transcript.titles import view_of_call, view_of_details

HIDDEN_TYPES = frozenset({"label", "custom", "session_info", "context_edit", "title_change"})
"""Entry types that never make an item, so that their bodies need not be read (TUI-2.8)."""
STATE_TYPES = HIDDEN_TYPES | {"model_change", "thinking_level_change"}
"""Entry types in which nobody says anything."""

AUTO_CONTINUE = "auto-continue"
"""Custom type of the message with which the work goes on by itself after a compaction (TUI-6.8)."""


class Surroundings(Protocol):
    """What other entries and the running turn say about an entry."""

    def tool_block(self, call: ToolCallBlock) -> blocks.ToolBlock:
        """The call joined with its result."""
        ...

    def has_call(self, call_id: str) -> bool:
        """Whether the answer before this entry holds the call."""
        ...

    def late_warning(self) -> str | None:
        """A warning stored for this compaction after it was written."""
        ...

    def thinking_seconds(self, item_id: str) -> float | None:
        """How long the model thought, when it was watched."""
        ...

    @property
    def shows_model_changes(self) -> bool:
        """Whether a change of model or level is told here."""
        ...


def items_of_entry(entry: Entry, around: Surroundings, revision: int = 0) -> tuple[Item, ...]:
    """The items of an entry, in order; none for bookkeeping and for results that joined their call."""
    return tuple(
        Item(item_id, kind, block, revision) for item_id, kind, block in _parts_of_entry(entry, around)
    )


_Part = tuple[str, ItemKind, Block]


def _parts_of_entry(entry: Entry, around: Surroundings) -> Iterator[_Part]:
    match entry:
        case MessageEntry():
            yield from _parts_of_message(entry.id, entry.message, around)
        case CompactionEntry():
            block = compaction_divider(entry, around.late_warning())
            yield entry.id, ItemKind.COMPACTION, block
        case BranchSummaryEntry() if entry.summary.strip():
            yield entry.id, ItemKind.BRANCH_SUMMARY, branch_divider(entry)
        case CustomMessageEntry() if entry.display:
            yield _custom_part(entry.id, entry.custom_type, entry.content)
        case StateEntry() if around.shows_model_changes:
            notice = state_notice(entry)
            if notice is not None:
                yield entry.id, ItemKind.NOTICE, notice
        case _:
            return


def _parts_of_message(entry_id: str, message: Message, around: Surroundings) -> Iterator[_Part]:
    match message:
        case UserMessage():
            captions = image_captions(message.content)
            yield entry_id, ItemKind.USER, blocks.UserBlock(text_of(message.content), captions)
        case AssistantMessage():
            yield from _parts_of_answer(entry_id, message, around)
        case ToolResultMessage():
            if not around.has_call(message.tool_call_id):
                yield entry_id, ItemKind.TOOL, _orphan_result(message)
        case BashExecution():
            yield entry_id, ItemKind.BASH, _bash_block(message)
        case CustomMessage():
            if message.display:
                yield _custom_part(entry_id, message.custom_type, message.content)
        case BranchSummary() | CompactionSummary():
            return  # rebuilt for the model only, never stored
        case FileMention() | DeveloperMessage() | UnknownMessage():
            yield entry_id, ItemKind.CUSTOM, _foreign_block(message)


def _parts_of_answer(entry_id: str, message: AssistantMessage, around: Surroundings) -> Iterator[_Part]:
    for index, block in enumerate(message.content):
        item_id = f"{entry_id}/{index}"
        match block:
            case TextBlock() if block.text.strip():
                yield item_id, ItemKind.ASSISTANT, blocks.AnswerBlock(block.text)
            case ThinkingBlock() if block.redacted or block.thinking.strip():
                seconds = around.thinking_seconds(item_id)
                thought = blocks.ThinkingBlock(block.thinking, redacted=block.redacted, seconds=seconds)
                yield item_id, ItemKind.THINKING, thought
            case ToolCallBlock():
                yield item_id, ItemKind.TOOL, around.tool_block(block)
            case ImageBlock():
                captions = image_captions((block,))
                yield item_id, ItemKind.CUSTOM, blocks.CustomBlock("", "", captions)
            case OpaqueBlock():
                label = f"unknown block: {block.raw.get('type', '?')}"
                yield item_id, ItemKind.CUSTOM, blocks.CustomBlock(label, "")
            case _:
                continue
    yield from _end_of_answer(f"{entry_id}/end", message)


def _end_of_answer(item_id: str, message: AssistantMessage) -> Iterator[_Part]:
    match message.stop_reason:
        case StopReason.ABORTED:
            yield item_id, ItemKind.INTERRUPTED, blocks.InterruptedBlock()
        case StopReason.ERROR:
            yield item_id, ItemKind.ERROR, error_block(message)
        case StopReason.LENGTH:
            yield item_id, ItemKind.NOTICE, length_notice(message)
        case StopReason.STOP | StopReason.TOOL_USE:
            return


def _foreign_block(message: FileMention | DeveloperMessage | UnknownMessage) -> blocks.CustomBlock:
    match message:
        case FileMention():
            return blocks.CustomBlock(
                "files", "\n".join(str(file.get("path", "?")) for file in message.files)
            )
        case DeveloperMessage():
            return blocks.CustomBlock("developer", text_of(message.content))
        case UnknownMessage():
            return blocks.CustomBlock(f"unknown message: {message.role}", "")


def _custom_part(entry_id: str, custom_type: str, content: Content) -> _Part:
    if custom_type == "handoff":
        return entry_id, ItemKind.HANDOFF, handoff_divider(content)
    if custom_type == AUTO_CONTINUE:
        return entry_id, ItemKind.NOTICE, blocks.NoticeBlock("info", "continuing…", text_of(content))
    block = blocks.CustomBlock(custom_type, text_of(content), image_captions(content))
    return entry_id, ItemKind.CUSTOM, block


def _bash_block(message: BashExecution) -> blocks.BashBlock:
    return blocks.BashBlock(
        message.command,
        message.output,
        message.exit_code,
        cancelled=message.cancelled,
        truncated=message.truncated,
        excluded=message.excluded,
    )


def _orphan_result(message: ToolResultMessage) -> blocks.ToolBlock:
    state = blocks.ToolState.ERROR if message.is_error else blocks.ToolState.OK
    view = view_of_details(message.details) or view_of_call(message.tool_name, {})
    captions = image_captions(message.content)
    return blocks.ToolBlock(message.tool_name, state, view, text_of(message.content), captions=captions)
