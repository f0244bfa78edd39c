"""Extensions in the user's folder and the passes of a real session over HTTP."""

import pytest

from musepi_tui.runtime.events import ExtensionFailed, IntentSettled
from musepi_tui.runtime.intents import Cancel, Compact, ForkSession, Handoff
from tests.support.extension_sources import failing_at, waiting_at
from tests.support.harness import reopened, running
from tests.support.passes import (
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    check_request,
    course,
    passes,
    stored,
    summary_of,
    texts,
)

SETTINGS = ("compaction.keepRecentTokens=2000", "compaction.autoContinue=false")
PASSED = [*TURN, *PASS, "agent_settled"]
FAILING = failing_at("session_before_compact", "session_compacting", "session_compact")

SUPPLIER = """
def activate(api):
    api.on("session_before_compact", supply)
    api.on("session_compact", told)

async def supply(event, ctx):
    asked = text_of(event.preparation.messages[0])
    return {"compaction": {
        "summary": f"Written by hand for: {asked}",
        "first_kept_entry_id": event.preparation.first_kept_entry_id,
        "tokens_before": event.preparation.tokens_before,
        "details": {"mine": True},
        "short_summary": "by hand",
    }}

async def told(event, ctx):
    ctx.notify(f"stored {event.compaction_entry.id} {event.from_extension}")
"""

ASKING = """
def activate(api):
    api.on("session_before_compact", supply)

async def supply(event, ctx):
    text = await ctx.complete("Say it in one line.", max_tokens=99)
    return {"compaction": {"summary": text, "first_kept_entry_id": KEEP_NOTHING,
                           "tokens_before": event.preparation.tokens_before}}
"""

GUARD = """
def activate(api):
    api.on("session_before_compact", guard)

async def guard(event, ctx):
    return {"cancel": event.reason != "manual"}
"""

SHAPING = """
def activate(api):
    api.on("session.compacting", shape)

async def shape(event, ctx):
    return {"context": ["The user's name is Ada."], "preserve_data": {"mine": {"n": len(event.messages)}}}
"""

BLANK = """
def activate(api):
    api.on("session_before_compact", supply)

async def supply(event, ctx):
    return {"compaction": {"summary": "  ", "first_kept_entry_id": "nowhere", "tokens_before": 1}}
"""


@pytest.fixture
def extended(with_extensions):
    """Options for a session with these extensions in the user's folder."""
    return lambda *sources: with_extensions(sources, *SETTINGS, row=WINDOW)


async def cross(harness, model):
    """Two turns, the second of which crosses the threshold; the events before it."""
    model.turns += [model.says(12_000), model.says(4_000)]
    await harness.prompt("the first request")
    return await harness.prompt("the second")


async def test_compaction_of_an_extension_takes_the_place_of_the_model(extended, model):
    options = extended(SUPPLIER)
    async with running(options) as harness:
        after = await cross(harness, model)
        assert course(harness, after) == PASSED
        assert model.summarised == []
        await harness.prompt("three")
        path, live = harness.file, harness.runtime.context_messages()
    assert summary_of(model.asked[-1]) == "Written by hand for: the first request"
    check_request(model.asked[-1])
    (divider,) = stored(path).compactions
    assert (divider.method, divider.from_extension, divider.details) == ("hook", True, {"mine": True})
    assert f"stored {divider.id} True" in harness.notices("info")
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages() == live


async def test_extension_may_ask_the_model_itself(extended, model):
    async with running(extended(ASKING)) as harness:
        model.summary = model.says("All in one line.")
        await cross(harness, model)
        await harness.prompt("three")
    said = check_request(model.asked[-1])
    assert summary_of(model.asked[-1]) == "All in one line."
    assert [each.text for each in said[1:]] == ["three"]
    assert len(model.summarised) == 1


async def test_extension_that_stops_automatic_passes_leaves_those_by_hand(extended, model):
    async with running(extended(GUARD)) as harness:
        after = await cross(harness, model)
        assert course(harness, after) == PASSED
        ((_, end),) = passes(harness)
        assert (end["aborted"], end["result"], "errorMessage" in end) == (True, None, False)
        assert "The extension e0 stopped the compaction." in harness.notices("info")
        assert stored(harness.file).compactions == []
        settled = await harness.settle(Compact())
        assert settled.ok, settled.error
    assert len(stored(harness.file).compactions) == 1


async def test_extension_that_stops_passes_is_not_asked_at_every_step(extended, model):
    async with running(extended(GUARD)) as harness:
        await cross(harness, model)
        calls = [model.says("more", tools=[("ls", {}, f"c{number}")]) for number in range(4)]
        model.turns += calls
        await harness.prompt("three")
        assert len(passes(harness)) == 2
    check_request(model.asked[-1])


async def test_handler_that_fails_is_told_and_passed_over(extended, model):
    async with running(extended(FAILING, SHAPING)) as harness:
        after = await cross(harness, model)
        assert course(harness, after) == PASSED
        assert passes(harness)[0][1]["result"] is not None
        failed = [(event.extension, event.event) for event in harness.of(ExtensionFailed)]
        assert failed == [
            ("e0", "session_before_compact"),
            ("e0", "session_compacting"),
            ("e0", "session_compact"),
        ]
        assert all("no such luck" in event.error for event in harness.of(ExtensionFailed))
        await harness.prompt("three")
    assert SUMMARY in summary_of(model.asked[-1])


async def test_lines_of_an_extension_reach_the_summarizer_and_its_data_the_file_only(extended, model):
    async with running(extended(SHAPING)) as harness:
        await cross(harness, model)
        await harness.prompt("three")
    assert all("The user's name is Ada." in texts(request) for request in model.summarised)
    (divider,) = stored(harness.file).compactions
    assert divider.preserve_data["mine"]["n"] >= 1
    check_request(model.asked[-1])
    assert '"mine"' not in model.asked[-1].raw.decode()


async def test_esc_reaches_a_handler_that_waits(extended, model):
    async with running(extended(waiting_at("session_before_compact"))) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("the first request")
        before = harness.file.read_bytes()
        intent = harness.runtime.send(Compact())
        await harness.notice("thinking")
        assert (await harness.settle(Cancel())).data == {"cancelled": "compaction"}
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent)
        assert settled.error == "Compaction cancelled"
        assert harness.file.read_bytes() == before
        await harness.notice("given up")


async def test_compaction_of_an_extension_that_cannot_be_stored_changes_nothing(extended, model):
    async with running(extended(BLANK)) as harness:
        await cross(harness, model)
        ((_, end),) = passes(harness)
        assert end["result"] is None
        assert end["errorMessage"].startswith(
            "Auto-compaction failed: The extension e0 gave an empty summary; "
        )
        assert stored(harness.file).compactions == []
        await harness.prompt("three")
    check_request(model.asked[-1])


SWITCH_GUARD = """
def activate(api):
    api.on("session_before_switch", guard)
    api.on("session_switch", told)

async def guard(event, ctx):
    ctx.notify(f"asked {event.reason}")
    return {"cancel": event.reason == "handoff"}

async def told(event, ctx):
    ctx.notify("switched")
"""


async def test_an_extension_can_stop_a_handoff(extended, model):
    async with running(extended(SWITCH_GUARD)) as harness:
        await harness.prompt("one")
        old, before = harness.file, harness.file.read_bytes()
        settled = await harness.settle(Handoff())
        assert "stopped the handoff" in settled.error
        ((_, end),) = passes(harness)
        assert (end["aborted"], end["result"]) == (True, None)
        await harness.notice("asked handoff")
        assert harness.file == old
        assert old.read_bytes() == before
        assert list(old.parent.glob("*.jsonl")) == [old]


async def test_extensions_hear_of_a_handoff(extended, model):
    async with running(extended(SWITCH_GUARD.replace('event.reason == "handoff"', "False"))) as harness:
        await harness.prompt("one")
        assert (await harness.settle(Handoff())).ok
        await harness.notice("switched")


async def test_extensions_are_told_whether_a_copy_is_a_branch_or_a_fork(extended, model):
    async with running(extended(SWITCH_GUARD)) as harness:
        await harness.prompt("one")
        prompt, answer = (head.id for head in harness.runtime.view().tree.path().of_types(("message",)))
        assert (await harness.settle(ForkSession(answer))).ok
        await harness.notice("asked fork")
        assert (await harness.settle(ForkSession(prompt))).ok
        await harness.notice("asked branch")
