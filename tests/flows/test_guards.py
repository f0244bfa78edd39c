"""After a pass over real HTTP: headroom, rescue, dead ends, promotion, continuations."""

import pytest

from musepi_tui.runtime.events import MaintenanceStarted
from musepi_tui.runtime.intents import Compact, SubmitPrompt
from musepi_tui.session.messages import ImageBlock
from tests.support.builders import PIXEL
from tests.support.harness import reopened, running
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
    write_rows,
)

KEEP = ("compaction.keepRecentTokens=2000",)
FIXED = ("compaction.threshold=17000", "compaction.autoContinue=false")


@pytest.fixture
def promoting(over_http, musepi_home, server, api):
    """Options for a session on ``m1`` whose promotion target is the larger ``m2``."""

    def make(*settings, **fields):
        options = over_http(*KEEP, *settings, **fields)
        first = {"id": "m1", **WINDOW, "contextPromotionTarget": "local/m2"}
        write_rows(musepi_home, api, server.base_url, first, {"id": "m2", "contextWindow": 60_000})
        return options

    return make


def models_of(requests):
    return [request.body["model"] for request in requests]


async def test_promotion_takes_the_place_of_a_pass_over_the_threshold(promoting, model):
    async with running(promoting()) as harness:
        model.turns += [model.says(9_000), model.says(8_500)]
        await harness.prompt("one")
        after = await harness.prompt("two")
        assert course(harness, after) == [*TURN, "model_promoted", "agent_settled"]
        await harness.prompt("three")
        assert passes(harness) == []
    assert models_of(model.asked) == ["m1", "m1", "m2"]
    assert model.summarised == []
    changes = stored(harness.file).states("model_change")
    assert [(change["model"], change.get("role")) for change in changes] == [
        ("local/m1", None),
        ("local/m2", "promoted"),
    ]


async def test_promotion_before_a_prompt_and_inside_a_turn(promoting, model, project):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    async with running(promoting()) as harness:
        model.turns += [model.says(4_500), model.says("look", tools=[("read", {"path": "big.txt"}, "one")])]
        await harness.prompt("one")
        after = await harness.prompt("read it")
        assert course(harness, after) == ["agent_start", "model_promoted", "agent_end", "agent_settled"]
    assert models_of(model.asked) == ["m1", "m1", "m2"]
    check_request(model.asked[-1])


async def test_promotion_before_a_prompt_that_would_not_fit(promoting, model):
    async with running(promoting()) as harness:
        model.turns.append(model.says(13_000))
        await harness.prompt("one")
        after = await harness.prompt(solid(4_500))
        assert course(harness, after) == ["model_promoted", *TURN, "agent_settled"]
    assert models_of(model.asked) == ["m1", "m2"]


@pytest.mark.parametrize("failure", ["overflow", "incomplete"])
async def test_promotion_asks_a_failed_turn_again_without_a_pass(promoting, model, failure):
    async with running(promoting()) as harness:
        failed = model.overflows() if failure == "overflow" else model.cut_off(used=(16_900, 200))
        model.turns += [model.says(1_000), failed, model.says("fits")]
        await harness.prompt("one")
        after = await harness.prompt("two")
        assert course(harness, after) == [*TURN, "model_promoted", *TURN, "agent_settled"]
        assert harness.runtime.outcome.stop == "ok"
    assert models_of(model.asked) == ["m1", "m1", "m2"]
    file = stored(harness.file)
    assert len(file.beside) == 1
    assert file.customs("incomplete-reminder") == []
    assert check_request(model.asked[-1])[-1].text == "two"


async def test_promotion_is_not_asked_for_by_hand_and_does_not_outlive_the_run(promoting, model):
    options = promoting()
    async with running(options) as harness:
        model.turns += [model.says(5_000), model.overflows(), model.says("fits")]
        await harness.prompt("one")
        assert (await harness.settle(Compact())).ok
        await harness.prompt("two")
        path = harness.file
    assert models_of(model.asked) == ["m1", "m1", "m2"]
    async with running(reopened(options, path)) as harness:
        await harness.prompt("three")
    assert models_of(model.asked)[-1] == "m1"


async def test_no_promotion_where_that_is_switched_off(promoting, model):
    async with running(promoting("contextPromotion.enabled=false")) as harness:
        model.turns += [model.says(5_000), model.overflows()]
        await harness.prompt("one")
        await harness.prompt("two")
        assert [began["reason"] for began, _ in passes(harness)] == ["overflow"]
    assert set(models_of(model.asked)) == {"m1"}


async def test_promoted_model_compacts_when_its_own_window_is_full(promoting, model):
    async with running(promoting("compaction.autoContinue=false")) as harness:
        model.turns += [model.says(17_500), model.says(28_000)]
        await harness.prompt("one")
        await harness.prompt("two")
        assert [began["reason"] for began, _ in passes(harness)] == ["threshold"]


async def test_three_continuations_in_a_row_are_the_most(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.ending = model.says(15_800)
        after = await harness.prompt("go on for ever")
        assert course(harness, after) == [*([*TURN, *PASS] * 4), "agent_settled"]
        assert "continued by itself 3 times" in notices(harness)[-1]
    assert len(model.asked) == 4
    assert len(stored(harness.file).customs("auto-continue")) == 3


async def test_pass_that_leaves_too_much_moves_large_blocks_to_an_artifact(over_http, model):
    options = over_http("compaction.keepRecentTokens=7000", *FIXED, row=WINDOW)
    async with running(options) as harness:
        model.summary = model.says(SUMMARY + solid(6_500))
        model.turns += [model.says(9_500), model.says(f"here\n\n```python\n{solid(6_500)}\n```\n")]
        await harness.prompt("one")
        after = await harness.prompt(f"write it {solid(600)}")
        assert course(harness, after) == [*TURN, *PASS, "agent_settled"]
        (told,) = notices(harness)
        assert "so large tool results and blocks were moved to an artifact" in told
        assert harness.runtime.view().meter.context_tokens < 13_600
        live, path = harness.runtime.context_messages(), harness.file
        await harness.prompt("more")
    answer = check_request(model.asked[-1])[-2].text
    assert "artifact://0" in answer
    assert solid(100) not in answer
    assert {edit.reason for edit in stored(path).edits} == {"shake"}
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages()[: len(live)] == live


async def test_pass_that_leaves_too_much_drops_pictures_next(over_http, model):
    row = WINDOW | {"input": ["text", "image"]}
    async with running(over_http("compaction.keepRecentTokens=6000", *FIXED, row=row)) as harness:
        model.summary = model.says(SUMMARY + solid(6_500))
        model.turns += [model.says(9_500), model.says("seen"), model.says(1_500)]
        await harness.prompt("one")
        await harness.prompt("look", images=(ImageBlock(PIXEL, "image/png"),) * 4)
        await harness.prompt(f"and now {solid(400)}")
        (told,) = notices(harness)
        assert "every picture was dropped" in told
        await harness.prompt("more")
    assert PIXEL in str(model.asked[1].body)
    assert PIXEL not in str(model.asked[-1].body)
    assert {edit.reason for edit in stored(harness.file).edits} == {"images"}


async def test_pass_that_leaves_too_much_cuts_the_longest_texts_at_last(over_http, model):
    async with running(over_http("compaction.keepRecentTokens=7000", *FIXED, row=WINDOW)) as harness:
        model.summary = model.says(SUMMARY + solid(6_500))
        model.turns += [model.says(9_500), model.says(6_500)]
        await harness.prompt("one")
        await harness.prompt(solid(600))
        (told,) = notices(harness)
        assert "the longest texts were cut down" in told
        await harness.prompt("more")
    answer = check_request(model.asked[-1])[-2].text
    assert "artifact://0" in answer
    assert len(answer) < 4_000


async def test_dead_end_warns_with_the_numbers_and_still_delivers_what_waits(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.summary = model.says(SUMMARY + solid(9_400))
        model.turns.append(model.says(12_000))
        await harness.prompt("short")
        after = len(harness.events)
        harness.runtime.send(SubmitPrompt(solid(4_500)))
        await harness.wait_for(MaintenanceStarted)
        harness.runtime.send(SubmitPrompt("this waits", delivery="follow_up"))
        await all_done(harness, after)
        assert course(harness, after) == [*PASS, *TURN, *TURN, "agent_settled"]
        (warning,) = notices(harness, "warning")
        assert "it should be at most 13,600 of a 20,000-token window" in warning
    file = stored(harness.file)
    (mark,) = [state for state in file.states("custom") if state["customType"] == "compaction.warning"]
    assert mark["data"] == {"targetId": file.compactions[0].id, "warning": warning}
    assert file.customs("auto-continue") == []
    assert check_request(model.asked[-1])[-1].text == "this waits"


async def test_dead_end_inside_a_turn_pays_for_one_pass_and_the_turn_goes_on(over_http, model):
    async with running(over_http(*KEEP, row=WINDOW)) as harness:
        model.summary = model.says(SUMMARY + solid(9_400))
        model.turns.append(model.says(9_000))
        await harness.prompt("short")
        model.turns += [
            model.says("looking", tools=[("ls", {}, f"c{number}")], used=(18_000, 10)) for number in range(6)
        ]
        after = await harness.prompt(solid(4_500))
        assert course(harness, after) == ["agent_start", *PASS, "agent_end", "agent_settled"]
        assert len(notices(harness, "warning")) == 1
    check_request(model.asked[-1])
    assert len(model.asked) == 8


async def test_nothing_to_summarise_is_a_dead_end_until_the_next_message(over_http, model):
    async with running(over_http("compaction.threshold=3000", row=WINDOW)) as harness:
        after = await harness.prompt(solid(3_500))
        assert course(harness, after) == [*TURN, *PASS, "agent_settled"]
        ((_, end),) = passes(harness)
        assert (end["skipped"], end["result"], "errorMessage" in end) == (True, None, False)
        (warning,) = notices(harness, "warning")
        assert "compaction starts at 3,000, but nothing in it could be summarised" in warning
    assert model.summarised == []
