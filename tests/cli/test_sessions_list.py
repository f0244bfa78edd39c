import json
import os
import re
from pathlib import Path

import pytest

from musepi_tui.cli.sessions import main
from musepi_tui.storage.list_cache import FILE_NAME
from tests.support.lines import SLOT_LINE, chain, header_line, write_lines


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def run(capsys, home):
    def call(*arguments: str, **environ: str):
        places = {"HOME": str(home), "MUSEPI_HOME": str(home / "musepi")}
        code = main(["list", *arguments], places | environ)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def put(home: Path, root: str, session_id: str, *lines: dict, cwd: str | None = None) -> Path:
    folder = home / root / "--any--"
    folder.mkdir(parents=True, exist_ok=True)
    content = (
        *lines,
        header_line(id=session_id, cwd=cwd or str(home / "work")),
        *chain(f"about {session_id}"),
    )
    return write_lines(folder / f"{session_id}.jsonl", *content)


def test_all_lists_every_tool_with_its_name(run, home):
    put(home, "musepi/sessions", "own")
    put(home, ".pi/agent/sessions", "of-pi", cwd="/elsewhere")
    put(home, "moved/sessions", "of-omp", SLOT_LINE)
    code, out, err = run("--all", "--json", OMP_CODING_AGENT_DIR=str(home / "moved"))
    rows = json.loads(out)
    assert (code, err) == (0, "")
    assert {row["id"]: row["tool"] for row in rows} == {"own": "musepi", "of-pi": "pi", "of-omp": "omp"}
    keys = {"path", "id", "cwd", "title", "created", "modified", "messages", "size", "tool"}
    assert all(set(row) == keys for row in rows)
    table = run("--all", OMP_CODING_AGENT_DIR=str(home / "moved"))[1]
    assert table.split()[:6] == ["id", "modified", "messages", "tool", "folder", "title"]
    assert re.search(r"of-pi .* pi +/elsewhere +about of-pi", table)


def test_setting_leaves_other_tools_out(run, home):
    put(home, ".pi/agent/sessions", "of-pi")
    (home / "musepi").mkdir()
    (home / "musepi" / "settings.json").write_text('{"session": {"foreignRoots": false}}')
    assert run("--all")[1] == "No sessions.\n"


def test_given_folder_is_the_only_one(run, home):
    put(home, ".pi/agent/sessions", "of-pi")
    put(home, "flat", "mine")
    out = run("--all", "--json", "--session-dir", str(home / "flat"))[1]
    assert [row["id"] for row in json.loads(out)] == ["mine"]


def test_given_folder_may_be_relative_or_in_a_home(run, home):
    path = put(home, "flat", "mine")
    for given in ("../flat", "~/flat"):
        out = run("--all", "--json", "--session-dir", given)[1]
        assert [Path(row["path"]).resolve() for row in json.loads(out)] == [path]
        assert json.loads(out)[0]["path"].startswith("/")
    assert run("--session-dir", "~nobody-of-that-name")[0] == 1


def test_newest_come_first_whatever_is_read_last(run, home):
    files = [put(home, "musepi/sessions", f"s{number}") for number in range(3)]
    for number, file in enumerate(files):
        os.utime(file, (1_700_000_000 + number,) * 2)
    assert [row["id"] for row in json.loads(run("--all", "--json")[1])] == ["s2", "s1", "s0"]


def test_damaged_files_are_told_apart_from_the_list(run, home):
    folder = put(home, "musepi/sessions", "good").parent
    for number in range(12):
        (folder / f"bad{number}.jsonl").write_bytes(b"\x1b[2Jjunk")
    code, out, err = run("--all", "--json")
    assert (code, [row["id"] for row in json.loads(out)]) == (0, ["good"])
    assert err.count("not listed: ") == 10
    assert "2 more files not listed." in err
    assert "\x1b" not in err


def test_broken_list_file_is_told_once(run, home):
    put(home, "musepi/sessions", "good")
    (home / "musepi" / "state").mkdir()
    (home / "musepi" / "state" / FILE_NAME).write_bytes(b"junk")
    assert "was broken" in run("--all")[2]
    assert run("--all")[2] == ""
