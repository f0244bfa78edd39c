"""Moving within a session as those outside see it: intents in, events, file and context out."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from musepi_tui.base.errors import ErrorKind
from musepi_tui.base.resources import read_prompt
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.runtime.branch_summary import TOO_LONG
from musepi_tui.runtime.events import (
    AgentSettled,
    BranchSummaryEnded,
    BranchSummaryStarted,
    EntryAppended,
    IntentSettled,
    LeafMoved,
    Phase,
    PhaseChanged,
    QueueChanged,
    UsageChanged,
)
from musepi_tui.runtime.intents import (
    Cancel,
    MoveLeaf,
    NavigateTree,
    SelectModel,
    SetLabel,
    SubmitPrompt,
)
from musepi_tui.runtime.settling import BUSY
from musepi_tui.session.entries import BranchSummaryEntry, MessageEntry
from musepi_tui.session.messages import text_of
from musepi_tui.storage.loading import load_session
from tests.support.builders import call
from tests.support.fake_provider import Hang, failure
from tests.support.harness import Harness, reopened, running
from tests.support.passes import write_rows


def id_of(harness: Harness, text: str) -> str:
    """The entry of the newest message with this text."""
    entries = [event.entry for event in harness.of(EntryAppended) if isinstance(event.entry, MessageEntry)]
    return next(entry.id for entry in reversed(entries) if text_of(entry.message.content) == text)


async def talk(harness: Harness, *prompts: str) -> None:
    for prompt in prompts:
        await harness.prompt(prompt)


async def go(harness: Harness, target_id: str, **fields: Any) -> dict[str, Any]:
    """What moving there settles with."""
    settled = await harness.settle(NavigateTree(target_id, **fields))
    assert settled.ok, settled.error
    return dict(settled.data)


def said(harness: Harness) -> list[str]:
    return [text_of(message.content) for _, message in harness.runtime.context_messages()]


def state(harness: Harness) -> tuple[Any, ...]:
    tree = harness.runtime.view().tree
    return harness.file.read_bytes(), tree.leaf_id, len(tree), harness.runtime.context_messages()


def stored_summary(harness: Harness) -> BranchSummaryEntry:
    loaded = load_session(harness.file)
    (found,) = [entry for entry in loaded.read_path() if isinstance(entry, BranchSummaryEntry)]
    loaded.bodies.close()
    return found


async def test_session_goes_on_from_an_answer(scripted):
    provider, options = scripted(("one",), ("two",), ("three",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        answer, old = id_of(harness, "one"), id_of(harness, "two")
        before = len(harness.events)
        data = await go(harness, answer)
        assert data == {"cancelled": False, "leafId": answer, "oldLeafId": old}
        assert harness.names(before, without=["IntentSettled", "PhaseChanged", "UsageChanged"]) == [
            "EntryAppended",
            "LeafMoved",
        ]
        assert harness.of(LeafMoved) == [LeafMoved(old, answer)]
        assert said(harness) == ["a", "one"]
        await harness.prompt("c")
        assert [text_of(message.content) for message in provider.requests[-1].messages] == ["a", "one", "c"]
        path, live = harness.file, harness.runtime.context_messages()
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.context_messages() == live


async def test_session_goes_on_before_a_prompt_and_its_text_comes_back(scripted):
    _, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        data = await go(harness, id_of(harness, "b"))
        assert (data["editorText"], data["leafId"]) == ("b", id_of(harness, "one"))
        assert said(harness) == ["a", "one"]


async def test_first_prompt_is_gone_on_from_before_it(scripted):
    _, options = scripted(("one",), ("anew",))
    async with running(options) as harness:
        await talk(harness, "a")
        data = await go(harness, id_of(harness, "a"))
        assert data["editorText"] == "a"
        assert said(harness) == []
        await harness.prompt("b")
        path = harness.file
    async with running(reopened(options, path)) as harness:
        assert said(harness) == ["b", "anew"]


async def test_moved_leaf_is_there_after_a_restart(scripted):
    _, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        answer = id_of(harness, "one")
        await go(harness, answer)
        path = harness.file
    async with running(reopened(options, path)) as harness:
        assert harness.runtime.view().tree.display_leaf == answer
        assert said(harness) == ["a", "one"]


@pytest.mark.parametrize("summarize", [False, True])
async def test_place_where_the_session_stands_is_no_move(scripted, summarize):
    provider, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        answer = id_of(harness, "one")
        await go(harness, answer)
        await harness.settle(SetLabel("here"))
        before, events, requests = state(harness), len(harness.of(LeafMoved)), len(provider.requests)
        tree = harness.runtime.view().tree
        mark = next(head.id for head in tree.path() if head.parent_id == answer)
        for target in (answer, tree.leaf_id, mark):
            data = await go(harness, target, summarize=summarize)
            assert data == {"cancelled": False, "unchanged": True, "leafId": answer, "oldLeafId": answer}
        assert state(harness) == before
        assert (len(harness.of(LeafMoved)), len(provider.requests)) == (events, requests)


async def test_prompt_comes_back_again_from_where_the_session_stands_already(scripted):
    _, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        await go(harness, id_of(harness, "b"))
        before = state(harness)
        data = await go(harness, id_of(harness, "b"), summarize=True)
        assert (data["editorText"], "unchanged" in data) == ("b", False)
        assert state(harness) == before


async def test_entry_that_is_not_there_is_refused(scripted):
    _, options = scripted(("one",))
    async with running(options) as harness:
        await talk(harness, "a")
        settled = await harness.settle(NavigateTree("gone"))
        assert (settled.ok, settled.error) == (False, "Entry gone not found")


async def test_move_is_refused_while_a_turn_runs(scripted):
    _, options = scripted(("one",), (Hang(),))
    async with running(options) as harness:
        await talk(harness, "a")
        await harness.settle(SubmitPrompt("b"))
        settled = await harness.settle(NavigateTree(id_of(harness, "a")))
        assert settled.error == BUSY


async def test_move_into_a_step_with_several_calls_leaves_a_valid_context(scripted):
    calls = (call("ls", "c1"), call("ls", "c2"))
    provider, options = scripted(calls, ("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a")
        entries = [event.entry for event in harness.of(EntryAppended)]
        first = next(
            entry.id
            for entry in entries
            if getattr(entry, "message", None) is not None
            and getattr(entry.message, "tool_call_id", None) == "c1"
        )
        await go(harness, first)
        await harness.prompt("b")
        sent = provider.requests[-1].messages
        assert [block.id for block in sent[1].content if hasattr(block, "arguments")] == ["c1"]
        assert [getattr(message, "tool_call_id", None) for message in sent] == [None, None, "c1", None]


async def test_gauge_shows_the_context_of_the_new_place(scripted):
    _, options = scripted(("one " * 400,), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        before = len(harness.events)
        await go(harness, id_of(harness, "a"))
        told = [event for event in harness.events[before:] if isinstance(event, UsageChanged | LeafMoved)]
        assert isinstance(told[0], LeafMoved)
        assert told[-1].meter == harness.runtime.view().meter
        assert told[-1].meter.estimated  # nothing was billed for a context without an answer


async def test_model_of_another_branch_is_named_again_on_this_one(scripted, musepi_home):
    _, options = scripted(("one",), ("two",), ("three",))
    write_rows(musepi_home, "openai-completions", "http://127.0.0.1:9", {"id": "m1"}, {"id": "m2"})
    async with running(options) as harness:
        await talk(harness, "a")
        await harness.settle(SelectModel("local", "m2"))
        await talk(harness, "b")
        await go(harness, id_of(harness, "one"))
        await talk(harness, "c")
        loaded = load_session(harness.file)
        models = [each.fields["model"] for each in loaded.read_path() if each.type == "model_change"]
        loaded.bodies.close()
    assert models == ["local/m1", "local/m2"]


async def test_exact_move_is_told_like_any_other(scripted):
    _, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        prompt, old = id_of(harness, "b"), id_of(harness, "two")
        assert (await harness.settle(MoveLeaf(prompt))).ok
        assert harness.of(LeafMoved) == [LeafMoved(old, prompt)]
        assert said(harness) == ["a", "one", "b"]


async def test_summary_hangs_under_the_place_that_is_gone_on_from(scripted):
    provider, options = scripted(
        ("one",), (call("write", "c", path="new.py", content="x"),), ("two",), ("three",)
    )
    async with running(options) as harness:
        await talk(harness, "a", "b")
        answer, old, before = id_of(harness, "one"), id_of(harness, "two"), len(harness.events)
        data = await go(harness, answer, summarize=True)
        entry = stored_summary(harness)
        assert data == {
            "cancelled": False,
            "leafId": entry.id,
            "oldLeafId": old,
            "summaryEntryId": entry.id,
        }
        assert (entry.parent_id, entry.from_id, entry.from_extension) == (answer, answer, False)
        assert entry.summary == (
            f"{read_prompt('branch-summary-preamble')}\n\n## Goal\nA summary.\n\n"
            "<files>\nnew.py (Write)\n</files>"
        )
        assert entry.details == {"readFiles": [], "modifiedFiles": ["new.py"]}
        assert entry.usage.input == 100
        assert harness.names(before, without=["UsageChanged", "PhaseChanged"]) == [
            "BranchSummaryStarted",
            "EntryAppended",
            "LeafMoved",
            "BranchSummaryEnded",
            "IntentSettled",
        ]
        assert Phase.NAVIGATING in [event.phase for event in harness.of(PhaseChanged)]
        assert harness.of(BranchSummaryStarted) == [BranchSummaryStarted(answer)]
        assert harness.of(BranchSummaryEnded) == [BranchSummaryEnded(entry.id)]
        assert harness.of(LeafMoved) == [LeafMoved(old, entry.id, entry.id)]
        live = harness.runtime.context_messages()
        assert [entry_id for entry_id, _ in live][-1] == entry.id
    async with running(reopened(options, harness.file)) as again:
        assert again.runtime.context_messages() == live
    request = provider.requests[-1]
    prompt = text_of(request.messages[0].content)
    assert (request.system, request.tools, request.max_tokens) == (
        read_prompt("summarization-system"),
        (),
        1000,  # what the model can; 2,048 else
    )
    assert prompt.startswith("<conversation>\n[User]: b\n\n[Tool Call]: write(")
    assert prompt.endswith(f"[Assistant]: two\n</conversation>\n\n{read_prompt('branch-summary')}")


async def test_summary_before_the_first_prompt_is_a_root_of_its_own(scripted, musepi_home):
    _, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a")
        first = harness.runtime.view().tree.roots[0]
        assert harness.runtime.view().tree.head(first).type == "model_change"
        await go(harness, id_of(harness, "a"), summarize=True)
        # Going on before the prompt leaves the answer behind: the prompt is shared, its text comes back.
        assert stored_summary(harness).from_id == first
        assert len(said(harness)) == 1


async def test_instructions_replace_the_prompt(scripted):
    provider, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        await go(harness, id_of(harness, "one"), summarize=True, instructions="In one word.")
    prompt = text_of(provider.requests[-1].messages[0].content)
    assert prompt.endswith("</conversation>\n\nIn one word.")


async def test_summary_is_limited_to_2048_tokens(scripted, musepi_home):
    provider, options = scripted(("one",), ("two",))
    write_rows(musepi_home, "openai-completions", "http://127.0.0.1:9", {"id": "m1", "maxTokens": 9000})
    async with running(options) as harness:
        await talk(harness, "a", "b")
        await go(harness, id_of(harness, "one"), summarize=True)
    assert provider.requests[-1].max_tokens == 2048


async def test_nothing_that_could_be_summarised_is_no_error(scripted):
    provider, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        await go(harness, id_of(harness, "one"))
        await harness.settle(SetLabel("only a label is left here"))
        requests = len(provider.requests)
        data = await go(harness, id_of(harness, "two"), summarize=True)
        assert "summaryEntryId" not in data
        assert said(harness) == ["a", "one", "b", "two"]
        assert len(provider.requests) == requests
        assert harness.of(BranchSummaryStarted, BranchSummaryEnded) == []


@pytest.mark.parametrize(
    ("summary", "part"),
    [
        ((failure(ErrorKind.AUTH, "the key was refused"),), "the key was refused"),
        (("half", failure(ErrorKind.SERVER, "it broke")), "it broke"),
        (("  ",), "empty summary"),
    ],
    ids=["refused", "broken", "blank"],
)
async def test_summary_that_fails_changes_nothing(scripted, summary, part):
    _, options = scripted(("one",), ("two",), summary=summary)
    async with running(options) as harness:
        await talk(harness, "a", "b")
        before = state(harness)
        settled = await harness.settle(NavigateTree(id_of(harness, "one"), summarize=True))
        assert not settled.ok
        assert part in settled.error
        assert harness.of(BranchSummaryEnded) == [BranchSummaryEnded(error=settled.error)]
        assert state(harness) == before
        assert harness.of(LeafMoved) == []
        await harness.prompt("c")


async def test_summary_without_a_model_is_refused_and_a_move_is_not(scripted, tmp_path):
    _, options = scripted(("one",), ("two",))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        answer, path = id_of(harness, "one"), harness.file
    bare = replace(reopened(options, path), registry=lambda: ModelRegistry.load(tmp_path, {}))
    async with running(bare) as harness:
        settled = await harness.settle(NavigateTree(answer, summarize=True))
        assert not settled.ok
        assert harness.of(BranchSummaryStarted) == []
        assert (await go(harness, answer))["leafId"] == answer


async def test_esc_during_the_summary_changes_nothing(scripted):
    provider, options = scripted(("one",), ("two",), summary=("half", Hang()))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        before, old = state(harness), id_of(harness, "two")
        intent = harness.runtime.send(NavigateTree(id_of(harness, "one"), summarize=True))
        await harness.wait_for(BranchSummaryStarted)
        assert (await harness.settle(Cancel())).data == {"cancelled": "branch_summary"}
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent)
        assert settled.data == {"cancelled": True, "aborted": True, "leafId": old, "oldLeafId": old}
        assert harness.of(BranchSummaryEnded) == [BranchSummaryEnded(aborted=True)]
        assert state(harness) == before
        assert provider.closed == len(provider.requests)
        assert (await harness.settle(Cancel())).data == {"cancelled": None}
        provider.summary = ("A summary.",)
        assert "summaryEntryId" in await go(harness, id_of(harness, "one"), summarize=True)


async def test_cancel_of_maintenance_alone_reaches_the_summary_too(scripted):
    _, options = scripted(("one",), ("two",), summary=(Hang(),))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        harness.runtime.send(NavigateTree(id_of(harness, "one"), summarize=True))
        await harness.wait_for(BranchSummaryStarted)
        cancelled = await harness.settle(Cancel(only_maintenance=True))
        assert cancelled.data == {"cancelled": "branch_summary"}


@pytest.mark.parametrize("cancelled", [False, True])
async def test_message_typed_meanwhile_is_sent_afterwards(scripted, cancelled):
    gate = asyncio.Event()
    provider, options = scripted(("one",), ("two",), ("three",), summary=("A summary.", Hang(gate)))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        before = len(harness.events)
        harness.runtime.send(NavigateTree(id_of(harness, "one"), summarize=True))
        await harness.wait_for(BranchSummaryStarted)
        assert (await harness.settle(SubmitPrompt("c"))).ok
        assert harness.of(QueueChanged)[-1].steering == ("c",)
        if cancelled:
            await harness.settle(Cancel())
        gate.set()
        await harness.wait_for(AgentSettled, after=before)
        sent = [text_of(message.content) for message in provider.requests[-1].messages]
    assert sent[-1] == "c"
    assert ("two" in sent, "A summary." in sent[-2]) == (cancelled, not cancelled)


async def test_messages_that_were_held_before_stay_held(scripted):
    _, options = scripted(("one",), ("two",), ("half", Hang()))
    async with running(options) as harness:
        await talk(harness, "a", "b")
        await harness.settle(SubmitPrompt("c"))
        before = len(harness.events)
        await harness.settle(SubmitPrompt("later", delivery="follow_up"))
        await harness.settle(Cancel())
        await harness.wait_for(AgentSettled, after=before)
        await go(harness, id_of(harness, "one"))
        assert harness.runtime.view().follow_up == ("later",)
        assert said(harness) == ["a", "one"]


async def test_messages_that_do_not_fit_are_told(scripted, musepi_home):
    provider, options = scripted(("one",), ("abc " * 3000,), ("two",))
    write_rows(musepi_home, "openai-completions", "http://127.0.0.1:9", {"id": "m1", "contextWindow": 19_000})
    async with running(options) as harness:
        await talk(harness, "a", "b", "c")
        await go(harness, id_of(harness, "one"), summarize=True)
        assert "The summary leaves out 2 older messages of the branch: too long." in harness.notices("info")
    prompt = text_of(provider.requests[-1].messages[0].content)
    assert prompt.startswith("<conversation>\n[User]: c\n\n[Assistant]: two\n</conversation>")


async def test_newest_message_that_does_not_fit_fails_the_summary(scripted, musepi_home):
    provider, options = scripted(("one",), ("abc " * 3000,))
    write_rows(musepi_home, "openai-completions", "http://127.0.0.1:9", {"id": "m1", "contextWindow": 19_000})
    async with running(options) as harness:
        await talk(harness, "a", "b")
        before = state(harness)
        settled = await harness.settle(NavigateTree(id_of(harness, "one"), summarize=True))
        assert settled.error == TOO_LONG
        assert state(harness) == before
        assert harness.of(BranchSummaryStarted) == []
    assert len(provider.requests) == 2
