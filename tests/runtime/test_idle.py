"""The clock of a session that is left for another one."""

import asyncio

import pytest

from musepi_tui.runtime.events import IdleCountdown, MaintenanceStarted
from musepi_tui.runtime.intents import NewSession, OpenSession
from musepi_tui.session.messages import Usage
from tests.support.clock import FakeClock
from tests.support.harness import running

IDLE = ("compaction.idleEnabled=true", "compaction.idleThresholdTokens=5000")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def options(scripted, clock):
    _, made = scripted(("one", Usage(input=6_000, output=1, total_tokens=6_001)), settings=IDLE, clock=clock)
    clock.hold()
    return made


async def elapse(clock, seconds):
    """The time passes, and whatever that starts begins."""
    clock.advance(seconds)
    for _ in range(20):
        await asyncio.sleep(0.002)


async def test_a_session_that_was_left_gets_no_idle_pass(options, clock):
    async with running(options) as harness:
        await harness.prompt("a")
        assert harness.of(IdleCountdown) == [IdleCountdown(300)]
        assert (await harness.settle(NewSession())).ok
        assert harness.of(IdleCountdown)[-1] == IdleCountdown(None)
        await elapse(clock, 400)
        assert harness.of(MaintenanceStarted) == []


async def test_a_session_that_could_not_be_left_gets_it_all_the_same(options, clock, tmp_path):
    (tmp_path / "broken.jsonl").write_text("no session\n")
    async with running(options) as harness:
        await harness.prompt("a")
        assert not (await harness.settle(OpenSession(str(tmp_path / "broken.jsonl")))).ok
        await elapse(clock, 400)
        assert [event.reason for event in harness.of(MaintenanceStarted)] == ["idle"]
