"""Session messages as a model gets them: user, developer, assistant and tool results (compaction 1.4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never

from musepi_tui.session.block_codec import decode_block
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
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    text_of,
)
from musepi_tui.session.payload import missing_text

TRUNCATED = "[Output truncated]"
"""What stands for a pruned result that has no text left."""

_HasContent = TypeVar(
    "_HasContent", bound=UserMessage | DeveloperMessage | AssistantMessage | ToolResultMessage
)

_TAG = re.compile(r"<(/?)summary\b(\s[^>]*)?>", re.IGNORECASE)
_PLACEHOLDER = "{{summary}}"


@dataclass(frozen=True, slots=True)
class LlmTemplates:
    """How summaries are shown to the model: texts with the placeholder ``{{summary}}``."""

    compaction_context: str
    branch_context: str


def convert_to_llm(
    messages: Sequence[Message], templates: LlmTemplates, *, developer_role: bool = True
) -> tuple[Message, ...]:
    """The messages in the roles a model knows; those that are not for it are left out.

    Without ``developer_role``, for a provider that lacks it, developer messages become user messages.
    """
    converted = (_convert(message, templates) for message in messages)
    return tuple(_in_known_role(message, developer_role=developer_role) for message in converted if message)


def convert_with_ids(
    messages: Sequence[Message], entry_ids: Sequence[str], templates: LlmTemplates
) -> tuple[tuple[str, Message], ...]:
    """As ``convert_to_llm``, each message with the id of the entry it came from."""
    pairs = zip(entry_ids, (_convert(message, templates) for message in messages), strict=True)
    return tuple((entry_id, message) for entry_id, message in pairs if message is not None)


def strip_summary_wrapper(text: str) -> str:
    """The summary without a ``<summary>`` element around all of it, stripped of white space.

    Text that is not one such element from its first to its last character comes back stripped only.
    """
    stripped = text.strip()
    depth = 0
    inside_from = 0
    for index, tag in enumerate(_TAG.finditer(stripped)):
        is_closing, is_alone = bool(tag[1]), tag[0].endswith("/>")
        if index == 0:
            if tag.start() != 0 or is_closing or is_alone:
                return stripped
            inside_from = tag.end()
        if is_alone:
            continue
        depth += -1 if is_closing else 1
        if depth == 0:
            return stripped[inside_from : tag.start()].strip() if tag.end() == len(stripped) else stripped
    return stripped


def _convert(message: Message, templates: LlmTemplates) -> Message | None:
    match message:
        case UserMessage() | DeveloperMessage() | AssistantMessage():
            return _without_lost_blobs(message)
        case ToolResultMessage():
            return _without_lost_blobs(message) if message.pruned_at_ms is None else _pruned(message)
        case CustomMessage():
            return _without_lost_blobs(DeveloperMessage(message.content, message.timestamp_ms))
        case BashExecution() | FileMention():
            return _convert_attachment(message)
        case BranchSummary() | CompactionSummary():
            return _convert_summary(message, templates)
        case UnknownMessage():
            return None
        case _:
            assert_never(message)


def _in_known_role(message: Message, *, developer_role: bool) -> Message:
    if isinstance(message, DeveloperMessage) and not developer_role:
        return UserMessage(message.content, message.timestamp_ms, message.extra)
    return message


def _without_lost_blobs(message: _HasContent) -> _HasContent:
    """The message with a few words in place of each blob that was not found: a reference is no picture."""
    content = message.content
    if isinstance(content, str):
        lost = missing_text(content)
        return message if lost is None else replace(message, content=lost)
    found = tuple(_without_lost_blob(block) for block in content)
    return (
        message
        if all(new is old for new, old in zip(found, content, strict=True))
        else replace(message, content=found)
    )


def _without_lost_blob(block: Block) -> Block:
    if not isinstance(block, ImageBlock | TextBlock):
        return block
    lost = missing_text(block.data if isinstance(block, ImageBlock) else block.text)
    return block if lost is None else TextBlock(lost)


def _pruned(message: ToolResultMessage) -> ToolResultMessage:
    return replace(message, content=(TextBlock(text_of(message.content) or TRUNCATED),))


def _convert_attachment(message: BashExecution | FileMention) -> UserMessage | None:
    if isinstance(message, FileMention):
        return UserMessage(_mentioned(message), message.timestamp_ms)
    if message.excluded:
        return None
    prompt = "$ " if message.kind == "bash" else ">>> "
    return UserMessage(f"{prompt}{message.command}\n{message.output}".rstrip("\n"), message.timestamp_ms)


def _mentioned(message: FileMention) -> Content:
    """Each file's content under its path, then its image if it has one."""
    blocks: list[Block] = []
    for file in message.files:
        text = f"{file.get('path', '')}\n{file.get('content') or ''}"
        image = decode_block(file.get("image"))
        blocks.append(TextBlock(text.rstrip("\n")))
        if isinstance(image, ImageBlock):
            blocks.append(_without_lost_blob(image))
    return tuple(blocks)


def _convert_summary(message: BranchSummary | CompactionSummary, templates: LlmTemplates) -> Message:
    """A branch summary as developer message; a compaction summary as user message, because a text the program
    generated from history must never outrank a live developer message."""
    text = strip_summary_wrapper(message.summary)
    match message:
        case BranchSummary():
            return DeveloperMessage(
                templates.branch_context.replace(_PLACEHOLDER, text), message.timestamp_ms
            )
        case CompactionSummary():
            framed = templates.compaction_context.replace(_PLACEHOLDER, text)
            content: Content = (TextBlock(framed), *message.images) if message.images else framed
            return UserMessage(content, message.timestamp_ms)
        case _:
            assert_never(message)
