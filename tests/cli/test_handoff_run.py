"""Print mode with the strategy ``handoff``, as a child process against a scripted server."""

import json
from pathlib import Path

import pytest

from musepi_tui.session.codec import encode_header
from musepi_tui.session.entries import SessionHeader
from tests.support.lines import write_lines
from tests.support.program import model_flags, run_musepi
from tests.support.server import ModelServer, openai_reply

DOCUMENT = "## Goal\nGo on with the second."
SETTINGS = ("compaction.strategy=handoff", "compaction.threshold=6000", "compaction.autoContinue=false")
FULL = {"prompt_tokens": 6_900, "completion_tokens": 5}


def answer(request):
    said = json.dumps(request.body["messages"][-1])
    if "Write the handoff document" in said:
        return openai_reply(DOCUMENT)
    return openai_reply("the first", usage=FULL) if "one" in said else openai_reply("the second")


@pytest.fixture
def server():
    with ModelServer() as running:
        running.choose = answer
        yield running


@pytest.fixture
def file(tmp_path):
    header = encode_header(SessionHeader("id", "2026-01-01T00:00:00.000Z", str(tmp_path)))
    return write_lines(tmp_path / "s.jsonl", header)


def run(server, file, *arguments):
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    flags = ("--session", str(file), *model_flags(server.base_url), *settings)
    return run_musepi("-p", *flags, *arguments, cwd=file.parent)


def test_session_that_is_gone_on_with_is_named_on_stderr(server, file):
    ended = run(server, file, "one", "two")
    told = [line for line in ended.stderr.splitlines() if line.startswith("went on in a new session: ")]
    (new,) = (line.partition(": ")[2] for line in told)
    assert (ended.returncode, ended.stdout) == (0, "the second\n")
    assert "the second" not in file.read_text(encoding="utf-8")
    assert "the second" in Path(new).read_text(encoding="utf-8")


def test_session_that_stays_is_not_named(server, file):
    ended = run(server, file, "two")
    assert (ended.returncode, ended.stderr) == (0, "")
