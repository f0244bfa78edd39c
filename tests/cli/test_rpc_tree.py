"""The RPC commands that move within a session, against a scripted server."""

import pytest

from musepi_tui.session.codec import encode_entry, encode_header
from musepi_tui.session.entries import SessionHeader
from tests.support.builders import a, path, u
from tests.support.lines import write_lines
from tests.support.program import RpcProgram, model_flags
from tests.support.server import ModelServer, hang_reply, openai_reply, status_reply


@pytest.fixture
def file(tmp_path):
    entries = path(u("one"), a("two"), u("three"), a("four"))
    header = encode_header(SessionHeader("id", "2026-01-01T00:00:00.000Z", str(tmp_path)))
    return write_lines(tmp_path / "s.jsonl", header, *(encode_entry(entry) for entry in entries))


@pytest.fixture
def server():
    with ModelServer() as running:
        running.fallback = openai_reply("## Goal\nThe other branch.")
        yield running


def host(file, server):
    return RpcProgram("--session", str(file), *model_flags(server.base_url), cwd=file.parent)


def test_navigate_tree_moves_the_leaf(file, server):
    with host(file, server) as program:
        moved = program.ask("navigate_tree", targetId="e2", id=7)
        state = program.ask("get_state")["data"]
        tree = program.ask("get_tree")["data"]
        texts = [message["text"] for message in program.ask("get_messages")["data"]["messages"]]
        assert program.close_input() == 0
        events = [line for line in program.lines if line["type"] == "tree_moved"]
    assert (moved["id"], moved["success"]) == (7, True)
    assert moved["data"] == {"cancelled": False, "leafId": "e2"}
    assert (state["leafId"], tree["leafId"], texts) == ("e2", "e2", ["one", "two"])
    assert events == [{"type": "tree_moved", "from": "e4", "to": "e2"}]


def test_navigate_tree_gives_the_text_of_a_prompt_back(file, server):
    with host(file, server) as program:
        first = program.ask("navigate_tree", targetId="e3")["data"]
        root = program.ask("navigate_tree", targetId="e1")["data"]
        state = program.ask("get_state")["data"]
    assert first == {"cancelled": False, "leafId": "e2", "editorText": "three"}
    assert root == {"cancelled": False, "leafId": None, "editorText": "one"}
    assert (state["leafId"], state["messageCount"]) == (None, 0)


def test_navigate_tree_with_a_summary_answers_when_it_is_stored(file, server):
    with host(file, server) as program:
        found = program.ask(
            "navigate_tree", targetId="e2", summarize=True, customInstructions="In one line."
        )["data"]
        last = program.ask("get_entries")["data"]
        assert program.close_input() == 0
        kinds = [line["type"] for line in program.lines]
    entry = last["entries"][-1]
    assert found == {"cancelled": False, "leafId": entry["id"], "summaryEntryId": entry["id"]}
    assert (entry["type"], entry["parentId"], entry["fromId"]) == ("branch_summary", "e2", "e2")
    assert last["leafId"] == entry["id"]
    assert server.requests[0].body["messages"][-1]["content"].endswith("</conversation>\n\nIn one line.")
    assert kinds.index("branch_summary_start") < kinds.index("tree_moved") < kinds.index("branch_summary_end")


def test_abort_compaction_ends_a_branch_summary(file, server):
    server.script(hang_reply())
    before = file.read_bytes()
    with host(file, server) as program:
        program.send("navigate_tree", targetId="e2", summarize=True)
        program.wait_for("branch_summary_start")
        program.send("abort_compaction")
        answer = program.wait(lambda line: line.get("command") == "navigate_tree")
        assert program.close_input() == 0
        ends = [line for line in program.lines if line["type"] == "branch_summary_end"]
    assert answer["data"] == {"cancelled": True, "aborted": True, "leafId": "e4"}
    assert ends == [{"type": "branch_summary_end", "aborted": True}]
    assert file.read_bytes() == before


def test_input_that_ends_during_a_summary_waits_for_it(file, server):
    server.script(openai_reply("## Goal\nSlowly.", rate=20))
    with host(file, server) as program:
        program.send("navigate_tree", targetId="e2", summarize=True)
        program.wait_for("branch_summary_start")
        assert program.close_input() == 0
        answers = [line for line in program.lines if line.get("command") == "navigate_tree"]
    assert answers[0]["success"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "targetId must be a string"),
        ({"targetId": "gone"}, "Entry gone not found"),
        ({"targetId": "e2", "summarize": "yes"}, "summarize must be true or false"),
        ({"targetId": "e2", "customInstructions": 3}, "customInstructions must be a string"),
    ],
)
def test_navigate_tree_refuses_what_it_cannot_do(file, server, arguments, part):
    with host(file, server) as program:
        refused = program.ask("navigate_tree", **arguments)
    assert not refused["success"]
    assert part in refused["error"]


def test_summary_that_fails_is_an_error_response(file, server):
    server.fallback = status_reply(400, {"error": {"message": "not today"}})
    before = file.read_bytes()
    with host(file, server) as program:
        refused = program.ask("navigate_tree", targetId="e2", summarize=True)
        ends = [line for line in program.lines if line["type"] == "branch_summary_end"]
    assert not refused["success"]
    assert refused["error"].startswith("Branch summary failed: 400: not today; nothing was moved.")
    assert "compaction.model" in refused["error"]
    assert ends == [{"type": "branch_summary_end", "aborted": False, "errorMessage": refused["error"]}]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("navigate_tree", {"targetId": "e2"}),
        ("fork", {}),
        ("clone", {}),
        ("switch_session", {"sessionPath": "s.jsonl"}),
        ("new_session", {}),
        ("handoff", {}),
    ],
)
def test_refusal_while_a_turn_runs_speaks_of_commands(file, server, command, arguments):
    server.fallback = hang_reply()
    with host(file, server) as program:
        program.ask("prompt", message="hello")
        refused = program.ask(command, **arguments)
        program.ask("abort")
    assert (refused["success"], "esc" in refused["error"]) == (False, False)
    assert "use abort" in refused["error"]


def test_label_is_cleared_only_on_purpose(file, server):
    def label_of(program):
        nodes = program.ask("get_tree")["data"]["nodes"]
        return next(node["label"] for node in nodes if node["id"] == "e2")

    with host(file, server) as program:
        program.ask("set_label", entryId="e2", label="here")
        refused = program.ask("set_label", entryId="e2")
        kept = label_of(program)
        cleared = program.ask("set_label", entryId="e2", label="")
        assert label_of(program) is None
    assert (refused["success"], kept, cleared["success"]) == (False, "here", True)
    assert "label must be a string" in refused["error"]
