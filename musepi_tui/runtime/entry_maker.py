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
        return self._edits(edits, self._memory.new_ids(len(edits)), pruned_at_ms)

    def compaction(self, draft: CompactionDraft, edits: Sequence[Edit], pruned_at_ms: int) -> list[Entry]:
        """The edits of a pass, and its compaction behind them."""
        own_id, *ids = self._memory.new_ids(1 + len(edits))
        parent = ids[-1] if ids else self._memory.tree.leaf_id
        marks = self._edits(edits, ids, pruned_at_ms)
        return [*marks, compaction_entry(draft, (own_id, parent, self.now()))]

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

    def _edits(self, edits: Sequence[Edit], ids: Sequence[str], pruned_at_ms: int) -> list[Entry]:
        parents, now = [self._memory.tree.leaf_id, *ids], self.now()
        return [
            edit_entry(edit, (entry_id, parent, now), pruned_at_ms)
            for entry_id, parent, edit in zip(ids, parents, edits, strict=False)  # one parent is left over
        ]
