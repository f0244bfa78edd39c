"""A move that is cancelled, or fails, at each of its awaits in turn: all of it happened, or nothing."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from musepi_tui.base.errors import EntryNotFoundError, ErrorKind, ProviderError
from musepi_tui.runtime.events import BranchSummaryEnded, BranchSummaryStarted, EntryAppended, LeafMoved
from musepi_tui.runtime.intents import NavigateTree
from musepi_tui.runtime.navigate import Navigation
from musepi_tui.session.entries import SessionHeader
from musepi_tui.session.messages import text_of
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import a, u
from tests.support.fake_services import Bench, bench
from tests.support.history_desk import break_writes
from tests.support.suspension import SuspensionProbe

MOST_AWAITS = 100
HOOK = """
import asyncio

def activate(api):
    api.on("session_before_tree", look)
    api.on("session_tree", look)

async def look(event, ctx):
    await asyncio.sleep(0)
"""
CASES = {"plain": (False, False), "summary": (True, False), "hooked": (True, True)}


@dataclass
class Trial:
    """A stored session and the move that is tried on it: from its end to its first answer."""

    desk: Bench
    path: Path
    work: Navigation
    settled: list[tuple[str | None, Any]] = field(default_factory=list)

    @classmethod
    async def begin(cls, folder: Path, case: str) -> "Trial":
        trial = cls._made(folder, case)
        await trial.desk.services.extensions.load(folder)
        return trial

    @classmethod
    def _made(cls, folder: Path, case: str) -> "Trial":
        summarize, hooked = CASES[case]
        folder.mkdir()
        path = folder / "s.jsonl"
        file = SessionFile.create(path, SessionHeader("session", "2026-01-01T00:00:00.000Z", "/project"))
        desk = bench(file=file)
        desk.say(u("one"), a("two"), u("three"), a("four"))
        if hooked:
            (folder / "hook.py").write_text(HOOK, encoding="utf-8")
        target = desk.history.message_entry_ids[1]
        return cls(desk, path, Navigation(desk.services, NavigateTree(target, summarize)))

    async def run(self) -> None:
        self.settled.append(await self.work.run())

    def state(self) -> tuple[Any, ...]:
        history = self.desk.history
        return (
            self.path.read_bytes(),
            history.tree.leaf_id,
            len(history.tree),
            history.messages,
            history.message_entry_ids,
            history.generation,
        )

    def check(self, before: tuple[Any, ...]) -> bool:
        """Whether the move was made; then memory holds what a restart would read."""
        starts, ends = self.desk.events(BranchSummaryStarted), self.desk.events(BranchSummaryEnded)
        moves = self.desk.events(LeafMoved)
        assert len(starts) == len(ends)
        if not moves:
            assert self.state() == before
            assert all(end.entry_id is None for end in ends)
            return False
        loaded = load_session(self.path, thorough=True)
        context = build_session_context(loaded.bodies.read_all(loaded.tree.path()))
        loaded.bodies.close()
        history = self.desk.history
        assert (context.messages, context.entry_ids) == (history.messages, history.message_entry_ids)
        assert loaded.tree.leaf_id == history.tree.leaf_id
        assert [end.entry_id for end in ends] == [moves[0].summary_entry_id] * len(ends)
        assert moves[0].summary_entry_id in (None, self.desk.events(EntryAppended)[-1].entry.id)
        return True


@pytest.mark.parametrize("case", CASES)
async def test_move_cancelled_at_any_await_happened_wholly_or_not_at_all(tmp_path, case):
    outcomes = []
    for at in range(1, MOST_AWAITS):
        trial = await Trial.begin(tmp_path / str(at), case)
        before = trial.state()
        probe = SuspensionProbe(at, lambda task: task.cancel())
        with contextlib.suppress(asyncio.CancelledError):
            await probe.run(trial.run())
        outcomes.append(trial.check(before))
        if not probe.acted:
            break
    assert outcomes[0] is False
    assert outcomes[-1] is True
    assert outcomes == sorted(outcomes)  # once it is made, no cancel takes it back


@pytest.mark.parametrize("case", CASES)
async def test_esc_is_refused_once_the_move_is_sealed(tmp_path, case):
    trial = await Trial.begin(tmp_path / "t", case)
    seals = []
    trial.desk.watchers.append(lambda _: seals.append(trial.work.sealed))
    await trial.run()
    assert trial.settled[0][0] is None
    assert seals[-1]
    assert seals == sorted(seals)


async def test_move_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    trial = await Trial.begin(tmp_path / "t", "summary")
    before = trial.state()
    mend = break_writes(monkeypatch)
    await trial.run()
    mend()
    assert "No space left" in trial.settled[0][0]
    assert trial.check(before) is False
    assert [end.error for end in trial.desk.events(BranchSummaryEnded)] == [trial.settled[0][0]]
    assert trial.desk.history.saver.unsaved == 0


async def test_model_that_fails_changes_nothing(tmp_path):
    trial = await Trial.begin(tmp_path / "t", "summary")
    trial.desk.gateway.reply = lambda *_: ProviderError("overloaded", kind=ErrorKind.OVERLOADED)
    before = trial.state()
    await trial.run()
    ((error, data),) = trial.settled
    assert (error.startswith("Branch summary failed: overloaded; nothing was moved."), data) == (True, None)
    assert trial.check(before) is False


async def test_moves_between_branches_keep_memory_and_file_the_same(tmp_path):
    trial = await Trial.begin(tmp_path / "t", "plain")
    history, ids = trial.desk.history, trial.desk.history.message_entry_ids
    for number, target in enumerate((ids[1], ids[3], ids[0], ids[2], ids[1])):
        before = trial.state()
        trial.work = Navigation(trial.desk.services, NavigateTree(target, summarize=number % 2 == 0))
        trial.desk.seen.clear()
        await trial.run()
        assert trial.settled[-1][0] is None
        trial.check(before)
        trial.desk.say(u(f"more {number}"), a(f"said {number}"))
    assert history.tree.is_plain
    assert text_of(history.messages[-1].content) == "said 4"


async def test_target_that_is_not_there_is_an_error_of_the_intent(tmp_path):
    trial = await Trial.begin(tmp_path / "t", "plain")
    trial.work = Navigation(trial.desk.services, NavigateTree("gone"))
    await trial.run()
    assert trial.settled == [("Entry gone not found", None)]
    with pytest.raises(EntryNotFoundError):
        trial.desk.history.entry("gone")
