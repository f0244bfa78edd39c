"""What is done next: jobs that come while another one runs, and how each of them is answered."""

import asyncio

from musepi_tui.base.errors import ErrorKind
from musepi_tui.runtime.events import (
    AgentSettled,
    AgentStarted,
    IntentSettled,
    MaintenanceEnded,
)
from musepi_tui.runtime.intents import Cancel, Compact, CompactIdle, MoveLeaf, SubmitPrompt
from musepi_tui.runtime.maintainer import Maintainer
from musepi_tui.session.messages import Usage, text_of
from tests.support.clock import FakeClock
from tests.support.fake_provider import failure
from tests.support.harness import running

SETTINGS = ("compaction.threshold=20000", "compaction.keepRecentTokens=1000")
IDLE = ("compaction.enabled=false", "compaction.idleEnabled=true", "compaction.idleThresholdTokens=5000")


def long(text, tokens=3_000):
    """An answer of that many tokens."""
    return (f"{text} " + "abc-" * tokens,)


async def test_a_move_and_the_prompt_behind_it_take_effect_in_that_order(scripted):
    _, options = scripted(("one",), ("two",), ("three",))
    async with running(options) as harness:
        await harness.prompt("a")
        place = harness.runtime.view().tree.leaf_id
        after = await harness.prompt("b")
        harness.runtime.send(MoveLeaf(place))
        harness.runtime.send(SubmitPrompt("c"))
        await harness.wait_for(AgentSettled, after=len(harness.events))
        assert [event.ok for event in harness.events[after:] if isinstance(event, IntentSettled)] == [
            True
        ] * 3
        said = [text_of(message.content) for _, message in harness.runtime.context_messages()]
    assert said == ["a", "one", "c", "three"]


async def test_a_compaction_asked_for_before_a_retry_begins_goes_before_it(scripted):
    clock = FakeClock()
    overflow = (failure(ErrorKind.OVERFLOW, "prompt is too long"),)
    _, options = scripted(
        long("one"), long("two"), long("three"), overflow, ("fits",), settings=SETTINGS, clock=clock
    )
    async with running(options) as harness:
        for text in ("a", "b", "c"):
            await harness.prompt(text)
        clock.hold()
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("d"))
        await harness.wait_for(MaintenanceEnded)
        while not clock.slept:  # noqa: ASYNC110 - the pause before the retry tells nothing
            await asyncio.sleep(0)
        harness.runtime.send(Compact())
        await asyncio.sleep(0)
        clock.advance(1)
        await harness.wait_for(AgentSettled, after=after)
        order = [
            event for event in harness.events[after:] if isinstance(event, AgentStarted | MaintenanceEnded)
        ]
    assert [type(event) for event in order] == [
        AgentStarted,
        MaintenanceEnded,
        MaintenanceEnded,
        AgentStarted,
    ]
    assert [event.reason for event in order[1:3]] == ["overflow", "manual"]


WAITING = """
import asyncio
from musepi_tui.extensions.api import *

def activate(api):
    api.on("session_compact", wait)

async def wait(event, ctx):
    ctx.notify("waiting")
    await asyncio.Event().wait()
"""


async def test_esc_while_extensions_hear_of_a_pass_does_not_make_it_a_cancelled_one(scripted, musepi_home):
    (musepi_home / "extensions").mkdir()
    (musepi_home / "extensions" / "waiting.py").write_text(WAITING)
    _, options = scripted(long("one"), long("two"), settings=SETTINGS)
    async with running(options) as harness:
        await harness.prompt("a")
        await harness.prompt("b")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("word " * 20_000))
        await harness.notice("waiting")
        assert (await harness.settle(Cancel())).data == {"cancelled": "turn"}
        await harness.wait_for(AgentSettled, after=after)
        (ended,) = harness.of(MaintenanceEnded)
        assert (ended.aborted, ended.error) == (False, None)
        assert ended.result.entry_id == harness.runtime.view().tree.leaf_id


async def test_an_idle_pass_that_ends_unexpectedly_is_no_skipped_one(scripted, monkeypatch):
    used = Usage(input=30_000, output=10, total_tokens=30_010)
    _, options = scripted((*long("one"), used), settings=(*SETTINGS, *IDLE))

    async def bug(*_):
        raise ValueError("a bug")

    async with running(options) as harness:
        await harness.prompt("a")
        monkeypatch.setattr(Maintainer, "consider", bug)
        settled = await harness.settle(CompactIdle())
    assert not settled.ok
    assert settled.error == "This stopped unexpectedly; the log has the details."
