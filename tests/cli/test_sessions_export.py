import json
import os
import subprocess
import sys

import pytest

from musepi_tui.cli.sessions import main
from musepi_tui.storage.lock import WriterLock
from tests.support.exports import KEY, write_full
from tests.support.lines import chain, header_line, user_record, write_lines


@pytest.fixture
def run(capsys, musepi_home, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")  # a trash command of this machine would be asked first
    environ = {"MUSEPI_HOME": str(musepi_home), "HOME": str(musepi_home.parent)}

    def call(*arguments, **variables):
        code = main([str(argument) for argument in arguments], environ | variables)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize("suffix", ["html", "md", "txt", "jsonl"])
def test_export_prints_where_it_went(run, tmp_path, suffix):
    source, target = write_full(tmp_path), tmp_path / f"out.{suffix}"
    before = source.read_bytes()
    assert run("export", source, target) == (0, f"{target}\n", "")
    assert "compact" in target.read_text()
    assert source.read_bytes() == before


def test_secrets_of_the_machine_are_masked_unless_raw(run, tmp_path, musepi_home):
    (musepi_home / "auth.json").write_text(json.dumps({"x": {"type": "api_key", "key": "stored-key-1"}}))
    (musepi_home / "auth.json").chmod(0o600)
    source = write_lines(tmp_path / "s.jsonl", header_line(), *chain(f"{KEY} stored-key-1 from-environ-1"))
    run("export", source, tmp_path / "a.txt", MY_TOKEN="from-environ-1")
    run("export", source, tmp_path / "b.txt", "--raw", MY_TOKEN="from-environ-1")
    assert "sk…(16+) st…(8+) fr…(8+)" in (tmp_path / "a.txt").read_text()
    assert f"{KEY} stored-key-1 from-environ-1" in (tmp_path / "b.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("out.pdf",), 2, "OUT: out.pdf ends in .pdf; accepted are .html, .md, .txt, .jsonl"),
        (("out.html", "--leaf", "nowhere"), 2, "has no entry nowhere"),
        (("out.jsonl", "--leaf", "u1"), 2, "always holds the whole session"),
        (("gone/out.html",), 1, "the folder gone does not exist"),
        (("taken.html",), 1, "taken.html exists; use --force"),
        (("full.jsonl", "--force"), 1, "is the session itself"),
    ],
)
def test_export_that_cannot_be_says_why(run, tmp_path, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    write_full(tmp_path)
    (tmp_path / "taken.html").write_text("mine")
    found = run("export", "full.jsonl", *arguments)
    assert found[:2] == (code, "")
    assert words in found[2]
    assert found[2].count("\n") == 1
    assert (tmp_path / "taken.html").read_text() == "mine"


def test_export_tells_damage_and_goes_on(run, tmp_path):
    source = write_lines(tmp_path / "s.jsonl", header_line(), *chain("a"), b"junk\n")
    code, out, err = run("export", source, tmp_path / "out.txt")
    assert (code, out) == (0, f"{tmp_path / 'out.txt'}\n")
    assert "line 3" in err


def test_export_works_while_somebody_writes(run, tmp_path):
    source = write_full(tmp_path)
    lock = WriterLock(source)
    lock.acquire()
    before = sorted(tmp_path.iterdir())
    try:
        assert run("export", source, tmp_path / "out.html")[0] == 0
    finally:
        lock.release()
    assert sorted(path for path in tmp_path.iterdir() if path.suffix != ".html") == [
        path for path in before if path.suffix != ".lock"
    ]


@pytest.mark.parametrize("suffix", ["html", "jsonl"])
def test_export_loads_nothing_heavy(tmp_path, suffix):
    source = write_full(tmp_path)
    code = (
        "import sys; from musepi_tui.cli.sessions import main; import os;"
        f"code = main(['export', {str(source)!r}, {str(tmp_path / ('o.' + suffix))!r}], os.environ);"
        "heavy = ('asyncio', 'textual', 'httpx', 'pydantic', 'tiktoken', 'rich');"
        "print(code, [name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "0 []"


def stored(home, name, session_id):
    folder = home / "sessions" / "--p--"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (header_line(id=session_id), user_record("u1", None, "hello", 1))
    return write_lines(folder / f"2026-01-01T00-00-0{name}-000Z_{session_id}.jsonl", *lines)


def test_delete_by_the_start_of_an_id(run, musepi_home):
    first, second = stored(musepi_home, "1", "aaaa-1"), stored(musepi_home, "2", "aabb-2")
    code, out, err = run("delete", "aa")
    assert (code, out) == (1, "")
    assert '"aa" fits 2 sessions' in err
    assert "aaaa-1" in err
    assert run("delete", "aaaa") == (0, "Session moved to trash\n", "")
    assert (first.exists(), second.exists()) == (False, True)
    files = musepi_home.parent / ".local" / "share" / "Trash" / "files"
    assert [path.name for path in files.iterdir()] == [first.name]
    assert run("delete", "aaaa")[2] == 'Session "aaaa" not found.\n'


def test_delete_of_another_tools_session_by_id_says_how_it_is_done(run, clean_environment):
    folder = clean_environment / ".omp" / "agent" / "sessions" / "-p"
    folder.mkdir(parents=True)
    path = write_lines(
        folder / "2026_omp-1.jsonl", header_line(id="omp-1"), user_record("u1", None, "hello", 1)
    )
    code, out, err = run("delete", "omp-1")
    assert (code, out) == (1, "")
    assert err == (f'"omp-1" is a session of omp. To delete that one all the same, name its file: {path}\n')
    assert path.exists()


def test_delete_by_path(run, tmp_path):
    path = write_full(tmp_path)
    assert run("delete", path)[:2] == (0, "Session moved to trash\n")
    assert not path.exists()


def test_deleted_session_leaves_the_stored_list(run, musepi_home):
    path = stored(musepi_home, "1", "aaaa-1")
    run("list", "--all", "--json")
    run("delete", "aaaa")
    cached = [file for file in (musepi_home / "state").rglob("*") if file.is_file()]
    assert cached
    assert not any(path.name.encode() in file.read_bytes() for file in cached)


def test_delete_of_an_open_session_names_its_owner(run, musepi_home):
    path = stored(musepi_home, "1", "aaaa-1")
    lock = WriterLock(path)
    lock.acquire()
    try:
        code, out, err = run("delete", "aaaa")
    finally:
        lock.release()
    assert (code, out) == (1, "")
    assert f"session is open in another musepi (pid {os.getpid()})" in err
    assert path.exists()


def test_delete_without_a_trash_needs_a_word(run, musepi_home, tmp_path):
    path = stored(musepi_home, "1", "aaaa-1")
    (tmp_path / "data").write_text("a file where the trash should be")
    code, out, err = run("delete", "aaaa", XDG_DATA_HOME=str(tmp_path / "data"))
    assert (code, out) == (1, "")
    assert "--permanently deletes it for good" in err
    assert path.exists()
    assert run("delete", "aaaa", "--permanently") == (0, "Session deleted\n", "")
    assert not path.exists()
