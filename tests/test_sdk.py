import json
import re
import textwrap

import pytest

from musepi_tui import sdk
from musepi_tui.base.errors import SessionBusyError, SessionError, SettingsError
from musepi_tui.providers import apis
from musepi_tui.providers.demo import spec
from musepi_tui.providers.demo.stream import Pace
from musepi_tui.sdk import AgentSession, MusepiError, SessionSetup, parse_wire_response
from tests.support.checkout import ROOT
from tests.support.passes import (
    DOCUMENT,
    PASS,
    SUMMARY,
    TURN,
    WINDOW,
    FakeModel,
    check_request,
    stored,
    texts,
    write_rows,
)
from tests.support.server import ModelServer, anthropic_reply, openai_reply, status_reply

SETTINGS = {"compaction.keepRecentTokens": 2000, "retry.maxRetries": 0, "retry.requestRetries": 0}
SETUP = SessionSetup(model="local/m1", settings={**SETTINGS, "tokens.estimator": "chars4"})


@pytest.fixture
def model(musepi_home):
    with ModelServer() as server:
        write_rows(musepi_home, "openai-completions", server.base_url, {"id": "m1", **WINDOW})
        yield FakeModel(server, "openai-completions")


async def test_prompt_gives_the_answer_and_the_session_goes_on_in_its_file(model, tmp_path):
    file = tmp_path / "s.jsonl"
    for number in (1, 2):
        model.turns.append(model.says(f"answer {number}"))
        async with AgentSession.open(file, SETUP) as session:
            assert await session.prompt(f"prompt {number}") == f"answer {number}"
            assert session.file == file
    said = [message.text for message in check_request(model.asked[-1])]
    assert said == ["prompt 1", "answer 1", "prompt 2"]


async def test_prompt_that_fails_raises_its_line(model, tmp_path):
    model.turns.append(status_reply(500, {"error": {"message": "out of order"}}))
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        with pytest.raises(MusepiError, match="out of order"):
            await session.prompt("one")
        assert await session.prompt("two") == "done"


async def test_call_that_would_need_consent_is_refused(model, tmp_path):
    model.turns += [model.says("", tools=[("write", {"path": "a.txt", "content": "x"}, "c1")])]
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        assert await session.prompt("write it") == "done"
    assert not (tmp_path / "a.txt").exists()
    assert set(check_request(model.asked[-1])[-1].results) == {"c1"}


async def test_move_goes_back_and_leaves_a_summary_of_the_branch(model, tmp_path):
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        await session.prompt("the plan")
        plan = session.leaf_id
        await session.prompt("a wrong way")
        model.summary = model.says("## Goal\nThat way is wrong.")
        moved = await session.navigate_tree(plan, summarize=True, custom_instructions="Be short.")
        assert moved == {
            "cancelled": False,
            "leafId": session.leaf_id,
            "summaryEntryId": session.leaf_id,
        }
        await session.prompt("another way")
    assert "Be short." in texts(model.summarised[0])
    sent = texts(model.asked[-1])
    assert "That way is wrong." in sent
    assert "a wrong way" not in sent


async def test_move_to_a_prompt_gives_its_text_back(model, tmp_path):
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        events = session.events()
        await session.prompt("say it")
        told = [await anext(events) for _ in range(6)]
        prompt = next(line["entryId"] for line in told if line["type"] == "message_end")
        moved = await session.navigate_tree(prompt)
        assert (moved["editorText"], moved["cancelled"]) == ("say it", False)
        with pytest.raises(MusepiError, match="nowhere"):
            await session.navigate_tree("nowhere")


async def test_compaction_tells_what_it_did_or_why_it_did_nothing(model, tmp_path):
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        await session.prompt("one")
        with pytest.raises(MusepiError, match=r"Nothing to compact \(session too small\)"):
            await session.compact()
        model.turns.append(model.says(6_000))
        await session.prompt("two")
        done = await session.compact("the numbers")
        (divider,) = stored(session.file).compactions
        assert (done["entryId"], done["firstKeptEntryId"]) == (divider.id, divider.first_kept_entry_id)
        assert done["tokensAfter"] < done["tokensBefore"]
        with pytest.raises(MusepiError, match="This version has no compaction mode"):
            await session.compact(mode="snapcompact")
    assert "the numbers" in texts(model.summarised[0])


async def test_handoff_goes_on_in_another_file(model, tmp_path):
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        await session.prompt("one")
        done = await session.handoff("the parser")
        assert (done["document"], done["sessionFile"]) == (DOCUMENT, str(session.file))
        assert session.file != tmp_path / "s.jsonl"
        await session.prompt("go on")
    assert DOCUMENT in texts(model.asked[-1])


async def test_events_are_those_of_json_mode_until_the_session_ends(model, tmp_path):
    model.turns += [model.says(12_000), model.says(4_000)]
    setup = SessionSetup(model=SETUP.model, settings={**SETUP.settings, "compaction.autoContinue": False})
    async with AgentSession.open(tmp_path / "s.jsonl", setup) as session:
        await session.prompt("one")
        events = session.events()
        await session.prompt("two")
    names = [line["type"] async for line in events]
    wanted = (*TURN, *PASS, "agent_settled")
    assert [name for name in names if name in wanted] == list(wanted)
    assert SUMMARY in stored(tmp_path / "s.jsonl").compactions[0].summary


async def test_session_that_cannot_be_opened_is_told(model, tmp_path, musepi_home):
    async with AgentSession.open(tmp_path / "s.jsonl", SETUP) as session:
        await session.prompt("one")
        with pytest.raises(SessionBusyError):
            async with AgentSession.open(tmp_path / "s.jsonl", SETUP):
                pass
    (tmp_path / "notes.txt").write_text("no session")
    with pytest.raises(SessionError, match=r"notes\.txt"):
        async with AgentSession.open(tmp_path / "notes.txt", SETUP):
            pass
    (musepi_home / "settings.json").write_text("{")
    with pytest.raises(SettingsError, match=r"settings\.json"):
        async with AgentSession.open(tmp_path / "s.jsonl", SETUP):
            pass


def test_example_of_a_conversation_runs(musepi_home, tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "scripting.md").read_text(encoding="utf-8")
    (example,) = [
        body for body in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "AgentSession" in body
    ]
    provider = spec.make_provider(pace=Pace(0, 0, words=50))
    monkeypatch.setattr(spec, "PROVIDER", provider)
    monkeypatch.chdir(tmp_path)
    apis.load_provider.cache_clear()
    try:
        exec(example, {})
    finally:
        provider.close()
        apis.load_provider.cache_clear()
    assert "## Goal" in capsys.readouterr().out


def test_example_of_the_docstring_runs():
    names = {}
    exec(textwrap.dedent(sdk.__doc__.split("::\n", 1)[1].split("\n\nA conversation")[0]), names)
    assert names["found"]["error"]["kind"] == "overloaded"


@pytest.mark.parametrize(
    ("api", "reply"), [("anthropic-messages", anthropic_reply), ("openai-completions", openai_reply)]
)
def test_answer_is_read_whatever_the_splits(api, reply):
    body = reply("Text é😀", thinking="Hm.", tools=[("read", {"path": "é"}), ("ls", {})]).body
    whole = parse_wire_response(api, 200, {}, body)
    assert set(whole) == {"text", "thinking", "toolCalls", "stopReason", "usage", "error"}
    assert (whole["text"], whole["thinking"], whole["stopReason"]) == ("Text é😀", "Hm.", "toolUse")
    assert [call["arguments"] for call in whole["toolCalls"]] == [{"path": "é"}, {}]
    assert whole["usage"] == {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15}
    for cut in range(0, len(body) + 5, 7):
        assert parse_wire_response(api, 200, {}, body, [cut, cut + 1, cut + 3]) == whole
    assert parse_wire_response(api, 200, {}, body.decode()) == whole


@pytest.mark.parametrize(
    ("api", "status", "headers", "body", "expected"),
    [
        (
            "anthropic-messages",
            529,
            {},
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            {"kind": "overloaded", "retryable": True, "type": "overloaded_error", "retryAfter": None},
        ),
        (
            "openai-completions",
            429,
            {"Retry-After": "3"},
            {"error": {"message": "slow", "type": "x", "code": "rate_limit_exceeded"}},
            {"kind": "rate_limit", "retryable": True, "code": "rate_limit_exceeded", "retryAfter": 3.0},
        ),
        (
            "openai-completions",
            200,
            {},
            {"error": {"message": "no", "type": "invalid_request_error"}},
            {"kind": "invalid_request", "retryable": False, "message": "no"},
        ),
    ],
)
def test_failure_is_described(api, status, headers, body, expected):
    found = parse_wire_response(api, status, headers, json.dumps(body).encode())
    assert found["stopReason"] == "error"
    assert expected.items() <= found["error"].items()


def test_full_window_is_told_though_the_answer_stands():
    body = anthropic_reply("Half an ans", stop="model_context_window_exceeded").body
    found = parse_wire_response("anthropic-messages", 200, {}, body)
    assert (found["text"], found["stopReason"]) == ("Half an ans", "length")
    assert found["error"]["kind"] == "overflow"


def test_api_without_a_wire_is_refused():
    for api in ("nonsense", "demo"):
        with pytest.raises(MusepiError, match=api):
            parse_wire_response(api, 200, {}, b"")
