"""A path as maintenance sees it: each entry with the message it gives the model (compaction 1.3, 1.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from musepi_tui.session.entries import CompactionEntry, ContextEditEntry, Entry
from musepi_tui.session.messages import (
    AssistantMessage,
    Content,
    CustomMessage,
    DeveloperMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from musepi_tui.session.rebuild import message_of


@dataclass(frozen=True, slots=True)
class PathItem:
    """An entry of a path and its message after edits; None when the entry gives the model none."""

    entry: Entry
    message: Message | None

    @property
    def id(self) -> str:
        """The id of the entry."""
        return self.entry.id

    @property
    def is_compaction(self) -> bool:
        """Whether the entry is a divider."""
        return isinstance(self.entry, CompactionEntry)


def path_items(path: Sequence[Entry]) -> tuple[PathItem, ...]:
    """One item for each entry of the path, in order. The last edit after its target wins; None drops it."""
    edits = _edits_by_target(path)
    return tuple(PathItem(entry, _visible_message(entry, edits)) for entry in path)


def with_content(message: Message, content: Content, pruned_at_ms: int | None) -> Message:
    """A new message object with other content; messages without content of that kind stay as they are."""
    match message:
        case ToolResultMessage():
            return replace(message, content=blocks_of(content), pruned_at_ms=pruned_at_ms)
        case AssistantMessage():
            return replace(message, content=blocks_of(content))
        case UserMessage() | DeveloperMessage() | CustomMessage():
            return replace(message, content=content)
        case _:
            return message


def _edits_by_target(path: Sequence[Entry]) -> Mapping[str, ContextEditEntry]:
    seen: set[str] = set()
    edits: dict[str, ContextEditEntry] = {}
    for entry in path:
        if isinstance(entry, ContextEditEntry) and entry.target_id in seen:
            edits[entry.target_id] = entry
        seen.add(entry.id)
    return edits


def _visible_message(entry: Entry, edits: Mapping[str, ContextEditEntry]) -> Message | None:
    message = message_of(entry)
    edit = edits.get(entry.id)
    if message is None or edit is None:
        return message
    if edit.replacement is None:
        return None
    return with_content(message, edit.replacement, edit.pruned_at_ms)
