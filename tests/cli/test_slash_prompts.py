"""Slash commands without a screen: what is carried out, what is refused, what is sent as it is."""

import json

import pytest

from musepi_tui.base.errors import UsageError
from musepi_tui.cli.headless import intents_of
from musepi_tui.runtime.intents import Compact, SubmitPrompt
from tests.support.program import model_flags, run_musepi
from tests.support.server import ModelServer, openai_reply


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("/compact", Compact()),
        (" /compact\n", Compact()),
        ("/compact summary of the API work", Compact("summary", "of the API work")),
        ("/compact\nthe parser", Compact(None, "the parser")),
        ('/compact "undo the parser"', Compact(None, "undo the parser")),
        ("/compact remote", Compact("remote")),
        ("/compact shake", Compact("shake")),
        ("//shake it", SubmitPrompt("/shake it")),
        ("//compact", SubmitPrompt("/compact")),
        ("/usr/bin/env is what?", SubmitPrompt("/usr/bin/env is what?")),
        ("/etc is what?", SubmitPrompt("/etc is what?")),
        ("what does /shake do?", SubmitPrompt("what does /shake do?")),
        ("some data\n\n/shake", SubmitPrompt("some data\n\n/shake")),
        ("  indented", SubmitPrompt("  indented")),
    ],
)
def test_what_a_prompt_asks_for(prompt, intent):
    assert intents_of((prompt,)) == [intent]


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        ("/shake", ["/shake", "/compact", "//shake"]),
        ("/context", ["/context", "//context"]),
        ("/handoff the parser", ["/handoff", "//handoff"]),
        ("/quit", ["/quit", "//quit"]),
        ("/undo 2", ["/undo", "//undo"]),
        ("/compact snapcompact foo", ["snapcompact", '/compact "snapcompact foo"']),
        ("/compact handoff", ["/handoff", '/compact "handoff"']),
        ("/compact --preview", ["--dry-run"]),
        ("/compact undo", ["no /compact undo"]),
        ("/compact shake the tree", ["shake takes no focus text"]),
    ],
)
def test_a_command_that_needs_the_screen_is_refused_before_anything_is_asked(prompt, parts):
    with pytest.raises(UsageError) as refused:
        intents_of(("hello", prompt))
    text = str(refused.value)
    assert text.startswith("musepi: ")
    assert all(part in text for part in parts)
    assert "\n" not in text


@pytest.mark.parametrize("flags", [(), ("--mode", "json")], ids=["print", "json"])
def test_a_command_is_no_prompt_and_costs_nothing(flags, tmp_path):
    with ModelServer(openai_reply(text="paid")) as server:
        run = run_musepi("-p", *flags, "hello", "/shake", *model_flags(server.base_url), cwd=tmp_path)
        assert server.requests == []
    assert (run.returncode, run.stdout) == (2, "")
    assert len(run.stderr.splitlines()) == 1
    assert "//shake" in run.stderr


def test_two_slashes_send_one(tmp_path):
    with ModelServer(openai_reply(text="ok")) as server:
        run = run_musepi("-p", "//shake it", *model_flags(server.base_url), cwd=tmp_path)
        assert json.dumps(server.requests[0].body["messages"][-1]).count("/shake it") == 1
        assert "//" not in server.requests[0].body["messages"][-1]["content"]
    assert (run.returncode, run.stdout) == (0, "ok\n")


@pytest.mark.parametrize("flags", [(), ("--mode", "json")], ids=["print", "json"])
def test_nothing_to_shake_is_told(flags, tmp_path):
    session = tmp_path / "s.jsonl"
    with ModelServer(openai_reply(text="ok")) as server:
        common = [*model_flags(server.base_url), "--session", str(session)]
        run_musepi("-p", "hello", *common, cwd=tmp_path)
        run = run_musepi("-p", *flags, "/compact shake", *common, cwd=tmp_path)
    assert (run.returncode, run.stderr) == (1, "Nothing to shake\n")
    assert flags or run.stdout == ""


def test_a_remote_summary_without_an_endpoint_is_a_local_one_with_a_warning(tmp_path):
    session = tmp_path / "s.jsonl"
    answers = [openai_reply(text="A long sentence about files and tests. " * 200)] * 2
    with ModelServer(*answers, *[openai_reply(text="## Goal\nShip it.")] * 2) as server:
        flags = [*model_flags(server.base_url), "--session", str(session)]
        flags += ["--set", "compaction.keepRecentTokens=500", "--set", "compaction.enabled=false"]
        flags += ["--set", "tokens.estimator=chars4"]
        run_musepi("-p", "one", "two", *flags, cwd=tmp_path)
        run = run_musepi("-p", "/compact remote the tests", *flags, cwd=tmp_path)
    assert (run.returncode, run.stdout.startswith("Compacted ")) == (0, True)
    assert "compaction.remoteEndpoint is not set" in run.stderr
    assert "Additional focus: the tests" in json.dumps([request.body for request in server.requests[2:]])
