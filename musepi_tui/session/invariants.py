"""What a session file must never say (compaction 15), checked on its entries."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from musepi_tui.session.entries import (
    KEEP_NOTHING,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    EntryHead,
    MessageEntry,
)
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.session.messages import AssistantMessage, ToolResultMessage, tool_calls_of
from musepi_tui.session.rebuild import holds_usable_summary
from musepi_tui.session.tree import SessionTree

_MESSAGE_TYPES = frozenset({"message", "custom_message", "branch_summary"})
_FILES_BLOCK = re.compile(r"<files>.*?</files>", re.DOTALL)
_FILE_LISTS = ("readFiles", "modifiedFiles", "readFilesAdded", "modifiedFilesAdded")


@dataclass(frozen=True, slots=True)
class Breach:
    """One broken rule and the entry that breaks it."""

    entry_id: str
    text: str


def find_breaches(tree: SessionTree, read: Callable[[EntryHead], Entry]) -> Iterator[Breach]:
    """Every breach, depth first through all branches. ``read`` gives the entry of a head."""
    walk = _PathWalk()
    for entry_id, depth in tree.walk():
        entry = read(tree.head(entry_id))
        walk.cut_to(depth)
        yield from _breaches_of(entry, walk)
        walk.enter(entry)


class _PathWalk:
    """The path to the entry looked at, kept while walking through the tree."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.places: dict[str, int] = {}
        self.calls: Counter[str] = Counter()

    def cut_to(self, depth: int) -> None:
        """Go back up until the path has ``depth`` entries."""
        while len(self.entries) > depth:
            entry = self.entries.pop()
            del self.places[entry.id]
            self.calls.subtract(_call_ids(entry))

    def enter(self, entry: Entry) -> None:
        """Go down to a child."""
        self.places[entry.id] = len(self.entries)
        self.entries.append(entry)
        self.calls.update(_call_ids(entry))


def _call_ids(entry: Entry) -> list[str]:
    if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
        return [call.id for call in tool_calls_of(entry.message)]
    return []


def _breaches_of(entry: Entry, walk: _PathWalk) -> Iterator[Breach]:
    if entry.id == KEEP_NOTHING:
        yield Breach(entry.id, f"an entry has the reserved id {KEEP_NOTHING}")
    if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
        yield from _result_breaches(entry, entry.message, walk)
    elif isinstance(entry, CompactionEntry):
        yield from _compaction_breaches(entry, walk)
    elif isinstance(entry, BranchSummaryEntry):
        yield from _list_breaches(entry.id, as_object(entry.details))


def _result_breaches(entry: MessageEntry, message: ToolResultMessage, walk: _PathWalk) -> Iterator[Breach]:
    call_id = message.tool_call_id
    if walk.calls[call_id] <= 0:
        yield Breach(entry.id, f"a tool result answers {call_id or 'nothing'}, no call before it has that id")
    stored = as_object((entry.raw or {}).get("message")) or {}
    if message.is_error and stored.get("useless") is True:
        yield Breach(entry.id, "a tool result is an error and marked useless")


def _compaction_breaches(entry: CompactionEntry, walk: _PathWalk) -> Iterator[Breach]:
    if not holds_usable_summary(entry):
        yield Breach(entry.id, "a compaction has a blank summary")
    if len(_FILES_BLOCK.findall(entry.summary)) > 1:
        yield Breach(entry.id, "a summary has more than one <files> block")
    yield from _list_breaches(entry.id, as_object(entry.details))
    yield from _boundary_breaches(entry, walk)
    last = next(
        (e for e in reversed(walk.entries) if e.type in _MESSAGE_TYPES or e.type == "compaction"), None
    )
    if isinstance(last, CompactionEntry) and entry.method != "port":
        yield Breach(entry.id, f"a compaction follows {last.id} without a message between them")


def _boundary_breaches(entry: CompactionEntry, walk: _PathWalk) -> Iterator[Breach]:
    first_id = entry.first_kept_entry_id
    if entry.retained_tail is not None or first_id in (None, KEEP_NOTHING, entry.id):
        return
    place = walk.places.get(first_id)
    if place is None:
        yield Breach(entry.id, f"the first kept entry {first_id} of a compaction is not on its branch")
        return
    first = next((kept for kept in walk.entries[place:] if kept.type in _MESSAGE_TYPES), None)
    if isinstance(first, MessageEntry) and isinstance(first.message, ToolResultMessage):
        yield Breach(entry.id, f"the first message a compaction keeps, {first.id}, is a tool result")


def _list_breaches(entry_id: str, details: Mapping[str, Any] | None) -> Iterator[Breach]:
    for key in _FILE_LISTS:
        paths = (as_text(path) or "" for path in as_list((details or {}).get(key)) or ())
        if any("://" in path for path in paths):
            yield Breach(entry_id, f"{key} holds an address that is no path")
