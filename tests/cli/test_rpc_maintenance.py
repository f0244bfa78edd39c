"""The RPC commands of maintenance, against a scripted server."""

import json
from pathlib import Path

import pytest

from musepi_tui.session.codec import encode_entry, encode_header
from musepi_tui.session.entries import SessionHeader
from tests.support.lines import write_lines
from tests.support.program import RpcProgram, model_flags
from tests.support.server import ModelServer, hang_reply, openai_reply
from tests.support.sketch import sketch

L = "u100 a200 t4000 a300 u50 a600 t3000 a100 u50 a900"
SETTINGS = (
    "--set",
    "compaction.keepRecentTokens=1000",
    "--set",
    "tokens.estimator=chars4",
    "--set",
    "compaction.threshold=7000",
)
SUMMARY = "## Goal\nThe summary of the scripted server."


@pytest.fixture
def file(tmp_path):
    header = encode_header(SessionHeader("id", "2026-01-01T00:00:00.000Z", str(tmp_path)))
    return write_lines(tmp_path / "s.jsonl", header, *(encode_entry(entry) for entry in sketch(L)))


@pytest.fixture
def server():
    with ModelServer() as running:
        running.fallback = openai_reply(SUMMARY)
        yield running


def host(file, server, *arguments):
    flags = model_flags(server.base_url)
    return RpcProgram("--session", str(file), *flags, *SETTINGS, *arguments, cwd=file.parent)


def test_the_parts_of_the_context_sum_up_to_its_tokens_after_a_compaction(file, server):
    with host(file, server) as program:
        program.ask("compact")
        found = program.ask("get_context_breakdown")["data"]
    fixed = {"window", "threshold", "budgetReserve", "tokens", "percent", "parts"}
    further = {"beyondParts", "toolResults", "toolSchemas", "contextFiles", "reclaimable", "cache"}
    assert set(found) == fixed | further
    assert all(set(part) == {"name", "tokens"} for part in found["parts"])
    assert (found["window"], found["threshold"], found["budgetReserve"]) == (8_192, 7_000, 1_228)
    parts = {part["name"]: part["tokens"] for part in found["parts"]}
    assert (sum(parts.values()), found["beyondParts"]) == (found["tokens"], 0)
    assert found["percent"] == round(100 * found["tokens"] / 8_192, 1)
    assert list(parts)[:4] == ["system prompt", "tools", "summary", "kept tail"]
    assert sum(tool["tokens"] for tool in found["toolSchemas"]) == parts["tools"]
    ways = {way["name"]: way["tokens"] for way in found["reclaimable"]}
    assert list(ways) == ["superseded", "useless", "threshold", "shake", "images"]
    assert found["cache"] == {"read": None, "prompt": None, "cold": found["cache"]["cold"]}


def test_compact_answers_with_what_was_done_and_then_that_nothing_is_left(file, server):
    with host(file, server) as program:
        found = program.ask("compact", customInstructions="the API work")["data"]
        refused = program.ask("compact")
    assert (found["ok"], found["action"], found["method"]) == (True, "summary", "summary")
    assert found["entryId"] in {json.loads(line).get("id") for line in file.read_bytes().splitlines()}
    assert (refused["success"], refused["error"]) == (False, "Already compacted")
    assert "Additional focus: the API work" in json.dumps(server.requests[0].body)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mode": "magic"}, "no compaction mode"),
        ({"mode": "shake", "customInstructions": "x"}, "takes no focus"),
        ({"mode": "snapcompact"}, 'This version has no compaction mode "snapcompact".'),
        ({"mode": "undo"}, "This version has no /compact undo"),
        ({"mode": "handoff"}, "/handoff [focus]"),
        ({"mode": 5}, "mode must be a string"),
    ],
)
def test_compact_refuses_what_it_cannot_do(file, server, arguments, text):
    with host(file, server) as program:
        answer = program.ask("compact", **arguments)
    assert answer["success"] is False
    assert text in answer["error"]


def test_an_aborted_compaction_says_so(file, server):
    server.fallback = hang_reply()
    with host(file, server) as program:
        program.send("compact")
        program.wait_for("compaction_start")
        program.send("compact")
        busy = program.wait(lambda line: line["type"] == "response")
        assert busy["error"] == "Compaction already in progress"
        program.send("abort_compaction")
        answers = [program.wait(lambda line: line["type"] == "response") for _ in range(2)]
    by_command = {answer["command"]: answer for answer in answers}
    assert by_command["abort_compaction"]["success"] is True
    assert by_command["compact"]["error"] == "Compaction cancelled"


def test_a_handoff_answers_with_the_document_and_the_new_session(file, server):
    before = file.read_bytes()
    with host(file, server) as program:
        found = program.ask("handoff", customInstructions="the API work")["data"]
        state = program.ask("get_state")["data"]
        entries = program.ask("get_entries")["data"]["entries"]
        again = program.ask("handoff")
    assert set(found) == {"document", "sessionFile", "sessionId"}
    assert found["document"].startswith(SUMMARY)
    assert (state["sessionFile"], state["sessionId"]) == (found["sessionFile"], found["sessionId"])
    assert state["isStreaming"] is state["isCompacting"] is False
    assert [entry.get("customType") for entry in entries][-1] == "handoff"
    assert (again["success"], again["error"]) == (False, "Nothing to hand off (no messages yet)")
    assert "Additional focus: the API work" in json.dumps(server.requests[0].body)
    assert file.read_bytes() == before


def test_events_of_a_handoff_name_the_new_session_and_its_message(file, server):
    with host(file, server) as program:
        program.send("handoff")
        start = program.wait_for("compaction_start")
        changed = program.wait_for("session_changed")
        stored = program.wait_for("message_end")
        end = program.wait_for("compaction_end")
    assert (start["reason"], start["action"], end["action"]) == ("manual", "handoff", "handoff")
    assert changed["reason"] == "handoff"
    assert (stored["message"]["customType"], stored["entryId"]) == ("handoff", end["result"]["entryId"])
    assert json.dumps(stored["entryId"]) in Path(changed["file"]).read_text()


def test_an_aborted_handoff_says_so(file, server):
    server.fallback = hang_reply()
    with host(file, server) as program:
        program.send("handoff")
        program.wait_for("compaction_start")
        program.send("abort_compaction")
        answers = [program.wait(lambda line: line["type"] == "response") for _ in range(2)]
        assert program.ask("get_state")["data"]["sessionFile"] == str(file)
    by_command = {answer["command"]: answer for answer in answers}
    assert by_command["handoff"]["error"] == "Handoff cancelled"


def test_a_shake_tells_what_it_took(file, server):
    with host(file, server) as program:
        found = program.ask("shake")["data"]
        again = program.ask("shake", mode="elide")["data"]
        images = program.ask("shake", mode="images")["data"]
        wrong = program.ask("shake", mode="all")
    assert (found["regions"], found["toolResults"], found["blocks"], found["images"]) == (2, 2, 0, 0)
    assert found["tokensFreed"] > 6_000
    assert found["artifactId"]
    assert set(again) == {"regions", "toolResults", "blocks", "images", "tokensFreed"}
    assert again["tokensFreed"] == images["tokensFreed"] == 0
    assert wrong["error"] == "mode must be one of elide, images, got 'all'"
    assert server.requests == []


def test_a_shake_is_told_as_a_manual_pass(file, server):
    with host(file, server) as program:
        program.send("shake")
        start = program.wait_for("compaction_start")
        end = program.wait_for("compaction_end")
    assert (start["reason"], start["action"]) == ("manual", "shake")
    assert (end["result"]["entryId"], end["aborted"]) == (None, False)


def test_compact_in_shake_mode_is_a_shake(file, server):
    with host(file, server) as program:
        found = program.ask("compact", mode="shake")["data"]
        nothing = program.ask("compact", mode="shake")
    assert (found["ok"], found["action"], found["entryId"]) == (True, "shake", None)
    assert nothing["error"] == "Nothing to shake"


def test_an_idle_pass_runs_only_when_its_gates_hold(file, server):
    with host(file, server) as program:
        assert program.ask("run_idle_compaction")["data"] == {"skipped": True}
    idle = ("--set", "compaction.idleEnabled=true", "--set", "compaction.idleThresholdTokens=1000")
    with host(file, server, *idle) as program:
        found = program.ask("run_idle_compaction")["data"]
    assert (found["ok"], found["action"]) == (True, "summary")


def test_automatic_passes_can_be_switched_off_for_this_run(file, server):
    with host(file, server) as program:
        assert program.ask("set_auto_compaction", enabled=False)["success"] is True
        program.send("prompt", message="go on")
        program.wait_for("agent_settled")
        assert not [line for line in program.lines if line["type"] == "auto_compaction_start"]
        program.send("set_auto_compaction", enabled=True)
        program.send("prompt", message="go on")
        program.wait_for("auto_compaction_end")
        refused = program.ask("set_auto_compaction", enabled="yes")
    assert refused["error"] == "enabled must be true or false, got 'yes'"


def usages(program, after):
    return [line["tokens"] for line in program.lines[after:] if line["type"] == "context_usage"]


def test_every_figure_of_a_handoff_counts_system_prompt_and_tools(file, server):
    with host(file, server) as program:
        program.ask("get_context_breakdown")  # by now all is known that the start does not wait for
        after = len(program.lines)
        program.send("handoff")
        end = program.wait_for("compaction_end")
        told = usages(program, after)
        found = program.ask("get_context_breakdown")["data"]
        told_later = usages(program, after)
    tokens = end["result"]["tokensAfter"]
    assert (found["tokens"], told[-1], told_later[-1], min(told_later)) == (tokens,) * 4
    parts = {part["name"]: part["tokens"] for part in found["parts"]}
    assert parts["system prompt"] + parts["tools"] > tokens / 2


def test_figures_of_a_new_session_count_system_prompt_and_tools(file, server):
    with host(file, server) as program:
        program.ask("get_context_breakdown")
        after = len(program.lines)
        program.ask("new_session")
        tokens = program.ask("get_context_breakdown")["data"]["tokens"]
        told = usages(program, after)
    assert tokens > 0
    assert (min(told), told[-1]) == (tokens, tokens)
