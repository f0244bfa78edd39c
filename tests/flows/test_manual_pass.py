"""Passes by hand, and passes that meet a person: interruption, resumption, cancel, the queue."""

from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceProgress, MaintenanceStarted, Phase
from musepi_tui.runtime.intents import Cancel, Compact, Shake, SubmitPrompt
from tests.support.harness import running
from tests.support.passes import (
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    all_done,
    check_request,
    course,
    notices,
    passes,
    solid,
    stored,
    summary_of,
    texts,
    wait_for_requests,
)
from tests.support.server import hang_reply, json_reply

KEEP = ("compaction.keepRecentTokens=2000",)
FIXED = ("compaction.threshold=17000", "compaction.autoContinue=false")


async def test_second_pass_by_hand_right_away_has_nothing_to_do(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        assert (await harness.settle(Compact())).ok
        before = harness.file.read_bytes()
        settled = await harness.settle(Compact())
        assert settled.error == "Already compacted"
        assert harness.file.read_bytes() == before
        (_, end) = passes(harness)[-1]
        assert (end["skipped"], end["result"], end["aborted"]) == (True, None, False)


async def test_pass_by_hand_stops_a_turn_and_resumes_it_once(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns += [model.says(6_000), hang_reply(), model.says("resumed")]
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("a long task"))
        await wait_for_requests(model, 2)
        settled = await harness.settle(Compact())
        assert settled.ok, settled.error
        await all_done(harness, after)
        assert course(harness, after) == [
            *TURN,
            "compaction_start",
            "compaction_end",
            *TURN,
            "agent_settled",
        ]
        assert passes(harness)[0][0]["reason"] == "manual"
    said = check_request(model.asked[-1])
    assert SUMMARY in summary_of(model.asked[-1])
    assert "a long task" in texts(model.asked[-1])
    assert "Go on with what the user wanted last" in said[-1].text
    assert len(stored(harness.file).customs("auto-continue")) == 1


async def test_pass_by_hand_that_is_cancelled_resumes_nothing(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns += [model.says(6_000), hang_reply()]
        model.summary = hang_reply()
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("a long task"))
        await wait_for_requests(model, 2)
        harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceStarted)
        await harness.settle(Cancel())
        await all_done(harness, after)
        (_, end) = passes(harness)[0]
        assert (end["aborted"], end["result"]) == (True, None)
    assert len(model.asked) == 2
    assert stored(harness.file).customs("auto-continue") == []


async def test_queued_message_goes_before_the_resumption_of_a_turn(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns += [model.says(6_000), hang_reply()]
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("a long task"))
        await wait_for_requests(model, 2)
        harness.runtime.send(SubmitPrompt("rather this", delivery="follow_up"))
        settled = await harness.settle(Compact())
        assert settled.ok
        await all_done(harness, after)
    assert check_request(model.asked[-1])[-1].text == "rather this"
    assert stored(harness.file).customs("auto-continue") == []


async def test_pass_by_hand_takes_the_place_of_an_automatic_one(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns += [model.says(12_000), model.says(4_000)]
        model.summary = hang_reply()
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("two"))
        await harness.wait_for(MaintenanceProgress, lambda event: event.phase == "summary")
        model.summary = model.says(SUMMARY)
        settled = await harness.settle(Compact(focus="the parser"))
        assert settled.ok, settled.error
        await all_done(harness, after)
        assert course(harness, after) == [*TURN, *PASS, "compaction_start", "compaction_end", "agent_settled"]
        ends = [(end["reason"], end["aborted"], end["result"] is not None) for _, end in passes(harness)]
        assert ends == [("threshold", True, False), ("manual", False, True)]
    assert "the parser" in texts(model.summarised[-1])
    assert len(stored(harness.file).compactions) == 1


async def test_second_pass_by_hand_is_refused_while_one_runs(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        model.summary = hang_reply()
        await harness.prompt("one")
        harness.runtime.send(Compact())
        await harness.wait_for(MaintenanceProgress, lambda event: event.phase == "summary")
        assert (await harness.settle(Compact())).error == "Compaction already in progress"
        await harness.settle(Cancel())
        await harness.wait_for(MaintenanceEnded)
        assert len(passes(harness)) == 1


async def test_message_typed_during_a_pass_inside_a_turn_steers_that_turn(over_http, model, project):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns += [model.says(4_500), model.says("look", tools=[("read", {"path": "big.txt"}, "one")])]
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("read it"))
        await harness.wait_for(MaintenanceStarted)
        harness.runtime.send(SubmitPrompt("shorter, please"))
        await all_done(harness, after)
        assert course(harness, after) == ["agent_start", *PASS, "agent_end", "agent_settled"]
    assert check_request(model.asked[-1])[-1].text == "shorter, please"


async def test_pass_inside_a_turn_that_is_cancelled_leaves_the_turn_running(over_http, model, project):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    async with running(over_http(*KEEP, "compaction.autoContinue=false", row=WINDOW)) as harness:
        model.turns += [model.says(4_500), model.says("look", tools=[("read", {"path": "big.txt"}, "one")])]
        model.summary = hang_reply()
        await harness.prompt("one")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt("read it"))
        await harness.wait_for(MaintenanceProgress, lambda event: event.phase == "summary")
        assert (await harness.settle(Cancel())).data == {"cancelled": "compaction"}
        await all_done(harness, after)
        assert course(harness, after) == ["agent_start", *PASS, "agent_end", "agent_settled"]
        assert passes(harness)[0][1]["aborted"] is True
        assert harness.runtime.outcome.stop == "ok"
    assert check_request(model.asked[-1])[-1].results.keys() == {"one"}


async def test_shake_can_be_cancelled_and_counts_as_running(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(f"here\n\n```\n{solid(6_000)}\n```\n"))
        await harness.prompt("one")
        before = harness.file.read_bytes()
        cancelled = []
        emit = harness.runtime._bus.emit
        desk = harness.runtime._stage.desk

        def watch(event):
            emit(event)
            if isinstance(event, MaintenanceStarted):
                cancelled.append(desk.services.cancels.cancel_first())

        harness.runtime._bus.emit = watch
        settled = await harness.settle(Shake("elide"))
        assert [kind.name for kind in cancelled] == ["COMPACTION"]
        assert settled.error == "Compaction cancelled"
        ((start, end),) = passes(harness)
        assert (start["action"], end["aborted"], end["result"]) == ("shake", True, None)
        assert harness.file.read_bytes() == before
        harness.runtime._bus.emit = emit
        assert (await harness.settle(Shake("elide"))).data["blocks"] == 1


async def test_remote_mode_asks_the_endpoint_there_is(over_http, model, server):
    endpoint = f"compaction.remoteEndpoint={server.base_url}/summaries"
    async with running(over_http(*KEEP, endpoint, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        model.summary = json_reply({"summary": SUMMARY})
        await harness.prompt("one")
        assert (await harness.settle(Compact(mode="remote", focus="the parser"))).ok
        assert notices(harness) == []
    assert [request.path for request in model.summarised] == ["/summaries"]
    assert "the parser" in str(model.summarised[0].body)


async def test_soft_mode_asks_a_model_although_there_is_an_endpoint(over_http, model, server):
    endpoint = f"compaction.remoteEndpoint={server.base_url}/summaries"
    async with running(over_http(*KEEP, endpoint, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        assert (await harness.settle(Compact(mode="Soft"))).ok
    assert [request.path for request in model.summarised] == [model.asked[0].path]


async def test_remote_mode_without_an_endpoint_warns_and_asks_a_model(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        assert (await harness.settle(Compact(mode="remote"))).ok
        (warning,) = notices(harness, "warning")
        assert warning.startswith("compaction.remoteEndpoint is not set")
    assert len(model.summarised) == 1


async def test_mode_that_is_refused_stops_nothing(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.turns.append(hang_reply())
        harness.runtime.send(SubmitPrompt("one"))
        await wait_for_requests(model, 1)
        settled = await harness.settle(Compact(mode="snapcompact"))
        assert settled.error.startswith('This version has no compaction mode "snapcompact".')
        assert harness.runtime.view().phase is Phase.STREAMING
        assert passes(harness) == []
        await harness.settle(Cancel())


async def test_shake_by_mode_that_finds_nothing_says_so(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        await harness.prompt("one")
        settled = await harness.settle(Compact(mode="shake"))
        assert (settled.ok, settled.error) == (False, "Nothing to shake")
        ((_, end),) = passes(harness)
        assert (end["skipped"], end["result"], "errorMessage" in end) == (True, None, False)
