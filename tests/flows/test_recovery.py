"""Answers that fail for their size, over real HTTP: what is dropped, restored, asked again and told."""

import pytest

from musepi_tui.runtime.events import AgentSettled, MaintenanceEnded, MaintenanceProgress, MaintenanceStarted
from musepi_tui.runtime.intents import Cancel, SelectModel, SetAutoCompaction, SubmitPrompt
from musepi_tui.session.messages import AssistantMessage, StopReason
from tests.support.harness import running
from tests.support.passes import (
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    check_request,
    course,
    notices,
    passes,
    solid,
    stored,
    summary_of,
    texts,
    write_rows,
)
from tests.support.server import hang_reply, status_reply

SMALL = ("compaction.keepRecentTokens=2000", "compaction.autoContinue=false")
TOO_LONG = "prompt is too long: 30000 tokens > 20000 maximum"
RECOVERY = [*TURN, *PASS]
RETRIED = [*RECOVERY, *TURN, "agent_settled"]
NO_RETRY = ("retry.maxRetries=0", "retry.requestRetries=0")
NO_SUMMARY = status_reply(500, {"error": {"message": "no summary today"}})
ASKED_AGAIN = [*TURN, *TURN, "agent_settled"]


@pytest.fixture
def start(over_http, model):
    """A session with two turns of 4,000 tokens."""

    def opened(*settings, row=WINDOW, **fields):
        model.turns += [model.says(4_000), model.says(4_000)]
        return running(over_http(*SMALL, *settings, row=row, **fields))

    return opened


async def fill(harness):
    await harness.prompt("never use floats")
    await harness.prompt("count to a million")


def opened_with(start, home, api, server, other, **first):
    """A session as ``start`` makes it, with a second model in the table."""
    session = start()
    write_rows(home, api, server.base_url, {"id": "m1", **WINDOW, **first}, other)
    return session


def stops(entries):
    """Stop reasons of the answers among entries."""
    return [
        entry.message.stop_reason
        for entry in entries
        if getattr(entry, "message", None) and isinstance(entry.message, AssistantMessage)
    ]


async def test_overflow_is_compacted_and_asked_again(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns += [model.overflows(), model.says("a million")]
        after = await harness.prompt("go on")
        assert course(harness, after) == RETRIED
        ((began, end),) = passes(harness)
        assert (began["reason"], began["midTurn"], end["willRetry"]) == ("overflow", False, True)
        assert end["result"]["tokensAfter"] < end["result"]["tokensBefore"]
        assert (harness.runtime.outcome.stop, harness.runtime.outcome.error) == ("ok", None)
        assert harness.notices("error") == []
    said = check_request(model.asked[-1])
    assert SUMMARY in summary_of(model.asked[-1])
    assert said[-1].text == "go on"
    file = stored(harness.file)
    assert stops(file.beside) == [StopReason.ERROR]
    assert StopReason.ERROR not in stops(file.path)
    assert file.compactions[0].reason == "overflow"
    assert file.customs("auto-continue") == []


async def test_overflow_after_a_tool_step_is_asked_again_with_the_result(start, model, project):
    (project / "a.txt").write_text("alpha")
    async with start() as harness:
        await fill(harness)
        model.turns += [
            model.says(2_500, tools=[("read", {"path": "a.txt"}, "one")]),
            model.overflows(),
            model.says("alpha it is"),
        ]
        after = await harness.prompt("read it")
        assert course(harness, after) == RETRIED
        assert harness.runtime.outcome.stop == "ok"
    said = check_request(model.asked[-1])
    assert said[-1].results.keys() == {"one"}
    assert "alpha" in said[-1].results["one"]


async def test_second_overflow_in_a_row_is_not_compacted_again(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns += [model.overflows()] * 2
        after = await harness.prompt("go on")
        assert course(harness, after) == [*RECOVERY, *TURN, *PASS, "agent_settled"]
        first, (began, end) = passes(harness)
        assert first[1]["willRetry"] is True
        assert began["reason"] == "overflow"
        assert (end["willRetry"], end["result"]) == (False, None)
        assert end["errorMessage"].startswith("Context overflow recovery failed: history was compacted")
        assert harness.runtime.outcome.stop == "error"
        assert len(harness.notices("error")) == 1
        asked = len(model.asked)
        model.turns.append(model.overflows())
        await harness.prompt(f"a new message arms it again {solid(3_000)}")
        assert len(passes(harness)) == 3
        assert len(model.asked) == asked + 2
    assert len(stored(harness.file).compactions) == 2


async def test_successful_answer_rearms_the_recovery_of_an_overflow(start, model, project):
    async with start() as harness:
        await fill(harness)
        model.turns += [
            model.overflows(),
            model.says(3_000, tools=[("ls", {}, "one")]),
            model.overflows(),
            model.says("done at last"),
        ]
        await harness.prompt("go on")
        assert [(began["reason"], end["willRetry"]) for began, end in passes(harness)] == [
            ("overflow", True)
        ] * 2
        assert harness.runtime.outcome.stop == "ok"


async def test_answer_that_reports_an_overflow_stays_and_is_not_asked_again(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns.append(model.says("here you are", used=(25_000, 10)))
        after = await harness.prompt("go on")
        assert course(harness, after) == [*RECOVERY, "agent_settled"]
        ((began, end),) = passes(harness)
        assert (began["reason"], end["willRetry"], end["result"] is None) == ("overflow", False, False)
        assert harness.runtime.outcome.stop == "ok"
    file = stored(harness.file)
    assert file.beside == ()
    assert stops(file.path)[-1] is StopReason.STOP


async def test_overflow_left_from_before_is_repaired_before_the_next_prompt(start, model):
    async with start() as harness:
        await fill(harness)
        await harness.settle(SetAutoCompaction(enabled=False))
        model.turns.append(model.overflows())
        await harness.prompt("go on")
        assert passes(harness) == []
        await harness.settle(SetAutoCompaction(enabled=True))
        after = await harness.prompt("try once more")
        assert course(harness, after) == [*PASS, *TURN, "agent_settled"]
        ((began, end),) = passes(harness)
        assert (began["reason"], end["willRetry"]) == ("overflow", False)
    said = check_request(model.asked[-1])
    assert [each.text for each in said[-2:]] == ["go on", "try once more"]


async def test_failed_recovery_puts_an_answer_with_text_back(start, model):
    async with start(*NO_RETRY) as harness:
        await fill(harness)
        model.turns.append(model.breaks_off(TOO_LONG, "invalid_request_error", said="half a word"))
        model.summary = NO_SUMMARY
        after = await harness.prompt("go on")
        assert course(harness, after) == [*RECOVERY, "agent_settled"]
        ((_, end),) = passes(harness)
        assert end["errorMessage"].startswith("Context overflow recovery failed: ")
        assert "no summary today" in end["errorMessage"]
        assert harness.runtime.outcome.stop == "error"
        live = [message for _, message in harness.runtime.context_messages()]
        assert live[-1].stop_reason is StopReason.ERROR
    file = stored(harness.file)
    assert stops(file.path)[-1] is StopReason.ERROR
    assert file.beside == ()
    assert file.compactions == []


async def test_failed_recovery_leaves_an_empty_answer_out(start, model):
    async with start(*NO_RETRY) as harness:
        await fill(harness)
        model.turns.append(model.overflows())
        model.summary = NO_SUMMARY
        await harness.prompt("go on")
        assert len(model.asked) == 3
        assert harness.runtime.outcome.stop == "error"
        model.summary = model.says(SUMMARY)
        await harness.prompt("shorter")
    said = check_request(model.asked[-1])
    assert [each.text for each in said[-2:]] == ["go on", "shorter"]
    assert StopReason.ERROR not in stops(stored(harness.file).path)


async def test_messages_in_the_queue_wait_after_a_recovery_that_failed(start, model):
    async with start(*NO_RETRY) as harness:
        await fill(harness)
        model.turns.append(model.overflows())
        model.summary = NO_SUMMARY
        harness.runtime.send(SubmitPrompt("go on"))
        await harness.wait_for(MaintenanceStarted)
        harness.runtime.send(SubmitPrompt("and then this", delivery="follow_up"))
        await harness.wait_for(MaintenanceEnded)
        told = await harness.notice("Not sent, because the turn failed")
        assert told.text.endswith(': "and then this".')
        assert harness.runtime.view().follow_up == ("and then this",)


async def test_overflow_of_another_model_starts_nothing(start, model, server, api, musepi_home):
    async with opened_with(start, musepi_home, api, server, {"id": "m2", **WINDOW}) as harness:
        await fill(harness)
        await harness.settle(SetAutoCompaction(enabled=False))
        model.turns.append(model.overflows())
        await harness.prompt("go on")
        await harness.settle(SetAutoCompaction(enabled=True))
        await harness.settle(SelectModel("local", "m2"))
        await harness.prompt("now with another model")
        assert passes(harness) == []
        assert model.asked[-1].body["model"] == "m2"


async def test_cancel_during_the_pause_before_a_retry_ends_it(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns.append(model.overflows())
        harness.runtime.send(SubmitPrompt("go on"))
        await harness.wait_for(MaintenanceEnded)
        settled = await harness.settle(Cancel())
        assert settled.data == {"cancelled": "retry"}
        await harness.wait_for(AgentSettled, after=len(harness.events) - 1)
        assert len(model.asked) == 3
        await harness.prompt("something else")
    assert len(model.asked) == 4
    assert "something else" in check_request(model.asked[-1])[-1].text


async def test_cancelled_recovery_puts_everything_back(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns.append(model.overflows())
        model.summary = hang_reply()
        harness.runtime.send(SubmitPrompt("go on"))
        await harness.wait_for(MaintenanceProgress, lambda event: event.phase == "summary")
        assert (await harness.settle(Cancel())).data == {"cancelled": "compaction"}
        await harness.wait_for(AgentSettled, after=len(harness.events) - 1)
        ((_, end),) = passes(harness)
        assert (end["aborted"], end["result"], end["willRetry"]) == (True, None, False)
        assert harness.runtime.outcome.stop == "error"
    file = stored(harness.file)
    assert stops(file.path)[-1] is StopReason.ERROR
    assert file.beside == ()


async def test_reply_cut_off_with_text_is_kept_and_explained(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns.append(model.cut_off("the beginning of it"))
        after = await harness.prompt("go on")
        assert course(harness, after) == ["agent_start", "agent_end", "agent_settled"]
        assert "cut off by the output limit of local/m1" in notices(harness, "warning")[0]
    assert stops(stored(harness.file).path)[-1] is StopReason.LENGTH
    assert len(model.asked) == 3


async def test_reply_without_text_is_asked_again_with_a_reminder(start, model):
    async with start(row=WINDOW | {"reasoning": True}, thinking="medium") as harness:
        await fill(harness)
        model.turns += [model.cut_off(thinking="hm, hm"), model.says("at last")]
        after = await harness.prompt("go on")
        assert course(harness, after) == ASKED_AGAIN
        assert passes(harness) == []
    said = check_request(model.asked[-1])
    assert "attempt 1 of 3" in said[-1].text
    assert "hm, hm" not in texts(model.asked[-1])
    file = stored(harness.file)
    (reminder,) = file.customs("incomplete-reminder")
    assert reminder.display is False
    assert stops(file.beside) == [StopReason.LENGTH]


async def test_reply_that_spent_nothing_is_asked_again_without_a_reminder(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns += [model.cut_off(used=(100, 0)), model.says("at last")]
        after = await harness.prompt("go on")
        assert course(harness, after) == ASKED_AGAIN
    assert stored(harness.file).customs("incomplete-reminder") == []


async def test_reply_cut_off_by_the_window_is_compacted_and_asked_again(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns += [model.cut_off("half", used=(17_500, 500)), model.says("whole")]
        after = await harness.prompt("go on")
        assert course(harness, after) == RETRIED
        ((began, end),) = passes(harness)
        assert (began["reason"], end["willRetry"]) == ("incomplete", True)
    assert SUMMARY in summary_of(model.asked[-1])
    assert "half" not in texts(model.asked[-1])
    assert stops(stored(harness.file).beside) == [StopReason.LENGTH]


async def test_failed_recovery_of_a_cut_off_reply_puts_it_back(start, model):
    async with start(*NO_RETRY) as harness:
        await fill(harness)
        model.turns.append(model.cut_off("half", used=(17_500, 500)))
        model.summary = NO_SUMMARY
        await harness.prompt("go on")
        ((_, end),) = passes(harness)
        assert end["errorMessage"].startswith("Incomplete response recovery failed: ")
    assert stops(stored(harness.file).path)[-1] is StopReason.LENGTH
    assert len(model.asked) == 3


async def test_rejected_payload_with_room_left_is_told_and_not_compacted(start, model):
    async with start() as harness:
        await fill(harness)
        model.turns.append(model.too_large())
        after = await harness.prompt("go on")
        assert course(harness, after) == ["agent_start", "agent_end", "agent_settled"]
        assert "size in bytes or for its pictures" in notices(harness, "warning")[0]
        assert harness.runtime.outcome.stop == "error"
        await harness.prompt("smaller")
    assert model.summarised == []
    check_request(model.asked[-1])


async def test_rejected_payload_about_pictures_is_never_compacted(start, model):
    async with start("compaction.threshold=99%") as harness:
        await fill(harness)
        model.turns += [model.says(8_900), model.too_large("too many images in the request: at most 20")]
        await harness.prompt("more")
        await harness.prompt("with pictures")
        assert passes(harness) == []
        assert "size in bytes or for its pictures" in notices(harness, "warning")[0]


async def test_rejected_payload_that_was_billed_over_the_window_is_an_overflow(start, model):
    async with start() as harness:
        await fill(harness)
        refused = model.breaks_off("request too large", "request_too_large", prompt=26_000)
        model.turns += [refused, model.says("fits")]
        after = await harness.prompt("go on")
        assert course(harness, after) == RETRIED
        assert harness.runtime.outcome.stop == "ok"


async def test_rejected_payload_near_the_window_is_treated_as_an_overflow(start, model):
    async with start("compaction.threshold=99%") as harness:
        await fill(harness)
        model.turns += [model.says(8_900), model.too_large(), model.says("fits")]
        await harness.prompt("more")
        assert passes(harness) == []
        after = await harness.prompt("go on")
        assert course(harness, after) == RETRIED
        assert passes(harness)[0][0]["reason"] == "overflow"
        assert harness.runtime.outcome.stop == "ok"


async def test_rejected_payload_that_a_pass_cannot_help_is_told_at_the_end(start, model):
    async with start("compaction.threshold=99%", *NO_RETRY) as harness:
        await fill(harness)
        model.turns += [model.says(8_900), model.too_large()]
        model.summary = NO_SUMMARY
        await harness.prompt("more")
        await harness.prompt("go on")
        assert "size in bytes or for its pictures" in notices(harness, "warning")[-1]
        assert harness.runtime.outcome.stop == "error"
        await harness.prompt("and now")
    check_request(model.asked[-1])
