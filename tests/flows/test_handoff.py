"""Handoffs by hand, over HTTP with both wire formats: what is asked, what is made, what stays as it was."""

import json

import pytest

from musepi_tui.runtime.events import (
    IntentSettled,
    MaintenanceProgress,
    MaintenanceStarted,
    SessionReady,
)
from musepi_tui.runtime.intents import Cancel, Compact, Handoff, OpenSession, SubmitPrompt
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.session.entries import CustomMessageEntry
from musepi_tui.session.messages import text_of
from tests.support.harness import reopened, running
from tests.support.passes import (
    DOCUMENT,
    all_done,
    check_request,
    conversation,
    course,
    notices,
    passes,
    solid,
    stored,
    told,
    wait_for_requests,
)
from tests.support.server import hang_reply, status_reply


def without_marks(value):
    """A request body without cache marks, which move along with the end of the conversation."""
    if isinstance(value, dict):
        return {key: without_marks(each) for key, each in value.items() if key != "cache_control"}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


def prefix_of(body):
    """What a cache keeps of a request: everything before the messages, byte for byte."""
    names = ("system", "tools", "model", "thinking", "reasoning_effort", "prompt_cache_key")
    return json.dumps({name: body[name] for name in names if name in body})


async def test_a_handoff_goes_on_in_a_new_session_that_begins_with_the_document(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        old, old_bytes = harness.file, harness.file.read_bytes()
        old_id = harness.runtime.view().header.id
        settled = await harness.settle(Handoff("the numbers"))
        assert settled.ok, settled.error
        view = harness.runtime.view()
        assert settled.data == {
            "document": DOCUMENT,
            "sessionFile": str(harness.file),
            "sessionId": view.header.id,
        }
        assert harness.file.exists()
        assert view.header.id != old_id
        assert view.header.parent_session == str(old)
        ready = await harness.wait_for(SessionReady, lambda event: event.reason == "handoff")
        assert [head.type for head in ready.view.tree.path()][-1] == "custom_message"
        assert await harness.notice(f"/resume {old_id}")
        await harness.prompt("go on")
    assert old.read_bytes() == old_bytes
    (entry,) = stored(harness.file).customs("handoff")
    assert (entry.display, entry.attribution) == (True, "agent")
    assert entry.content.startswith(f"<handoff-context>\n{DOCUMENT}\n</handoff-context>\n\n")
    assert entry.content.count("\n") > DOCUMENT.count("\n") + 3
    first, second = check_request(model.asked[-1])
    assert (first.text, second.text) == (entry.content, "go on")
    assert conversation(model.handed_off[0])[-1].text.endswith("Additional focus: the numbers")


async def test_the_request_repeats_the_live_one_and_adds_one_message(over_http, model, api):
    async with running(over_http()) as harness:
        model.turns += [model.says("", tools=[("ls", {"path": "."})]), model.says("seen")]
        await harness.prompt("look around")
        await harness.settle(Handoff())
    live, asked = model.asked[-1].body, model.handed_off[0].body
    assert prefix_of(asked) == prefix_of(live)
    before, now = without_marks(live["messages"]), without_marks(asked["messages"])
    assert json.dumps(now[: len(before)]) == json.dumps(before)
    answer, question = now[len(before) :]
    assert answer["role"] == "assistant"
    assert question["role"] == "user"
    wanted = {"type": "none"} if api == "anthropic-messages" else "none"
    assert asked["tool_choice"] == wanted


@pytest.mark.parametrize("api", ["openai-completions"])
async def test_the_request_reads_the_cache_of_the_session_under_an_id_of_its_own(over_http, model):
    told = {"supportsPromptCacheKey": True, "sessionAffinity": "default"}
    async with running(over_http(row={"compat": told})) as harness:
        await harness.prompt("count to seven")
        session_id = harness.runtime.view().header.id
        await harness.settle(Handoff())
    live, asked = model.asked[0], model.handed_off[0]
    assert (live.body["prompt_cache_key"], live.headers["x-session-affinity"]) == (session_id, session_id)
    assert asked.body["prompt_cache_key"] == session_id
    assert asked.headers["x-session-affinity"] != session_id


@pytest.mark.parametrize("text", ["tool_choice 'none' is not supported: only auto tool choice is supported"])
async def test_a_server_that_knows_only_auto_is_asked_once_more(over_http, model, text):
    refused = status_reply(400, {"error": {"message": text, "type": "invalid_request_error"}})
    answers = [lambda _: refused, model.says(DOCUMENT, tools=[("ls", {"path": "."})])]
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        model.document = lambda request: answers.pop(0)(request)
        settled = await harness.settle(Handoff())
        assert settled.ok, settled.error
        assert settled.data["document"] == DOCUMENT
    assert [request.body.get("tool_choice") is None for request in model.handed_off] == [False, True]
    assert model.handed_off[0].body["messages"] == model.handed_off[1].body["messages"]
    assert stored(harness.file).messages == []


async def test_events_of_a_handoff_are_those_of_a_pass_by_hand(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        after = len(harness.events)
        await harness.settle(Handoff())
        ((start, end),) = passes(harness, after)
        assert (start["type"], end["type"]) == ("compaction_start", "compaction_end")
        assert (start["action"], end["action"], end["reason"]) == ("handoff", "handoff", "manual")
        entry = harness.runtime.read_entry(end["result"]["entryId"])
        assert isinstance(entry, CustomMessageEntry)
        assert end["result"]["tokensAfter"] < 10 * end["result"]["tokensBefore"]
        lines = [line["type"] for line in told(harness, after)]
        assert lines.index("session_changed") < lines.index("compaction_end")
        assert [line["entryId"] for line in told(harness, after) if line["type"] == "message_end"] == [
            end["result"]["entryId"]
        ]
        assert harness.of(MaintenanceProgress)[-1].phase == "handoff"
        assert "context_usage" in lines[lines.index("compaction_end") :]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("", "The model returned an empty handoff document; nothing was changed."),
        (" \n ", "The model returned an empty handoff document; nothing was changed."),
        ("\n".join(["the same line over and over again"] * 20), "The model repeated itself"),
        ("<summary></summary>", "The model returned an empty handoff document; nothing was changed."),
        (solid(60_000), "The model wrote a handoff document of"),
    ],
    ids=["empty", "blank", "loop", "wrapper", "too large"],
)
async def test_an_unusable_document_changes_nothing(over_http, model, said, error):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        old, old_bytes = harness.file, harness.file.read_bytes()
        model.document = model.says(said)
        settled = await harness.settle(Handoff())
        assert not settled.ok
        assert settled.error.startswith(error)
        ((_, end),) = passes(harness)
        assert (end["result"], end["aborted"], end["errorMessage"]) == (None, False, settled.error)
        assert harness.file == old
        assert old.read_bytes() == old_bytes
        assert list(old.parent.glob("*.jsonl")) == [old]
        await harness.prompt("go on")
    assert check_request(model.asked[-1])[-1].text == "go on"


async def test_a_document_that_was_cut_off_is_not_used(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        model.document = model.cut_off("## Goal\nKeep cou")
        settled = await harness.settle(Handoff())
    assert "output limit" in settled.error


async def test_wrappers_are_taken_off_and_files_are_added(over_http, model, project):
    (project / "a.py").write_text("a = 1\n")
    async with running(over_http()) as harness:
        model.turns += [model.says("", tools=[("read", {"path": "a.py"})]), model.says("seen")]
        await harness.prompt("look")
        model.document = model.says(f"<summary>\n<handoff-context>{DOCUMENT}</handoff-context>\n</summary>")
        first = await harness.settle(Handoff())
        assert first.data["document"] == f"{DOCUMENT}\n\n<files>\na.py (Read)\n</files>"
        model.turns += [model.says("", tools=[("read", {"path": "b.py"})]), model.says("none")]
        await harness.prompt("and b")
        second = await harness.settle(Handoff())
    assert second.data["document"].endswith("<files>\na.py (Read)\nb.py (Read)\n</files>")


async def test_nothing_said_yet_is_nothing_to_hand_off(over_http, model):
    async with running(over_http()) as harness:
        settled = await harness.settle(Handoff())
        assert settled.error == "Nothing to hand off (no messages yet)"
        await harness.prompt("count to seven")
        assert (await harness.settle(Handoff())).ok
        again = await harness.settle(Handoff())
        assert again.error == "Nothing to hand off (no messages yet)"
    assert len(model.handed_off) == 1


async def test_a_handoff_is_refused_while_a_response_is_running(over_http, model):
    async with running(over_http()) as harness:
        model.turns.append(hang_reply())
        harness.runtime.send(SubmitPrompt("one"))
        await wait_for_requests(model, 1)
        settled = await harness.settle(Handoff())
        assert settled.error == "A response is still running: let it end or press esc, then hand off"


async def test_a_cancelled_handoff_changes_nothing(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        old, old_bytes, before = harness.file, harness.file.read_bytes(), harness.runtime.context_messages()
        model.document = hang_reply()
        intent = harness.runtime.send(Handoff())
        await harness.wait_for(MaintenanceStarted)
        harness.runtime.send(SubmitPrompt("meanwhile"))
        assert (await harness.notice("Queued")).text == "Queued until the handoff ends"
        cancelled = await harness.settle(Cancel(only_maintenance=True))
        assert cancelled.data == {"cancelled": "handoff"}
        settled = await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent)
        assert settled.error == "Handoff cancelled"
        ((_, end),) = passes(harness)
        assert (end["aborted"], end["result"], "errorMessage" in end) == (True, None, False)
        assert harness.file == old
        assert list(old.parent.glob("*.jsonl")) == [old]
        await all_done(harness, len(harness.events) - 1)
        assert harness.texts()[-2:] == ["meanwhile", "done"]
        assert harness.runtime.context_messages()[: len(before)] == before
        assert old.read_bytes().startswith(old_bytes)


async def test_what_is_typed_meanwhile_is_sent_in_the_new_session(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        after = len(harness.events)
        model.document = lambda request: model.says(DOCUMENT)(request).slow(0.02)
        harness.runtime.send(Handoff())
        await harness.wait_for(MaintenanceStarted)
        harness.runtime.send(SubmitPrompt("first", delivery="follow_up"))
        harness.runtime.send(SubmitPrompt("second", delivery="follow_up"))
        await all_done(harness, after)
        assert course(harness, after)[:3] == ["compaction_start", "compaction_end", "agent_start"]
    texts = [text_of(entry.message.content) for entry in stored(harness.file).messages]
    assert texts == ["first", "done", "second", "done"]
    assert check_request(model.asked[1])[-1].text == "first"


async def test_the_old_session_can_be_opened_again_and_is_whole(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        old, before = harness.file, harness.runtime.context_messages()
        await harness.settle(Handoff())
        new = harness.file
        assert (await harness.settle(OpenSession(str(old)))).ok
        assert harness.runtime.context_messages() == before
        assert stored(old).compactions == []
        assert stored(old).customs("handoff") == []
    async with running(reopened(over_http(), new)) as harness:
        assert [message for _, message in harness.runtime.context_messages()]
        assert harness.runtime.view().model.key == "local/m1"


async def test_a_session_in_memory_is_handed_off_in_memory(over_http, model):
    async with running(over_http(session=SessionChoice("memory"))) as harness:
        await harness.prompt("count to seven")
        settled = await harness.settle(Handoff())
        assert (settled.ok, settled.data["sessionFile"]) == (True, None)
        await harness.notice("was not saved")
        await harness.prompt("go on")
    assert DOCUMENT in check_request(model.asked[-1])[0].text


async def test_a_provider_failure_is_shown_at_once(over_http, model):
    async with running(over_http("retry.requestRetries=0")) as harness:
        await harness.prompt("count to seven")
        model.document = status_reply(503, {"error": {"message": "overloaded", "type": "overloaded_error"}})
        settled = await harness.settle(Handoff())
        assert "overloaded" in settled.error
        assert notices(harness) == []
    assert len(model.handed_off) == 1


async def test_compact_does_not_stop_a_handoff(over_http, model):
    async with running(over_http()) as harness:
        await harness.prompt("count to seven")
        model.document = lambda request: model.says(DOCUMENT)(request).slow(0.02)
        intent = harness.runtime.send(Handoff())
        await harness.wait_for(MaintenanceStarted)
        assert (await harness.settle(Compact())).error == "Compaction already in progress"
        assert (await harness.wait_for(IntentSettled, lambda event: event.intent_id == intent)).ok


async def test_compact_goes_on_in_the_new_session_as_usual(over_http, model):
    keep = "compaction.keepRecentTokens=200"
    async with running(over_http(keep)) as harness:
        await harness.prompt("count to seven")
        await harness.settle(Handoff())
        model.turns.append(model.says(2_000))
        await harness.prompt("more")
        await harness.prompt("and more")
        assert (await harness.settle(Compact())).ok
        assert course(harness)[-2:] == ["compaction_start", "compaction_end"]
    assert len(stored(harness.file).compactions) == 1
