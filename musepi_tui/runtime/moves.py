"""Moving the leaf: what is stored for it, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from musepi_tui.runtime.edits import BranchDraft
from musepi_tui.runtime.entry_maker import EntryMaker
from musepi_tui.runtime.events import LeafMoved
from musepi_tui.runtime.live import LiveState
from musepi_tui.runtime.memory import SessionMemory
from musepi_tui.runtime.saving import Saver
from musepi_tui.session.entries import BranchSummaryEntry, EntryHead, StateEntry
from musepi_tui.session.rebuild import SessionContext
from musepi_tui.storage.entry_file import RecoveryNeededError


@dataclass(frozen=True, slots=True)
class Moved:
    """The leaf before and after, as people see it; the summary that was stored; the context from there on."""

    old_leaf_id: str | None
    new_leaf_id: str | None
    summary: BranchSummaryEntry | None
    context: SessionContext

    @property
    def event(self) -> LeafMoved:
        """How it is told."""
        return LeafMoved(
            self.old_leaf_id, self.new_leaf_id, None if self.summary is None else self.summary.id
        )


@dataclass(frozen=True, slots=True)
class WrittenMove:
    """The entry that makes another one the leaf, its head now that it is written, and the context there."""

    entry: BranchSummaryEntry | StateEntry
    heads: Sequence[EntryHead]
    state: LiveState


@dataclass(frozen=True, slots=True)
class MoveWriter:
    """Writes moves. It changes nothing in memory."""

    memory: SessionMemory
    maker: EntryMaker
    saver: Saver

    async def write(self, leaf_id: str | None, draft: BranchDraft | None) -> WrittenMove:
        """Reads the context of another leaf, then writes the summary that is to stand there, or a mark.

        Raises ``SessionError`` when it cannot be written.
        """
        try:
            return await self._try(leaf_id, draft)
        except RecoveryNeededError:
            await self.saver.make_ready()
        return await self._try(leaf_id, draft)

    async def _try(self, leaf_id: str | None, draft: BranchDraft | None) -> WrittenMove:
        state = await self.memory.read(self.memory.tree.with_leaf(leaf_id))
        maker = self.maker
        entry = maker.leaf_mark(leaf_id) if draft is None else maker.branch_summary(leaf_id, draft)
        return WrittenMove(entry, self.saver.write_or_raise([entry]), state)
