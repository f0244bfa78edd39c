"""``musepi compact`` without ``--dry-run``, as a child process against a scripted server."""

import json
import os

import pytest

from musepi_tui.session.codec import encode_entry, encode_header
from musepi_tui.session.entries import SessionHeader
from musepi_tui.storage.lock import WriterLock
from tests.support.lines import write_lines
from tests.support.program import model_flags, run_musepi
from tests.support.server import ModelServer, openai_reply, status_reply
from tests.support.sketch import sketch

L = "u100 a200 t4000 a300 u50 a600 t3000 a100 u50 a900"
KEEP = ("--set", "compaction.keepRecentTokens=1000", "--set", "tokens.estimator=chars4")
WINDOW = ("--set", "compaction.threshold=7000")
"""A threshold of one's own: an automatic one would shrink the kept tail for the small window."""
SUMMARY = "## Goal\nThe summary of the scripted server."


@pytest.fixture
def file(tmp_path):
    header = encode_header(SessionHeader("id", "2026-01-01T00:00:00.000Z", str(tmp_path)))
    return write_lines(tmp_path / "s.jsonl", header, *(encode_entry(entry) for entry in sketch(L)))


def compact(file, server, *arguments, fresh=False):
    flags = model_flags(server.base_url)
    return run_musepi("compact", str(file), *flags, *KEEP, *WINDOW, *arguments, cwd=file.parent, fresh=fresh)


def entries_of(file):
    return [json.loads(line) for line in file.read_bytes().splitlines()[1:]]


def test_a_closed_session_is_compacted_as_the_dry_run_said(file):
    with ModelServer() as server:
        server.fallback = openai_reply(SUMMARY, usage={"prompt_tokens": 5_000, "completion_tokens": 20})
        foreseen = json.loads(compact(file, server, "--dry-run", "--json").stdout)
        assert server.requests == []
        done = compact(file, server, "--json", "--focus", "the API work", fresh=True)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    stored = next(entry for entry in entries_of(file) if entry["type"] == "compaction")
    assert found["ok"] is True
    assert (found["entryId"], found["firstKeptEntryId"]) == (stored["id"], foreseen["firstKeptEntryId"])
    assert (found["action"], found["method"], found["aborted"]) == ("summary", "summary", False)
    assert found["warning"] is found["errorMessage"] is None
    assert found["tokensBefore"] == foreseen["tokensBefore"]
    assert found["tokensAfter"] < 7_000
    assert found["durationMs"] >= 0
    prompts = [request.body["messages"][-1]["content"] for request in server.requests]
    assert any(foreseen["conversation"] in prompt for prompt in prompts)
    assert all(prompt.endswith("Additional focus: the API work") for prompt in prompts)
    assert stored["parentId"] == "e10"


def test_people_get_the_success_line(file):
    with ModelServer() as server:
        server.fallback = openai_reply(SUMMARY)
        done = compact(file, server)
    assert done.returncode == 0
    assert done.stdout.startswith("Compacted 110 → ")


def test_it_goes_on_from_another_leaf(file):
    with ModelServer() as server:
        server.fallback = openai_reply(SUMMARY)
        foreseen = json.loads(compact(file, server, "--leaf", "e8", "--dry-run", "--json").stdout)
        done = json.loads(compact(file, server, "--leaf", "e8", "--json").stdout)
    assert done["firstKeptEntryId"] == foreseen["firstKeptEntryId"]
    parents = {entry["id"]: entry["parentId"] for entry in entries_of(file)}
    found, ancestors = done["entryId"], []
    while found is not None:
        ancestors.append(found)
        found = parents[found]
    assert "e8" in ancestors
    assert "e9" not in ancestors


def test_a_shake_asks_no_model_and_stores_no_compaction(file):
    with ModelServer() as server:
        done = compact(file, server, "--strategy", "shake", "--json")
        assert server.requests == []
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["action"]) == (0, True, "shake")
    assert found["entryId"] is found["firstKeptEntryId"] is None
    assert found["tokensAfter"] < 7_000
    kinds = {entry["type"] for entry in entries_of(file)}
    assert "context_edit" in kinds
    assert "compaction" not in kinds


def test_a_second_shake_has_nothing_to_do(file):
    with ModelServer() as server:
        compact(file, server, "--strategy", "shake")
        before = file.read_bytes()
        done = compact(file, server, "--strategy", "shake")
    assert (done.returncode, done.stderr) == (1, "Nothing to shake\n")
    assert file.read_bytes() == before


def test_a_second_compaction_is_refused(file):
    with ModelServer() as server:
        server.fallback = openai_reply(SUMMARY)
        compact(file, server)
        before = file.read_bytes()
        done = compact(file, server, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["errorMessage"]) == (1, False, "Already compacted")
    assert found["entryId"] is found["tokensAfter"] is None
    assert file.read_bytes() == before


def test_a_failed_request_changes_nothing_and_exits_with_1(file):
    before = file.read_bytes()
    with ModelServer() as server:
        server.fallback = status_reply(400, {"error": {"message": "no such thing"}})
        done = compact(file, server, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"]) == (1, False)
    assert "no such thing" in found["errorMessage"]
    assert file.read_bytes() == before


def test_a_session_somebody_writes_is_refused_with_the_pid(file):
    lock = WriterLock(file)
    lock.acquire()
    before = file.read_bytes()
    try:
        with ModelServer() as server:
            done = compact(file, server)
    finally:
        lock.release()
    assert (done.returncode, done.stdout) == (1, "")
    assert str(os.getpid()) in done.stderr
    assert file.read_bytes() == before


def test_a_missing_file_is_not_made(tmp_path):
    done = run_musepi("compact", "gone.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert "gone.jsonl" in done.stderr
    assert not (tmp_path / "gone.jsonl").exists()


def test_nothing_is_compacted_without_a_model(file):
    done = run_musepi("compact", str(file), *KEEP, cwd=file.parent)
    assert done.returncode == 1
    assert "Compaction needs a model with credentials" in done.stderr
