"""Going on from another entry of the session (compaction 10.1)."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from musepi_tui.base.errors import EmptySummaryError, MusepiError, SummaryRejectedError
from musepi_tui.context.branch import (
    Destination,
    LeftBranch,
    collect_entries_for_branch_summary,
    find_destination,
)
from musepi_tui.context.merge import is_degenerate
from musepi_tui.extensions.extensions import TreeAnswer
from musepi_tui.extensions.points import (
    BeforeTree,
    BranchSummaryResult,
    CancelSignal,
    Hook,
    TreeMoved,
    TreePreparation,
)
from musepi_tui.runtime.branch_summary import BranchSummarizer
from musepi_tui.runtime.bus import EventBus
from musepi_tui.runtime.edits import BranchDraft
from musepi_tui.runtime.events import BranchSummaryEnded, BranchSummaryStarted, Notice, Phase
from musepi_tui.runtime.intents import NavigateTree
from musepi_tui.runtime.moves import Moved
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import STOPPED_UNEXPECTEDLY
from musepi_tui.runtime.threads import Checkpoint, run_stoppable
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.places import place_of
from musepi_tui.storage.bodies import Bodies

READ_AT_ONCE = 200
"""Entries of the branch that are read between two looks at whether they are still wanted."""


class Navigation:
    """One move within the session. Until the history takes it nothing is changed.

    ``sealed``: it is too late to cancel it.
    """

    def __init__(self, services: Services, intent: NavigateTree) -> None:
        self.sealed = False
        self._services = services
        self._intent = intent
        self._old_leaf_id = place_of(services.history.tree)
        self._announcement = _Announcement(services.bus, intent.target_id)

    async def run(self) -> tuple[str | None, dict[str, Any] | None]:
        """Carries it out; what the intent settles with: an error line, or data."""
        try:
            return None, await self._carry_out()
        except MusepiError as error:
            return str(error), None

    def unmoved(self, **fields: bool) -> dict[str, Any]:
        """What the intent settles with when the session stays where it is."""
        return {"cancelled": False, "leafId": self._old_leaf_id, "oldLeafId": self._old_leaf_id, **fields}

    async def _carry_out(self) -> dict[str, Any]:
        history, intent = self._services.history, self._intent
        tree = history.tree
        if intent.target_id in (self._old_leaf_id, tree.leaf_id, tree.display_leaf):
            return self.unmoved(unchanged=True)
        destination = find_destination(tree, history.entry(intent.target_id))
        if destination in (Destination(self._old_leaf_id), Destination(tree.display_leaf)):
            return self.unmoved(unchanged=True)
        if intent.summarize:
            self._services.gateway.require_model()
        left = collect_entries_for_branch_summary(tree, tree.display_leaf, intent.target_id)
        entries = await self._read(left.heads)
        answer = await self._ask_extensions(left, entries)
        if answer.cancelled:
            self._services.bus.emit(Notice("info", f"The extension {answer.by} stopped the move.", "tree"))
            return self.unmoved(cancelled=True)
        return await self._move(destination, answer, entries)

    async def _move(
        self, destination: Destination, answer: TreeAnswer, entries: Sequence[Entry]
    ) -> dict[str, Any]:
        with self._announcement.closing():
            draft = await self._draft(answer, entries) if self._intent.summarize else None
            self.sealed = True
            moved = await self._services.history.move_leaf(destination.leaf_id, draft)
            if moved is not None:
                after_move(self._services, moved)
                self._announcement.stored(moved)
        if moved is not None:
            await self._tell_extensions(moved)
        return _moved_data(destination, moved, self._old_leaf_id)

    async def _draft(self, answer: TreeAnswer, entries: Sequence[Entry]) -> BranchDraft | None:
        """The summary to store: that of an extension, else what a model writes; None when there is nothing to
        summarise."""
        given = answer.summary
        if given is not None:
            _check_given(given, answer.by)
            return BranchDraft(given.summary, given.details, from_extension=True)
        if not entries:
            return None
        writer = BranchSummarizer(self._services, self._announcement.start)
        return await writer.write(entries, self._intent.instructions)

    async def _read(self, heads: Sequence[EntryHead]) -> tuple[Entry, ...]:
        """The entries that are left, where somebody wants to see them."""
        services = self._services
        if not self._intent.summarize and not services.extensions.listens(Hook.BEFORE_TREE):
            return ()
        services.phase(Phase.NAVIGATING)
        bodies = services.history.bodies
        return await run_stoppable(lambda check: _read_all(heads, bodies, check))

    async def _ask_extensions(self, left: LeftBranch, entries: tuple[Entry, ...]) -> TreeAnswer:
        extensions, intent = self._services.extensions, self._intent
        if not extensions.listens(Hook.BEFORE_TREE):
            return TreeAnswer()
        signal = CancelSignal()
        preparation = TreePreparation(
            intent.target_id, self._old_leaf_id, left.ancestor_id, entries, intent.summarize
        )
        try:
            return await extensions.before_tree(BeforeTree(preparation, signal))
        except asyncio.CancelledError:
            signal.abort()
            raise

    async def _tell_extensions(self, moved: Moved) -> None:
        from_extension = None if moved.summary is None else moved.summary.from_extension
        event = TreeMoved(moved.new_leaf_id, moved.old_leaf_id, moved.summary, from_extension)
        await self._services.extensions.tree_moved(event)


class _Announcement:
    """The start and the end of the request for a summary: exactly one end for each start."""

    def __init__(self, bus: EventBus, target_id: str) -> None:
        self._bus = bus
        self._target_id = target_id
        self._is_open = False
        self._end = BranchSummaryEnded(error=STOPPED_UNEXPECTEDLY)

    def start(self) -> None:
        """A model is about to be asked."""
        self._is_open = True
        self._bus.emit(BranchSummaryStarted(self._target_id))

    def stored(self, moved: Moved) -> None:
        """The move was made."""
        self._end = BranchSummaryEnded(None if moved.summary is None else moved.summary.id)

    @contextmanager
    def closing(self) -> Generator[None]:
        """Tells the end behind the block, if a start was told."""
        try:
            yield
        except asyncio.CancelledError:
            self._end = BranchSummaryEnded(aborted=True)
            raise
        except MusepiError as error:
            self._end = BranchSummaryEnded(error=str(error))
            raise
        finally:
            if self._is_open:
                self._bus.emit(self._end)


def after_move(services: Services, moved: Moved) -> None:
    """What the rest of the runtime has to know of a move: what the file says there of the model, and how
    full the context is."""
    context = moved.context
    model_key = "/".join(context.model) if context.model else None
    services.gateway.note_recorded(model_key, context.thinking_level)
    services.meter.refresh()


def _moved_data(destination: Destination, moved: Moved | None, old_leaf_id: str | None) -> dict[str, Any]:
    """What the intent settles with. Nothing moved where only the text of a message comes back."""
    data: dict[str, Any] = {"cancelled": False, "leafId": destination.leaf_id, "oldLeafId": old_leaf_id}
    if destination.editor_text is not None:
        data["editorText"] = destination.editor_text
    if moved is not None and moved.summary is not None:
        data |= {"leafId": moved.summary.id, "summaryEntryId": moved.summary.id}
    return data


def _check_given(given: BranchSummaryResult, extension: str | None) -> None:
    """Raises for a summary of an extension that says nothing."""
    ending = "nothing was moved. Go on without a summary, or without the extension."
    if not given.summary.strip():
        raise EmptySummaryError(f"The extension {extension} gave an empty branch summary; {ending}")
    if is_degenerate(given.summary):
        raise SummaryRejectedError(f"The extension {extension} gave a branch summary in a loop; {ending}")


def _read_all(heads: Sequence[EntryHead], bodies: Bodies, check: Checkpoint) -> tuple[Entry, ...]:
    found: list[Entry] = []
    for start in range(0, len(heads), READ_AT_ONCE):
        check()
        found += bodies.read_all(heads[start : start + READ_AT_ONCE])
    return tuple(found)
