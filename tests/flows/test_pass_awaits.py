"""A pass that is cancelled at each of its awaits in turn: all of it happened, or nothing."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from musepi_tui.base.errors import CompactionStoppedError, ErrorKind
from musepi_tui.maintenance.triggers import ManualRequested, PromptPending, Signal, ToolBoundary, TurnFinished
from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceStarted
from musepi_tui.session.entries import CompactionEntry, SessionHeader
from musepi_tui.session.messages import StopReason, Usage
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.settings.schema import CompactionSettings, SessionSettings, Settings
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import a
from tests.support.fake_services import Bench, bench, model
from tests.support.sketch import parts
from tests.support.suspension import SuspensionProbe

SMALL = model(context_window=40_000)
SAID = "u3000 a3000 u100 a200 t4000 a300 u50 a6000 t3000 a100 u20"
FULL = a("full", usage=Usage(input=30_000, output=300))
CUT_OFF = a("half", stop=StopReason.LENGTH, usage=Usage(input=30_000, output=300))
OVERFLOWN = a("half", stop=StopReason.ERROR, error_message="prompt is too long", usage=Usage())
CASES = {
    "manual": (a("end"), lambda _: ManualRequested()),
    "threshold": (FULL, TurnFinished),
    "prompt": (FULL, lambda _: PromptPending(10)),
    "mid-turn": (FULL, ToolBoundary),
    "overflow": (OVERFLOWN, lambda message: TurnFinished(message, ErrorKind.OVERFLOW)),
    "incomplete": (CUT_OFF, TurnFinished),
}
MOST_AWAITS = 200


@dataclass
class Trial:
    """A stored session, what it was before, and the pass that is tried on it."""

    desk: Bench
    path: Path
    file: SessionFile
    signal: Signal

    @classmethod
    def begin(cls, path: Path, case: str, storage: str = "append", strategy: str = "summary") -> "Trial":
        file = SessionFile.create(path, SessionHeader("session", "2026-01-01T00:00:00.000Z", "/project"))
        settings = Settings(
            compaction=CompactionSettings(keep_recent_tokens=5_000, strategy=strategy),
            session=SessionSettings(prune_storage=storage),
        )
        desk = bench(models=(SMALL,), settings=settings, file=file)
        desk.history.saver.rewrites_edits = storage == "rewrite"
        last, signal_of = CASES[case]
        desk.say(*parts(SAID), last)
        return cls(desk, path, file, signal_of(desk.history.messages[-1]))

    def state(self) -> tuple[Any, ...]:
        history = self.desk.history
        return (self.path.read_bytes(), history.tree.leaf_id, history.messages, history.message_entry_ids)

    def reloaded(self) -> Any:
        loaded = load_session(self.path, thorough=True)
        entries = loaded.bodies.read_all(loaded.tree.path())
        loaded.bodies.close()
        return build_session_context(entries)

    def is_committed(self) -> bool:
        return any(isinstance(entry, CompactionEntry) for entry in load_entries(self.path))

    def check_commit(self) -> None:
        """The whole pass is there: in memory what a restart would read."""
        context, history = self.reloaded(), self.desk.history
        assert context.compaction_id is not None
        assert context.entry_ids == history.message_entry_ids
        assert [_text(message) for message in context.messages] == [_text(each) for each in history.messages]

    def close(self) -> None:
        self.file.close()


def load_entries(path: Path) -> list[Any]:
    loaded = load_session(path, thorough=True)
    entries = list(loaded.bodies.read_all(loaded.heads))
    loaded.bodies.close()
    return entries


def _text(message: Any) -> str:
    return str(getattr(message, "content", None) or getattr(message, "summary", ""))


@pytest.mark.parametrize("storage", ["append", "rewrite"])
@pytest.mark.parametrize("case", CASES)
async def test_pass_cancelled_at_any_await_happened_wholly_or_not_at_all(tmp_path, case, storage):
    kept = committed = 0
    for at in range(1, MOST_AWAITS):
        trial = Trial.begin(tmp_path / f"{at}.jsonl", case, storage)
        maintainer, before, answers = trial.desk.maintainer, trial.state(), []
        probe = SuspensionProbe(at, lambda _, said=answers, who=maintainer: said.append(who.cancel()))
        stop = await probe.run(maintainer.consider(trial.signal))
        started, ended = trial.desk.events(MaintenanceStarted), trial.desk.events(MaintenanceEnded)
        assert not maintainer.running
        if not started:  # a manual pass can be cancelled before it has begun
            assert (ended, answers, stop.error) == ([], [True], "Compaction cancelled")
            check_unchanged(trial, before, storage)
            trial.close()
            continue
        assert len(started) == len(ended) == 1
        if trial.is_committed():
            committed += 1
            trial.check_commit()
            assert ended[0].result is not None
            assert answers in ([], [False])
        else:
            kept += 1
            assert answers == [True]
            assert (ended[0].aborted, ended[0].result, ended[0].error) == (True, None, None)
            assert (stop.blocked, ended[0].will_retry) == (True, False)
            check_unchanged(trial, before, storage)
        trial.close()
        if not probe.acted:
            break
    assert kept >= 8, "the cancel never came during the pass"
    assert committed >= 1


@pytest.mark.parametrize("case", CASES)
async def test_task_cancelled_at_any_await_leaves_a_pass_wholly_or_not_at_all(tmp_path, case):
    kept = 0
    for at in range(1, MOST_AWAITS):
        trial = Trial.begin(tmp_path / f"{at}.jsonl", case)
        before = trial.state()
        probe = SuspensionProbe(at, lambda task: task.cancel())
        with contextlib.suppress(asyncio.CancelledError):
            await probe.run(trial.desk.maintainer.consider(trial.signal))
        assert len(trial.desk.events(MaintenanceStarted)) == len(trial.desk.events(MaintenanceEnded))
        assert not trial.desk.maintainer.running
        if trial.is_committed():
            trial.check_commit()
        else:
            kept += 1
            assert trial.path.read_bytes() == before[0]
        trial.close()
        if not probe.acted:
            break
    assert kept >= 8


@pytest.mark.parametrize("case", CASES)
async def test_second_try_after_a_cancel_succeeds(tmp_path, case):
    trial = Trial.begin(tmp_path / "s.jsonl", case)
    for at in range(1, MOST_AWAITS):
        probe = SuspensionProbe(at, lambda _: trial.desk.maintainer.cancel())
        trial.desk.history.generation += 1  # a dead end ends with something new
        trial.desk.maintainer.ledger.dead_end.lift()
        trial.desk.maintainer.note_prompt(1)
        await probe.run(trial.desk.maintainer.consider(trial.signal))
        if trial.is_committed():
            break
    trial.check_commit()
    dividers = [entry for entry in load_entries(trial.path) if isinstance(entry, CompactionEntry)]
    assert len(dividers) == 1
    trial.close()


@pytest.mark.parametrize("storage", ["append", "rewrite"])
@pytest.mark.parametrize("case", ["threshold", "manual", "intent"])
async def test_shake_cancelled_at_any_await_happened_wholly_or_not_at_all(tmp_path, case, storage):
    outcomes = set()
    for at in range(1, MOST_AWAITS):
        strategy = "shake" if case == "threshold" else "summary"
        trial = Trial.begin(
            tmp_path / f"{at}.jsonl", "threshold" if case == "threshold" else "manual", storage, strategy
        )
        maintainer, before, answers = trial.desk.maintainer, trial.state(), []
        probe = SuspensionProbe(at, lambda _, said=answers, who=maintainer: said.append(who.cancel()))
        if case == "intent":
            work = maintainer.shake("elide")
        else:
            work = maintainer.consider(ManualRequested("shake") if case == "manual" else trial.signal)
        try:
            await probe.run(work)
        except CompactionStoppedError as error:
            assert str(error) == "Compaction cancelled"
            assert answers == [True]
        ends = trial.desk.events(MaintenanceEnded)
        assert len(trial.desk.events(MaintenanceStarted)) == len(ends) <= 1
        changed = trial.state() != before
        outcomes.add(changed)
        if ends:
            assert (ends[0].result is not None, ends[0].aborted) == (changed, not changed)
        assert changed == (answers != [True])
        assert [_text(each) for each in trial.reloaded().messages] == [
            _text(each) for each in trial.desk.history.messages
        ]
        trial.close()
        if not probe.acted:
            break
    assert outcomes == {True, False}


async def test_shake_whose_task_is_cancelled_at_any_await_leaves_what_a_restart_would_read(tmp_path):
    for at in range(1, MOST_AWAITS):
        trial = Trial.begin(tmp_path / f"{at}.jsonl", "manual")
        probe = SuspensionProbe(at, lambda task: task.cancel())
        with contextlib.suppress(asyncio.CancelledError):
            await probe.run(trial.desk.maintainer.shake("elide"))
        assert len(trial.desk.events(MaintenanceEnded)) == len(trial.desk.events(MaintenanceStarted))
        assert [_text(each) for each in trial.reloaded().messages] == [
            _text(each) for each in trial.desk.history.messages
        ]
        trial.close()
        if not probe.acted:
            return
    raise AssertionError("the shake never ended")


def check_unchanged(trial: Trial, before: tuple[Any, ...], storage: str) -> None:
    """File, leaf and live messages are as before; rewrite mode may have stored single edits."""
    after = trial.state()
    assert after[1] == before[1]
    if storage == "append" or after[0] == before[0]:
        assert after == before
    else:
        assert [_text(each) for each in trial.reloaded().messages] == [_text(each) for each in after[2]]
