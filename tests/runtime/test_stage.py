"""What becomes of entries that could not be written when another session takes the place of theirs."""

from pathlib import Path

import pytest

from musepi_tui.runtime.events import IntentSettled, SessionReady
from musepi_tui.runtime.intents import Flush, Intent, NewSession, OpenSession
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.lock import WriterLock
from tests.support.harness import Harness, reopened, running
from tests.support.history_desk import break_writes
from tests.support.lines import chain, dump, header_line, write_lines


@pytest.fixture
def rescues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder rescue files go to."""
    folder = tmp_path / "rescues"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder takes a rescue file."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    monkeypatch.setenv("HOME", str(tmp_path / "gone too"))


@pytest.fixture
def stored(tmp_path: Path, project: Path) -> Path:
    return write_lines(tmp_path / "stored.jsonl", header_line(cwd=str(project)), *chain("one", "two"))


async def switched(harness: Harness, intent: Intent) -> IntentSettled:
    """Sends an intent and waits until another session is there, if it succeeds."""
    before = len(harness.of(SessionReady))
    settled = await harness.settle(intent)
    if settled.ok:
        await harness.wait_for(SessionReady, lambda _: len(harness.of(SessionReady)) > before)
    return settled


@pytest.mark.parametrize("kind", ["new", "open"])
async def test_a_switch_rescues_what_cannot_be_saved_and_tells_it_in_the_new_session(
    kind, scripted, stored, rescues, tmp_path, monkeypatch
):
    _, options = scripted(("answer",))
    other = write_lines(tmp_path / "other.jsonl", header_line(id="other"), *chain("theirs"))
    async with running(reopened(options, stored)) as harness:
        break_writes(monkeypatch)
        await harness.prompt("lost")
        unsaved = harness.runtime.view().unsaved
        assert unsaved >= 2
        assert (await switched(harness, NewSession() if kind == "new" else OpenSession(str(other)))).ok
        (rescue,) = rescues.iterdir()
        notice = await harness.notice(str(rescue))
        assert notice.level == "error"
        assert harness.events.index(notice) > harness.events.index(harness.of(SessionReady)[-1])
        assert len(load_session(rescue).heads) == unsaved
    assert harness.runtime.rescue_files == (rescue,)
    assert harness.runtime.lost is None


async def test_a_switch_gives_the_lock_back_whatever_was_unsaved(scripted, stored, rescues, monkeypatch):
    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        mend = break_writes(monkeypatch)
        await harness.prompt("lost")
        assert (await switched(harness, NewSession())).ok
        mend()
        before = stored.read_bytes()
        lock = WriterLock(stored)
        lock.acquire()
        lock.release()
        assert (await switched(harness, OpenSession(str(stored)))).ok
        assert not harness.runtime.view().read_only
        assert stored.read_bytes() == before


async def test_a_switch_is_refused_when_the_entries_can_be_written_nowhere(
    scripted, stored, nowhere, monkeypatch
):
    _, options = scripted(("answer",), ("more",))
    async with running(reopened(options, stored)) as harness:
        mend = break_writes(monkeypatch)
        await harness.prompt("lost")
        unsaved = harness.runtime.view().unsaved
        settled = await switched(harness, NewSession())
        assert not settled.ok
        assert settled.error is not None
        assert settled.error.startswith(f"{unsaved} entries of this session could be written nowhere")
        assert (harness.file, harness.runtime.view().unsaved) == (stored, unsaved)
        mend()
        assert (await harness.settle(Flush())).data == {"unsaved": 0}
        assert (await switched(harness, NewSession())).ok
    assert "lost" in stored.read_text()
    assert harness.runtime.rescue_files == ()


ASKING = """
from musepi_tui.extensions.api import *

def activate(api):
    api.on("session_before_switch", say)

async def say(event, ctx):
    ctx.notify(f"in {ctx.session.session_id}")
"""


async def test_extensions_stay_with_a_session_that_could_not_be_left(
    scripted, stored, nowhere, musepi_home, monkeypatch
):
    (musepi_home / "extensions").mkdir()
    (musepi_home / "extensions" / "asking.py").write_text(ASKING)
    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        mend = break_writes(monkeypatch)
        await harness.prompt("lost")
        for _ in range(2):
            assert not (await harness.settle(NewSession())).ok
        mend()
        assert harness.notices("info") == [f"in {harness.runtime.view().header.id}"] * 2


async def test_each_session_left_behind_gets_a_rescue_file_of_its_own(scripted, stored, rescues, monkeypatch):
    _, options = scripted(("1",), ("2",))
    async with running(reopened(options, stored)) as harness:
        mend = break_writes(monkeypatch)
        await harness.prompt("first loss")
        await switched(harness, NewSession())
        mend()
        await switched(harness, OpenSession(str(stored)))
        break_writes(monkeypatch)
        await harness.prompt("second loss")
    first, second = harness.runtime.rescue_files
    assert ("first loss" in first.read_text(), "second loss" in second.read_text()) == (True, True)
    assert first != second
    for path in (first, second):
        assert str(path) in " ".join(harness.notices("error"))


async def test_what_can_be_written_nowhere_at_the_end_is_told(scripted, stored, nowhere, monkeypatch):
    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        break_writes(monkeypatch)
        await harness.prompt("lost")
        unsaved = harness.runtime.view().unsaved
    assert harness.runtime.rescue_files == ()
    assert str(harness.runtime.lost).startswith(
        f"{unsaved} entries of this session could be written nowhere, neither to {stored} nor "
    )


async def test_the_rescue_file_of_a_session_that_was_replaced_holds_all_of_it(scripted, stored, rescues):
    _, options = scripted(("answer",))
    async with running(reopened(options, stored)) as harness:
        stranger = stored.with_name("stranger")
        stranger.write_bytes(dump(header_line(id="stranger")))
        before = stored.read_bytes()
        stranger.replace(stored)
        await harness.prompt("late")
    (rescue,) = harness.runtime.rescue_files
    assert rescue.read_bytes().startswith(before)
    assert "late" in rescue.read_text()
    assert stored.read_bytes() == dump(header_line(id="stranger"))
