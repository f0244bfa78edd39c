"""Going on from another entry of the session (compaction 10.1)."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from musepi_tui.base.errors import EmptySummaryError, MusepiError, SummaryRejectedError
from musepi_tui.context.branch import (
    Destination,
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
from musepi_tui.runtime.intents import MoveLeaf, NavigateTree
from musepi_tui.runtime.moves import Moved
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import STOPPED_UNEXPECTEDLY
from musepi_tui.runtime.tasks import CancelKind, cancel_once
from musepi_tui.runtime.threads import Checkpoint, run_stoppable
from musepi_tui.session.entries import Entry
from musepi_tui.session.places import place_of
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies

READ_AT_ONCE = 200
"""Entries of the branch that are read between two looks at whether they are still wanted."""


Settled: TypeAlias = tuple[str | None, Mapping[str, Any] | None]
"""What an intent to move settles with: an error line, or data."""


async def navigate(services: Services, intent: NavigateTree | MoveLeaf) -> Settled:
    """Goes on from another entry. Esc stops the summary that is written on the way; nothing moves then."""
    if isinstance(intent, MoveLeaf):
        return await _move_exactly(services, intent.entry_id)
    work = Navigation(services, intent)
    child = services.children.start("navigation", work.run())
    await services.cancels.watch(
        child, CancelKind.BRANCH_SUMMARY, lambda: not work.sealed and cancel_once(child)
    )
    if child.cancelled():
        return None, work.unmoved(cancelled=True, aborted=True)
    return child.result() or (STOPPED_UNEXPECTEDLY, None)


async def _move_exactly(services: Services, entry_id: str) -> Settled:
    """To this very entry, without asking anybody."""
    try:
        moved = await services.history.move_leaf(entry_id)
    except MusepiError as error:
        return str(error), None
    if moved is not None:
        await _note_move(services, moved)
    return None, None


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

    async def run(self) -> Settled:
        """Carries it out."""
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
        left = await self._read_left(tree)
        answer = await self._ask_extensions(left)
        if answer.cancelled:
            self._services.bus.emit(Notice("info", f"The extension {answer.by} stopped the move.", "tree"))
            return self.unmoved(cancelled=True)
        return await self._move(destination, answer, left.entries)

    async def _move(
        self, destination: Destination, answer: TreeAnswer, entries: Sequence[Entry]
    ) -> dict[str, Any]:
        with self._announcement.closing():
            draft = await self._draft(answer, entries) if self._intent.summarize else None
            self.sealed = True
            moved = await self._services.history.move_leaf(destination.leaf_id, draft)
            if moved is not None:
                self._announcement.stored(moved)
        if moved is not None:
            await _note_move(self._services, moved)
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

    async def _read_left(self, tree: SessionTree) -> "_Left":
        """What is left behind, where somebody wants to see it."""
        services, target_id = self._services, self._intent.target_id
        if not self._intent.summarize and not services.extensions.listens(Hook.BEFORE_TREE):
            return _Left()
        services.phase(Phase.NAVIGATING)
        bodies = services.history.bodies
        return await run_stoppable(lambda check: _read_left(tree, target_id, bodies, check))

    async def _ask_extensions(self, left: "_Left") -> TreeAnswer:
        extensions, intent = self._services.extensions, self._intent
        if not extensions.listens(Hook.BEFORE_TREE):
            return TreeAnswer()
        signal = CancelSignal()
        preparation = TreePreparation(
            intent.target_id, self._old_leaf_id, left.ancestor_id, left.entries, intent.summarize
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


@dataclass(frozen=True, slots=True)
class _Left:
    """The branch that is left: where the new path parts from it, and its entries, oldest first."""

    ancestor_id: str | None = None
    entries: tuple[Entry, ...] = ()


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


async def _note_move(services: Services, moved: Moved) -> None:
    """What the rest of the runtime has to know of a move: what the file says there of the model, and how
    full the context is."""
    context = moved.context
    model_key = "/".join(context.model) if context.model else None
    services.gateway.note_recorded(model_key, context.thinking_level)
    await asyncio.to_thread(services.meter.measure)  # counts what is new here, away from the screen
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


def _read_left(tree: SessionTree, target_id: str, bodies: Bodies, check: Checkpoint) -> _Left:
    """The entries of the path to the leaf people see that the one to ``target_id`` does not share. Blocks."""
    branch = collect_entries_for_branch_summary(tree, tree.display_leaf, target_id)
    found: list[Entry] = []
    for start in range(0, len(branch.heads), READ_AT_ONCE):
        check()
        found += bodies.read_all(branch.heads[start : start + READ_AT_ONCE])
    return _Left(branch.ancestor_id, tuple(found))
