"""New entries for the end of the path: ids nobody has, the leaf as parent, the time."""

from collections.abc import Mapping, Sequence
from typing import Any

from musepi_tui.base.clock import Clock, iso_time
from musepi_tui.runtime.edits import BranchDraft, CompactionDraft, Edit, compaction_entry, edit_entry
from musepi_tui.runtime.memory import SessionMemory
from musepi_tui.session.entries import BranchSummaryEntry, Entry, StateEntry
from musepi_tui.session.tree import LEAF_MARK

ROOT = "root"
"""``fromId`` of a branch summary that has no entry before it (compaction 10.1)."""


class EntryMaker:
    """Makes entries for a session; it changes nothing."""

    def __init__(self, memory: SessionMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    def now(self) -> str:
        """The time as entries carry it."""
        return iso_time(self._clock.now_ms())

    def edits(self, edits: Sequence[Edit], pruned_at_ms: int) -> list[Entry]:
        """One ``context_edit`` an edit, in a row under the leaf."""
        made: list[Entry] = []
        parent, now = self._memory.tree.leaf_id, self.now()
        for edit in edits:
            made.append(edit_entry(edit, (self._memory.new_id(made), parent, now), pruned_at_ms))
            parent = made[-1].id
        return made

    def compaction(self, draft: CompactionDraft, edits: Sequence[Edit], pruned_at_ms: int) -> list[Entry]:
        """The edits of a pass, and its compaction behind them."""
        made = self.edits(edits, pruned_at_ms)
        parent = made[-1].id if made else self._memory.tree.leaf_id
        return [*made, compaction_entry(draft, (self._memory.new_id(made), parent, self.now()))]

    def leaf_mark(self, leaf_id: str | None) -> StateEntry:
        """The entry that keeps a move of the leaf to ``leaf_id`` over a restart."""
        fields: dict[str, Any] = {"customType": LEAF_MARK, "data": {}}
        return StateEntry(self._memory.new_id(), leaf_id, self.now(), type="custom", fields=fields)

    def branch_summary(self, leaf_id: str | None, draft: BranchDraft) -> BranchSummaryEntry:
        """The summary of the branch that is left, at the place that is gone on from."""
        return BranchSummaryEntry(
            self._memory.new_id(),
            leaf_id,
            self.now(),
            from_id=leaf_id or ROOT,
            summary=draft.summary,
            details=draft.details,
            from_extension=draft.from_extension,
            usage=draft.usage,
        )

    def states(self, wanted: Sequence[tuple[str, Mapping[str, Any]]]) -> list[StateEntry]:
        """State entries (type, fields), in a row under the leaf."""
        made: list[StateEntry] = []
        parent = self._memory.tree.leaf_id
        for entry_type, fields in wanted:
            entry_id = self._memory.new_id(made)
            made.append(StateEntry(entry_id, parent, self.now(), type=entry_type, fields=dict(fields)))
            parent = entry_id
        return made
