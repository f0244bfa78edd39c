"""A path as maintenance sees it: each entry with the message it gives the model (compaction 1.3, 1.6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from musepi_tui.session.entries import CompactionEntry, ContextEditEntry, Entry
from musepi_tui.session.messages import Message
from musepi_tui.session.rebuild import last_edits, message_of, with_content, without_recovered


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
    """One item for each entry of the path, in order. The last edit after its target wins; None drops it.

    Answers that a retry replaced give no message, nor do their results.
    """
    edits = last_edits(path)
    found = {entry.id: _visible_message(entry, edits) for entry in path}
    pairs = [(entry_id, message) for entry_id, message in found.items() if message is not None]
    shown = dict(without_recovered(pairs))
    return tuple(PathItem(entry, shown.get(entry.id)) for entry in path)


def _visible_message(entry: Entry, edits: Mapping[str, ContextEditEntry]) -> Message | None:
    message = message_of(entry)
    edit = edits.get(entry.id)
    if message is None or edit is None:
        return message
    if edit.replacement is None:
        return None
    return with_content(message, edit.replacement, edit.pruned_at_ms)
