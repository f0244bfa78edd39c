"""Moves between the branches of a real session over HTTP: what the model is sent before and after."""

import pytest

from musepi_tui.runtime.events import BranchSummaryEnded, BranchSummaryStarted, IntentSettled, LeafMoved
from musepi_tui.runtime.intents import Cancel, Compact, NavigateTree
from musepi_tui.session.entries import BranchSummaryEntry, MessageEntry
from musepi_tui.session.messages import text_of
from tests.support.extension_sources import failing_at, waiting_at
from tests.support.harness import reopened, running
from tests.support.passes import (
    check_request,
    conversation,
    stored,
    summary_of,
    texts,
    told,
)
from tests.support.server import hang_reply

SETTINGS = ("compaction.keepRecentTokens=1", "compaction.autoContinue=false")
BRANCH_SUMMARY = "## Goal\nWhat the other branch was about."

SUPPLIER = """
def activate(api):
    api.on("session_before_tree", supply)
    api.on("session_tree", moved)

async def supply(event, ctx):
    plan = event.preparation
    said = [text_of(entry.message) for entry in plan.entries_to_summarize if entry.type == "message"]
    places = (plan.target_id, plan.old_leaf_id, plan.common_ancestor_id)
    ctx.notify(" ".join(map(str, (*places, plan.user_wants_summary, said))))
    return BeforeTreeResult(summary=BranchSummaryResult("Written by hand.", {"mine": 1}))

async def moved(event, ctx):
    stored = event.summary_entry and event.summary_entry.id
    ctx.notify(f"moved {event.old_leaf_id} {event.new_leaf_id} {stored} {event.from_extension}")
"""

GUARD = """
def activate(api):
    api.on("session_before_tree", lambda event, ctx: {"cancel": True})
"""

BLANK = """
def activate(api):
    api.on("session_before_tree", lambda event, ctx: {"summary": {"summary": " "}})
"""


@pytest.fixture
def model(model):
    model.summary = model.says(BRANCH_SUMMARY)
    return model


@pytest.fixture
def extended(with_extensions):
    """Options for a session with this extension in the user's folder."""
    return lambda source: with_extensions([source], *SETTINGS)


async def talk(harness, model, *pairs):
    """Prompts and answers; the ids of the answers."""
    ids = []
    for prompt, answer in pairs:
        model.turns.append(model.says(answer))
        await harness.prompt(prompt)
        ids.append(harness.runtime.view().tree.display_leaf)
    return ids


async def go(harness, target_id, **fields):
    settled = await harness.settle(NavigateTree(target_id, **fields))
    assert settled.ok, settled.error
    return settled.data


def facts(harness):
    return harness.file.read_bytes(), harness.runtime.view().tree.leaf_id, harness.runtime.context_messages()


PAIRS = (("the plan", "a plan"), ("try the left way", "left is a dead end"))


async def test_branch_that_is_left_reaches_the_model_only_through_its_summary(over_http, model):
    options = over_http(*SETTINGS)
    async with running(options) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        before = len(harness.events)
        data = await go(harness, plan, summarize=True)
        lines = [line for line in told(harness, before) if line["type"] != "context_usage"]
        await talk(harness, model, ("try the right way", "right it is"))
        path, live = harness.file, harness.runtime.context_messages()
    (asked,) = model.summarised
    assert "left is a dead end" in texts(asked)
    assert "a plan" not in texts(asked)
    said = check_request(model.asked[-1])
    assert [message.text for message in said[:2]] == ["the plan", "a plan"]
    assert said[-1].text == "try the right way"
    assert BRANCH_SUMMARY in texts(model.asked[-1])
    assert "left" not in texts(model.asked[-1])
    assert lines == [
        {"type": "branch_summary_start", "targetId": plan},
        {
            "type": "tree_moved",
            "from": lines[1]["from"],
            "to": data["summaryEntryId"],
            "summaryEntryId": data["summaryEntryId"],
        },
        {"type": "branch_summary_end", "aborted": False, "summaryEntryId": data["summaryEntryId"]},
    ]
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages() == live


async def test_summaries_of_both_branches_add_up_where_they_meet(over_http, model):
    async with running(over_http(*SETTINGS)) as harness:
        plan, left = await talk(harness, model, *PAIRS)
        await go(harness, plan, summarize=True)
        await talk(harness, model, ("try the right way", "right it is"))
        model.summary = model.says("## Goal\nAbout the right way.")
        await go(harness, left, summarize=True)
        await talk(harness, model, ("and now", "done"))
    last = model.summarised[-1]
    # The summary the right way began with belongs to it, so it is summarised along.
    assert "try the right way" in texts(last)
    assert BRANCH_SUMMARY in texts(last)
    sent = texts(model.asked[-1])
    assert "left is a dead end" in sent
    assert "About the right way." in sent
    assert "right it is" not in sent
    assert BRANCH_SUMMARY not in sent


async def test_files_of_a_branch_are_told_and_carried_on(over_http, model, project):
    async with running(over_http(*SETTINGS)) as harness:
        (plan,) = await talk(harness, model, PAIRS[0])
        model.turns.append(model.says(tools=[("write", {"path": "left.py", "content": "x"}, "c1")]))
        await talk(harness, model, PAIRS[1])
        await go(harness, plan, summarize=True)
        (first,) = [e for e in stored(harness.file).path if isinstance(e, BranchSummaryEntry)]
        await talk(harness, model, ("try the right way", "right it is"))
        await go(harness, plan, summarize=True)
        await talk(harness, model, ("go on", "done"))
    assert first.details == {"readFiles": [], "modifiedFiles": ["left.py"]}
    assert first.summary.endswith("<files>\nleft.py (Write)\n</files>")
    assert texts(model.asked[-1]).count("left.py (Write)") == 1


async def test_moves_above_and_below_a_compaction_rebuild_the_context_of_the_chosen_path(over_http, model):
    async with running(over_http(*SETTINGS)) as harness:
        plan, left = await talk(harness, model, *PAIRS)
        assert (await harness.settle(Compact())).ok
        (below,) = await talk(harness, model, ("go on", "going"))
        with_summary = texts(model.asked[-1])
        await go(harness, left)
        await talk(harness, model, ("once more", "again"))
        above = model.asked[-1]
        await go(harness, below)
        await talk(harness, model, ("and on", "on"))
    assert summary_of(above) is None
    assert [message.text for message in check_request(above)] == [
        "the plan",
        "a plan",
        "try the left way",
        "left is a dead end",
        "once more",
    ]
    check_request(model.asked[-1])
    assert summary_of(model.asked[-1]) is not None
    assert texts(model.asked[-1]).startswith(with_summary)
    assert plan


async def test_branch_with_a_compaction_is_summarised_with_what_that_hides(over_http, model):
    async with running(over_http(*SETTINGS)) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        model.summary = model.says("## Goal\nCompacted.")
        assert (await harness.settle(Compact())).ok
        await talk(harness, model, ("go on", "going"))
        await go(harness, plan, summarize=True)
    sent = texts(model.summarised[-1])
    assert "left is a dead end" in sent
    assert "Compacted." in sent
    assert "going" in sent


async def test_esc_ends_the_request_and_changes_nothing(over_http, model, server):
    async with running(over_http(*SETTINGS)) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        before, model.summary = facts(harness), hang_reply()
        intent = harness.runtime.send(NavigateTree(plan, summarize=True))
        await harness.wait_for(BranchSummaryStarted)
        assert (await harness.settle(Cancel())).data == {"cancelled": "branch_summary"}
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent)
        assert (settled.ok, settled.data["cancelled"], settled.data["aborted"]) == (True, True, True)
        assert facts(harness) == before
        await talk(harness, model, ("go on", "going"))
    assert "left is a dead end" in texts(model.asked[-1])


async def test_summary_the_server_refuses_changes_nothing(over_http, model):
    async with running(over_http(*SETTINGS)) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        before, model.summary = facts(harness), model.too_large()
        settled = await harness.settle(NavigateTree(plan, summarize=True))
        assert not settled.ok
        assert harness.of(BranchSummaryEnded) == [BranchSummaryEnded(error=settled.error)]
        assert facts(harness) == before


async def test_answer_of_nothing_but_a_list_of_files_changes_nothing(over_http, model, project):
    async with running(over_http(*SETTINGS)) as harness:
        (plan,) = await talk(harness, model, PAIRS[0])
        # The branch has files of its own, whose list would stand alone in the summary.
        model.turns.append(model.says(tools=[("write", {"path": "left.py", "content": "x"}, "c1")]))
        await talk(harness, model, PAIRS[1])
        before, model.summary = facts(harness), model.says("<files>\na.py (Read)\n</files>")
        settled = await harness.settle(NavigateTree(plan, summarize=True))
        assert settled.error.startswith("The model returned an empty summary; nothing was changed.")
        assert facts(harness) == before


async def test_extension_supplies_the_summary_and_hears_of_the_move(extended, model):
    async with running(extended(SUPPLIER)) as harness:
        plan, left = await talk(harness, model, *PAIRS)
        data = await go(harness, plan, summarize=True)
        entry = harness.runtime.read_entry(data["summaryEntryId"])
        said = "['try the left way', 'left is a dead end']"
        await harness.notice(f"{plan} {left} {plan} True {said}")
        await harness.notice(f"moved {left} {entry.id} {entry.id} True")
        assert harness.of(BranchSummaryStarted, BranchSummaryEnded) == []
        await talk(harness, model, ("go on", "going"))
    assert (entry.summary, entry.details, entry.from_extension) == ("Written by hand.", {"mine": 1}, True)
    assert model.summarised == []
    assert "Written by hand." in texts(model.asked[-1])


async def test_summary_without_a_model_is_refused_before_an_extension_is_asked(extended, model, musepi_home):
    options = extended(SUPPLIER)
    async with running(options) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        path = harness.file
    (musepi_home / "models.json").unlink()
    async with running(reopened(options, path)) as harness:
        before, told_before = facts(harness), harness.notices()
        settled = await harness.settle(NavigateTree(plan, summarize=True))
        assert settled.error.startswith("No model is configured.")
        assert (facts(harness), harness.notices()) == (before, told_before)
        assert (await harness.settle(NavigateTree(plan))).ok


async def test_summary_nobody_asked_for_is_not_used(extended, model):
    async with running(extended(SUPPLIER)) as harness:
        plan, left = await talk(harness, model, *PAIRS)
        data = await go(harness, plan)
        assert "summaryEntryId" not in data
        await harness.notice(f"moved {left} {plan} None None")


async def test_extension_stops_the_move(extended, model):
    async with running(extended(GUARD)) as harness:
        plan, left = await talk(harness, model, *PAIRS)
        before = facts(harness)
        data = await go(harness, plan, summarize=True)
        assert data == {"cancelled": True, "leafId": left, "oldLeafId": left}
        assert "The extension e0 stopped the move." in harness.notices("info")
        assert facts(harness) == before
        assert harness.of(LeafMoved) == []


async def test_esc_reaches_a_handler_that_waits(extended, model):
    async with running(extended(waiting_at("session_before_tree"))) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        before = facts(harness)
        intent = harness.runtime.send(NavigateTree(plan))
        await harness.notice("thinking")
        await harness.settle(Cancel())
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent)
        assert (settled.data["cancelled"], settled.data["aborted"]) == (True, True)
        await harness.notice("given up")
        assert facts(harness) == before


async def test_blank_summary_of_an_extension_changes_nothing(extended, model):
    async with running(extended(BLANK)) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        before = facts(harness)
        settled = await harness.settle(NavigateTree(plan, summarize=True))
        assert settled.error.startswith("The extension e0 gave an empty branch summary; nothing was moved.")
        assert facts(harness) == before


async def test_handler_that_fails_is_passed_over(extended, model):
    async with running(extended(failing_at("session_before_tree", "session_tree"))) as harness:
        plan, _ = await talk(harness, model, *PAIRS)
        data = await go(harness, plan, summarize=True)
        assert "summaryEntryId" in data
        failed = [line["event"] for line in told(harness) if line["type"] == "extension_error"]
    assert failed == ["session_before_tree", "session_tree"]
    assert len(model.summarised) == 1


async def test_prompt_that_is_written_again_takes_the_place_of_the_old_one(over_http, model):
    async with running(over_http(*SETTINGS)) as harness:
        await talk(harness, model, *PAIRS)
        tree = harness.runtime.view().tree
        entries = [harness.runtime.read_entry(head.id) for head in tree.path()]
        prompt = next(
            entry.id
            for entry in entries
            if isinstance(entry, MessageEntry) and text_of(entry.message.content) == PAIRS[1][0]
        )
        data = await go(harness, prompt)
        await talk(harness, model, (data["editorText"].replace("left", "right"), "right it is"))
    said = [message.text for message in conversation(model.asked[-1])]
    assert said == ["the plan", "a plan", "try the right way"]
