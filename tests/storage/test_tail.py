from pathlib import Path

import pytest

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.session.entries import StateEntry
from musepi_tui.storage import tail
from musepi_tui.storage.tail import open_tail
from tests.support.lines import chain, dump, header_line, user_record, write_lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def ids(found) -> list[str]:
    return [entry.id for entry in found.entries]


def test_small_file_is_whole(file):
    found = open_tail(write_lines(file, header_line(), *chain("a", "b")))
    assert (found.header.id, ids(found), found.whole) == ("s-1", ["e1", "e2"], True)


@pytest.mark.parametrize("block_bytes", [10, 100, 1000])
def test_end_of_a_long_path_is_read_in_steps(file, monkeypatch, block_bytes):
    monkeypatch.setattr(tail, "FIRST_BLOCK_BYTES", block_bytes)
    path = write_lines(file, header_line(), *chain(*(f"text {index}" for index in range(100))))
    found = open_tail(path, want=10)
    assert ids(found)[-10:] == [f"e{index}" for index in range(91, 101)]
    whole = open_tail(path, want=1000)
    assert ids(whole) == [f"e{index}" for index in range(1, 101)]
    assert whole.whole


def test_only_the_path_of_the_last_entry_is_shown(file):
    lines = [*chain("a", "b", "c"), user_record("x", "e1", "other branch")]
    found = open_tail(write_lines(file, header_line(), *lines))
    assert (ids(found), found.whole) == (["e1", "x"], True)


def test_path_beyond_the_limit_is_shown_from_where_it_can_be_read(file, monkeypatch):
    monkeypatch.setattr(tail, "FIRST_BLOCK_BYTES", 1000)
    monkeypatch.setattr(tail, "LIMIT_BYTES", 1000)
    lines = [*chain(*("y" * 100 for _ in range(50))), user_record("x", "e1", "far jump")]
    found = open_tail(write_lines(file, header_line(), *lines))
    assert (ids(found), found.whole) == (["x"], False)


def test_damage_at_the_end_is_passed_over(file):
    lines = [*chain("a", "b"), b"junk\n", header_line(), b"\n", b'{"type":"mess']
    assert ids(open_tail(write_lines(file, header_line(), *lines))) == ["e1", "e2"]


def test_entry_with_a_broken_body_is_opaque(file):
    broken = dump(user_record("x", "e1", "b")).replace(b'"content"', b'"content')
    found = open_tail(write_lines(file, header_line(), *chain("a"), broken))
    assert isinstance(found.entries[-1], StateEntry)


def test_ring_ends_the_walk(file):
    lines = [user_record("a", "b", "1"), user_record("b", "a", "2")]
    assert ids(open_tail(write_lines(file, header_line(), *lines))) == ["a", "b"]


def test_slot_and_long_header_are_read(file):
    slot = {"type": "title", "v": 1, "title": "T", "updatedAt": "t", "pad": ""}
    found = open_tail(write_lines(file, slot, header_line(note="x" * 20_000), *chain("a")))
    assert (found.header.id, ids(found)) == ("s-1", ["e1"])


def test_session_without_entries_is_whole_and_empty(file):
    found = open_tail(write_lines(file, header_line()))
    assert ids(found) == []


def test_old_version_has_the_ids_of_the_full_load(file):
    from musepi_tui.storage.loading import load_session

    old = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")}
        for line in chain("a", "b")
    ]
    path = write_lines(file, header_line(None), *old)
    assert ids(open_tail(path)) == [head.id for head in load_session(path).heads]


def test_no_session_is_refused(file, tmp_path):
    with pytest.raises(NotASessionFileError):
        open_tail(write_lines(file, b"junk\n"))
    with pytest.raises(SessionError):
        open_tail(tmp_path / "missing.jsonl")
