"""Another session in place of the one that is handed off: whatever fails, the old one stays as it was."""

from dataclasses import replace

import pytest

from musepi_tui.runtime.events import AgentSettled, MaintenanceEnded, Phase, PhaseChanged, SessionReady
from musepi_tui.runtime.intents import (
    Cancel,
    Handoff,
    SetAutoCompaction,
    SetMode,
    SetName,
    SetThinking,
    SubmitPrompt,
)
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.session.messages import ToolCallBlock, Usage
from musepi_tui.storage.lock import WriterLock
from tests.support.faults import failing
from tests.support.harness import reopened, running
from tests.support.lines import chain, header_line, write_lines

DOCUMENT = "## Goal\nGo on."
MOST_CALLS = 40


@pytest.fixture
def stored(tmp_path, project):
    return write_lines(tmp_path / "old.jsonl", header_line(cwd=str(project)), *chain("one", "two"))


async def test_a_handoff_that_cannot_be_written_leaves_the_old_session_as_it_was(scripted, stored):
    _, options = scripted(*[(DOCUMENT,)] * MOST_CALLS)
    before = stored.read_bytes()
    failures = 0
    async with running(reopened(options, stored)) as harness:
        for at in range(1, MOST_CALLS):
            folder = options.paths.sessions
            known = set(folder.rglob("*.jsonl"))
            with failing(at):
                settled = await harness.settle(Handoff())
            if settled.ok:
                break
            failures += 1
            assert harness.file == stored
            assert stored.read_bytes() == before
            assert set(folder.rglob("*.jsonl")) == known
        assert failures >= 3
        assert harness.file != stored
        await harness.prompt("go on")
    assert stored.read_bytes() == before


async def test_closing_in_a_handoff_leaves_no_session_that_was_never_entered(scripted, stored):
    _, options = scripted((DOCUMENT,))
    async with running(reopened(options, stored)) as harness:
        before = len(harness.events)
        harness.runtime.send(Handoff())
        await harness.wait_for(PhaseChanged, lambda event: event.phase is Phase.LOADING, after=before)
    await harness.collected()
    entered = [event.view.file for event in harness.of(SessionReady) if event.reason == "handoff"]
    assert list(options.paths.sessions.rglob("*.jsonl")) == entered


async def test_what_was_chosen_in_this_run_holds_in_the_new_session(scripted, stored):
    _, options = scripted((DOCUMENT,), thinking="low")
    async with running(reopened(options, stored)) as harness:
        await harness.settle(SetMode("ask"))
        await harness.settle(SetThinking("high"))
        await harness.settle(SetAutoCompaction(enabled=False))
        await harness.settle(SetName("the parser"))
        assert (await harness.settle(Handoff())).ok
        view = harness.runtime.view()
        assert (view.mode, view.meter.auto_compaction, view.name) == ("ask", False, "the parser")
        assert view.model is not None
        assert '"thinkingLevel":"high"' in harness.file.read_text()
        new = harness.file
    async with running(reopened(options, new)) as harness:
        assert harness.runtime.view().model.key == view.model.key


async def test_a_session_that_may_only_be_read_is_not_handed_off(scripted, stored):
    provider, options = scripted((DOCUMENT,))
    before = stored.read_bytes()
    lock = WriterLock(stored)
    lock.acquire()
    try:
        async with running(
            replace(reopened(options, stored), on_busy="read_only", model="local/m1")
        ) as harness:
            settled = await harness.settle(Handoff())
            assert "use --fork" in (settled.error or "")
            assert harness.runtime.view().read_only
    finally:
        lock.release()
    assert provider.requests == []
    assert stored.read_bytes() == before


async def test_the_old_session_is_given_back(scripted, stored):
    _, options = scripted((DOCUMENT,))
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(Handoff())).ok
        lock = WriterLock(stored)
        lock.acquire()
        lock.release()


async def test_the_view_of_the_new_session_says_that_the_pass_still_runs(scripted, stored):
    _, options = scripted((DOCUMENT,))
    async with running(reopened(options, stored)) as harness:
        await harness.settle(Handoff())
        ready = await harness.wait_for(SessionReady, lambda event: event.reason == "handoff")
        assert ready.view.compacting
        assert not ready.view.turn_open


async def test_nothing_is_stored_of_a_session_that_is_kept_nowhere(scripted):
    _, options = scripted(("one",), (DOCUMENT,))
    options = replace(options, session=SessionChoice("memory"))
    async with running(options) as harness:
        await harness.prompt("hi")
        assert (await harness.settle(Handoff())).ok
    assert list(options.paths.sessions.rglob("*.jsonl")) == []


async def test_the_way_back_is_the_file_where_no_listing_finds_the_session(scripted, stored):
    _, options = scripted((DOCUMENT,), (DOCUMENT,), ("answer",), ("answer",))
    async with running(reopened(options, stored)) as harness:
        assert (await harness.settle(Handoff())).ok
        told = await harness.notice("To return: ")
        assert told.text.endswith(f"To return: /resume {stored}")
        await harness.prompt("go on")
        await harness.prompt("and on")
        session_id = harness.runtime.view().header.id
        assert (await harness.settle(Handoff())).ok
        assert await harness.notice(f"To return: /resume {session_id}")
        rows = await harness.runtime.list_sessions(everywhere=True)
    assert session_id in [row.id for row in rows]


STRATEGY = ("compaction.strategy=handoff", "compaction.threshold=20000", "compaction.supersedeReads=false")
FULL = Usage(input=25_000, output=1_000, total_tokens=26_000)


async def test_calls_withheld_before_a_handoff_count_after_it(scripted):
    call = ToolCallBlock("c1", "bash", {"command": "touch x"})
    _, options = scripted((call,), ("one", FULL), (DOCUMENT,), ("two",), settings=STRATEGY)
    async with running(replace(options, mode="ask", interactive=False)) as harness:
        await harness.prompt("hi")
        assert [event.reason for event in harness.of(SessionReady)] == ["start", "handoff"]
        assert harness.runtime.outcome.withheld == 1


WAITING = """
import asyncio
from musepi_tui.extensions.api import *

def activate(api):
    api.on("session_switch", wait)

async def wait(event, ctx):
    ctx.notify("waiting")
    await asyncio.Event().wait()
"""


async def test_esc_while_extensions_hear_of_it_does_not_make_it_a_cancelled_one(scripted, musepi_home):
    (musepi_home / "extensions").mkdir()
    (musepi_home / "extensions" / "waiting.py").write_text(WAITING)
    _, options = scripted(("one " * 8_000,), (DOCUMENT,), settings=STRATEGY)
    async with running(options) as harness:
        await harness.prompt("hi")
        old, after = harness.file, len(harness.events)
        harness.runtime.send(SubmitPrompt("word " * 12_000))
        await harness.notice("waiting")
        assert (await harness.settle(Cancel())).data == {"cancelled": "turn"}
        await harness.wait_for(AgentSettled, after=after)
        (ended,) = harness.of(MaintenanceEnded)
        assert (ended.action, ended.aborted, ended.error) == ("handoff", False, None)
        assert ended.result.entry_id == harness.runtime.view().tree.leaf_id
        assert harness.file != old


async def test_a_handoff_by_hand_lets_automatic_ones_come_again(scripted):
    large = ("## Goal\n" + "word " * 18_000,)
    scripts = [("one", FULL), large, ("two", FULL), (DOCUMENT,), ("three", FULL), (DOCUMENT,), ("four",)]
    _, options = scripted(*scripts, settings=STRATEGY)
    async with running(options) as harness:
        await harness.prompt("a")
        await harness.prompt("b")
        assert [event.action for event in harness.of(MaintenanceEnded)] == ["handoff", "summary"]
        assert (await harness.settle(Handoff())).ok
        await harness.prompt("c")
        assert [event.action for event in harness.of(MaintenanceEnded)][2:] == ["handoff"] * 2
