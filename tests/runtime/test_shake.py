from musepi_tui.runtime.events import AgentStarted, ContextPruned, MaintenanceEnded, MaintenanceStarted
from musepi_tui.runtime.intents import Shake, SubmitPrompt
from tests.support.builders import call, words
from tests.support.fake_provider import Hang
from tests.support.harness import running


def reading(project, number: int):
    """Scripts of a turn that reads a file nobody can keep in mind."""
    (project / f"big{number}.txt").write_text(f"{number}\n" + "\n".join(words(40) for _ in range(300)))
    return (call("read", f"c{number}", path=f"big{number}.txt"),), ("done",)


async def test_shake_tells_its_pass_and_what_it_took_out(scripted, project):
    _, options = scripted(*reading(project, 1), ("more",))
    async with running(options) as harness:
        await harness.prompt("look at it")
        before = len(harness.events)
        settled = await harness.settle(Shake())
        assert settled.ok
        data = dict(settled.data or {})
        assert data["mode"] == "elide"
        assert (data["regions"], data["toolResults"], data["blocks"]) == (1, 1, 0)
        assert data["tokensFreed"] > 1000
        assert data["artifactId"]
        told = [event for event in harness.events[before:] if not isinstance(event, type(settled))]
        started, ended = (
            next(e for e in told if isinstance(e, kind)) for kind in (MaintenanceStarted, MaintenanceEnded)
        )
        assert (started.reason, started.action) == ("manual", "shake")
        assert ended.result is not None
        assert ended.result.entry_id is None
        assert ended.result.tokens_after < ended.result.tokens_before
        (pruned,) = [e for e in told if isinstance(e, ContextPruned)]
        assert (pruned.kind, pruned.tokens_freed) == ("shake", data["tokensFreed"])


async def test_second_shake_has_nothing_to_take_out(scripted, project):
    _, options = scripted(*reading(project, 1))
    async with running(options) as harness:
        await harness.prompt("look at it")
        await harness.settle(Shake())
        settled = await harness.settle(Shake())
        assert settled.ok
        assert (settled.data or {})["regions"] == 0
        assert harness.of(MaintenanceEnded)[-1].skipped
        assert not harness.runtime.view().compacting


async def test_shake_of_images_finds_none(scripted):
    _, options = scripted(("hi",))
    async with running(options) as harness:
        await harness.prompt("hello")
        settled = await harness.settle(Shake("images"))
        assert (settled.ok, (settled.data or {})["images"]) == (True, 0)


async def test_shake_during_a_turn_is_refused(scripted):
    _, options = scripted((Hang(),))
    async with running(options) as harness:
        harness.runtime.send(SubmitPrompt("hello"))
        await harness.wait_for(AgentStarted)
        settled = await harness.settle(Shake())
        assert settled.error == "wait for the turn to end or press esc"
