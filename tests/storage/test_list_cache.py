import json
import multiprocessing
import os
from pathlib import Path

import pytest

from musepi_tui.storage.glance import Row, SessionInfo
from musepi_tui.storage.list_cache import FILE_NAME, VERSION, CachedFile, ListCache, drop_row
from musepi_tui.storage.names import Name
from musepi_tui.storage.paths import Paths, find_paths

INFO = SessionInfo(
    path=Path("/s/a.jsonl"),
    id="a",
    cwd="/p",
    title="a title",
    created="2026-01-01T00:00:00.000Z",
    modified="2001-09-09T01:46:40.000Z",
    messages=3,
    size=10,
    tool="musepi",
    status="complete",
    messages_exact=False,
    parent="/s/b.jsonl",
    first_message="first",
    model="anthropic/claude",
    context_tokens=12_000,
    compactions=2,
    branches=2,
)
ROW = Row(INFO, Name(5, "a title"), is_searched=False, leaves=("a1", "a2"))
STORED = CachedFile(10, 1_000_000_000_000_000_000, ROW)
FIRST = b'{"version":%d}\n' % VERSION
JUNK = CachedFile(4, 7, None, "no session")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"MUSEPI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})


def loaded(paths: Paths) -> ListCache:
    cache = ListCache(paths)
    cache.load()
    return cache


def filled(paths: Paths, **files: CachedFile) -> ListCache:
    cache = loaded(paths)
    for name, file in files.items():
        cache.remember(f"/s/{name}.jsonl", file)
    cache.save()
    return cache


def test_rows_come_back_as_they_were(paths):
    filled(paths, a=STORED, junk=JUNK)
    cache = loaded(paths)
    assert cache.find("/s/a.jsonl") == STORED
    assert cache.find("/s/junk.jsonl") == JUNK
    assert cache.find("/s/other.jsonl") is None


def test_names_that_are_no_utf8_come_back(paths):
    path = os.fsdecode(b"/s/\xff.jsonl")
    cache = loaded(paths)
    cache.remember(path, JUNK)
    cache.save()
    assert loaded(paths).find(path) == JUNK


def test_the_file_is_private(paths):
    filled(paths, a=STORED)
    assert (paths.state / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_when_nothing_changed(paths):
    loaded(paths).save()
    assert not (paths.state / FILE_NAME).exists()


@pytest.mark.parametrize(
    "data",
    [
        b"junk",
        b"",
        b"[]\n",
        b'{"version":"1"}\n',
        FIRST + b'["/s/a.jsonl",1]\n',
        FIRST + b'["/s/a.jsonl",1,2,3]\n',
        FIRST + b"{}\n",
        FIRST + b'["/s/a.jsonl",1,2,"x"',
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
    ids=range(10),
)
def test_broken_file_is_set_aside_and_made_anew(paths, data):
    paths.state.mkdir(parents=True)
    (paths.state / FILE_NAME).write_bytes(data)
    cache = loaded(paths)
    assert len(cache.notices) == 1
    assert f"{FILE_NAME}.bad-1" in cache.notices[0]
    assert (paths.state / f"{FILE_NAME}.bad-1").read_bytes() == data
    cache.remember("/s/a.jsonl", STORED)
    cache.save()
    again = loaded(paths)
    assert (again.notices, again.find("/s/a.jsonl")) == ((), STORED)


def test_file_of_another_version_is_replaced_without_a_word(paths):
    paths.state.mkdir(parents=True)
    (paths.state / FILE_NAME).write_text(json.dumps({"version": 99}) + "\n[1]\n")
    cache = loaded(paths)
    assert (cache.notices, cache.find("/s/a.jsonl")) == ((), None)


def test_folder_in_place_of_the_file_is_set_aside(paths):
    (paths.state / FILE_NAME).mkdir(parents=True)
    assert len(loaded(paths).notices) == 1


def test_rows_of_missing_files_are_dropped_in_listed_folders_only(paths):
    cache = filled(paths, a=STORED, b=JUNK)
    cache.remember("/elsewhere/c.jsonl", JUNK)
    cache.forget_missing({"/s"}, ["/s/b.jsonl"])
    cache.save()
    again = loaded(paths)
    assert again.find("/s/a.jsonl") is None
    assert again.find("/s/b.jsonl") == JUNK
    assert again.find("/elsewhere/c.jsonl") == JUNK


def test_what_another_process_stored_meanwhile_is_kept(paths):
    mine, theirs = loaded(paths), loaded(paths)
    filled(paths, gone=JUNK)
    theirs.remember("/s/theirs.jsonl", JUNK)
    theirs.save()
    mine.remember("/s/a.jsonl", STORED)
    mine.forget("/s/gone.jsonl")
    mine.save()
    again = loaded(paths)
    assert again.find("/s/theirs.jsonl") == JUNK
    assert again.find("/s/a.jsonl") == STORED
    assert again.find("/s/gone.jsonl") is None


def test_deleted_session_leaves_the_file(paths):
    filled(paths, a=STORED, b=JUNK)
    drop_row(paths, Path("/s/a.jsonl"))
    again = loaded(paths)
    assert (again.find("/s/a.jsonl"), again.find("/s/b.jsonl")) == (None, JUNK)


def test_state_folder_that_cannot_be_written_stops_nothing(paths):
    paths.data.mkdir(parents=True, exist_ok=True)
    paths.state.write_text("a file where the folder should be")
    filled(paths, a=STORED)
    assert loaded(paths).find("/s/a.jsonl") is None


def _store_many(home: str, number: int) -> None:
    paths = find_paths({"MUSEPI_HOME": home, "HOME": home})
    for index in range(10):
        filled(paths, **{f"p{number}n{index}": JUNK})


def stored_at(mtime_ns: int) -> CachedFile:
    return CachedFile(10, mtime_ns, ROW)


def test_newest_rows_come_first_and_need_no_loading(paths):
    filled(paths, old=stored_at(5), new=stored_at(9), junk=JUNK)
    filled(paths, old=stored_at(10))
    cache = ListCache(paths)
    assert [Path(path).stem for path, _ in cache.newest({"/s"})] == ["old", "new", "junk"]


def test_newest_rows_are_those_of_the_folders_asked_for(paths):
    odd = os.fsdecode(b'/s/\xff"\xc3\xa9')
    cache = filled(paths, a=STORED)
    cache.remember(f"{odd}/b.jsonl", JUNK)
    cache.save()
    assert [path for path, _ in ListCache(paths).newest({"/s"})] == ["/s/a.jsonl"]
    assert list(ListCache(paths).newest({"/", "/elsewhere"})) == []


@pytest.mark.parametrize(
    "line", [b"{}", b"", b'["/s/x.jsonl",1]', b'["/s/x.jsonl"', b'["/s/\xff.jsonl",1,2,"x"]']
)
def test_newest_rows_leave_out_lines_that_are_none(paths, line):
    filled(paths, a=STORED)
    file = paths.state / FILE_NAME
    file.write_bytes(FIRST + line + b"\n" + file.read_bytes().removeprefix(FIRST) + line)
    assert [path for path, _ in ListCache(paths).newest({"/s"})] == ["/s/a.jsonl"]


@pytest.mark.parametrize("data", [b"junk", b"", b'{"version":99}\n[1]\n', b"\xff\n\n"], ids=range(4))
def test_there_are_no_newest_rows_in_a_file_of_another_kind(paths, data):
    paths.state.mkdir(parents=True)
    (paths.state / FILE_NAME).write_bytes(data)
    assert list(ListCache(paths).newest({"/s"})) == []


@pytest.mark.slow
def test_processes_that_store_at_once_lose_no_row(paths):
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=_store_many, args=(str(paths.data), number)) for number in range(3)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    cache = loaded(paths)
    assert cache.notices == ()
    wanted = [f"/s/p{number}n{index}.jsonl" for number in range(3) for index in range(10)]
    assert [path for path in wanted if cache.find(path) is None] == []
