"""The one owner of a session's tree, live messages and file (architecture 1, 6; safety 2).

Every change goes through here, in one order: line handed to the kernel, then memory, then the event.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import MaintenanceError
from musepi_tui.runtime.edits import BranchDraft, CompactionDraft, Edit, plan_for
from musepi_tui.runtime.entry_maker import EntryMaker
from musepi_tui.runtime.events import EndDropped, EndRestored, EntryAppended, Event
from musepi_tui.runtime.memory import End, SessionMemory
from musepi_tui.runtime.moves import Moved, MoveWriter
from musepi_tui.runtime.saving import Saver
from musepi_tui.runtime.threads import Checkpoint, run_stoppable
from musepi_tui.session.entries import (
    KEEP_NOTHING,
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    EntryHead,
    MessageEntry,
    SessionHeader,
    StateEntry,
)
from musepi_tui.session.messages import Content, Message, UserMessage
from musepi_tui.session.places import place_of
from musepi_tui.session.rebuild import SessionContext
from musepi_tui.session.totals import Totals
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import Appended, Changes, RecoveryNeededError
from musepi_tui.storage.lines import Title, unplaced_head
from musepi_tui.storage.rewrite import with_title
from musepi_tui.storage.titles import clean_title

Fields = Mapping[str, Any]


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
    model and thinking level, where the file does not say them yet. ``generation`` grows with every prompt,
    every rewrite of the context and every move of the leaf; who works from a snapshot compares it before
    committing.
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
        self._memory = SessionMemory(loaded.tree, loaded.bodies, loaded.context)
        self._saver = saver
        self._clock = clock
        self._maker = EntryMaker(self._memory, clock)
        self._emit = emit
        self._opening = opening

    @property
    def tree(self) -> SessionTree:
        """The heads of all entries, and the leaf."""
        return self._memory.tree

    @property
    def totals(self) -> Totals:
        """Usage and cost of the whole file; of a stored one only from ``set_totals`` on."""
        return self._memory.totals

    def set_totals(self, stored: Totals) -> None:
        """Puts in what the file held when it was opened."""
        self._memory.set_totals(stored)

    @property
    def bodies(self) -> Bodies:
        """The entries by their heads; may be read from a thread."""
        return self._memory.bodies

    @property
    def saver(self) -> Saver:
        """What is written and what is not."""
        return self._saver

    @property
    def messages(self) -> tuple[Message, ...]:
        """The context the model is sent, before conversion."""
        return tuple(self._memory.live.messages)

    @property
    def message_entry_ids(self) -> tuple[str, ...]:
        """Which entry each of ``messages`` came from."""
        return tuple(self._memory.live.entry_ids)

    @property
    def compaction_id(self) -> str | None:
        """The compaction the context starts with."""
        return self._memory.live.compaction_id

    @property
    def fresh_from(self) -> int:
        """Index of the first of ``messages`` that came after the compaction; 0 without one. Usage of answers
        before it was billed for a context that is gone."""
        return self._memory.live.fresh_from

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said yet."""
        return len(self.tree) == 0

    def entry(self, entry_id: str) -> Entry:
        """One entry. Raises ``EntryNotFoundError``."""
        return self._memory.bodies.get(self.tree.head(entry_id))

    def messages_since(self, entry_id: str | None) -> tuple[MessageEntry, ...]:
        """The messages on the path behind an entry (None: all of them), oldest first."""
        return self._memory.messages_since(entry_id)

    def close(self) -> None:
        """Gives the descriptor for reading back; what is in memory can still be read."""
        self._memory.bodies.close()

    def read_live(self, check: Checkpoint, *, with_earlier_lists: bool = False) -> tuple[Entry, ...]:
        """The part of the path that maintenance works on, oldest first: from the first entry of the context
        on, and before it, if wanted, the compactions whose file lists the newest one builds on. Blocks."""
        return self._memory.read_maintained(check, with_earlier_lists=with_earlier_lists)

    async def load_live(self) -> tuple[Entry, ...]:
        """All of that, read in a thread."""
        return await run_stoppable(partial(self.read_live, with_earlier_lists=True))

    def append_message(self, message: Message, *, live_id: str | None = None) -> MessageEntry:
        """Adds a message under the leaf. A user message creates the file and names model and level first."""
        leading: list[StateEntry] = []
        if isinstance(message, UserMessage):
            self.generation += 1
            leading = self._maker.states(self._opening())
        parent = leading[-1].id if leading else self.tree.leaf_id
        entry = MessageEntry(self._memory.new_id(leading), parent, self._maker.now(), message)
        self._store([*leading, entry], live_id)
        if isinstance(message, UserMessage):
            self._saver.sync_soon()
        return entry

    def append_state(self, entry_type: str, fields: Fields) -> StateEntry:
        """Adds a state entry: model, thinking level, name, ..."""
        entries = self._maker.states([(entry_type, fields)])
        self._store(entries, None)
        return entries[0]

    def append_opening(self) -> None:
        """Adds the state entries that are missing in the file: after a change of model or thinking level."""
        entries = self._maker.states(self._opening())
        if entries:
            self._store(entries, None)

    def append_custom(
        self, custom_type: str, content: Content, *, display: bool, attribution: str = "agent"
    ) -> CustomMessageEntry:
        """Adds a message of the program itself; it is sent to the model."""
        entry = CustomMessageEntry(
            self._memory.new_id(),
            self.tree.leaf_id,
            self._maker.now(),
            custom_type=custom_type,
            content=content,
            display=display,
            attribution=attribution,
        )
        self._store([entry], None)
        return entry

    def append_label(self, target_id: str, label: str | None) -> StateEntry:
        """Labels an entry, or takes its label away. Raises ``EntryNotFoundError``."""
        fields: dict[str, Any] = {"targetId": self.tree.head(target_id).id}
        return self.append_state("label", fields if not label else fields | {"label": label})

    def set_name(self, name: str) -> StateEntry:
        """Names the session; an empty name takes the name away."""
        cleaned = clean_title(name)
        entry = self.append_state("session_info", {"name": cleaned})
        title = Title(cleaned, "user", entry.timestamp)
        self.name = cleaned or None
        self.header = with_title(self.header, title)
        self._saver.set_title(title)
        return entry

    async def move_leaf(self, leaf_id: str | None, draft: BranchDraft | None = None) -> Moved | None:
        """Goes on from another entry, or with None from before the first one; a line keeps that over a
        restart: the summary ``draft`` of the branch that is left, or a mark.

        Does nothing, and gives None, when people see that entry as the current one already and there is no
        summary. Raises ``EntryNotFoundError`` for an unknown entry and ``SessionError`` when it cannot be
        written; nothing was changed then. So it is when the wait for the context of that place is cancelled.
        """
        leaf_id = self.tree.with_leaf(leaf_id).leaf_id
        if draft is None and self.tree.display_leaf == leaf_id:
            return None
        written = await MoveWriter(self._memory, self._maker, self._saver).write(leaf_id, draft)
        old_leaf_id = place_of(self.tree)
        self._memory.move(written.entry, written.heads, written.state)
        self.generation += 1
        self._saver.sync_soon()
        self._announce([written.entry])
        summary = written.entry if isinstance(written.entry, BranchSummaryEntry) else None
        moved = Moved(old_leaf_id, place_of(self.tree), summary, written.state.context)
        self._emit(moved.event)
        return moved

    def hide(self, entry_ids: Collection[str]) -> None:
        """Takes a failed answer, and results that belong to it, out of the live messages; the entries
        stay."""
        self._memory.live.hide(entry_ids)

    def end(self) -> End:
        """Where the path and the live messages end now, to be restored later."""
        return self._memory.end()

    def drop_end(self, entry_id: str) -> None:
        """Goes on from the parent of an entry, without a line that says so.

        The entry and what follows it stay in the file, on a branch of their own. Raises
        ``EntryNotFoundError``.
        """
        dropped = self._memory.drop_from(entry_id)
        self.generation += 1
        self._emit(EndDropped(dropped))

    def restore_end(self, end: End) -> None:
        """Puts back what was hidden or dropped since ``end``."""
        restored = self._memory.restore(end)
        self.generation += 1
        if restored:
            self._emit(EndRestored(restored))

    async def commit_edits(self, edits: Sequence[Edit]) -> None:
        """Changes what the model sees of entries on the path, and stores that (compaction 1.6).

        Of several edits of one entry the last counts. Raises ``MaintenanceError`` for an entry that is not on
        the path, ``SessionError`` when it cannot be written; then nothing was changed, except by the edits
        that were stored in a file written anew before.
        """
        chosen = tuple({edit.target_id: edit for edit in edits}.values())
        strangers = self._memory.missing_on_path([edit.target_id for edit in chosen])
        if strangers:
            raise MaintenanceError(f"entry {strangers[0]} cannot be edited: it is not on the path")
        pruned_at_ms = self._clock.now_ms()
        others = await self._edit_in_place(chosen, pruned_at_ms)
        if not others:
            return
        entries, heads = await self._write(partial(self._maker.edits, others, pruned_at_ms))
        self._memory.remember(entries, heads)
        await self._show(others, pruned_at_ms)
        self._saver.sync_soon()
        self._announce(entries)

    async def commit_compaction(self, draft: CompactionDraft) -> CompactionEntry:
        """Writes the pass: lines, data sync, then memory (compaction 12.4).

        Once the lines are handed to the kernel the pass is done: a cancel that comes during the sync has no
        effect any more. Raises ``MaintenanceError`` when the history changed since the pass was prepared and
        ``SessionError`` when it cannot be written; tree and live messages are as before then.
        """
        self._check_draft(draft)
        now_ms = self._clock.now_ms()
        others = await self._edit_in_place(draft.edits, now_ms)
        entries, heads = await self._write(partial(self._maker.compaction, draft, others, now_ms))
        await self._saver.sync_through_cancel()
        self._memory.remember(entries, heads)
        self.generation += 1
        await self._memory.refresh()
        self._announce(entries)
        entry = entries[-1]
        assert isinstance(entry, CompactionEntry)
        return entry

    def note_saved(self, appended: Appended) -> None:
        """Entries that were in memory only are in the file now; what others did to it is known."""
        self._memory.take_saved(appended)

    def _check_draft(self, draft: CompactionDraft) -> None:
        if draft.generation != self.generation:
            raise MaintenanceError(
                "the conversation changed meanwhile, so the summary was thrown away; try again."
            )
        first_kept = draft.first_kept_entry_id
        if first_kept != KEEP_NOTHING and self._memory.missing_on_path([first_kept]):
            raise MaintenanceError(f"the first kept entry {first_kept} is not on the path any more")

    async def _edit_in_place(self, edits: Sequence[Edit], pruned_at_ms: int) -> tuple[Edit, ...]:
        """Stores what can be stored by writing lines anew, where that is wanted; the edits that are left."""
        if not edits or not self._saver.rewrites_edits:
            return tuple(edits)
        memory = self._memory
        plan = await asyncio.to_thread(plan_for, memory.tree, memory.bodies, edits, pruned_at_ms)
        if plan.lines:
            await self._saver.rewrite(Changes(lines=plan.lines))
            memory.replace(plan.entries)
            await self._show([edit for edit in edits if edit.target_id in plan.lines], pruned_at_ms)
        return plan.others

    async def _show(self, edits: Sequence[Edit], pruned_at_ms: int) -> None:
        """Makes the live messages what a rebuild would make them."""
        self.generation += 1
        replacements = {edit.target_id: edit.replacement for edit in edits}
        if not self._memory.live.edit(replacements, pruned_at_ms):
            await self._memory.refresh()

    async def _write(self, make: Callable[[], list[Entry]]) -> tuple[list[Entry], Sequence[EntryHead]]:
        """The entries ``make`` gives and their heads, written. What the file needs first is done first."""
        try:
            entries = make()
            return entries, self._saver.write_or_raise(entries)
        except RecoveryNeededError:
            await self._saver.make_ready()
        entries = make()
        return entries, self._saver.write_or_raise(entries)

    def _store(self, entries: Sequence[Entry], live_id: str | None) -> None:
        heads = self._saver.write(entries)
        self._memory.remember(entries, heads or [unplaced_head(entry) for entry in entries])
        for entry in entries:
            self._memory.live.extend(entry)
            own_live_id = live_id if entry is entries[-1] else None
            self._emit(EntryAppended(entry, saved=heads is not None, live_id=own_live_id))

    def _announce(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._emit(EntryAppended(entry))
