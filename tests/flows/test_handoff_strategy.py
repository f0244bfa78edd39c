"""The strategy ``handoff``: which triggers hand off, how the work goes on, and what follows when it fails."""

import pytest

from musepi_tui.runtime.events import AgentSettled, AgentStarted, MaintenanceProgress, SessionReady
from musepi_tui.runtime.intents import Cancel, Compact, CompactIdle, SubmitPrompt
from musepi_tui.storage.paths import artifact_folder
from tests.support.harness import running
from tests.support.passes import (
    DOCUMENT,
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    all_done,
    check_request,
    conversation,
    course,
    notices,
    passes,
    solid,
    stored,
    summary_of,
    told,
)
from tests.support.server import hang_reply, status_reply

SETTINGS = (
    "compaction.strategy=handoff",
    "compaction.threshold=10000",
    "compaction.keepRecentTokens=2000",
    "compaction.supersedeReads=false",
)
FOCUS = "Additional focus: preserve implementation state and next actions"


@pytest.fixture
def options(over_http):
    def make(*settings, **fields):
        return over_http(*SETTINGS, *settings, row=WINDOW, **fields)

    return make


def handoffs(harness):
    return [event.view for event in harness.of(SessionReady) if event.reason == "handoff"]


async def test_a_turn_over_the_threshold_is_handed_off_and_goes_on(options, model):
    async with running(options()) as harness:
        model.turns += [model.says(11_000, used=(200, 11_000)), model.says("nothing left")]
        old = harness.file
        await harness.prompt("write a lot")
        assert course(harness) == [*TURN, *PASS, *TURN, "agent_settled"]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["action"], start["midTurn"]) == ("threshold", "handoff", False)
        assert (end["action"], end["willRetry"], end["aborted"]) == ("handoff", False, False)
        assert end["result"]["tokensAfter"] < end["result"]["tokensBefore"]
        (view,) = handoffs(harness)
        assert view.header.parent_session == str(old)
    assert conversation(model.handed_off[0])[-1].text.endswith(FOCUS)
    new = stored(harness.file)
    assert (len(new.customs("handoff")), len(new.customs("auto-continue")), len(new.messages)) == (1, 1, 1)
    assert stored(old).compactions == []
    first, second = check_request(model.asked[-1])
    assert DOCUMENT in first.text
    assert "Go on with what the user wanted last" in second.text


async def test_without_auto_continue_the_new_session_waits(options, model):
    async with running(options("compaction.autoContinue=false")) as harness:
        model.turns += [model.says(11_000, used=(200, 11_000))]
        await harness.prompt("write a lot")
        assert course(harness) == [*TURN, *PASS, "agent_settled"]
        assert len(handoffs(harness)) == 1
        await harness.prompt("go on")
    assert [said.text for said in check_request(model.asked[-1])][1:] == ["go on"]


async def test_what_waits_goes_first_in_the_new_session(options, model):
    async with running(options()) as harness:
        model.turns += [model.says(11_000, used=(200, 11_000))]
        model.document = lambda request: model.says(DOCUMENT)(request).slow(0.02)
        harness.runtime.send(SubmitPrompt("write a lot"))
        await harness.wait_for(MaintenanceProgress)
        harness.runtime.send(SubmitPrompt("rather this", delivery="follow_up"))
        await all_done(harness, 0)
        assert course(harness).count("agent_settled") == 1
    new = stored(harness.file)
    assert new.customs("auto-continue") == []
    assert check_request(model.asked[-1])[-1].text == "rather this"


async def test_a_pending_prompt_goes_on_in_the_new_session(options, model):
    async with running(options("compaction.autoContinue=false")) as harness:
        model.turns += [model.says(6_000, used=(200, 6_000)), model.says("done")]
        await harness.prompt("write a lot")
        old = harness.file
        assert handoffs(harness) == []
        after = len(harness.events)
        await harness.prompt("x " * 10_000)
        assert course(harness, after) == [*PASS, *TURN, "agent_settled"]
        assert len(handoffs(harness)) == 1
    assert len(stored(old).messages) == 2
    assert len(stored(harness.file).messages) == 2
    first, second = check_request(model.asked[-1])
    assert DOCUMENT in first.text
    assert second.text.startswith("x x")


async def test_a_cut_off_answer_is_asked_for_again_in_the_new_session(options, model):
    async with running(options()) as harness:
        model.turns += [model.says("one"), model.cut_off("", used=(9_000, 2_000)), model.says("complete")]
        await harness.prompt("write little")
        after = await harness.prompt("write a lot")
        assert course(harness, after) == [*TURN, *PASS, *TURN, "agent_settled"]
        ((start, end),) = passes(harness)
        assert (start["reason"], start["action"], end["willRetry"]) == ("incomplete", "handoff", True)
        assert len(handoffs(harness)) == 1
    new = stored(harness.file)
    assert [entry.type for entry in new.path if entry.type != "usage"][-2:] == ["custom_message", "message"]
    (said,) = check_request(model.asked[-1])
    assert DOCUMENT in said.text


async def test_an_overflow_is_summarised_in_the_same_session(options, model):
    async with running(options()) as harness:
        model.turns += [model.says(3_000), model.says(3_000), model.overflows(), model.says("fits")]
        for text in ("one", "two", "three"):
            await harness.prompt(text)
        ((start, end),) = passes(harness)
        assert (start["reason"], start["action"], end["willRetry"]) == ("overflow", "summary", True)
        assert handoffs(harness) == []
    assert SUMMARY in summary_of(model.asked[-1])
    assert model.handed_off == []


async def test_a_turn_that_is_under_way_is_summarised(options, model, project):
    (project / "a.txt").write_text("word " * 6_000)
    async with running(options()) as harness:
        model.turns += [model.says(4_000), model.says("", tools=[("read", {"path": "a.txt"})])]
        await harness.prompt("one")
        await harness.prompt("two")
        mid_turn = [start for start, _ in passes(harness) if start["midTurn"]]
        assert [start["action"] for start in mid_turn] == ["summary"]
        assert handoffs(harness) == []


@pytest.mark.parametrize("said", ["", "\n".join(["the same line over and over again"] * 20)])
async def test_an_unusable_document_is_replaced_by_a_summary_in_the_same_pass(options, model, said):
    async with running(options()) as harness:
        model.document = model.says(said)
        model.turns += [model.says(4_000), model.says(8_000, used=(4_200, 8_000))]
        await harness.prompt("one")
        await harness.prompt("two")
        ((start, end),) = passes(harness)
        assert (start["action"], end["result"] is not None) == ("handoff", True)
        assert handoffs(harness) == []
        assert any("summarised instead" in text for text in notices(harness, "warning"))
    assert len(stored(harness.file).compactions) == 1
    assert SUMMARY in summary_of(model.asked[-1])


async def test_a_request_that_is_too_long_is_replaced_by_a_summary(options, model):
    async with running(options()) as harness:
        model.document = model.overflows()
        model.turns += [model.says(4_000), model.says(8_000, used=(4_200, 8_000))]
        await harness.prompt("one")
        await harness.prompt("two")
        assert handoffs(harness) == []
    assert len(stored(harness.file).compactions) == 1


@pytest.mark.parametrize("status", [400, 500])
async def test_a_request_that_fails_is_replaced_by_a_summary(options, model, status):
    async with running(options("retry.maxRetries=0", "retry.requestRetries=0")) as harness:
        model.document = status_reply(status, {"error": {"message": "boom", "type": "api_error"}})
        model.turns += [model.says(4_000), model.says(8_000, used=(4_200, 8_000))]
        await harness.prompt("one")
        await harness.prompt("two")
        ((_, end),) = passes(harness)
        assert end["result"] is not None
        assert handoffs(harness) == []
        (warning,) = notices(harness, "warning")
        assert warning.startswith("No handoff: ")
        assert warning.endswith("boom. The history is summarised instead.")
    assert len(stored(harness.file).compactions) == 1


async def test_a_session_with_nothing_to_hand_off_or_to_summarise_gets_one_notice(options, model):
    async with running(options()) as harness:
        model.turns += [model.says(11_000, used=(200, 11_000))]
        await harness.prompt("write a lot")
        after = await harness.prompt("x" * 40_000)
        assert "summarised instead" not in " ".join(notices(harness, "warning"))
        assert len(handoffs(harness)) == 1
        assert course(harness, after)[-3:] == [*TURN, "agent_settled"]


@pytest.mark.parametrize("threshold", [5_000, 7_000], ids=["over-the-threshold", "above-the-band"])
async def test_a_new_session_without_headroom_ends_it(options, model, threshold):
    async with running(options(f"compaction.threshold={threshold}")) as harness:
        model.document = model.says(solid(4_500))
        model.turns += [model.says(11_000, used=(200, 11_000))]
        await harness.prompt("write a lot")
        assert course(harness) == [*TURN, *PASS, "agent_settled"]
        assert len(handoffs(harness)) == 1
        (warning,) = notices(harness, "warning")
        assert "After the handoff the context takes 5," in warning
        assert f"at most {threshold * 8 // 10:,} of a 20,000-token window" in warning
        for number in (2, 3, 4):
            await harness.prompt(f"prompt {number}")
            assert len(model.asked) == number
        assert (len(handoffs(harness)), len(model.handed_off)) == (1, 1)
        assert not any("No handoff" in text for text in notices(harness))


async def test_a_cancelled_handoff_leaves_everything_and_does_not_come_again(options, model):
    async with running(options()) as harness:
        model.document = hang_reply()
        model.turns += [model.says(11_000, used=(200, 11_000))]
        harness.runtime.send(SubmitPrompt("write a lot"))
        await harness.wait_for(MaintenanceProgress)
        old_bytes = harness.file.read_bytes()
        await harness.settle(Cancel())
        await all_done(harness, 0)
        ((_, end),) = passes(harness)
        assert (end["aborted"], end["result"]) == (True, None)
        assert handoffs(harness) == []
        assert harness.file.read_bytes() == old_bytes
    assert course(harness) == [*TURN, *PASS, "agent_settled"]


async def test_compact_by_hand_is_a_summary(options, model):
    async with running(options("compaction.threshold=19000")) as harness:
        model.turns += [model.says(6_000)]
        await harness.prompt("one")
        assert (await harness.settle(Compact())).ok
        assert passes(harness)[0][0]["action"] == "summary"
    assert model.handed_off == []


async def test_an_idle_session_is_handed_off_and_nothing_follows(options, model):
    idle = (
        "compaction.idleEnabled=true",
        "compaction.idleThresholdTokens=1000",
        "compaction.threshold=19000",
    )
    async with running(options(*idle)) as harness:
        model.turns += [model.says(6_000)]
        await harness.prompt("one")
        after = len(harness.events)
        settled = await harness.settle(CompactIdle())
        assert settled.ok
        assert course(harness, after) == PASS
        assert len(handoffs(harness)) == 1


async def test_the_cap_on_continuations_holds_over_handoffs(options, model):
    async with running(options()) as harness:
        long = [model.says("", tools=[("ls", {"path": "."})]), model.says(11_000, used=(200, 11_000))]
        model.turns += 5 * long
        await harness.prompt("write a lot")
        assert len(harness.of(AgentSettled)) == 1
        assert len(harness.of(AgentStarted)) == 4
        assert any("waits for you now" in text for text in harness.notices())
        assert len(handoffs(harness)) == 4


@pytest.mark.parametrize("saved", [True, False])
async def test_the_document_is_kept_beside_the_old_session_where_that_is_wanted(options, model, saved):
    keep = f"compaction.handoffSaveToDisk={str(saved).lower()}"
    async with running(options(keep, "compaction.autoContinue=false")) as harness:
        model.turns += [model.says(11_000, used=(200, 11_000))]
        old = harness.file
        await harness.prompt("write a lot")
        files = sorted(artifact_folder(old).glob("handoff-*.md"))
        assert len(files) == saved
        if saved:
            assert files[0].read_text() == f"{DOCUMENT}\n"
            assert ":" not in files[0].name
            assert any(str(files[0]) in text for text in notices(harness))


async def test_the_gauge_shows_the_new_session(options, model):
    async with running(options("compaction.autoContinue=false")) as harness:
        model.turns += [model.says(11_000, used=(200, 11_000))]
        await harness.prompt("write a lot")
        lines = [line for line in told(harness) if line["type"] in ("auto_compaction_end", "context_usage")]
        behind = lines[[line["type"] for line in lines].index("auto_compaction_end") + 1 :]
        assert behind
        assert all(line["tokens"] < 5_000 for line in behind)
