import os
from pathlib import Path

import pytest

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.storage import glance
from musepi_tui.storage.glance import glance_at
from musepi_tui.storage.listing import find_session, list_sessions, newest_session
from musepi_tui.storage.paths import Paths, find_paths, session_folder
from tests.support.lines import answer_record, chain, header_line, record, user_record, write_lines


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"MUSEPI_HOME": str(tmp_path / "home")})


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def put(
    paths: Paths, cwd: Path, session_id: str, *texts: str, age_s: int = 0, folder: Path | None = None
) -> Path:
    """A stored session of ``cwd`` that was written ``age_s`` seconds ago."""
    folder = folder or session_folder(paths, cwd)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"2026-01-01T00-00-00-000Z_{session_id}.jsonl"
    write_lines(file, header_line(id=session_id, cwd=str(cwd)), *chain(*texts))
    os.utime(file, (1_000_000_000 - age_s,) * 2)
    return file


def ids(rows) -> list[str]:
    return [row.id for row in rows]


def test_row_says_what_is_known(paths, cwd):
    file = put(paths, cwd, "abc", "first prompt\nmore", "second")
    row = glance_at(file)
    assert (row.path, row.id, row.cwd, row.title) == (file, "abc", str(cwd), "first prompt")
    assert (row.created, row.modified) == ("2026-01-01T00:00:00.000Z", "2001-09-09T01:46:40.000Z")
    assert (row.messages, row.messages_exact, row.size) == (2, True, file.stat().st_size)
    assert (row.tool, row.status, row.is_named) == ("musepi", "pending", True)


SLOT = {"type": "title", "v": 1, "title": "Slot", "updatedAt": "2026-01-01T00:10:00Z", "pad": ""}
PROMPT = user_record("u", None, "prompt")


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([header_line(), PROMPT], "prompt"),
        ([header_line(), user_record("u", None, "<skill name='x'>\nreal text")], "real text"),
        ([header_line(), user_record("u", None, "<b>bold</b>")], "<b>bold</b>"),
        ([header_line(), user_record("u", None, "a\x1b[31m\tb  c\nnext")], "a [31m b c"),
        ([header_line(), user_record("u", None, "x" * 300)], "x" * 200),
        ([header_line(), PROMPT, record("compaction", "c", "u", summary="S", shortSummary="short")], "short"),
        ([header_line(title="T"), PROMPT], "T"),
        ([header_line(title="T"), PROMPT, record("session_info", "i", "u", 5, name="N")], "N"),
        (
            [header_line(), PROMPT, record("session_info", "i", "u", 5, name="N")]
            + [record("session_info", "j", "i", 6)],
            "prompt",
        ),
        ([SLOT, header_line(), PROMPT, record("session_info", "i", "u", 5, name="N")], "Slot"),
        ([header_line()], "Untitled · 00:00"),
        ([header_line(timestamp="?")], "Untitled"),
    ],
)
def test_title_follows_the_order_of_the_page(tmp_path, lines, title):
    assert glance_at(write_lines(tmp_path / "s.jsonl", *lines)).title == title


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (answer_record("a", "u", "x"), "complete"),
        (answer_record("a", "u", "x", stopReason="error"), "error"),
        (answer_record("a", "u", "x", stopReason="aborted"), "aborted"),
        (answer_record("a", "u", "x", stopReason="length"), "interrupted"),
        (answer_record("a", "u", "x", content=[{"type": "toolCall", "id": "c", "name": "n"}]), "interrupted"),
        (record("message", "t", "u", message={"role": "toolResult"}), "interrupted"),
        (user_record("v", "u", "x"), "pending"),
        (record("message", "t", "u", message={"role": "bashExecution"}), "pending"),
        (record("label", "l", "u"), "pending"),
    ],
)
def test_status_is_that_of_the_last_message(tmp_path, last, status):
    assert glance_at(write_lines(tmp_path / "s.jsonl", header_line(), PROMPT, last)).status == status


def test_big_file_is_read_at_its_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(glance, "WHOLE_BYTES", 1000)
    middle = [answer_record(f"a{index}", None, "z" * 500) for index in range(200)]
    named = record("session_info", "i", None, name="late name")
    file = write_lines(tmp_path / "s.jsonl", header_line(), user_record("u", None, "first"), *middle, named)
    row = glance_at(file)
    assert (row.title, row.status, row.messages_exact) == ("late name", "complete", False)
    assert 0 < row.messages < 201


@pytest.mark.parametrize(
    "content", ["first\\n line " + "z" * 90_000, [{"type": "text", "text": "first" + "z" * 9000}]]
)
def test_prompt_cut_by_the_window_still_gives_a_title(tmp_path, monkeypatch, content):
    monkeypatch.setattr(glance, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(glance, "PREFIX_BYTES", (1000,))
    line = user_record("u", None, "") | {"message": {"role": "user", "content": content}}
    file = write_lines(tmp_path / "s.jsonl", header_line(), line, *chain(*"abc"))
    assert glance_at(file).title.startswith("first")


def test_sessions_of_a_folder_come_newest_first(paths, cwd, tmp_path):
    put(paths, cwd, "old", "x", age_s=100)
    put(paths, cwd, "new", "x")
    put(paths, tmp_path, "other", "x")
    assert ids(list_sessions(paths, cwd)) == ["new", "old"]
    assert set(ids(list_sessions(paths, None))) == {"new", "old", "other"}
    assert newest_session(paths, cwd).id == "new"


def test_header_decides_where_a_session_belongs(paths, cwd, tmp_path):
    put(paths, tmp_path, "stray", "x", folder=session_folder(paths, cwd))
    assert list_sessions(paths, cwd) == ()
    assert newest_session(paths, cwd) is None


def test_override_lists_its_flat_files(paths, cwd, tmp_path):
    flat = tmp_path / "flat"
    put(paths, cwd, "mine", "x", folder=flat)
    put(paths, tmp_path, "other", "x", folder=flat)
    put(paths, cwd, "sub", "x", folder=flat / "2026-01-01T00-00-00-000Z_mine")
    assert ids(list_sessions(paths, cwd, override=flat)) == ["mine"]
    assert set(ids(list_sessions(paths, None, override=flat))) == {"mine", "other"}


def test_other_files_are_left_out(paths, cwd):
    folder = put(paths, cwd, "good", "x").parent
    (folder / "junk.jsonl").write_bytes(b"junk\n")
    (folder / "notes.txt").touch()
    (folder / "folder.jsonl").mkdir()
    assert ids(list_sessions(paths, cwd)) == ["good"]


def test_nothing_stored_is_an_empty_list(paths, cwd):
    assert list_sessions(paths, cwd) == ()
    assert list_sessions(paths, None) == ()
    assert newest_session(paths, cwd) is None


@pytest.mark.parametrize("reference", ["abcd-1", "ABCD", "2026-01-01T00-00-00-000Z_abc", "My Title"])
def test_session_is_found_by_the_start_of_its_names(paths, cwd, reference):
    put(paths, cwd, "abcd-1", "my title")
    put(paths, cwd, "ef", "another")
    assert find_session(paths, cwd, reference).id == "abcd-1"


def test_this_folder_comes_before_the_others(paths, cwd, tmp_path):
    put(paths, tmp_path, "abc-elsewhere", "x")
    put(paths, cwd, "abc-here", "x")
    assert find_session(paths, cwd, "abc").id == "abc-here"
    assert find_session(paths, cwd, "abc-e").id == "abc-elsewhere"


def test_several_matches_are_listed(paths, cwd):
    put(paths, cwd, "abc-1", "one")
    put(paths, cwd, "abc-2", "two")
    with pytest.raises(SessionError, match="fits 2 sessions") as caught:
        find_session(paths, cwd, "abc")
    assert "abc-1  one" in str(caught.value)
    assert "abc-2  two" in str(caught.value)


@pytest.mark.parametrize("reference", ["zz", ""])
def test_no_match_says_so(paths, cwd, reference):
    put(paths, cwd, "abc", "x")
    with pytest.raises(SessionError, match=f'Session "{reference}" not found.'):
        find_session(paths, cwd, reference)


def test_path_is_taken_as_one(paths, cwd):
    file = put(paths, cwd, "abc", "x", folder=cwd)
    assert find_session(paths, cwd, file.name).path == file
    assert find_session(paths, cwd, str(file)).path == file
    (cwd / "junk.jsonl").write_bytes(b"{}\n")
    with pytest.raises(NotASessionFileError):
        find_session(paths, cwd, "./junk.jsonl")
