"""Whatever model and server do: what one prompt costs is bounded, and people are told why it stopped."""

import pytest

from musepi_tui.runtime.events import AgentSettled, MaintenanceStarted
from musepi_tui.runtime.intents import Cancel, SubmitPrompt
from tests.support.harness import running
from tests.support.passes import (
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    course,
    notices,
    passes,
    solid,
    texts,
)
from tests.support.server import Reply, hang_reply

KEEP = "compaction.keepRecentTokens=2000"
NO_RETRY = ("retry.maxRetries=0", "retry.requestRetries=0")


def echo(model):
    """A summarizer that gives back all it was shown."""

    def answer(request) -> Reply:
        shown = texts(request)
        return model.says(shown[: len(shown) - len(shown) % 4])(request)

    return answer


async def test_summaries_as_long_as_their_input_are_refused_with_the_numbers(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.summary = echo(model)
        model.turns.append(model.says(11_000))
        model.ending = model.says(6_000)
        await harness.prompt("one")
        for number in (1, 2):
            await harness.prompt(f"prompt {number}")
            assert (len(model.asked), len(passes(harness))) == (1 + number, number)
            assert len(model.summarised) <= 2 * number
        reasons = [(began["reason"], end["result"]) for began, end in passes(harness)]
        assert reasons == [("threshold", None)] * 2
        assert "tokens for a context window of 20,000" in passes(harness)[0][1]["errorMessage"]


async def test_summaries_of_a_quarter_of_the_window_stop_after_three_continuations(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.summary = model.says(solid(4_900))
        model.ending = model.says(9_000)
        await harness.prompt("one")
        await harness.prompt("two")
        assert len(model.asked) == 1 + 4
        assert len(passes(harness)) == 4
        assert "continued by itself 3 times" in notices(harness)[-1]


async def test_server_that_always_overflows_is_asked_twice_a_prompt(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        model.ending = model.overflows()
        for number in (1, 2):
            await harness.prompt(f"prompt {number}")
            assert len(model.asked) == 1 + 2 * number
            assert len(passes(harness)) == 2 * number
            assert len(harness.notices("error")) == number
            assert harness.runtime.outcome.stop == "error"
        assert [end["result"] is not None for _, end in passes(harness)] == [True, False] * 2


async def test_server_that_overflows_summaries_too_is_left_alone(over_http, model):
    async with running(over_http(KEEP, *NO_RETRY, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        model.ending = model.summary = model.overflows()
        await harness.prompt("two")
        assert len(model.asked) == 2
        assert len(model.summarised) == 1
        ((_, end),) = passes(harness)
        assert end["errorMessage"].startswith("Context overflow recovery failed: ")
        assert harness.runtime.outcome.stop == "error"


async def test_summarizer_that_always_answers_nothing_changes_nothing(over_http, model):
    async with running(over_http(KEEP, *NO_RETRY, row=WINDOW)) as harness:
        model.summary = model.says("")
        model.turns.append(model.says(9_000))
        await harness.prompt("one")
        model.turns += [model.says(8_000), model.says("more", tools=[("ls", {}, "a")], used=(18_000, 9))]
        await harness.prompt("two")
        ((_, end),) = passes(harness)
        assert end["errorMessage"].startswith("Auto-compaction failed: ")
        assert len(model.summarised) == 2
        await harness.prompt("three")
        assert len(passes(harness)) == 2
        assert len(model.summarised) == 4


async def test_system_prompt_larger_than_the_window_is_told_once(over_http, model, project):
    (project / "AGENTS.md").write_text(solid(9_000) + "\n" + solid(9_500))
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        for number in range(3):
            await harness.prompt(f"prompt {number} {solid(300)}")
        assert passes(harness) == []
        (warning,) = notices(harness, "warning")
        assert "The system prompt and tools take 17,7" in warning
    assert len(model.asked) == 3
    assert model.summarised == []


async def test_window_that_system_prompt_and_tools_fill_is_told_once(over_http, model):
    async with running(over_http(KEEP, row={"contextWindow": 1_200, "maxTokens": 100})) as harness:
        for number in range(3):
            await harness.prompt(f"prompt {number} {solid(300)}")
        assert passes(harness) == []
        (warning,) = notices(harness, "warning")
        assert "The system prompt and tools take 1," in warning
        assert "1,200-token window" in warning
    assert (len(model.asked), model.summarised) == (3, [])


async def test_model_that_always_reaches_its_output_limit_is_asked_four_times(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(3_000))
        await harness.prompt("one")
        model.ending = model.cut_off()
        await harness.prompt("two")
        assert len(model.asked) == 1 + 4
        assert passes(harness) == []
        (error,) = notices(harness, "error")
        assert "local/m1 reached its output limit without an answer again after 3 attempts" in error
        await harness.prompt("three")
        assert len(model.asked) == 1 + 4 + 4


async def test_model_that_always_fills_the_window_stops_at_a_dead_end(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(3_000))
        await harness.prompt("one")
        model.ending = model.cut_off("half", used=(17_500, 500))
        await harness.prompt("two")
        assert (len(model.asked), len(model.summarised)) == (1 + 2, 1)
        assert [end["result"] is not None for _, end in passes(harness)] == [True, False]
        (warning,) = notices(harness, "warning")
        assert "The context takes 18,000 tokens of a 20,000-token window" in warning


async def test_text_of_an_answer_that_was_dropped_buys_no_further_tries(over_http, model):
    async with running(over_http(KEEP, *NO_RETRY, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        model.turns += [model.cut_off(), model.cut_off("half", used=(17_500, 500))]
        model.ending = model.cut_off()
        await harness.prompt("two")
        assert [end["reason"] for _, end in passes(harness)] == ["incomplete"]
        assert "reached its output limit" in notices(harness, "error")[-1]
    assert len(model.asked) == 1 + 4


async def test_model_that_alternates_between_overflow_and_cut_off_comes_to_an_end(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(5_000))
        await harness.prompt("one")
        model.turns += [model.overflows(), model.cut_off(used=(17_500, 500))] * 10
        model.ending = model.overflows()
        await harness.prompt("two")
        assert len(model.asked) == 1 + 2
        assert [began["reason"] for began, _ in passes(harness)] == ["overflow", "incomplete"]
        assert len(notices(harness, "warning")) == 1


async def test_window_smaller_than_every_answer_comes_to_an_end(over_http, model):
    async with running(over_http(KEEP, row={"contextWindow": 4_096, "maxTokens": 1_000})) as harness:
        model.ending = model.says(5_000)
        for number in range(3):
            before = len(model.asked), len(model.summarised)
            await harness.prompt(f"prompt {number}")
            assert len(model.asked) - before[0] <= 4
            assert len(model.summarised) - before[1] <= 8
        assert harness.runtime.outcome.stop == "ok"


async def test_every_pass_has_an_end_and_the_run_settles_once(over_http, model):
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.summary = echo(model)
        model.ending = model.says(9_000)
        harness.runtime.send(SubmitPrompt("one"))
        harness.runtime.send(SubmitPrompt("two", delivery="follow_up"))
        await harness.wait_for(AgentSettled)
        passes(harness)
        assert len(harness.of(AgentSettled)) == 1


def with_hidden_prompt(model, surplus, text="", **fields):
    """An answer billed for ``surplus`` tokens more than was sent."""

    def answer(request) -> Reply:
        return model.says(text, used=(len(request.raw) // 4 + surplus, 9), **fields)(request)

    return answer


@pytest.mark.parametrize("strategy", ["summary", "shake", "handoff"])
@pytest.mark.parametrize(
    "surplus",
    [14_500, 17_000, 21_000],
    ids=["above-the-recovery-band", "over-the-threshold", "over-the-window"],
)
async def test_bill_that_no_pass_makes_smaller_costs_one_pass_and_one_notice_a_prompt(
    over_http, model, surplus, strategy
):
    async with running(over_http(KEEP, f"compaction.strategy={strategy}", row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        model.ending = with_hidden_prompt(model, surplus, "done")
        for number in (1, 2, 3):
            model.turns += [
                with_hidden_prompt(model, surplus, solid(300), tools=[("ls", {}, f"c{number}-{step}")])
                for step in range(6)
            ]
            await harness.prompt(f"prompt {number}")
            assert len(passes(harness)) == number
            warnings = notices(harness, "warning")
            assert len(warnings) == number
            assert "17,000" in warnings[-1]
            assert "20,000-token window" in warnings[-1]
        assert all(end["result"] is not None for _, end in passes(harness))
    assert len(model.asked) == 1 + 3 * 7
    assert len(model.summarised) <= 2 * 3


async def test_large_result_after_a_pass_leads_to_another_pass(over_http, model, project):
    (project / "big.txt").write_text(f"{solid(70)}\n" * 200)
    async with running(over_http(KEEP, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        model.turns += [
            model.says("look", tools=[("ls", {}, "a")], used=(18_000, 9)),
            model.says("read", tools=[("read", {"path": "big.txt"}, "b")]),
        ]
        await harness.prompt("two")
        assert [end["result"] is not None for _, end in passes(harness)] == [True, True]
        assert notices(harness, "warning") == []


@pytest.mark.parametrize("ends", ["fails", "is-cancelled"])
async def test_pass_that_was_given_up_after_a_turn_comes_again_before_the_next_prompt(over_http, model, ends):
    async with running(over_http(KEEP, *NO_RETRY, row=WINDOW)) as harness:
        model.turns.append(model.says(9_000))
        await harness.prompt("one")
        model.turns.append(model.says(9_000))
        before = len(harness.events)
        model.summary = model.says("") if ends == "fails" else hang_reply()
        harness.runtime.send(SubmitPrompt("two"))
        if ends == "is-cancelled":
            await harness.wait_for(MaintenanceStarted)
            await harness.settle(Cancel())
        await harness.wait_for(AgentSettled, after=before)
        ((_, end),) = passes(harness)
        assert end["result"] is None
        model.summary = model.says(SUMMARY)
        after = await harness.prompt(f"three {solid(3_000)}")
        assert course(harness, after) == [*PASS, *TURN, "agent_settled"]
    assert len(model.asked[-1].raw) // 4 < 20_000


@pytest.mark.parametrize("delivery", ["steer", "follow_up"])
@pytest.mark.parametrize("ends", ["fails", "is-cancelled", "is-useless"])
async def test_pass_that_was_given_up_is_not_paid_for_by_what_waits(over_http, model, ends, delivery):
    async with running(over_http(KEEP, *NO_RETRY, row=WINDOW)) as harness:
        model.turns.append(model.says(9_000))
        await harness.prompt("one")
        model.turns.append(model.says(9_000))
        model.ending = with_hidden_prompt(model, 17_000, "done")
        summaries = {"fails": model.says(""), "is-cancelled": hang_reply(), "is-useless": model.says(SUMMARY)}
        model.summary = summaries[ends]
        harness.runtime.send(SubmitPrompt("two"))
        await harness.wait_for(MaintenanceStarted)
        for text in ("a", "b", "c"):
            harness.runtime.send(SubmitPrompt(text, delivery=delivery))
        if ends == "is-cancelled":
            await harness.settle(Cancel())
        await harness.wait_for(AgentSettled, lambda _: len(model.asked) == 2 + 3)
        first = len(model.summarised)
        assert len(passes(harness)) == 1
        assert first <= 2
        model.summary = model.says("")
        await harness.prompt("three")
        assert len(model.summarised) > first


async def test_pass_that_was_given_up_before_a_prompt_does_not_come_again_after_it(over_http, model):
    async with running(over_http(KEEP, *NO_RETRY, row=WINDOW)) as harness:
        model.turns.append(model.says(13_000))
        await harness.prompt("one")
        model.summary = model.says("")
        for number in (1, 2):
            model.turns.append(model.says("look", tools=[("ls", {}, f"c{number}")]))
            await harness.prompt(f"prompt {number} {solid(4_500)}")
            assert len(passes(harness)) == number
            assert len(model.summarised) <= 2 * number
