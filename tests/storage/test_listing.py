import json
import os
from pathlib import Path

import pytest

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.storage import glance
from musepi_tui.storage.glance import glance_at, read_row
from musepi_tui.storage.list_cache import FILE_NAME
from musepi_tui.storage.listing import (
    FIRST_BATCH,
    find_session,
    iter_sessions,
    list_sessions,
    needs_import,
    newest_session,
)
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.paths import Paths, find_paths, session_folder
from tests.support.lines import answer_record, chain, dump, header_line, record, user_record, write_lines
from tests.support.shared import shared_path


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"MUSEPI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "user")})


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
NAMED = record("session_info", "i", "u", 5, name="N")
LATER = "2026-06-01T00:00:00.000Z"
TALK = [PROMPT, record("compaction", "c", "u", summary="S"), answer_record("a", "c", "answer")]


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
        ([SLOT | {"source": "auto"}, header_line(), PROMPT, NAMED], "N"),
        ([header_line(title="T", titleSource="auto", timestamp=LATER), PROMPT, NAMED], "N"),
        ([header_line(title="T", titleSource="user", timestamp=LATER), PROMPT, NAMED], "T"),
        ([header_line()], "Untitled · 00:00"),
        ([header_line(timestamp="?")], "Untitled"),
    ],
)
def test_title_follows_the_order_of_the_page(tmp_path, lines, title):
    path = write_lines(tmp_path / "s.jsonl", *lines)
    assert glance_at(path).title == title
    assert load_session(path).name in (title, None)


def test_small_file_of_version_1_is_counted_although_its_entries_have_no_ids(tmp_path):
    lines = [{key: value for key, value in line.items() if key not in ("id", "parentId")} for line in TALK]
    row = glance_at(write_lines(tmp_path / "s.jsonl", header_line(None), *lines))
    assert (row.messages, row.messages_exact, row.compactions, row.branches) == (2, True, 1, 1)


def test_escape_that_the_window_cuts_does_not_show_in_the_title(tmp_path):
    text = "ab\n" + "\u8def" * 200_000
    line = json.dumps(user_record("u", None, text), separators=(",", ":")).encode()
    titles = {
        glance_at(write_lines(tmp_path / "s.jsonl", header_line(spare="x" * pad), line + b"\n")).title
        for pad in range(6)
    }
    assert titles == {"ab"}


def handoff(document: str, **fields: object) -> dict[str, object]:
    content = f"<handoff-context>\n{document}\n</handoff-context>\n\nThis document was written earlier."
    return record("custom_message", "h", None, customType="handoff", **({"content": content} | fields))


@pytest.mark.parametrize(
    ("document", "title"),
    [
        ("## Goal\nA lexer with tables.\n\nNow: the numbers.", "A lexer with tables."),
        ("# Handoff\n\n## Goal\n\n- **Lexer**: with tables", "Lexer: with tables"),
        ("Notes.\n### Goals\n1. Be fast", "Be fast"),
        ("## Goal\n## Progress\n- Nothing yet", "Nothing yet"),
        ("A plain text\nof two lines", "A plain text"),
        ("## Only a heading", "Only a heading"),
        ("", "go on"),
        ("## Goal\n" + "x" * 100_000, "x" * 200),
    ],
)
def test_session_that_begins_with_a_handoff_document_is_called_by_its_goal(tmp_path, document, title):
    talk = [user_record("u", "h", "go on"), answer_record("a", "u", "done")]
    path = write_lines(tmp_path / "s.jsonl", header_line(), handoff(document), *talk)
    info = read_row(path, search="all").info
    assert (info.title, info.messages, info.messages_exact) == (title, 3, True)


def test_name_comes_before_the_goal_of_a_handoff_document_in_any_form(tmp_path):
    blocks = [{"type": "text", "text": "<handoff-context>\n## Goal\nSpeed\n</handoff-context>"}]
    document = handoff("", content=blocks)
    moved = {key: document[key] for key in ("id", "type", "customType", "parentId", "timestamp", "content")}
    path = write_lines(tmp_path / "s.jsonl", header_line(), moved)
    assert (glance_at(path).title, glance_at(path).messages) == ("Speed", 1)
    write_lines(path, header_line(title="The old name", titleSource="user"), document)
    assert (glance_at(path).title, glance_at(path).first_message) == ("The old name", "Speed")


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


def filler(count: int, bytes_each: int = 500) -> list[dict]:
    return [answer_record(f"a{index}", None, "z" * bytes_each) for index in range(count)]


def test_messages_are_not_counted_twice_where_both_ends_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(glance, "WHOLE_BYTES", 1000)
    late = user_record("u", None, "late prompt")
    file = write_lines(tmp_path / "s.jsonl", header_line(), *filler(60), late, *filler(30))
    row = glance_at(file)
    assert (row.title, row.messages) == ("late prompt", 91)


def test_name_in_the_middle_of_a_long_file_is_found(tmp_path):
    named = record("session_info", "i", None, 9, name="middle name")
    lines = [user_record("u", None, "prompt"), *filler(300), named, *filler(300)]
    assert glance_at(write_lines(tmp_path / "s.jsonl", header_line(), *lines)).title == "middle name"


def test_name_in_the_tail_is_newer_than_one_in_the_middle(tmp_path):
    names = [
        record("session_info", "i", None, 9, name="old"),
        record("session_info", "j", None, 10, name="new"),
    ]
    lines = [*filler(300), names[0], *filler(300), names[1]]
    assert glance_at(write_lines(tmp_path / "s.jsonl", header_line(), *lines)).title == "new"


def test_listing_finds_names_inside_long_files_afterwards_and_keeps_them(paths, cwd):
    file = put(paths, cwd, "long", "prompt")
    named = record("session_info", "i", None, 9, name="middle name")
    write_lines(
        file, header_line(id="long", cwd=str(cwd)), *chain("prompt"), *filler(300), named, *filler(300)
    )
    titles = [row.title for batch in iter_sessions(paths, cwd) for row in batch.rows]
    assert titles == ["prompt", "middle name"]
    assert [row.title for batch in iter_sessions(paths, cwd) for row in batch.rows] == ["middle name"]


def test_name_is_kept_when_a_searched_file_grows(paths, cwd):
    file = put(paths, cwd, "long", "prompt")
    named = record("session_info", "i", None, 9, name="middle name")
    write_lines(
        file, header_line(id="long", cwd=str(cwd)), *chain("prompt"), *filler(300), named, *filler(300)
    )
    assert list_sessions(paths, cwd)[0].title == "middle name"
    with file.open("ab") as stream:
        stream.write(b"".join(dump(line) for line in filler(100)))
    assert [row.title for batch in iter_sessions(paths, cwd) for row in batch.rows] == ["middle name"]
    with file.open("ab") as stream:
        stream.write(dump(record("session_info", "j", None, 20, name="newer")))
        stream.write(b"".join(dump(line) for line in filler(100)))
    assert [row.title for batch in iter_sessions(paths, cwd) for row in batch.rows] == ["newer"]


def test_unchanged_files_are_not_read_again(paths, cwd):
    file = put(paths, cwd, "abc", "prompt")
    times = file.stat()
    before = list_sessions(paths, cwd)
    file.write_bytes(b"x" * times.st_size)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert list_sessions(paths, cwd) == before
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert list_sessions(paths, cwd) == ()


def test_broken_list_is_told_once_and_stops_nothing(paths, cwd):
    put(paths, cwd, "abc", "prompt")
    paths.state.mkdir(parents=True)
    (paths.state / FILE_NAME).write_bytes(b"junk")
    told: list[str] = []
    for _ in range(2):
        rows = list_sessions(paths, cwd, progress=lambda batch: told.extend(batch.notices))
        assert ids(rows) == ["abc"]
    assert len(told) == 1


def test_parts_come_newest_first_and_count_up(paths, cwd):
    count = FIRST_BATCH + 5
    for number in range(count):
        put(paths, cwd, f"s{number:03}", "x", age_s=number)
    batches = list(iter_sessions(paths, cwd))
    assert [(batch.done, batch.total) for batch in batches][:3] == [
        (0, count),
        (FIRST_BATCH, count),
        (count, count),
    ]
    assert [row.id for batch in batches for row in batch.rows] == [f"s{number:03}" for number in range(count)]


def test_what_was_read_is_kept_when_the_rest_is_not_wanted(paths, cwd):
    for number in range(FIRST_BATCH + 5):
        put(paths, cwd, f"s{number:03}", "x", age_s=number)
    batches = iter_sessions(paths, cwd)
    next(batches)
    next(batches)
    batches.close()
    assert (paths.state / FILE_NAME).read_bytes().count(b"\n") == FIRST_BATCH + 1


@pytest.fixture
def odd_files(paths, cwd, tmp_path) -> Path:
    """A folder with one good session among all that can go wrong."""
    folder = put(paths, cwd, "good", "x").parent
    os.mkfifo(folder / "fifo.jsonl")
    (folder / "device.jsonl").symlink_to("/dev/zero")
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (folder / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "empty.jsonl").touch()
    (folder / "junk.jsonl").write_bytes(b"\x00\xff" * 5000)
    (folder / "one-line.jsonl").write_bytes(b'{"type":"session",' + b"x" * 3_000_000)
    with (folder / "huge.jsonl").open("wb") as stream:
        stream.write(dump(header_line(id="huge", cwd=str(cwd))))
        stream.truncate(200 * 1024**3)
    os.utime(folder / "huge.jsonl", (10**9, 10**9))
    (folder / "future.jsonl").write_bytes(dump(header_line(id="future", cwd=str(cwd))))
    os.utime(folder / "future.jsonl", (10**13, 10**13))
    (folder / "s.jsonl.background-late.jsonl").write_bytes(b"sidecar")
    (folder / ".hidden.jsonl").write_bytes(b"hidden")
    return folder


@pytest.mark.timeout(20)
def test_damaged_files_never_stop_the_rest_and_are_named_with_their_reason(paths, cwd, odd_files):
    damaged = {}
    rows = list_sessions(
        paths, cwd, progress=lambda batch: damaged.update((file.path.stem, file) for file in batch.damaged)
    )
    assert set(ids(rows)) == {"good", "huge", "future"}
    assert set(damaged) == {"fifo", "device", "loop", "dangling", "empty", "junk", "one-line"}
    assert damaged["fifo"].reason == "not a regular file"
    assert damaged["empty"].reason == "empty"
    assert all(file.reason and str(odd_files) not in file.reason for file in damaged.values())


@pytest.mark.parametrize(
    ("mtime_ns", "text"),
    [
        (-1, "1970-01-01T00:00:00.000Z"),
        (10**9, "1970-01-01T00:00:01.000Z"),
        (10**24, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_time_of_a_file_is_one_that_a_calendar_has(mtime_ns, text):
    assert glance.modified_text(mtime_ns) == text


def test_reason_that_may_pass_is_looked_at_again(paths, cwd, monkeypatch):
    file = put(paths, cwd, "abc", "x")
    opened = glance.open_regular

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(glance, "open_regular", refuse)
    assert list_sessions(paths, cwd) == ()
    monkeypatch.setattr(glance, "open_regular", opened)
    assert [row.path for row in list_sessions(paths, cwd)] == [file]


def put_foreign(
    tmp_path: Path, root: str, cwd: Path, session_id: str, *lines: dict, bucket: str = ""
) -> Path:
    folder = tmp_path / "user" / root / (bucket or f"--{str(cwd)[1:].replace('/', '-')}--")
    folder.mkdir(parents=True, exist_ok=True)
    content = [*lines, header_line(id=session_id, cwd=str(cwd)), *chain(f"prompt of {session_id}")]
    return write_lines(folder / f"2026-01-01T00-00-00-000Z_{session_id}.jsonl", *content)


FAMILY = {
    "pi": ".pi/agent/sessions",
    "musepi": ".musepi/agent/sessions",
    "omp": ".omp/agent/sessions",
    "veyyon": ".veyyon/profiles/work/agent/sessions",
}


def test_sessions_of_the_family_are_listed_with_their_tool(paths, cwd, tmp_path):
    put(paths, cwd, "own", "x")
    for tool, root in FAMILY.items():
        put_foreign(tmp_path, root, cwd, f"by-{tool}")
        put_foreign(tmp_path, root, tmp_path, f"other-{tool}")
    found = {row.id: (row.tool, row.is_own) for row in list_sessions(paths, cwd)}
    assert found == {"own": ("musepi", True)} | {f"by-{tool}": (tool, False) for tool in FAMILY}
    everywhere = {row.id for row in list_sessions(paths, None)}
    assert everywhere == set(found) | {f"other-{tool}" for tool in FAMILY}
    assert ids(list_sessions(paths, None, foreign=False)) == ["own"]


def test_session_with_a_title_slot_among_those_of_pi_is_one_of_omp(paths, cwd, tmp_path):
    put_foreign(tmp_path, FAMILY["pi"], cwd, "slotted", SLOT)
    assert [(row.tool, row.title) for row in list_sessions(paths, cwd)] == [("omp", "Slot")]


def test_listing_other_tools_changes_nothing_in_their_folders(paths, cwd, tmp_path):
    file = put_foreign(tmp_path, FAMILY["pi"], cwd, "abc")
    leftover = file.with_name(".s.jsonl.999999999.x.tmp")
    backup = file.with_name("lost.jsonl.u1.bak")
    for each in (leftover, backup):
        each.write_bytes(b"x")
        os.utime(each, (1, 1))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "user").rglob("*")}
    list_sessions(paths, None)
    list_sessions(paths, cwd, override=file.parent)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "user").rglob("*")} == before


def test_own_folder_is_cleaned_of_what_dead_writers_left(paths, cwd):
    folder = put(paths, cwd, "abc", "x").parent
    leftover = folder / ".s.jsonl.999999999.x.tmp"
    leftover.write_bytes(b"x")
    os.utime(leftover, (1, 1))
    write_lines(folder / "lost.jsonl.u1.bak", header_line(id="lost", cwd=str(cwd)), *chain("y"))
    told: list[str] = []
    rows = list_sessions(paths, cwd, progress=lambda batch: told.extend(batch.notices))
    assert set(ids(rows)) == {"abc", "lost"}
    assert not leftover.exists()
    assert len(told) == 1


def test_own_root_inside_that_of_another_tool_is_listed_once(tmp_path, cwd):
    paths = find_paths({"MUSEPI_HOME": str(tmp_path / "user/.musepi/agent"), "HOME": str(tmp_path / "user")})
    put(paths, cwd, "abc", "x")
    assert [(row.id, row.is_own) for row in list_sessions(paths, None)] == [("abc", True)]


def test_copied_session_of_another_tool_is_marked(paths, cwd, tmp_path):
    source = put_foreign(tmp_path, FAMILY["pi"], cwd, "source")
    put_foreign(tmp_path, FAMILY["pi"], cwd, "other")
    folder = session_folder(paths, cwd)
    folder.mkdir(parents=True)
    write_lines(
        folder / "copy.jsonl", header_line(id="copy", cwd=str(cwd), parentSession=str(source)), *chain("x")
    )
    assert {row.id: row.imported for row in list_sessions(paths, cwd)} == {
        "source": True,
        "other": False,
        "copy": False,
    }


def test_mark_of_a_copied_session_keeps_the_name_found_inside(paths, cwd, tmp_path):
    source = put_foreign(tmp_path, FAMILY["pi"], cwd, "source")
    named = record("session_info", "i", None, 9, name="middle name")
    with source.open("ab") as stream:
        stream.write(b"".join(dump(line) for line in (*filler(300), named, *filler(300))))
    folder = session_folder(paths, cwd)
    folder.mkdir(parents=True)
    write_lines(folder / "copy.jsonl", header_line(id="copy", cwd=str(cwd), parentSession=str(source)))
    row = next(row for row in list_sessions(paths, cwd) if row.id == "source")
    assert (row.title, row.imported) == ("middle name", True)


def test_claude_and_codex_sessions_are_listed_with_all_others_only(paths, cwd, tmp_path):
    claude = tmp_path / "user/.claude/projects/-p/9f.jsonl"
    codex = tmp_path / "user/.codex/sessions/2026/02/23/rollout-x.jsonl"
    for file, name in ((claude, "claude-code-tools.jsonl"), (codex, "codex-rollout-short.jsonl")):
        file.parent.mkdir(parents=True)
        file.write_bytes(shared_path("fixtures", "sessions", name).read_bytes())
    (claude.parent / "notes.jsonl").write_bytes(b'{"type":"summary","summary":"s","leafUuid":"u"}\n')
    (claude.parent / "9f" / "subagents").mkdir(parents=True)
    (claude.parent / "9f" / "subagents" / "agent-1.jsonl").write_bytes(claude.read_bytes())
    damaged: list[object] = []
    rows = list_sessions(paths, None, progress=lambda batch: damaged.extend(batch.damaged))
    assert {row.path: row.tool for row in rows} == {claude: "claude", codex: "codex"}
    assert damaged == []
    assert all(needs_import(row) and not row.is_own for row in rows)
    assert list_sessions(paths, cwd) == ()
    assert list_sessions(paths, None) == rows


def test_continuing_never_takes_a_session_of_another_tool(paths, cwd, tmp_path):
    put_foreign(tmp_path, FAMILY["pi"], cwd, "newer")
    assert newest_session(paths, cwd) is None
    put(paths, cwd, "own", "x", age_s=10**8)
    assert newest_session(paths, cwd).id == "own"


def test_newest_session_is_found_behind_many_of_other_folders(paths, cwd, tmp_path):
    flat = tmp_path / "flat"
    put(paths, cwd, "mine", "x", age_s=100, folder=flat)
    for number in range(60):
        put(paths, tmp_path, f"other{number}", "x", folder=flat)
    assert newest_session(paths, cwd, override=flat).id == "mine"


def test_whole_id_comes_before_longer_ones(paths, cwd):
    put(paths, cwd, "abc", "one")
    put(paths, cwd, "abc-2", "two")
    assert find_session(paths, cwd, "abc").id == "abc"


def test_session_of_another_tool_is_found_by_id_and_by_path(paths, cwd, tmp_path):
    file = put_foreign(tmp_path, FAMILY["omp"], tmp_path, "by-omp")
    for reference in ("by-omp", str(file)):
        row = find_session(paths, cwd, reference)
        assert (row.path, row.tool, row.is_own) == (file, "omp", False)
    with pytest.raises(SessionError, match="not found"):
        find_session(paths, cwd, "by-omp", foreign=False)
    source = shared_path("fixtures", "sessions", "codex-rollout-short.jsonl")
    assert needs_import(find_session(paths, cwd, str(source)))


def test_many_files_in_many_folders_are_listed_from_the_list_alone_the_second_time(paths, tmp_path):
    files = [
        put(paths, tmp_path, f"s{number}", "x", folder=paths.sessions / f"--p{number % 7}--")
        for number in range(3 * FIRST_BATCH)
    ]
    before = list_sessions(paths, None)
    for file in files:
        times = file.stat()
        file.write_bytes(b"x" * times.st_size)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    first, *others = (batch for batch in iter_sessions(paths, None) if batch.rows)
    assert len(first.rows) == FIRST_BATCH
    assert (*first.rows, *(row for batch in others for row in batch.rows)) == before


def used(tokens: int, **fields: object) -> dict[str, object]:
    return {"usage": {"input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0}} | fields


CLAUDE = "anthropic/claude-sonnet-4-5"
FAILED = used(0, stopReason="error", model="gpt")
CHANGED = record("model_change", "m", "a", provider="openai", modelId="gpt")


@pytest.mark.parametrize(
    ("lines", "model", "context_tokens"),
    [
        ([PROMPT], "", None),
        ([PROMPT, answer_record("a", "u", "x", **used(900))], CLAUDE, 900),
        ([PROMPT, answer_record("a", "u", "x", **used(900)), user_record("v", "a", "on")], CLAUDE, 900),
        ([answer_record("a", None, "x", **used(900)), CHANGED], "openai/gpt", 900),
        ([answer_record("a", None, "x", **used(900)), CHANGED | {"role": "small"}], CLAUDE, 900),
        ([CHANGED, answer_record("a", "m", "x", **used(900))], CLAUDE, 900),
        (
            [answer_record("a", None, "x", **used(900)), answer_record("b", "a", "", **FAILED)],
            "anthropic/gpt",
            900,
        ),
        (
            [answer_record("a", None, "x", **used(900)), record("compaction", "c", "a", summary="s")],
            CLAUDE,
            None,
        ),
        (
            [record("compaction", "c", None, summary="s"), answer_record("a", "c", "x", **used(70))],
            CLAUDE,
            70,
        ),
        ([answer_record("a", None, "x", usage={"input": "many", "totalTokens": -1})], CLAUDE, None),
    ],
)
def test_model_and_context_are_those_of_the_end(tmp_path, lines, model, context_tokens):
    row = glance_at(write_lines(tmp_path / "s.jsonl", header_line(), *lines))
    assert (row.model, row.context_tokens) == (model, context_tokens)


def test_lines_of_a_long_file_are_counted_after_the_list_and_gone_on_from(paths, cwd):
    file = put(paths, cwd, "abc", "prompt", *("y" * 700 for _ in range(200)))
    seen = [row for batch in iter_sessions(paths, cwd) for row in batch.rows]
    assert [(row.messages_exact, row.branches) for row in seen] == [(False, None), (True, 1)]
    assert seen[-1].messages == 201
    with file.open("ab") as stream:
        stream.write(dump(record("compaction", "c", "e201", summary="s")))
        stream.write(dump(user_record("x", "e1", "elsewhere")))
    (row,) = list_sessions(paths, cwd)
    assert (row.messages, row.messages_exact, row.compactions, row.branches) == (202, True, 1, 2)
    assert [row for batch in iter_sessions(paths, cwd) for row in batch.rows] == [row]


def test_what_is_known_and_unchanged_is_told_before_all_files_are_looked_at(paths, cwd, tmp_path):
    files = [put(paths, cwd, f"s{number:03}", "x", age_s=number) for number in range(5)]
    put(paths, tmp_path, "other", "x", folder=files[0].parent)
    before = list_sessions(paths, cwd)
    files[0].unlink()
    with files[1].open("ab") as stream:
        stream.write(dump(user_record("x", "e1", "more")))
    put(paths, cwd, "new", "x")
    told: list[tuple[str, ...]] = []
    rows = list_sessions(paths, cwd, progress=lambda batch: told.append(tuple(ids(batch.rows))))
    assert told[0] == ("s002", "s003", "s004")
    assert told[1] == ()
    assert set(ids(rows)) == {"new", "s001", "s002", "s003", "s004"}
    assert set(before) & set(rows) == set(before[2:])
