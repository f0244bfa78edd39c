"""When pruning looks at the conversation again."""

from dataclasses import replace

from musepi_tui.maintenance.triggers import PromptPending, TurnFinished
from musepi_tui.runtime.events import ContextPruned
from tests.support.builders import a, u, words
from tests.support.fake_services import bench
from tests.support.tails import flat, read

LONG_REST_S = 91 * 60


async def consider(desk, signal):
    """The kinds of what the signal made pruning blank."""
    await desk.maintainer.consider(signal)
    found = [event.kind for event in desk.events(ContextPruned)]
    desk.seen.clear()
    return found


def twice_read():
    """A conversation that read a file twice, with more behind the first time than a warm cache is worth."""
    desk = bench(flat(u("Go."), read("a.py", 500), u(words(9_000)), read("a.py", 500)))
    desk.say(replace(a("Done."), timestamp_ms=desk.clock.now_ms()))
    return desk


async def test_what_a_warm_cache_kept_goes_once_the_conversation_has_rested():
    desk = twice_read()
    final = desk.history.messages[-1]
    assert await consider(desk, TurnFinished(final)) == []
    assert await consider(desk, PromptPending(5)) == []
    desk.clock.advance(LONG_REST_S)
    assert await consider(desk, PromptPending(5)) == ["superseded"]


async def test_every_step_looks_at_what_it_added():
    desk = bench(flat(u("Go."), read("a.py", 500), a("I see.")))
    assert await consider(desk, TurnFinished(desk.history.messages[-1])) == []
    desk.say(u("Look again."), *read("a.py", 500), a("The same."))
    assert await consider(desk, TurnFinished(desk.history.messages[-1])) == ["superseded"]
    assert await consider(desk, PromptPending(5)) == []


async def test_another_branch_is_looked_at_by_itself():
    desk = bench(flat(u("Go."), read("a.py", 500), a("I see.")))
    assert await consider(desk, TurnFinished(desk.history.messages[-1])) == []
    desk.say(*read("a.py", 500))
    assert await consider(desk, PromptPending(5)) == ["superseded"]
