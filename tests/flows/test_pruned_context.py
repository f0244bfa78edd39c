"""What maintenance shortens without a model, on the wire and in the file."""

import pytest

from musepi_tui.context.prune import SUPERSEDED_NOTICE
from musepi_tui.runtime.intents import Shake
from tests.support.harness import reopened, running
from tests.support.passes import PASS, TURN, WINDOW, check_request, course, passes, solid, stored, told

ROW = {"contextWindow": 60_000}
"""A pass starts at 43,616."""
SETTINGS = ("compaction.keepRecentTokens=2000", "compaction.autoContinue=false")


def results_of(request):
    return {key: text for said in check_request(request) for key, text in said.results.items()}


def pruned(harness):
    return [
        (line["kind"], line["entries"], line["tokensFreed"] > 0)
        for line in told(harness)
        if line["type"] == "context_pruned"
    ]


def reading(model, path, call_id, **arguments):
    return model.says("", tools=[("read", {"path": path, **arguments}, call_id)])


@pytest.mark.parametrize("storage", ["append", "rewrite"])
async def test_older_read_of_a_file_is_a_placeholder_after_the_turn(over_http, model, project, storage):
    (project / "a.txt").write_text(f"{solid(30)}\n" * 20)
    options = over_http(*SETTINGS, f"session.pruneStorage={storage}", row=ROW)
    async with running(options) as harness:
        model.turns += [reading(model, "a.txt", "one"), model.says("read once")]
        await harness.prompt("read it")
        model.turns += [reading(model, "a.txt", "two"), model.says("read twice")]
        after = await harness.prompt("read it again")
        assert course(harness, after) == ["agent_start", "agent_end", "agent_settled"]
        assert pruned(harness) == [("superseded", 1, True)]
        live, path = harness.runtime.context_messages(), harness.file
        await harness.prompt("and")
    found = results_of(model.asked[-1])
    assert found["one"] == SUPERSEDED_NOTICE
    assert solid(30) in found["two"]
    edits = stored(path).edits
    assert [edit.reason for edit in edits] == (["superseded"] if storage == "append" else [])
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages()[: len(live)] == live


async def test_stale_results_go_even_where_passes_are_switched_off(over_http, model, project):
    (project / "a.txt").write_text(f"{solid(30)}\n" * 20)
    async with running(over_http(*SETTINGS, "compaction.enabled=false", row=ROW)) as harness:
        model.turns += [reading(model, "a.txt", "one"), reading(model, "a.txt", "two"), model.says("read")]
        await harness.prompt("read it twice")
        await harness.prompt("and")
    assert results_of(model.asked[-1])["one"] == SUPERSEDED_NOTICE


async def test_nothing_is_stale_where_that_is_switched_off(over_http, model, project):
    (project / "a.txt").write_text(f"{solid(30)}\n" * 20)
    settings = ("compaction.supersedeReads=false", "compaction.dropUseless=false")
    async with running(over_http(*SETTINGS, *settings, row=ROW)) as harness:
        model.turns += [reading(model, "a.txt", "one"), reading(model, "a.txt", "two"), model.says("read")]
        await harness.prompt("read it twice")
        await harness.prompt("and")
        assert pruned(harness) == []
    assert solid(30) in results_of(model.asked[-1])["one"]


async def test_repeated_results_alone_can_bring_the_context_below_the_threshold(over_http, model, project):
    settings = (*SETTINGS, "compaction.supersedeReads=false", "compaction.dropUseless=false")
    (project / "a.txt").write_text(f"{solid(60)}\n" * 150)
    async with running(over_http(*settings, row={"contextWindow": 30_000})) as harness:
        model.turns += [reading(model, "a.txt", "one"), model.says("once")]
        await harness.prompt("read it")
        model.turns += [reading(model, "a.txt", "two"), model.says(8_000)]
        after = await harness.prompt("read it again")
        assert course(harness, after) == ["agent_start", "agent_end", "agent_settled"]
        assert pruned(harness) == [("dedup", 1, True)]
        await harness.prompt("and")
    found = results_of(model.asked[-1])
    assert "artifact://" in found["one"]
    assert solid(60) in found["two"]
    assert model.summarised == []


async def test_configured_shake_frees_without_a_model(over_http, model, project):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    settings = (*SETTINGS, "compaction.strategy=shake")
    async with running(over_http(*settings, row=ROW)) as harness:
        model.turns += [reading(model, "big.txt", "one"), model.says("seen")]
        await harness.prompt("read it")
        model.turns.append(model.says(15_000))
        await harness.prompt("more")
        model.turns.append(model.says(16_500))
        await harness.prompt("still more")
        ((start, end),) = passes(harness)
        assert (start["action"], end["action"]) == ("shake", "shake")
        assert end["result"]["entryId"] is None
        assert end["result"]["tokensAfter"] < end["result"]["tokensBefore"]
        await harness.prompt("and")
    assert model.summarised == []
    assert "artifact://" in results_of(model.asked[-1])["one"]


async def test_configured_shake_that_frees_too_little_is_followed_by_a_summary(over_http, model):
    settings = (*SETTINGS, "compaction.strategy=shake")
    async with running(over_http(*settings, row={"contextWindow": 20_000})) as harness:
        model.turns += [model.says(12_000), model.says(4_000)]
        await harness.prompt("one")
        await harness.prompt("two")
        ((start, end),) = passes(harness)
        assert start["action"] == "shake"
        assert end["result"]["entryId"] == stored(harness.file).compactions[0].id
        assert "skipped" not in end
    assert model.summarised != []


async def test_shake_by_hand_is_believed_at_the_next_prompt(over_http, model, project):
    (project / "big.txt").write_text(f"{solid(60)}\n" * 200)
    async with running(over_http(*SETTINGS, row=ROW)) as harness:
        model.turns += [reading(model, "big.txt", "one"), model.says("seen")]
        await harness.prompt("read it")
        model.turns.append(model.says(9_000, used=(43_000, 500)))
        await harness.prompt("more")
        assert passes(harness) == []
        assert (await harness.settle(Shake("elide"))).data["toolResults"] == 1
        await harness.prompt(solid(1_500))
        assert [start["reason"] for start, _ in passes(harness)] == ["manual"]
    assert model.summarised == []


async def test_shortened_result_does_not_hide_what_was_billed_from_the_next_prompt(over_http, model, project):
    (project / "a.txt").write_text(f"{solid(30)}\n" * 60)
    after_turn = "compaction.midTurnEnabled=false"  # so that no answer is billed after the edit
    async with running(over_http(*SETTINGS, after_turn, row=WINDOW)) as harness:
        model.turns.append(model.says(6_000))
        await harness.prompt("one")
        model.turns += [
            reading(model, "a.txt", "one"),
            reading(model, "a.txt", "two"),
            model.says("read", used=(16_400, 9)),
        ]
        await harness.prompt("read it twice")
        assert pruned(harness) == [("superseded", 1, True)]
        assert passes(harness) == []
        after = await harness.prompt(solid(700))
        assert course(harness, after) == [*PASS, *TURN, "agent_settled"]
