"""The one owner of a session's tree, live messages and file (architecture 1, 6; safety 2).

Every change goes through here, in one order: line handed to the kernel, then memory, then the event.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from musepi_tui.base.clock import Clock, iso_time
from musepi_tui.base.errors import MaintenanceError
from musepi_tui.base.ids import new_entry_id
from musepi_tui.context.usage import fresh_index
from musepi_tui.runtime.events import EntryAppended, Event
from musepi_tui.runtime.saving import Saver
from musepi_tui.session.entries import (
    KEEP_NOTHING,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    EntryHead,
    MessageEntry,
    SessionHeader,
    StateEntry,
)
from musepi_tui.session.messages import Content, Message, Usage, UserMessage
from musepi_tui.session.rebuild import (
    SessionContext,
    build_session_context,
    effective_compaction,
    message_of,
)
from musepi_tui.session.totals import Totals, usage_of
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TailEdit:
    """What one entry of the kept tail is replaced by when a compaction is committed."""

    target_id: str
    replacement: Content | None
    reason: str = "tail"


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
    edits: tuple[TailEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a history starts from. ``name`` is the session's display name."""

    header: SessionHeader
    tree: SessionTree
    bodies: Bodies
    context: SessionContext
    name: str | None = None


class History:
    """The session as it is now.

    ``opening`` gives the state entries (type, fields) that have to stand before the next user message: the
    model and thinking level, where the file does not say them yet. ``generation`` grows with every prompt and
    every rewrite of the context; who works from a snapshot compares it before committing.
    """

    def __init__(
        self,
        loaded: Loaded,
        saver: Saver,
        clock: Clock,
        emit: Callable[[Event], None],
        opening: Callable[[], Sequence[tuple[str, Fields]]],
    ) -> None:
        self.header = loaded.header
        self.name = loaded.name
        self.generation = 0
        self._tree = loaded.tree
        self._bodies = loaded.bodies
        self._totals = Totals()
        self._added: list[Entry] = []
        self._saver = saver
        self._clock = clock
        self._emit = emit
        self._opening = opening
        self._messages: list[Message] = []
        self._message_ids: list[str] = []
        self._compaction_id: str | None = None
        self._fresh_from = 0
        self._take_context(loaded.context)

    @property
    def tree(self) -> SessionTree:
        """The heads of all entries, and the leaf."""
        return self._tree

    @property
    def totals(self) -> Totals:
        """Usage and cost of the whole file; of a stored one only from ``set_totals`` on."""
        return self._totals

    def set_totals(self, stored: Totals) -> None:
        """Puts in what the file held when it was opened."""
        self._totals = stored
        for entry in self._added:
            self._totals = self._totals.add(entry)

    @property
    def saver(self) -> Saver:
        """What is written and what is not."""
        return self._saver

    @property
    def messages(self) -> tuple[Message, ...]:
        """The context the model is sent, before conversion."""
        return tuple(self._messages)

    @property
    def message_entry_ids(self) -> tuple[str, ...]:
        """Which entry each of ``messages`` came from."""
        return tuple(self._message_ids)

    @property
    def compaction_id(self) -> str | None:
        """The compaction the context starts with."""
        return self._compaction_id

    @property
    def fresh_from(self) -> int:
        """Index of the first of ``messages`` that came after the compaction; 0 without one. Usage of answers
        before it was billed for a context that is gone."""
        return self._fresh_from

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet."""
        return len(self._tree) == 0

    def entry(self, entry_id: str) -> Entry:
        """One entry. Raises ``EntryNotFoundError``."""
        return self._bodies.get(self._tree.head(entry_id))

    def messages_since(self, entry_id: str | None) -> tuple[MessageEntry, ...]:
        """The messages on the path behind an entry (None: all of them), oldest first."""
        found: list[MessageEntry] = []
        current = self._tree.leaf_id
        while current is not None and current != entry_id:
            head = self._tree.head(current)
            entry = self._bodies.get(head) if head.type == "message" else None
            if isinstance(entry, MessageEntry):
                found.append(entry)
            current = head.parent_id
        return tuple(reversed(found))

    def close(self) -> None:
        """Gives the descriptor for reading back; what is in memory can still be read."""
        self._bodies.close()

    async def load_path(self) -> tuple[Entry, ...]:
        """Every entry from the root to the leaf; cold ones are read from the file."""
        heads = self._tree.path()
        return await asyncio.to_thread(self._read_all, heads)

    def append_message(self, message: Message, *, live_id: str | None = None) -> MessageEntry:
        """Adds a message under the leaf. A user message creates the file and names model and level first."""
        leading: list[StateEntry] = []
        if isinstance(message, UserMessage):
            self.generation += 1
            leading = self._state_entries(self._opening())
        parent = leading[-1].id if leading else self._tree.leaf_id
        entry = MessageEntry(self._new_id(leading), parent, self._now(), message)
        self._store([*leading, entry], live_id)
        if isinstance(message, UserMessage):
            self._saver.sync_soon()
        return entry

    def append_state(self, entry_type: str, fields: Fields) -> StateEntry:
        """Adds a state entry: model, thinking level, name, ..."""
        entries = self._state_entries([(entry_type, fields)])
        self._store(entries, None)
        return entries[0]

    def append_opening(self) -> None:
        """Adds the state entries that are missing in the file: after a change of model or thinking level."""
        entries = self._state_entries(self._opening())
        if entries:
            self._store(entries, None)

    def append_custom(
        self, custom_type: str, content: Content, *, display: bool, attribution: str = "agent"
    ) -> CustomMessageEntry:
        """Adds a message of the program itself; it is sent to the model."""
        entry = CustomMessageEntry(
            self._new_id(()),
            self._tree.leaf_id,
            self._now(),
            custom_type=custom_type,
            content=content,
            display=display,
            attribution=attribution,
        )
        self._store([entry], None)
        return entry

    def hide(self, entry_ids: Collection[str]) -> None:
        """Takes a failed answer, and results that belong to it, out of the live messages; the entries
        stay."""
        kept = [
            pair for pair in zip(self._message_ids, self._messages, strict=True) if pair[0] not in entry_ids
        ]
        self._message_ids = [pair[0] for pair in kept]
        self._messages = [pair[1] for pair in kept]

    async def commit_compaction(self, draft: CompactionDraft) -> CompactionEntry:
        """Writes the pass: lines, data sync, then memory (compaction 12.4).

        Once the lines are handed to the kernel the pass is done: a cancel that comes during the sync has no
        effect any more. Raises ``MaintenanceError`` when the history changed since the pass was prepared and
        ``SessionError`` when it cannot be written; tree and live messages are as before then.
        """
        self._check_draft(draft)
        edits, entry = self._compaction_entries(draft)
        entries: list[Entry] = [*edits, entry]
        heads = self._saver.write_or_raise(entries)
        await self._saver.sync_through_cancel()
        self._remember(entries, heads)
        self.generation += 1
        self._rebuild()
        for written in entries:
            self._emit(EntryAppended(written))
        return entry

    def _check_draft(self, draft: CompactionDraft) -> None:
        if draft.generation != self.generation:
            raise MaintenanceError("the conversation changed meanwhile, so the summary was thrown away")
        first_kept = draft.first_kept_entry_id
        on_path = {head.id for head in self._tree.path()}
        if first_kept != KEEP_NOTHING and first_kept not in on_path:
            raise MaintenanceError(f"the first kept entry {first_kept} is not on the path any more")

    def _compaction_entries(self, draft: CompactionDraft) -> tuple[list[ContextEditEntry], CompactionEntry]:
        edits: list[ContextEditEntry] = []
        parent, now = self._tree.leaf_id, self._now()
        for edit in draft.edits:
            made = ContextEditEntry(
                self._new_id(edits),
                parent,
                now,
                target_id=edit.target_id,
                replacement=edit.replacement,
                reason=edit.reason,
                pruned_at_ms=self._clock.now_ms(),
            )
            edits.append(made)
            parent = made.id
        entry = CompactionEntry(
            self._new_id(edits),
            parent,
            now,
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
        )
        return edits, entry

    def _store(self, entries: Sequence[Entry], live_id: str | None) -> None:
        heads = self._saver.write(entries)
        self._remember(entries, heads or [_unwritten_head(entry) for entry in entries])
        for entry in entries:
            self._extend_context(entry)
            own_live_id = live_id if entry is entries[-1] else None
            self._emit(EntryAppended(entry, saved=heads is not None, live_id=own_live_id))

    def _remember(self, entries: Sequence[Entry], heads: Sequence[EntryHead]) -> None:
        for entry, head in zip(entries, heads, strict=True):
            self._bodies.remember(entry)
            self._tree = self._tree.with_entry(head)
            self._totals = self._totals.add(entry)
            if usage_of(entry) is not None:
                self._added.append(entry)

    def note_saved(self, heads: Sequence[EntryHead]) -> None:
        """Entries that were in memory only are in the file now, at these places."""
        placed = {head.id: head for head in heads}
        known = [placed.get(head.id, head) for head in self._tree.heads.values()]
        self._tree = SessionTree.from_heads(known, self._tree.leaf_id)

    def _extend_context(self, entry: Entry) -> None:
        """Adds what ``build_session_context`` would add for an entry that came last."""
        message = message_of(entry)
        if message is not None:
            self._messages.append(message)
            self._message_ids.append(entry.id)

    def _rebuild(self) -> None:
        path = self._read_all(context_heads(self._tree, self._bodies))
        self._take_context(build_session_context(path))

    def _take_context(self, context: SessionContext) -> None:
        self._messages = list(context.messages)
        self._message_ids = list(context.entry_ids)
        self._compaction_id = context.compaction_id
        self._fresh_from = 0
        if context.compaction_id is not None:
            path_ids = [head.id for head in self._tree.path()]
            self._fresh_from = fresh_index(path_ids, context.compaction_id, context.entry_ids)

    def _state_entries(self, wanted: Sequence[tuple[str, Fields]]) -> list[StateEntry]:
        entries: list[StateEntry] = []
        parent = self._tree.leaf_id
        for entry_type, fields in wanted:
            entry = StateEntry(
                self._new_id(entries), parent, self._now(), type=entry_type, fields=dict(fields)
            )
            entries.append(entry)
            parent = entry.id
        return entries

    def _read_all(self, heads: Sequence[EntryHead]) -> tuple[Entry, ...]:
        return tuple(self._bodies.get(head) for head in heads)

    def _new_id(self, fresh: Sequence[Entry]) -> str:
        taken = {entry.id for entry in fresh}
        entry_id = new_entry_id(self._tree)
        while entry_id in taken:
            entry_id = new_entry_id(self._tree)
        return entry_id

    def _now(self) -> str:
        return iso_time(self._clock.now_ms())


def context_heads(tree: SessionTree, bodies: Bodies) -> tuple[EntryHead, ...]:
    """The heads whose bodies make the context: the path from the keep boundary of the effective compaction
    on, and every state entry before it. Reads the compactions it meets, newest first.
    """
    path = tree.path()
    start = _boundary(path, bodies)
    before = tuple(head for head in path[:start] if head.type not in _MESSAGE_TYPES)
    return (*before, *path[start:])


_MESSAGE_TYPES = frozenset({"message", "custom_message", "branch_summary", "context_edit", "compaction"})


def _boundary(path: Sequence[EntryHead], bodies: Bodies) -> int:
    positions = {head.id: index for index, head in enumerate(path)}
    for index in range(len(path) - 1, -1, -1):
        if path[index].type != "compaction":
            continue
        entry = bodies.get(path[index])
        if not isinstance(entry, CompactionEntry) or effective_compaction((entry,)) is None:
            continue
        first_kept = entry.first_kept_entry_id
        return index if first_kept == KEEP_NOTHING else min(index, positions.get(first_kept or "", 0))
    return 0


def _unwritten_head(entry: Entry) -> EntryHead:
    return EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp)
