import hashlib
import os

import pytest

from musepi_tui.base.errors import SessionError
from musepi_tui.storage.blob_garbage import MIN_AGE_MS, delete_blob, find_garbage
from tests.support.lines import chain, header_line, write_lines

NOW_MS = 2_000_000_000_000
OLD_MS = NOW_MS - MIN_AGE_MS - 1


def blob(store, data, *, ms=OLD_MS, ending=""):
    store.mkdir(exist_ok=True)
    path = store / (hashlib.sha256(data).hexdigest() + ending)
    path.write_bytes(data)
    os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))
    return path


def mention(path, *blobs, word="blob"):
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_lines(path, header_line(), *chain(*(f"{word}:sha256:{each.name[:64]}" for each in blobs)))


def test_old_blobs_without_a_mention_are_garbage(tmp_path):
    store, sessions = tmp_path / "blobs", tmp_path / "sessions"
    used, text, inner, unused = (blob(store, data) for data in (b"used", b"text", b"inner", b"unused"))
    copy = blob(store, b"unused", ending=".png")
    young = blob(store, b"young", ms=NOW_MS - MIN_AGE_MS)
    mention(sessions / "--p--" / "s.jsonl", used)
    mention(sessions / "--p--" / "t.jsonl.v1.bak", text, word="blobtext")
    mention(sessions / "--p--" / "s" / "agent.jsonl", inner)
    found = find_garbage(store, [sessions, tmp_path / "missing"], NOW_MS)
    assert found.files == (unused, copy)
    assert found.size_bytes == 12
    assert young not in found.files


def test_other_files_in_the_store_are_left_alone(tmp_path):
    store = tmp_path / "blobs"
    target = blob(store, b"x").rename(store / "notes.txt")
    (store / ("0" * 64)).symlink_to(target)
    (store / ("1" * 64)).mkdir()
    assert find_garbage(store, [], NOW_MS).files == ()
    assert find_garbage(tmp_path / "missing", [], NOW_MS).files == ()


def test_mention_cut_by_a_step_is_found(tmp_path):
    from musepi_tui.storage import blob_garbage

    store = tmp_path / "blobs"
    used = blob(store, b"used")
    file = tmp_path / "s" / "s.jsonl"
    file.parent.mkdir()
    for before in range(0, 90, 3):
        file.write_bytes(b" " * (blob_garbage._STEP_BYTES - before) + b"blob:sha256:" + used.name.encode())
        assert find_garbage(store, [file.parent], NOW_MS).files == ()


def test_session_that_cannot_be_read_stops_everything(tmp_path):
    blob(tmp_path / "blobs", b"x")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "s.jsonl").mkdir()
    assert len(find_garbage(tmp_path / "blobs", [tmp_path / "s"], NOW_MS).files) == 1
    (tmp_path / "s" / "t.jsonl").symlink_to("n" * 300)
    with pytest.raises(SessionError, match="nothing was deleted"):
        find_garbage(tmp_path / "blobs", [tmp_path / "s"], NOW_MS)


def test_links_that_lead_nowhere_and_pipes_mention_nothing(tmp_path):
    garbage = blob(tmp_path / "blobs", b"x")
    sessions = tmp_path / "s"
    sessions.mkdir()
    (sessions / "loop.jsonl").symlink_to(sessions / "loop.jsonl")
    (sessions / "gone.jsonl").symlink_to(sessions / "nothing")
    os.mkfifo(sessions / "pipe.jsonl")
    assert find_garbage(tmp_path / "blobs", [sessions], NOW_MS).files == (garbage,)


def test_blob_written_anew_is_not_deleted(tmp_path):
    old, young = blob(tmp_path / "blobs", b"old"), blob(tmp_path / "blobs", b"new", ms=NOW_MS)
    assert (delete_blob(old, NOW_MS), delete_blob(young, NOW_MS)) == (True, False)
    assert (old.exists(), young.exists()) == (False, True)
    assert delete_blob(old, NOW_MS)
