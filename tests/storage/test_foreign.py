import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.storage.foreign import needs_import, read_foreign
from musepi_tui.storage.glance import glance_at
from tests.support.lines import header_line, write_lines
from tests.support.shared import shared_path

BASE = {"sessionId": "c-1", "cwd": "/p", "timestamp": "2026-02-10T21:11:56.906Z"}


def claude(kind: str, **fields) -> dict:
    return {"type": kind, **BASE, **fields}


def said(role: str, content: object, **fields) -> dict:
    message = {"role": role, "content": content} | {
        key: fields.pop(key) for key in ("stop_reason",) if key in fields
    }
    return claude(role, message=message, **fields)


def codex(kind: str, **payload) -> dict:
    return {"timestamp": "2026-02-23T12:19:42.561Z", "type": kind, "payload": payload}


META = codex("session_meta", id="x-1", cwd="/q")


def item(role: str, text: str) -> dict:
    return codex("response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])


KEYS = (
    "type",
    "id",
    "sessionId",
    "message",
    "payload",
    "role",
    "content",
    "text",
    "timestamp",
    "summary",
    "cwd",
)
PROMPT = said("user", "fix the parser\nplease")


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([PROMPT], "fix the parser"),
        ([said("user", [{"type": "text", "text": "in a block"}])], "in a block"),
        ([said("user", "meta", isMeta=True), PROMPT], "fix the parser"),
        ([said("user", "<command-name>/clear</command-name>"), PROMPT], "fix the parser"),
        ([said("user", "summary of all", isCompactSummary=True), PROMPT], "fix the parser"),
        ([said("user", "agent task", isSidechain=True), PROMPT], "fix the parser"),
        ([PROMPT, {"type": "summary", "summary": "Old", "leafUuid": "u"}], "Old"),
        ([claude("ai-title", aiTitle="By AI"), {"type": "summary", "summary": "Old"}, PROMPT], "By AI"),
        ([claude("custom-title", customTitle="Mine"), claude("ai-title", aiTitle="By AI"), PROMPT], "Mine"),
        ([claude("custom-title", customTitle=7), said("user", "x\x1b[31m\x00y")], "x [31m y"),
        ([said("assistant", [])], "Untitled · 21:11"),
    ],
)
def test_claude_title_follows_the_order_of_the_page(tmp_path, lines, title):
    assert read_foreign(write_lines(tmp_path / "c.jsonl", *lines)).title == title


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (said("assistant", [], stop_reason="end_turn"), "complete"),
        (said("assistant", [], stop_reason="tool_use"), "interrupted"),
        (said("assistant", [], stop_reason="max_tokens"), "interrupted"),
        (said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "out"}]), "interrupted"),
        (said("user", "more"), "pending"),
        (claude("progress"), "pending"),
    ],
)
def test_claude_status_is_that_of_the_last_message(tmp_path, last, status):
    assert read_foreign(write_lines(tmp_path / "c.jsonl", PROMPT, last)).status == status


def test_claude_row_says_what_is_known(tmp_path):
    row = read_foreign(write_lines(tmp_path / "c.jsonl", PROMPT, said("assistant", [])))
    assert (row.id, row.cwd, row.created, row.messages) == ("c-1", "/p", BASE["timestamp"], 2)
    assert (row.tool, row.is_own, row.messages_exact, needs_import(row)) == ("claude", False, True, True)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([META, item("user", "hello")], ("x-1", "/q", "hello", 1, "unknown")),
        (
            [
                META,
                item("user", "<environment_context>x"),
                codex("event_msg", type="user_message", message="hi"),
            ],
            None,
        ),
        (
            [
                META,
                item("user", "# AGENTS.md instructions"),
                item("user", "do it"),
                codex("event_msg", type="user_message", message="do it"),
                item("assistant", "done"),
                codex("event_msg", type="task_complete"),
            ],
            ("x-1", "/q", "do it", 2, "complete"),
        ),
        (
            [META, item("user", "do it"), codex("event_msg", type="turn_aborted")],
            ("x-1", "/q", "do it", 1, "aborted"),
        ),
        (
            [META, item("user", "do it"), codex("response_item", type="function_call")],
            ("x-1", "/q", "do it", 1, "interrupted"),
        ),
        ([META | {"payload": {"id": 1, "cwd": []}}, item("user", "x")], ("r", "", "x", 1, "unknown")),
    ],
)
def test_codex_row_says_what_is_known(tmp_path, lines, expected):
    file = write_lines(tmp_path / "r.jsonl", *lines)
    if expected is None:
        with pytest.raises(NotASessionFileError):
            read_foreign(file)
        return
    row = read_foreign(file)
    assert (row.id, row.cwd, row.title, row.messages, row.status) == expected
    assert row.tool == "codex"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"junk\n", b"\x00\xff\n"],
        [header_line()],
        [{"type": "summary", "summary": "no talk", "leafUuid": "u"}],
        [{"type": "file-history-snapshot"}],
        [said("user", "agent", isSidechain=True)],
        [META],
        [{"type": ["user"], "sessionId": "x", "message": [], "payload": 3}],
    ],
    ids=range(8),
)
def test_file_without_a_conversation_is_no_session(tmp_path, lines):
    with pytest.raises(NotASessionFileError):
        read_foreign(write_lines(tmp_path / "x.jsonl", *lines))


def test_folder_is_refused(tmp_path):
    with pytest.raises(SessionError):
        read_foreign(tmp_path)


def test_long_file_is_read_at_its_ends(tmp_path):
    middle = [claude("progress", data="z" * 1000) for _ in range(200)]
    last = said("assistant", [], stop_reason="end_turn")
    file = write_lines(
        tmp_path / "c.jsonl", PROMPT, *middle, claude("custom-title", customTitle="Late"), last
    )
    row = read_foreign(file)
    assert (row.title, row.messages, row.messages_exact, row.status) == ("Late", 2, False, "complete")


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("claude-code-short.jsonl", "claude"),
        ("claude-code-tools.jsonl", "claude"),
        ("claude-code-subagent.jsonl", "claude"),
        ("claude-code-compacted.jsonl", "claude"),
        ("codex-rollout-short.jsonl", "codex"),
        ("codex-rollout-compacted.jsonl", "codex"),
    ],
)
def test_real_files_are_recognised(name, tool):
    file = shared_path("fixtures", "sessions", name)
    row = read_foreign(file)
    first = next(json.loads(line) for line in file.read_text().splitlines() if b"cwd" in line.encode())
    assert row.tool == tool
    assert row.cwd == (first.get("cwd") or first["payload"]["cwd"])
    assert row.messages > 0
    assert row.is_named


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["user", "message", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8), max_size=6), st.booleans())
def test_any_shape_gives_a_row_or_a_reason(tmp_path_factory, records, has_header):
    lines = ([header_line()] if has_header else [PROMPT, META]) + records
    file = write_lines(tmp_path_factory.mktemp("f") / "x.jsonl", *lines)
    for read in (read_foreign, glance_at):
        with contextlib.suppress(SessionError):
            assert isinstance(read(file).title, str)


def test_path_is_that_of_the_file(tmp_path: Path):
    assert read_foreign(write_lines(tmp_path / "c.jsonl", PROMPT)).path == tmp_path / "c.jsonl"
