"""Every trigger of a pass over real HTTP: the order of events, the lines of the file, the next request."""

import pytest

from musepi_tui.runtime.events import AgentSettled, MaintenanceEnded
from musepi_tui.runtime.intents import Compact, SetAutoCompaction, SubmitPrompt
from musepi_tui.session.messages import UserMessage
from tests.support.harness import reopened, running
from tests.support.passes import (
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    check_request,
    conversation,
    course,
    notices,
    passes,
    solid,
    stored,
    summary_of,
    texts,
    told,
)

SMALL = ("compaction.keepRecentTokens=2000", "compaction.autoContinue=false")
CONTINUING = SMALL[:1]
AFTER_TURN = [*TURN, *PASS]


async def fill(harness, model, tokens=8_000):
    """A first turn that leaves so many tokens behind."""
    model.turns.append(model.says(tokens))
    await harness.prompt("count to a million, and never use floats")


async def test_turn_over_the_threshold_is_compacted_and_goes_on_by_itself(over_http, model):
    async with running(over_http(*CONTINUING, row=WINDOW)) as harness:
        await fill(harness, model, 12_000)
        model.turns.append(model.says(4_000))
        after = await harness.prompt("go on")
        assert course(harness, after) == [*AFTER_TURN, *TURN, "agent_settled"]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["action"], start["midTurn"]) == ("threshold", "summary", False)
        assert (end["willRetry"], end["aborted"], "skipped" in end, "errorMessage" in end) == (False,) * 4
        assert end["result"]["tokensAfter"] < 13_600 < 17_000 < end["result"]["tokensBefore"]
        assert harness.runtime.outcome.stop == "ok"
    said = check_request(model.asked[-1])
    assert SUMMARY in summary_of(model.asked[-1])
    assert "Go on with what the user wanted last" in said[-1].text
    assert solid(4_001) not in texts(model.asked[-1])
    file = stored(harness.file)
    (divider,) = file.compactions
    assert (divider.id, divider.first_kept_entry_id) == (
        end["result"]["entryId"],
        end["result"]["firstKeptEntryId"],
    )
    (continuation,) = file.customs("auto-continue")
    assert (continuation.display, continuation.attribution) == (True, "agent")
    assert file.beside == ()


async def test_kept_tail_stands_behind_the_summary_word_for_word(over_http, model):
    async with running(over_http(*SMALL, row=WINDOW)) as harness:
        await fill(harness, model, 13_000)
        model.turns.append(model.says("the newest answer " + solid(1_500)))
        await harness.prompt(f"the newest request {solid(1_200)}")
        assert len(passes(harness)) == 1
        await harness.prompt("what now")
    _, *kept = check_request(model.asked[-1])
    assert SUMMARY in summary_of(model.asked[-1])
    assert [(said.role, said.text[:18]) for said in kept] == [
        ("user", "the newest request"),
        ("assistant", "the newest answer "),
        ("user", "what now"),
    ]


async def test_resumed_session_sends_the_same_context_after_a_pass(over_http, model):
    options = over_http(*SMALL, row=WINDOW)
    async with running(options) as harness:
        await fill(harness, model, 15_500)
        model.turns.append(model.says(2_500))
        await harness.prompt("go on")
        live, path = harness.runtime.context_messages(), harness.file
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages() == live
        await harness.prompt("and now")
    assert SUMMARY in summary_of(model.asked[-1])
    check_request(model.asked[-1])


async def test_message_in_the_queue_goes_before_a_continuation(over_http, model):
    async with running(over_http(*CONTINUING, row=WINDOW)) as harness:
        await fill(harness, model)
        model.turns.append(model.says(9_000))
        harness.runtime.send(SubmitPrompt("go on"))
        harness.runtime.send(SubmitPrompt("my own next step", delivery="follow_up"))
        await harness.wait_for(AgentSettled, after=len(harness.events))
        assert len(passes(harness)) == 1
    assert check_request(model.asked[-1])[-1].text == "my own next step"
    assert stored(harness.file).customs("auto-continue") == []


async def test_prompt_that_would_not_fit_is_preceded_by_a_pass(over_http, model):
    async with running(over_http(*CONTINUING, row=WINDOW)) as harness:
        await fill(harness, model, 14_000)
        assert passes(harness) == []
        pasted = f"what is wrong here {solid(3_500)}"
        after = await harness.prompt(pasted)
        assert course(harness, after) == [*PASS, *TURN, "agent_settled"]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["midTurn"], end["willRetry"]) == ("threshold", False, False)
    *_, last = check_request(model.asked[-1])
    assert last.text == pasted
    assert SUMMARY in summary_of(model.asked[-1])
    file = stored(harness.file)
    assert file.customs("auto-continue") == []
    divider = file.path.index(file.compactions[0])
    (prompt,) = [entry for entry in file.messages[1:] if isinstance(entry.message, UserMessage)]
    assert file.path.index(prompt) > divider


async def test_prompt_counts_on_top_of_what_was_billed(over_http, model):
    async with running(over_http(*SMALL, row=WINDOW)) as harness:
        await fill(harness, model, 4_000)
        model.turns.append(model.says(3_000, used=(15_500, 500)))
        await harness.prompt("go on")
        after = await harness.prompt(solid(1_200))
        assert course(harness, after)[:2] == ["auto_compaction_start", "auto_compaction_end"]


async def test_step_that_crosses_the_threshold_is_followed_by_a_pass_inside_the_turn(
    over_http, model, project
):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    (project / "next.txt").write_text("the next file")
    async with running(over_http(*CONTINUING, row=WINDOW)) as harness:
        await fill(harness, model, 4_500)
        model.turns += [
            model.says("first", tools=[("read", {"path": "big.txt"}, "one")]),
            model.says("second", tools=[("read", {"path": "next.txt"}, "two")]),
            model.says("finished"),
        ]
        after = await harness.prompt("read both")
        assert course(harness, after, also=["tool_execution_end", "turn_end"]) == [
            "agent_start",
            "tool_execution_end",
            "turn_end",
            "auto_compaction_start",
            "auto_compaction_end",
            "tool_execution_end",
            "turn_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["midTurn"], end["midTurn"]) == ("threshold", True, True)
        assert end["willRetry"] is False
        lines = told(harness, after)
        at = next(index for index, line in enumerate(lines) if line["type"] == "auto_compaction_end")
        follows = next(line for line in lines[at:] if line["type"] == "message_start")
        assert follows["message"]["role"] == "assistant"
    said = check_request(model.asked[-2])
    assert SUMMARY in summary_of(model.asked[-2])
    assert [each.calls for each in said if each.calls] == [("one",)]
    assert said[-1].results.keys() == {"one"}
    assert stored(harness.file).customs("auto-continue") == []


async def test_no_pass_inside_a_turn_where_that_is_switched_off(over_http, model, project):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    settings = (*SMALL, "compaction.midTurnEnabled=false")
    async with running(over_http(*settings, row=WINDOW)) as harness:
        await fill(harness, model, 4_500)
        model.turns.append(model.says("first", tools=[("read", {"path": "big.txt"}, "one")]))
        after = await harness.prompt("read it")
        assert course(harness, after) == [*AFTER_TURN, "agent_settled"]
        assert passes(harness)[0][0]["midTurn"] is False
    assert solid(60) in texts(model.asked[-1])


async def test_pass_by_hand_is_a_manual_one_and_nothing_follows(over_http, model):
    async with running(over_http(*CONTINUING, row=WINDOW)) as harness:
        await fill(harness, model)
        after = len(harness.events)
        settled = await harness.settle(Compact())
        assert settled.ok, settled.error
        assert course(harness, after) == ["compaction_start", "compaction_end"]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["action"], end["willRetry"]) == ("manual", "summary", False)
        assert settled.data["entryId"] == end["result"]["entryId"]
        await harness.prompt("go on")
    assert len(model.asked) == 2
    assert SUMMARY in summary_of(model.asked[-1])
    assert stored(harness.file).customs("auto-continue") == []


async def test_billed_tokens_over_the_threshold_count_although_the_texts_are_short(over_http, model):
    async with running(over_http("compaction.keepRecentTokens=100", SMALL[1], row=WINDOW)) as harness:
        model.turns += [model.says(300, used=(900, 300)), model.says(300, used=(17_000, 300))]
        await harness.prompt("one")
        after = await harness.prompt("two")
        assert course(harness, after) == [*AFTER_TURN, "agent_settled"]
        model.turns.append(model.says("three"))
        await harness.prompt("the usage from before the pass is void")
        assert len(passes(harness)) == 1


SWITCHED_OFF = {
    "disabled": ("compaction.enabled=false",),
    "strategy off": ("compaction.strategy=off",),
}


@pytest.mark.parametrize("name", SWITCHED_OFF)
async def test_no_automatic_trigger_fires_where_maintenance_is_off(over_http, model, project, name):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    async with running(over_http(*SMALL, *SWITCHED_OFF[name], row=WINDOW)) as harness:
        await fill(harness, model, 12_000)
        model.turns.append(model.says("first", tools=[("read", {"path": "big.txt"}, "one")]))
        await harness.prompt(f"over the threshold with this {solid(6_000)}")
        model.turns.append(model.cut_off(used=(18_000, 1_000)))
        await harness.prompt("cut off")
        model.turns.append(model.overflows())
        await harness.prompt("too long")
        assert passes(harness) == []
        assert model.summarised == []
        assert "automatic compaction is off" in notices(harness, "warning")[-1]
        settled = await harness.settle(Compact())
        assert settled.ok, settled.error
        assert [start["reason"] for start, _ in passes(harness)] == ["manual"]


async def test_automatic_passes_can_be_switched_off_for_this_run(over_http, model):
    async with running(over_http(*SMALL, row=WINDOW)) as harness:
        await fill(harness, model)
        await harness.settle(SetAutoCompaction(enabled=False))
        model.turns.append(model.says(9_500))
        await harness.prompt("go on")
        assert passes(harness) == []
        await harness.settle(SetAutoCompaction(enabled=True))
        await harness.prompt("and now")
        assert [start["reason"] for start, _ in passes(harness)] == ["threshold"]


async def test_maintenance_runs_while_its_start_is_handled_and_input_is_queued(over_http, model):
    async with running(over_http(*SMALL, row=WINDOW)) as harness:
        await fill(harness, model)
        seen = []
        worker = harness.runtime._stage.desk.worker
        bus = harness.runtime._bus
        emit = bus.emit

        def watch(event):
            if type(event).__name__ == "MaintenanceStarted":
                seen.append((worker._maintainer.running, worker.busy))
                harness.runtime.send(SubmitPrompt("typed meanwhile"))
            emit(event)

        bus.emit = watch
        model.turns.append(model.says(9_000))
        await harness.prompt("go on")
        assert seen == [("compaction", True)]
        assert harness.of(MaintenanceEnded)[0].result is not None
    assert conversation(model.asked[-1])[-1].text == "typed meanwhile"
    assert "Queued until the compaction ends" in harness.notices("info")
