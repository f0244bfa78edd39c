import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from musepi_tui.cli.sessions import main
from tests.support.lines import answer_record, chain, header_line, record, user_record, write_lines
from tests.support.shared import shared_path

ENVIRON = {"MUSEPI_TOKENIZER": "chars4"}

BRANCHED = (
    header_line(id="ex-a"),
    record("model_change", "m1", None, 1, provider="anthropic", modelId="claude-sonnet-4-5"),
    user_record("u1", "m1", "one", 2),
    answer_record("a1", "u1", "two", 3),
    record("label", "l1", "a1", 4, targetId="a1", label="base"),
    user_record("u2", "l1", "try A", 5),
    record("branch_summary", "b1", "a1", 6, fromId="a1", summary="A failed"),
    user_record("u3", "b1", "try B", 7),
    record("compaction", "c1", "u3", 8, summary="S" * 8, firstKeptEntryId="u3", tokensBefore=9000),
    user_record("u4", "c1", "next", 9),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "s.jsonl", *BRANCHED)


@pytest.fixture
def run(capsys):
    def call(*arguments: object, environ=ENVIRON):
        code = main([str(argument) for argument in arguments], environ)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def json_of(result):
    code, out, err = result
    assert (code, err) == (0, "")
    assert re.search("[^\x20-\x7e\n]", out) is None
    return json.loads(out)


def test_inspect_tells_the_facts(run, file):
    assert json_of(run("inspect", file, "--json")) == {
        "version": 3,
        "id": "ex-a",
        "cwd": "/p",
        "name": None,
        "entries": 9,
        "byType": {"branch_summary": 1, "compaction": 1, "label": 1, "message": 5, "model_change": 1},
        "roots": 1,
        "leaves": 2,
        "orphans": 0,
        "longestPath": 7,
        "leafId": "u4",
        "issues": [],
        "compactions": [{"id": "c1", "firstKeptEntryId": "u3", "tokensBefore": 9000, "usable": True}],
    }


def test_inspect_names_damage_by_physical_line(run, tmp_path):
    lines = (header_line(), *chain("a"), b"\n", b"junk\r\n", user_record("x", "gone", "o"), b"{")
    found = json_of(run("inspect", write_lines(tmp_path / "s.jsonl", *lines), "--json"))
    assert [(issue["line"], issue["kind"]) for issue in found["issues"]] == [
        (4, "bad_json"),
        (5, "orphan_relinked"),
        (6, "torn_tail"),
    ]
    data = (tmp_path / "s.jsonl").read_bytes()
    assert all(issue["detail"] and data[issue["offset"] - 1] == ord("\n") for issue in found["issues"])
    assert (found["orphans"], found["roots"]) == (1, 1)


def test_inspect_prints_for_people_too(run, file):
    code, out, _ = run("inspect", file)
    assert code == 0
    assert "longestPath: 7" in out
    assert "id c1" in out


def test_context_is_what_the_model_is_sent(run, file):
    found = json_of(run("context", file, "--json"))
    assert [(m["role"], m["entryId"]) for m in found["messages"]] == [
        ("user", "c1"),
        ("user", "u3"),
        ("user", "u4"),
    ]
    assert "<summary>\nSSSSSSSS\n</summary>" in found["messages"][0]["text"]
    assert found["messages"][1] == {
        "role": "user",
        "entryId": "u3",
        "text": "try B",
        "toolCalls": [],
        "toolCallId": None,
        "images": [],
    }
    assert (found["tokens"], found["effectiveCompactionId"], found["warnings"]) == (2 + 2 + 1, "c1", [])


def test_context_counts_as_the_setting_says(run, file, tmp_path):
    (tmp_path / "settings.json").write_text('{"tokens": {"estimator": "chars4"}}')
    home = {"MUSEPI_HOME": str(tmp_path)}
    assert json_of(run("context", file, "--json", environ=home))["tokens"] == 5
    (tmp_path / "settings.json").write_text("{")
    code, _, err = run("context", file, environ=home | ENVIRON)
    assert (code, err.count("settings.json: It is not valid JSON")) == (0, 1)
    (tmp_path / "settings.json").unlink()
    _, _, err = run("context", file, environ=home | {"MUSEPI_TOKENIZER": "words"})
    assert err.startswith('MUSEPI_TOKENIZER: tokens.estimator: "words" cannot be used')
    assert "needs your own" in run("context", file, environ=home | {"MUSEPI_TOKENIZER": "cl100k"})[2]


@pytest.mark.parametrize("command", ["inspect", "context", "transcript", "tree", "check"])
def test_file_that_is_no_session_is_refused_with_what_makes_one_of_it(run, tmp_path, command):
    torn = write_lines(tmp_path / "torn.jsonl", b'{"type":"session"\n', *chain("a"))
    code, out, err = run(command, torn)
    assert (code, out) == (1, "")
    assert err.startswith(f"{torn}: line 1: first record is not a session header (")
    assert err.endswith(f"; try: musepi sessions import --salvage {torn}\n")
    other = {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "hi"}}
    assert (
        f"; try: musepi sessions import {tmp_path}"
        in run(command, write_lines(tmp_path / "claude.jsonl", other))[2]
    )


def test_context_of_another_leaf(run, file):
    found = json_of(run("context", file, "--leaf", "u3", "--json"))
    assert [(m["role"], m["entryId"]) for m in found["messages"]] == [
        ("user", "u1"),
        ("assistant", "a1"),
        ("developer", "b1"),
        ("user", "u3"),
    ]
    assert found["effectiveCompactionId"] is None


def test_context_shows_calls_results_and_images(run, tmp_path):
    calls = [{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]
    result = {
        "role": "toolResult",
        "toolCallId": "c",
        "toolName": "read",
        "content": [
            {"type": "text", "text": "x"},
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        ],
    }
    lines = (answer_record("a", None, "", content=calls), record("message", "t", "a", message=result))
    found = json_of(run("context", write_lines(tmp_path / "s.jsonl", header_line(), *lines), "--json"))
    assert found["messages"][0]["toolCalls"] == [{"id": "c", "name": "read"}]
    assert (found["messages"][1]["role"], found["messages"][1]["toolCallId"]) == ("toolResult", "c")
    assert found["messages"][1]["images"] == [{"mimeType": "image/png", "bytes": 5}]


def test_context_warns_of_a_lost_boundary(run, tmp_path):
    lines = (
        *chain("a"),
        record("compaction", "c", "e1", summary="S", firstKeptEntryId="gone", tokensBefore=1),
    )
    path = write_lines(tmp_path / "s.jsonl", header_line(), *lines)
    assert len(json_of(run("context", path, "--json"))["warnings"]) == 1
    assert "gone" in run("context", path)[1]


def test_unknown_leaf_is_a_usage_error(run, file):
    code, out, err = run("context", file, "--leaf", "zz")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "--leaf" in err
    assert "zz" in err


def test_transcript_rows(run, file):
    assert json_of(run("transcript", file, "--json")) == [
        {"kind": "user", "entryId": "u1", "text": "one"},
        {"kind": "assistant", "entryId": "a1", "text": "two"},
        {"kind": "branchSummary", "entryId": "b1", "text": "A failed"},
        {"kind": "user", "entryId": "u3", "text": "try B"},
        {"kind": "compaction", "entryId": "c1", "text": "SSSSSSSS"},
        {"kind": "user", "entryId": "u4", "text": "next"},
    ]
    collapsed = json_of(run("transcript", file, "--collapse", "--json"))
    assert [row["entryId"] for row in collapsed] == ["u3", "c1", "u4"]


def test_transcript_text_has_each_divider_alone_on_its_line(run, file):
    code, out, _ = run("transcript", file)
    assert code == 0
    assert out.splitlines().count("── 📷 compacted · ctrl+o ──") == 1
    assert out.splitlines().count("── ⎇ branch · ctrl+o ──") == 1
    assert "> try B" in out.splitlines()


def test_tree_lists_every_entry_depth_first(run, file):
    found = json_of(run("tree", file, "--json"))
    assert found["leafId"] == "u4"
    assert [(node["id"], node["depth"]) for node in found["nodes"]] == [
        ("m1", 0),
        ("u1", 1),
        ("a1", 2),
        ("l1", 3),
        ("u2", 4),
        ("b1", 3),
        ("u3", 4),
        ("c1", 5),
        ("u4", 6),
    ]
    assert found["nodes"][2] == {
        "id": "a1",
        "parentId": "u1",
        "type": "message",
        "role": "assistant",
        "text": "two",
        "label": "base",
        "onPath": True,
        "isLeaf": False,
        "depth": 2,
    }
    assert [node["id"] for node in found["nodes"] if node["isLeaf"]] == ["u2", "u4"]
    assert [node["id"] for node in found["nodes"] if not node["onPath"]] == ["l1", "u2"]


def test_tree_is_drawn_with_the_id_of_each_row_and_the_active_path(run, file):
    _, out, _ = run("tree", file)
    assert out.splitlines() == [
        "u1  • user: one",
        "a1  • [base] assistant: two",
        "b1  ├⊟ • [branch summary]: A failed",
        "u3  │     • user: try B",
        "c1  │     • [compaction: 9.0k tokens]",
        "u4  │     • user: next ← here",
        "u2  └─ user: try A",
    ]


def test_tree_shows_bookkeeping_when_all_is_wanted_in_signs_the_terminal_has(run, file):
    _, out, _ = run("tree", file, "--all", environ={**ENVIRON, "LANG": "C"})
    assert out.splitlines()[-2:] == ["l1  `- [label: base]", "u2        user: try A"]
    assert out.splitlines()[0] == "m1  * [model: claude-sonnet-4-5]"
    assert out.isascii()


def test_tree_of_a_very_deep_session_is_cut_at_the_left(run, tmp_path):
    parents = [None, *(f"e{index // 2 * 2:03}" for index in range(199))]
    lines = [user_record(f"e{index:03}", parent, "x", 1) for index, parent in enumerate(parents)]
    _, out, _ = run("tree", write_lines(tmp_path / "deep.jsonl", header_line(), *lines))
    assert 240 < max(map(len, out.splitlines())) < 280
    assert "…" in out


def test_sound_file_passes_the_check(run, file):
    assert run("check", file) == (0, "ok: 9 entries keep the rules\n", "")


def test_torn_tail_is_a_note_unless_strict(run, tmp_path):
    path = write_lines(tmp_path / "s.jsonl", header_line(), *chain("a"), b'{"type')
    code, out, _ = run("check", path)
    assert code == 0
    assert out.startswith("note: line 3: torn_tail")
    assert run("check", path, "--strict")[0] == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((user_record("x", "gone", "o"),), "line 3: orphan_relinked"),
        (
            (record("message", "t", "e1", message={"role": "toolResult", "toolCallId": "c"}),),
            "line 3: entry t: a tool",
        ),
        (
            (record("compaction", "c", "e1", summary="", firstKeptEntryId="e1"),),
            "line 3: entry c: a compaction has",
        ),
    ],
)
def test_each_breach_is_printed_with_its_line(run, tmp_path, lines, expected):
    code, out, _ = run("check", write_lines(tmp_path / "s.jsonl", header_line(), *chain("a"), *lines))
    assert code == 1
    assert out.startswith(expected)


@pytest.mark.parametrize("command", ["inspect", "context", "transcript", "tree", "check"])
def test_broken_file_is_one_line_and_exit_one(run, tmp_path, command):
    path = tmp_path / "bad\x1b[31m.jsonl"
    path.write_bytes(b"junk\n")
    code, out, err = run(command, path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "line 1" in err
    assert "\x1b" not in err
    assert run(command, tmp_path / "missing.jsonl")[0] == 1


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["inspect"], ["inspect", "f", "--what"], ["list", "extra"]], ids=" ".join
)
def test_unusable_arguments_are_one_line_and_exit_two(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_damage_is_told_on_stderr(run, tmp_path):
    path = write_lines(tmp_path / "s.jsonl", header_line(), *chain("a"), b"junk\n", *chain("b", prefix="f"))
    code, out, err = run("transcript", path, "--json")
    assert (code, len(json.loads(out)), err.count("\n")) == (0, 1, 1)
    assert "line 3" in err


@pytest.mark.parametrize("command", ["transcript", "tree", "context"])
def test_nothing_in_a_file_reaches_the_terminal_raw(run, tmp_path, command):
    evil = "a\x1b]0;title\x07\x1b[2J\u202eb\x9b31mc"
    path = write_lines(tmp_path / "s.jsonl", header_line(), *chain(evil))
    _, out, _ = run(command, path)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out) is None


def test_list_shows_the_sessions_of_this_folder(run, tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    stored = tmp_path / "stored"
    stored.mkdir()
    here = write_lines(
        stored / "a.jsonl", header_line(id="here", cwd=str(tmp_path / "work")), *chain("my prompt")
    )
    write_lines(stored / "b.jsonl", header_line(id="there", cwd="/elsewhere"), *chain("x"))
    environ = {"MUSEPI_HOME": str(tmp_path / "home"), "MUSEPI_SESSION_DIR": str(stored)}
    found = json_of(run("list", "--json", environ=environ))
    assert found == [
        {
            "path": str(here),
            "id": "here",
            "cwd": str(tmp_path / "work"),
            "title": "my prompt",
            "created": "2026-01-01T00:00:00.000Z",
            "modified": found[0]["modified"],
            "messages": 1,
            "size": here.stat().st_size,
            "tool": "musepi",
        }
    ]
    assert {row["id"] for row in json_of(run("list", "--all", "--json", environ=environ))} == {
        "here",
        "there",
    }
    assert "my prompt" in run("list", "--session-dir", stored, environ=environ)[1]
    assert run("list", environ={"MUSEPI_HOME": str(tmp_path / "home")})[1] == "No sessions here.\n"


def test_list_honours_the_folder_of_the_settings(run, tmp_path):
    stored = tmp_path / "stored"
    stored.mkdir()
    write_lines(stored / "a.jsonl", header_line(), *chain("x"))
    (tmp_path / "settings.json").write_text(json.dumps({"session": {"dir": str(stored)}}))
    found = json_of(run("list", "--all", "--json", environ={"MUSEPI_HOME": str(tmp_path)}))
    assert [row["id"] for row in found] == ["s-1"]


@pytest.mark.parametrize("command", ["inspect", "context", "transcript", "tree", "check"])
def test_files_are_only_read(run, file, command):
    file.chmod(0o400)
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    assert run(command, file)[0] == 0
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert [item.name for item in file.parent.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize("command", ["inspect", "context", "transcript", "tree", "check", "list"])
def test_command_loads_nothing_heavy(file, command):
    arguments = ["list"] if command == "list" else [command, str(file)]
    code = (
        "import sys; from musepi_tui.cli.main import main; "
        f"code = main(['sessions', *{arguments!r}]); "
        "heavy = {'textual', 'rich', 'httpx', 'tiktoken', 'pydantic', 'asyncio'} & set(sys.modules); "
        "sys.exit(code or ','.join(sorted(heavy)) or 0)"
    )
    environ = {**os.environ, **ENVIRON, "MUSEPI_HOME": str(file.parent)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_inspect_agrees_with_the_table_of_real_files(run):
    from tests.storage.test_fixtures import FILES, RELINKED, counted, facts

    for name in FILES:
        fact, after = facts()[name], RELINKED.get(name, {})
        code, out, _ = run("inspect", shared_path("fixtures", "sessions", name), "--json")
        found = json.loads(out)
        assert code == 0
        assert found["entries"] == int(fact["entries"])
        assert found["byType"] == counted(fact["by type"])
        assert found["roots"] == after.get("roots", int(fact["roots (null)"]))
        assert found["orphans"] == int(fact["orphans"])
        assert found["leaves"] == after.get("leaves", int(fact["leaves"]))
        assert found["longestPath"] == after.get("longest path", int(fact["longest path"]))
        before = [item["tokensBefore"] for item in found["compactions"]]
        assert ", ".join(map(str, before)) == fact["tokensBefore of compactions"].replace("–", "")
        assert all(item["usable"] for item in found["compactions"])
