"""JSON shapes of messages and trees, for the session commands and for RPC (contract 3)."""

from collections.abc import Callable, Sequence

from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    EntryHead,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.fields import as_text
from musepi_tui.session.labels import collect_labels
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    Block,
    CustomMessage,
    DeveloperMessage,
    ImageBlock,
    Message,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
    tool_calls_of,
)
from musepi_tui.session.passes import branch_text, handoff_text
from musepi_tui.session.transcript import HANDOFF_TYPE
from musepi_tui.session.tree import SessionTree

PREVIEW_CHARS = 200


def context_message_json(entry_id: str, message: Message) -> dict[str, object]:
    """One message of the model's context, after ``convert_to_llm``."""
    content: Sequence[Block] = ()
    role, calls, answers = "user", (), None
    if isinstance(message, UserMessage | DeveloperMessage):
        role = "user" if isinstance(message, UserMessage) else "developer"
        content = blocks_of(message.content)
    elif isinstance(message, AssistantMessage):
        role, content, calls = "assistant", message.content, tool_calls_of(message)
    elif isinstance(message, ToolResultMessage):
        role, content, answers = "toolResult", message.content, message.tool_call_id
    images = [block for block in content if isinstance(block, ImageBlock)]
    return {
        "role": role,
        "entryId": entry_id,
        "text": text_of(tuple(content)),
        "toolCalls": [{"id": call.id, "name": call.name} for call in calls],
        "toolCallId": answers,
        "images": [{"mimeType": image.mime_type, "bytes": _decoded_bytes(image.data)} for image in images],
    }


def tree_json(tree: SessionTree, read: Callable[[EntryHead], Entry]) -> dict[str, object]:
    """All entries depth first. ``read`` gives the entry of a head; texts are previews."""
    on_path = {head.id for head in tree.path()}
    heads = [tree.head(entry_id) for entry_id in tree.order]
    labels = collect_labels(read(head) for head in heads if head.type == "label")
    nodes: list[dict[str, object]] = []
    for entry_id, depth in tree.walk():
        head = tree.head(entry_id)
        nodes.append(
            {
                "id": entry_id,
                "parentId": tree.parent(entry_id),
                "type": head.type,
                "role": head.role,
                "text": preview(read(head)),
                "label": labels.get(entry_id),
                "onPath": entry_id in on_path,
                "isLeaf": not tree.children(entry_id),
                "depth": depth,
            }
        )
    return {"leafId": tree.display_leaf, "nodes": nodes}


def preview(entry: Entry) -> str:
    """The beginning of what an entry says."""
    return _text_of_entry(entry)[:PREVIEW_CHARS]


def _text_of_entry(entry: Entry) -> str:
    match entry:
        case MessageEntry():
            return _text_of_message(entry.message)
        case CompactionEntry():
            return entry.summary
        case BranchSummaryEntry():
            return branch_text(entry.summary)
        case CustomMessageEntry():
            is_handoff = entry.custom_type == HANDOFF_TYPE
            return handoff_text(entry.content) if is_handoff else text_of(entry.content)
        case ContextEditEntry():
            return entry.target_id
        case StateEntry():
            return _text_of_state(entry)


def _text_of_message(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        names = ", ".join(call.name for call in tool_calls_of(message))
        return text_of(message.content).strip() or names
    if isinstance(message, UserMessage | DeveloperMessage | CustomMessage | ToolResultMessage):
        return text_of(message.content)
    return message.command if isinstance(message, BashExecution) else ""


def _text_of_state(entry: StateEntry) -> str:
    fields = entry.fields
    if entry.type == "model_change":
        parts = (as_text(fields.get("provider")), as_text(fields.get("modelId")))
        return as_text(fields.get("model")) or "/".join(part for part in parts if part)
    keys = ("label", "name", "thinkingLevel", "mode", "title", "customType")
    return next((text for key in keys if (text := as_text(fields.get(key)))), "")


def _decoded_bytes(base64_text: str) -> int:
    """How many bytes base64 text stands for."""
    return len(base64_text.rstrip("=")) * 3 // 4
