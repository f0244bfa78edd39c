"""A session that is left alone: the timer with a clock of the test, and the pass when it is asked for."""

import asyncio

import pytest
from textual import events

from musepi_tui.runtime.events import (
    IdleCountdown,
    IntentSettled,
    MaintenanceEnded,
    MaintenanceProgress,
    MaintenanceStarted,
)
from musepi_tui.runtime.intents import Compact, CompactIdle, EditorChanged, OpenSession, SubmitPrompt, Touch
from musepi_tui.tui.app import MusepiApp
from tests.support.clock import FakeClock
from tests.support.harness import running
from tests.support.passes import (
    SUMMARY,
    all_done,
    check_request,
    course,
    passes,
    stored,
    summary_of,
)
from tests.support.screens import ENVIRON
from tests.support.server import hang_reply

KEEP = "compaction.keepRecentTokens=1000"
IDLE = ("compaction.idleEnabled=true", "compaction.idleThresholdTokens=5000", KEEP)


@pytest.fixture
def clock():
    return FakeClock()


async def left_alone(harness, model, clock, tokens=6_000):
    """A turn that leaves so many tokens; from now on only the test moves the time."""
    clock.hold()
    model.turns += [model.says(tokens - 3_000), model.says(3_000)]
    await harness.prompt("one")
    await harness.prompt("two")


async def quiet():
    """Lets whatever could begin begin."""
    for _ in range(20):
        await asyncio.sleep(0.002)


async def test_session_left_alone_is_compacted_and_nothing_follows(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(300)
        after = len(harness.events)
        clock.advance(299)
        await quiet()
        assert passes(harness) == []
        clock.advance(1)
        await harness.wait_for(MaintenanceEnded)
        await quiet()
        assert course(harness, after) == ["auto_compaction_start", "auto_compaction_end"]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["midTurn"]) == ("idle", False)
        assert (end["willRetry"], end["aborted"], end["result"] is None) == (False, False, False)
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(None)
        assert len(model.asked) == 2
        await harness.prompt("three")
    assert SUMMARY in summary_of(model.asked[-1])
    check_request(model.asked[-1])
    assert stored(harness.file).customs("auto-continue") == []


@pytest.mark.parametrize(("configured", "seconds"), [(10, 60), (61, 61), (9_000, 3_600)])
async def test_waiting_time_is_bounded(over_http, model, clock, configured, seconds):
    settings = (*IDLE, f"compaction.idleTimeoutSeconds={configured}")
    async with running(over_http(*settings, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(seconds)


async def test_typing_starts_the_time_over_and_a_draft_stops_it(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        clock.advance(299)
        await harness.settle(Touch())
        clock.advance(299)
        await quiet()
        assert passes(harness) == []
        await harness.settle(EditorChanged(empty=False))
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(None)
        clock.advance(4_000)
        await quiet()
        assert passes(harness) == []
        await harness.settle(EditorChanged(empty=True))
        await quiet()
        clock.advance(300)
        await harness.wait_for(MaintenanceEnded)
        assert [start["reason"] for start, _ in passes(harness)] == ["idle"]


NOT_ARMED = {
    "not enabled": ("compaction.idleThresholdTokens=5000",),
    "strategy off": (*IDLE, "compaction.strategy=off"),
    "no threshold": (*IDLE, "compaction.idleThresholdTokens=0"),
    "too little": (*IDLE, "compaction.idleThresholdTokens=50000"),
}


@pytest.mark.parametrize("name", NOT_ARMED)
async def test_idle_pass_never_comes_where_a_condition_fails(over_http, model, clock, name):
    async with running(over_http(*NOT_ARMED[name], clock=clock)) as harness:
        await left_alone(harness, model, clock)
        clock.advance(10_000)
        await quiet()
        assert [event for event in harness.of(IdleCountdown) if event.seconds is not None] == []
        settled = await harness.settle(CompactIdle())
        assert (settled.ok, settled.data) == (True, {"skipped": True})
        assert passes(harness) == []


async def test_idle_pass_needs_no_automatic_compaction(over_http, model, clock):
    async with running(over_http(*IDLE, "compaction.enabled=false", clock=clock)) as harness:
        await left_alone(harness, model, clock)
        settled = await harness.settle(CompactIdle())
        assert settled.data["tokensAfter"] < settled.data["tokensBefore"]
        assert [start["reason"] for start, _ in passes(harness)] == ["idle"]


async def test_prompt_stops_the_time(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        model.turns.append(hang_reply())
        harness.runtime.send(SubmitPrompt("three"))
        await harness.wait_for(IdleCountdown, lambda event: event.seconds is None)
        clock.advance(4_000)
        await quiet()
        assert passes(harness) == []
        assert (await harness.settle(CompactIdle())).data == {"skipped": True}


async def test_second_idle_pass_has_nothing_to_do(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        await harness.settle(CompactIdle())
        settled = await harness.settle(CompactIdle())
        assert settled.data == {"skipped": True}
        assert len(stored(harness.file).compactions) == 1


async def test_message_sent_during_an_idle_pass_is_delivered_after_it(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        after = len(harness.events)
        clock.advance(300)
        await harness.wait_for(MaintenanceStarted)
        harness.runtime.send(SubmitPrompt("typed meanwhile"))
        await all_done(harness, after)
        assert course(harness, after)[:2] == ["auto_compaction_start", "auto_compaction_end"]
    assert check_request(model.asked[-1])[-1].text == "typed meanwhile"


ABORT = (*IDLE, "compaction.idleAbortOnInput=true")


async def idle_pass_that_hangs(harness, model, clock):
    """An idle pass whose summary is being written; the file as it was before."""
    await left_alone(harness, model, clock)
    before, model.summary = harness.file.read_bytes(), hang_reply()
    clock.advance(300)
    await harness.wait_for(MaintenanceProgress, lambda event: event.input_tokens > 0)
    return before


async def test_first_character_cancels_an_idle_pass_when_that_is_wanted(over_http, model, clock):
    async with running(over_http(*ABORT, clock=clock)) as harness:
        before = await idle_pass_that_hangs(harness, model, clock)
        await harness.settle(EditorChanged(empty=False))
        ended = await harness.wait_for(MaintenanceEnded)
        assert (ended.reason, ended.aborted, ended.error, ended.result) == ("idle", True, None, None)
        assert harness.file.read_bytes() == before
        assert stored(harness.file).compactions == []


async def test_character_typed_on_the_screen_cancels_the_pass_and_stays_in_the_editor(
    over_http, model, clock
):
    async with running(over_http(*ABORT, clock=clock)) as harness:
        app = MusepiApp(harness.runtime, ENVIRON)
        async with app.run_test() as pilot:
            await idle_pass_that_hangs(harness, model, clock)
            app.post_message(events.Key("a", "a"))
            await harness.wait_for(MaintenanceEnded)
            await pilot.pause()
            assert app.main.composer.text == "a"
            app.exit(0)
    assert stored(harness.file).compactions == []


async def test_typing_goes_on_beside_an_idle_pass_otherwise(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await idle_pass_that_hangs(harness, model, clock)
        await harness.settle(EditorChanged(empty=False))
        await quiet()
        assert harness.of(MaintenanceEnded) == []


async def test_idle_pass_that_made_way_comes_again_once_the_draft_is_gone(over_http, model, clock):
    async with running(over_http(*ABORT, clock=clock)) as harness:
        await idle_pass_that_hangs(harness, model, clock)
        await harness.settle(EditorChanged(empty=False))
        await harness.wait_for(MaintenanceEnded)
        await quiet()
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(None)
        model.summary = model.says(SUMMARY)
        await harness.settle(EditorChanged(empty=True))
        await quiet()
        clock.advance(300)
        await harness.wait_for(MaintenanceEnded, lambda event: event.result is not None)
        assert len(stored(harness.file).compactions) == 1


async def test_typing_cancels_no_pass_but_an_idle_one(over_http, model, clock):
    async with running(over_http(*ABORT, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        model.summary = hang_reply()
        harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceStarted)
        await harness.settle(EditorChanged(empty=False))
        await quiet()
        assert harness.of(MaintenanceEnded) == []


async def test_character_typed_as_the_time_runs_out_keeps_the_pass_from_beginning(over_http, model, clock):
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        asked = harness.runtime.send(CompactIdle())
        await harness.settle(EditorChanged(empty=False))
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == asked)
        assert settled.data == {"skipped": True}
        assert passes(harness) == []


@pytest.mark.parametrize("settings", [IDLE, ABORT], ids=["stays", "gives way"])
async def test_pass_that_a_draft_kept_from_beginning_comes_once_the_draft_is_gone(
    over_http, model, clock, settings
):
    async with running(over_http(*settings, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        clock.advance(300)
        await harness.settle(EditorChanged(empty=False))
        await quiet()
        assert (harness.of(IdleCountdown)[-1], passes(harness)) == (IdleCountdown(None), [])
        await harness.settle(EditorChanged(empty=True))
        await quiet()
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(300)


async def test_draft_that_goes_while_another_session_cannot_be_opened_starts_the_time(
    over_http, model, clock, tmp_path
):
    (tmp_path / "broken.jsonl").write_text("no session\n")
    async with running(over_http(*IDLE, clock=clock)) as harness:
        await left_alone(harness, model, clock)
        await harness.settle(EditorChanged(empty=False))
        asked = harness.runtime.send(OpenSession(str(tmp_path / "broken.jsonl")))
        assert (await harness.settle(EditorChanged(empty=True))).ok
        assert not (await harness.wait_for(IntentSettled, lambda event: event.intent_id == asked)).ok
        await quiet()
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(300)


async def test_failed_idle_pass_is_told_and_changes_nothing(over_http, model, clock):
    async with running(over_http(*IDLE, "retry.enabled=false", clock=clock)) as harness:
        await left_alone(harness, model, clock)
        before = harness.file.read_bytes()
        model.summary = model.says("")
        clock.advance(300)
        ended = await harness.wait_for(MaintenanceEnded)
        assert ended.error.startswith("Auto-compaction failed: The model returned an empty summary")
        assert harness.file.read_bytes() == before


async def test_idle_pass_that_failed_comes_again_only_after_something_was_said(over_http, model, clock):
    model.summary = model.says(" ")
    async with running(over_http(*IDLE, "retry.maxRetries=0", clock=clock)) as harness:
        await left_alone(harness, model, clock)
        clock.advance(300)
        await harness.wait_for(MaintenanceEnded)
        asked = len(model.summarised)
        await harness.settle(EditorChanged(empty=False))
        await harness.settle(EditorChanged(empty=True))
        clock.advance(10_000)
        await quiet()
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(None)
        assert (len(passes(harness)), len(model.summarised)) == (1, asked)
        await harness.prompt("three")
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(300)
