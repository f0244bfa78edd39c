"""Changes of what the model sees of older entries, and how they are stored (compaction 1.6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from musepi_tui.session.codec import decode_entry, dump_line
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from musepi_tui.session.messages import Content, Usage, text_of
from musepi_tui.session.rebuild import message_of, with_content
from musepi_tui.session.records import Record, parse_record
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies


@dataclass(frozen=True, slots=True)
class Edit:
    """What the model sees of an entry from now on: ``replacement`` instead of its content, or nothing when
    that is None. ``reason`` is a word of compaction 1.1."""

    target_id: str
    replacement: Content | None
    reason: str = "tail"


@dataclass(frozen=True, slots=True)
class BranchDraft:
    """A summary of the branch that is left, ready to be stored. ``usage`` is what writing it took."""

    summary: str
    details: Any = None
    from_extension: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class CompactionDraft:
    """A finished pass, ready to be committed: a compaction without id, parent and time.

    ``generation`` is what ``History.generation`` was when the pass was prepared. ``edits`` are written before
    the compaction, in the same write.
    """

    generation: int
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    tokens_after: int | None = None
    short_summary: str | None = None
    details: Any = None
    preserve_data: Mapping[str, Any] | None = None
    warning: str | None = None
    method: str | None = None
    reason: str | None = None
    mid_turn: bool = False
    model: str | None = None
    duration_ms: int | None = None
    usage: Usage | None = None
    from_extension: bool = False
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class InPlace:
    """Edits that are stored by writing lines of the file anew, by entry id; and those that cannot be."""

    entries: dict[str, Entry]
    lines: dict[str, bytes]
    others: tuple[Edit, ...]


def plan_in_place(
    edits: Sequence[Edit], targets: Sequence[Entry], edited_before: Iterable[str], pruned_at_ms: int
) -> InPlace:
    """How edits are stored when ``session.pruneStorage`` is ``rewrite``.

    ``targets`` are the entries they are about; ``edited_before`` are ids of entries with an edit on the path
    already, which counts more than the line does. An edit that a changed line alone would not show the same
    way as a ``context_edit`` is among ``others``: dropping an entry, for one, would part its children from
    their parents. Content that has to go from the file is therefore to be replaced, not dropped.
    """
    by_id = {entry.id: entry for entry in targets}
    older = frozenset(edited_before)
    entries: dict[str, Entry] = {}
    lines: dict[str, bytes] = {}
    others: list[Edit] = []
    for edit in {edit.target_id: edit for edit in edits}.values():  # the last one of a target counts
        stored = None
        if edit.replacement is not None:
            stored = _edited(by_id[edit.target_id], edit.replacement, pruned_at_ms)
        if stored is not None:
            entries[edit.target_id], lines[edit.target_id] = stored
        if stored is None or edit.target_id in older:
            others.append(edit)
    return InPlace(entries, lines, tuple(others))


def plan_for(tree: SessionTree, bodies: Bodies, edits: Sequence[Edit], pruned_at_ms: int) -> InPlace:
    """The plan for entries on the path to the leaf of ``tree``; reads them. Blocks."""
    targets = [bodies.get(tree.head(edit.target_id)) for edit in edits]
    marks = (bodies.get(head) for head in tree.path().of_types(("context_edit",)))
    before = [mark.target_id for mark in marks if isinstance(mark, ContextEditEntry)]
    return plan_in_place(edits, targets, before, pruned_at_ms)


def edit_entry(edit: Edit, base: tuple[str, str | None, str], pruned_at_ms: int) -> ContextEditEntry:
    """The ``context_edit`` of an edit; ``base`` are id, parent and timestamp."""
    return ContextEditEntry(
        *base,
        target_id=edit.target_id,
        replacement=edit.replacement,
        reason=edit.reason,
        pruned_at_ms=pruned_at_ms,
    )


def compaction_entry(draft: CompactionDraft, base: tuple[str, str | None, str]) -> CompactionEntry:
    """The entry of a finished pass; ``base`` are id, parent and timestamp."""
    return CompactionEntry(
        *base,
        summary=draft.summary,
        first_kept_entry_id=draft.first_kept_entry_id,
        tokens_before=draft.tokens_before,
        tokens_after=draft.tokens_after,
        short_summary=draft.short_summary,
        details=draft.details,
        preserve_data=draft.preserve_data,
        warning=draft.warning,
        method=draft.method,
        reason=draft.reason,
        mid_turn=draft.mid_turn,
        model=draft.model,
        duration_ms=draft.duration_ms,
        usage=draft.usage,
        from_extension=draft.from_extension,
    )


def _edited(entry: Entry, content: Content, pruned_at_ms: int) -> tuple[Entry, bytes] | None:
    """An entry with other content as it will be read back, and its line; None when its message would not be
    what a ``context_edit`` makes of it."""
    before = message_of(entry)
    match entry:
        case MessageEntry():
            changed: Entry = replace(entry, message=with_content(entry.message, content, pruned_at_ms))
        case CustomMessageEntry():
            changed = replace(entry, content=content)
        case BranchSummaryEntry():
            changed = replace(entry, summary=text_of(content))
        case _:
            return None
    line = dump_line(changed)
    record = parse_record(line)
    if before is None or not isinstance(record, Record):
        return None
    read_back = decode_entry(record.fields)
    is_equal = message_of(read_back) == with_content(before, content, pruned_at_ms)
    return (read_back, line) if is_equal else None
