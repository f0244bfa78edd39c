"""What is in memory of a session: its tree, the bodies at hand, the live messages, the running totals."""

import asyncio
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from musepi_tui.base.ids import new_entry_id
from musepi_tui.runtime.cooling import cool
from musepi_tui.runtime.live import LiveMessages, LiveState, ids_behind, live_state, read_live
from musepi_tui.runtime.livepath import LivePath
from musepi_tui.runtime.saving import run_through_cancel
from musepi_tui.runtime.threads import Checkpoint
from musepi_tui.session.entries import Entry, EntryHead, MessageEntry
from musepi_tui.session.messages import Message
from musepi_tui.session.rebuild import SessionContext
from musepi_tui.session.totals import Totals, usage_of
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import Appended


@dataclass(frozen=True, slots=True)
class End:
    """The leaf and the live messages at one moment."""

    leaf_id: str | None
    messages: tuple[Message, ...]
    entry_ids: tuple[str, ...]


class SessionMemory:
    """Changed by its ``History`` alone, always after the file."""

    def __init__(self, tree: SessionTree, bodies: Bodies, context: SessionContext) -> None:
        self.tree = tree
        self.bodies = bodies
        self.totals = Totals()
        self.live = LiveMessages()
        self._live_path = LivePath()
        self.live.take(live_state(tree, context))
        self._added: list[Entry] = []
        self._has_foreign = False

    def set_totals(self, stored: Totals) -> None:
        """Puts in what the file held when it was opened."""
        self.totals = stored
        for entry in self._added:
            self.totals = self.totals.add(entry)

    def new_id(self, fresh: Sequence[Entry] = ()) -> str:
        """An id that no entry has, those of ``fresh`` included."""
        taken = {entry.id for entry in fresh}
        entry_id = new_entry_id(self.tree)
        while entry_id in taken:
            entry_id = new_entry_id(self.tree)
        return entry_id

    def new_ids(self, count: int) -> list[str]:
        """So many different ids that no entry has."""
        found: dict[str, None] = {}
        while len(found) < count:
            found[new_entry_id(self.tree)] = None
        return list(found)

    def read_all(self, heads: Iterable[EntryHead]) -> tuple[Entry, ...]:
        """The entries of many heads. Blocks."""
        return self.bodies.read_all(heads)

    def missing_on_path(self, entry_ids: Collection[str]) -> list[str]:
        """Which of these are not on the path to the leaf."""
        live = self.live.places_of(entry_ids)
        others = [entry_id for entry_id in entry_ids if entry_id not in live]
        if not others:
            return []  # the usual case, and walking the whole path would make it depend on its length
        path = self.tree.path()
        return [entry_id for entry_id in others if path.index_of(entry_id) is None]

    def remember(self, entries: Sequence[Entry], heads: Sequence[EntryHead]) -> None:
        """Takes in entries that were appended; the last one is the leaf."""
        for entry, head in zip(entries, heads, strict=True):
            self.bodies.remember(entry)
            self.tree = self.tree.with_entry(head)
            self._count(entry)

    def move(self, entry: Entry, heads: Sequence[EntryHead], state: LiveState) -> None:
        """Takes in an entry that was appended under another leaf, whose context ``state`` is."""
        self.remember([entry], heads)
        self.live.take(state)
        self.live.extend(entry)

    def messages_since(self, entry_id: str | None) -> tuple[MessageEntry, ...]:
        """The messages on the path behind an entry (None: all of them), oldest first."""
        found: list[MessageEntry] = []
        current = self.tree.leaf_id
        while current is not None and current != entry_id:
            head = self.tree.head(current)
            entry = self.bodies.get(head) if head.type == "message" else None
            if isinstance(entry, MessageEntry):
                found.append(entry)
            current = head.parent_id
        return tuple(reversed(found))

    def replace(self, entries: Mapping[str, Entry]) -> None:
        """Takes in entries whose lines were written anew; those in the file only are read when needed."""
        self._live_path.forget(entries)
        for entry_id, entry in entries.items():
            if self.bodies.is_hot(entry_id):
                self.bodies.remember(entry)

    def take_saved(self, appended: Appended) -> None:
        """Takes in new places of entries, and lines that another program wrote; the leaf stays."""
        leaf_id, tree = self.tree.leaf_id, self.tree
        new = [head for head in appended.foreign if head.id not in tree]
        for head in new:
            tree = tree.with_entry(head)
        moved = dict(appended.moved or {}) | {head.id: head for head in appended.heads}
        self.tree = (tree.with_places(moved) if moved else tree).with_leaf(leaf_id)
        self._has_foreign = self._has_foreign or bool(appended.foreign)
        for head in new:
            self._count(self.bodies.get(self.tree.head(head.id)))
        if appended.changed:
            self.live.take(read_live(self.tree, self.bodies))

    def end(self) -> End:
        """The end of path and context as it is now."""
        return End(self.tree.leaf_id, tuple(self.live.messages), tuple(self.live.entry_ids))

    def drop_from(self, entry_id: str) -> tuple[str, ...]:
        """Moves the leaf to the parent of an entry of the path; the ids that left the path, oldest first."""
        parent_id = self.tree.parent(entry_id)
        dropped = ids_behind(self.tree, parent_id)
        self.tree = self.tree.with_leaf(parent_id)
        self.live.hide(dropped)
        return dropped

    def restore(self, end: End) -> tuple[str, ...]:
        """Puts leaf and live messages back; the ids that are on the path again, oldest first."""
        before = self.tree.leaf_id
        self.tree = self.tree.with_leaf(end.leaf_id)
        self.live.messages, self.live.entry_ids = list(end.messages), list(end.entry_ids)
        return () if before == end.leaf_id else ids_behind(self.tree, before)

    def read_maintained(self, check: Checkpoint, *, with_earlier_lists: bool) -> tuple[Entry, ...]:
        """The live entries, oldest first; before them, if wanted, the compactions whose file lists the newest
        one builds on. Blocks."""
        live = self._live_path.read(self.tree, self.bodies, self.live, check)
        if not with_earlier_lists:
            return live
        return (*self._live_path.read_earlier_lists(live, self.tree, self.bodies, check), *live)

    async def refresh(self) -> None:
        """Rebuilds the live messages from the tree and lets go of what they do not reach, in a thread.

        A cancel that comes meanwhile is dropped.
        """
        while True:
            tree = self.tree
            state = await run_through_cancel(partial(self._read_and_cool, tree))
            if tree is self.tree:
                break
        self.live.take(state)
        self._live_path.forget_messages()

    async def read(self, tree: SessionTree) -> LiveState:
        """The context of another leaf; nothing changes."""
        return await asyncio.to_thread(read_live, tree, self.bodies)

    def _read_and_cool(self, tree: SessionTree) -> LiveState:
        state = read_live(tree, self.bodies)
        # Not with lines of others in the file, and not on Windows (session-format 16).
        if not self._has_foreign and sys.platform != "win32":
            cool(tree, self.bodies)
        return state

    def _count(self, entry: Entry) -> None:
        self.totals = self.totals.add(entry)
        if usage_of(entry) is not None:
            self._added.append(entry)
