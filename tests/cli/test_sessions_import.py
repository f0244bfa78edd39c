import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from musepi_tui.cli.sessions import main
from tests.storage.test_blob_garbage import blob, mention
from tests.support.imports import answered, said, text
from tests.support.lines import chain, header_line, write_lines

TOOL_FOLDERS = {"pi": ".pi/agent/sessions", "claude": ".claude/projects"}


@pytest.fixture
def environ(tmp_path):
    return {"MUSEPI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "user")}


@pytest.fixture
def run(capsys, environ):
    def call(*arguments):
        code = main([str(argument) for argument in arguments], environ)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "s.jsonl", said("u", None, "one"), answered("a", "u", text("two"), "m"))


def test_path_goes_to_stdout_and_the_rest_to_stderr(run, file, tmp_path):
    code, out, err = run("import", file)
    assert (code, out.count("\n")) == (0, 1)
    assert Path(out.strip()).is_relative_to(tmp_path / "home" / "sessions")
    assert err == f"{file}: carried over 1 assistant, 1 user\n"
    assert run("check", out.strip())[0] == 0


def test_second_import_is_told(run, file):
    first = run("import", file)[1].strip()
    code, out, err = run("import", file)
    assert (code, out.strip() != first) == (0, True)
    assert err.endswith(f"imported before as {first}\n")


def test_json_tells_everything(run, file, tmp_path):
    bad = write_lines(tmp_path / "bad.jsonl", b"junk\n")
    code, out, err = run("import", file, bad, "--json", "--session-dir", tmp_path / "flat")
    (row,) = json.loads(out)
    assert (code, row["source"], row["counts"], row["skipped"]) == (
        1,
        str(file),
        {"user": 1, "assistant": 1},
        {},
    )
    assert (row["earlier"], row["warnings"]) == (None, [])
    assert Path(row["path"]).parent == tmp_path / "flat"
    assert row["id"] in row["path"]
    assert "first record is not a session header" in err


def test_salvage(run, tmp_path):
    torn = write_lines(tmp_path / "torn.jsonl", b'{"type":"session","cwd":"/p"\n', *chain("a"))
    assert run("import", torn)[0] == 1
    code, out, err = run("import", "--salvage", torn)
    assert (code, err) == (0, f"{torn}: carried over 1 user; left out 1 unreadable line\n")
    assert run("check", out.strip())[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [[], ["--from", "pi", "f"], ["--from", "nobody"], ["--all", "f"], ["--all"]],
    ids=["nothing", "both", "unknown tool", "all with a file", "all alone"],
)
def test_unusable_arguments_are_one_line_and_exit_two(run, arguments):
    code, out, err = run("import", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("tool", TOOL_FOLDERS)
def test_sessions_of_a_tool_are_found_by_folder(run, tmp_path, monkeypatch, tool):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name, cwd in (("mine", str(here)), ("other", "/elsewhere")):
        folder = tmp_path / "user" / TOOL_FOLDERS[tool] / cwd.replace("/", "-")
        folder.mkdir(parents=True)
        if tool == "pi":
            write_lines(folder / f"{name}.jsonl", header_line(cwd=cwd, id=name), *chain("a"))
        else:
            write_lines(folder / f"{name}.jsonl", said("u", None, "one", cwd=cwd))
    code, out, _ = run("import", "--from", tool)
    assert (code, out.count("\n")) == (0, 1)
    code, out, err = run("import", "--from", tool, "--all")
    assert (code, out.count("\n"), err.count("imported before")) == (0, 2, 1)
    assert run("import", "--from", "codex")[0] == 1


def test_pipe_is_refused_at_once(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    code, out, err = run("import", tmp_path / "pipe")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert time.monotonic() - started < 0.5


def test_what_a_file_says_does_not_steer_the_terminal(run, tmp_path):
    evil = {"type": "\x1b]0;title\x07\x1b[2Jkind", "sessionId": "c-1"}
    _, _, err = run("import", write_lines(tmp_path / "s\x1b[31m.jsonl", said("u", None, "one"), evil))
    assert "\x1b" not in err
    assert "\x07" not in err


def test_gc_deletes_what_nobody_mentions(run, tmp_path):
    store = tmp_path / "home" / "blobs"
    store.parent.mkdir()
    used, unused = blob(store, b"used", ms=0), blob(store, b"unused", ms=0)
    mention(tmp_path / "home" / "sessions" / "--p--" / "s.jsonl", used)
    assert run("gc", "--dry-run") == (0, f"{unused}\n", "1 blob would be deleted\n")
    assert unused.exists()
    assert run("gc") == (0, f"{unused}\n", "1 blob deleted\n")
    assert (used.exists(), unused.exists()) == (True, False)
    assert run("gc") == (0, "", "0 blobs deleted\n")


def test_gc_minds_sessions_of_tools_that_are_continued_in_place(run, tmp_path):
    (tmp_path / "home").mkdir()
    used = blob(tmp_path / "home" / "blobs", b"used", ms=0)
    mention(tmp_path / "user" / ".pi" / "agent" / "sessions" / "--p--" / "s.jsonl", used)
    assert run("gc")[1] == ""
    assert used.exists()


@pytest.mark.parametrize("command", ["import", "gc"])
def test_command_loads_nothing_heavy(file, environ, command):
    arguments = [command, str(file)] if command == "import" else [command]
    code = (
        "import sys; from musepi_tui.cli.main import main; "
        f"code = main(['sessions', *{arguments!r}]); "
        "heavy = {'textual', 'rich', 'httpx', 'tiktoken', 'pydantic', 'asyncio'} & set(sys.modules); "
        "sys.exit(code or ','.join(sorted(heavy)) or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
