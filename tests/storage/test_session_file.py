import errno
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionBusyError, SessionChangedOnDiskError, SessionError
from musepi_tui.session.codec import encode_entry
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.session.messages import Usage
from musepi_tui.storage.entry_file import Appended
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import a, branch_summary, call, compaction, custom, path, state, t, u
from tests.support.lines import chain, dump, header_line, user_record, write_lines
from tests.support.shared import shared_path

HEADER = SessionHeader("s-1", "2026-01-01T00:00:00.000Z", "/p")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s.jsonl"


def new_session(file: Path) -> SessionFile:
    return SessionFile.create(file, HEADER)


def stored(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    return write_lines(file, header_line(), *chain("a", "b"))


def opened(file: Path) -> SessionFile:
    return SessionFile.open(file, load_session(file))


def next_entries(count: int = 1, after: str | None = "e2", prefix: str = "n") -> list[Entry]:
    from dataclasses import replace

    made = list(
        path(*(u(f"text {index}") for index in range(count)), ids=[f"{prefix}{i}" for i in range(count)])
    )
    made[0] = replace(made[0], parent_id=after)
    return made


class FullDisk:
    """``os.write`` that takes only so many bytes, as on a full disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 0
        self._write = os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, descriptor: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._write(descriptor, data[: self.room])
        self.room -= taken
        return taken


def test_nothing_is_on_disk_before_the_first_append(file):
    session = new_session(file)
    session.sync()
    session.close()
    assert not file.parent.exists()


def test_first_append_writes_header_and_entries(file):
    session = new_session(file)
    heads = session.append(path(state("model_change", model="a/b"), u("hi"))).heads
    lines = file.read_bytes().split(b"\n")
    assert (
        lines[0]
        == b'{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}'
    )
    assert [json.loads(line)["id"] for line in lines[1:3]] == ["e1", "e2"]
    assert lines[3] == b""
    assert load_session(file).heads == heads
    session.close()


def test_file_and_folder_are_private(file):
    session = new_session(file)
    session.append(next_entries(after=None))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.with_name("s.jsonl.lock").stat().st_mode) == 0o600
    session.close()


def test_entries_are_appended_one_after_the_other(file):
    session = new_session(file)
    heads = [
        *session.append(next_entries(1, None, "x")).heads,
        *session.append(next_entries(2, "x0", "y")).heads,
    ]
    session.sync()
    session.close()
    loaded = load_session(file)
    assert list(loaded.heads) == heads
    assert [head.id for head in loaded.tree.path()] == ["x0", "y0", "y1"]


def test_appending_nothing_creates_nothing(file):
    assert new_session(file).append([]) == Appended()
    assert not file.exists()


def test_old_bytes_stay_in_front_of_what_is_appended(file):
    before = stored(file).read_bytes()
    session = opened(file)
    session.append(next_entries())
    session.close()
    assert file.read_bytes().startswith(before)
    assert load_session(file).tree.leaf_id == "n0"


@pytest.mark.parametrize(
    "tail", [b'{"type":"mess', b"\x00\x00", b'{"type":"label","id":"x","parentId":"e2","timestamp":"t"}']
)
def test_line_feed_is_written_behind_a_tail_without_one(file, tail):
    before = stored(file).read_bytes() + tail
    file.write_bytes(before)
    session = opened(file)
    session.append(next_entries())
    session.append(next_entries(1, "n0", "m"))
    session.close()
    assert file.read_bytes().startswith(before + b'\n{"type":"message","id":"n0"')
    assert file.read_bytes().count(b"\n\n") == 0


def test_opening_changes_nothing(file):
    before = stored(file).read_bytes()
    opened(file).close()
    assert file.read_bytes() == before
    assert sorted(item.name for item in file.parent.iterdir()) == ["s.jsonl"]


def test_second_writer_is_refused_with_the_pid(file):
    first = opened(stored(file))
    with pytest.raises(SessionBusyError, match=rf"another musepi \(pid {os.getpid()}\); close it") as caught:
        opened(file)
    assert caught.value.pid == os.getpid()
    first.close()
    opened(file).close()


def test_file_that_appeared_meanwhile_is_not_touched(file):
    session = new_session(file)
    before = stored(file).read_bytes()
    with pytest.raises(SessionChangedOnDiskError, match="made by another program"):
        session.append(next_entries(after=None))
    assert file.read_bytes() == before
    session.close()


def test_empty_file_becomes_the_session(file):
    file.parent.mkdir()
    file.touch()
    session = new_session(file)
    session.append(next_entries(after=None))
    session.close()
    assert load_session(file).tree.leaf_id == "n0"


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(b"", id="no header"),
        pytest.param(dump({**header_line(), "id": "other"}), id="another session"),
        pytest.param(dump({**header_line(), "version": 4}), id="a newer version"),
    ],
)
def test_file_that_is_another_session_now_is_not_written(file, there):
    session = opened(stored(file))
    session.append(next_entries())
    file.rename(file.with_name("old.jsonl"))
    before = there + b"not ours"
    file.write_bytes(before)
    with pytest.raises(SessionChangedOnDiskError, match="replaced"):
        session.append(next_entries(1, "n0", "m"))
    assert file.read_bytes() == before
    session.close()


def test_file_replaced_while_it_was_opened_is_refused(file):
    loaded = load_session(stored(file))
    file.rename(file.with_name("old.jsonl"))
    stored(file)
    with pytest.raises(SessionChangedOnDiskError, match="replaced"):
        SessionFile.open(file, loaded)
    assert not file.with_name("s.jsonl.lock").exists()


@pytest.mark.parametrize(
    "foreign", [dump(user_record("f", "e2", "x")), dump(user_record("f", "e2", "x"))[:-9]]
)
def test_lines_of_others_stay_whole(file, foreign):
    session = opened(stored(file))
    session.append(next_entries())
    with file.open("ab") as other:
        other.write(foreign)
    (head,) = session.append(next_entries(1, "n0", "m")).heads
    session.close()
    assert foreign in file.read_bytes()
    loaded = load_session(file, thorough=True)
    assert loaded.tree.heads["m0"].offset == head.offset
    assert {"n0", "m0"} <= set(loaded.tree.order)


@pytest.mark.parametrize("room", [0, 1, 50, 200, 260, 400])
def test_failed_creation_can_be_tried_again(file, monkeypatch, room):
    disk = FullDisk(monkeypatch)
    disk.room = room
    session = new_session(file)
    entries = next_entries(3, None)
    with pytest.raises(SessionError, match=r"could not write .*: No space left on device"):
        session.append(entries)
    assert not file.exists()
    disk.room = 10_000
    heads = session.append(entries).heads
    session.close()
    assert load_session(file).heads == heads


def test_file_that_was_there_empty_is_empty_again_after_a_failure(file, monkeypatch):
    file.parent.mkdir()
    file.touch()
    before = file.stat().st_ino
    disk = FullDisk(monkeypatch)
    disk.room = 200
    session = new_session(file)
    with pytest.raises(SessionError, match="No space left"):
        session.append(next_entries(3, None))
    assert (file.stat().st_ino, file.read_bytes()) == (before, b"")
    disk.room = 10_000
    session.append(next_entries(3, None))
    session.close()
    assert file.stat().st_ino == before
    assert len(load_session(file).heads) == 3


def make_odd(kind: str, path: Path) -> None:
    """Something with that name that is no file."""
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                folder = os.open(path.parent, os.O_RDONLY)
                server.bind(f"/proc/self/fd/{folder}/{path.name}")  # a socket's name has 107 characters
                os.close(folder)
        case "device":
            try:
                os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            except PermissionError:
                pytest.skip("no device may be made here")
        case _:
            path.mkdir()


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder"])
def test_what_is_no_file_is_never_written_nor_removed(kind, file):
    file.parent.mkdir()
    make_odd(kind, file)
    before = file.lstat()
    session = new_session(file)
    for _ in range(2):
        with pytest.raises(SessionError, match=r"not a regular file|directory"):
            session.append(next_entries(after=None))
        assert (file.lstat().st_ino, file.lstat().st_mode) == (before.st_ino, before.st_mode)
    session.close()


def test_file_that_was_given_back_is_not_written_nor_locked_again(file):
    session = new_session(file)
    session.append(next_entries(after=None))
    before = file.read_bytes()
    session.close()
    with pytest.raises(SessionError, match="was given back"):
        session.append(next_entries(1, "n0", "m"))
    assert file.read_bytes() == before
    assert sorted(item.name for item in file.parent.iterdir()) == ["s.jsonl"]


LINE_BYTES = 180
"""The length of a line of ``next_entries``: rooms around its multiples end next to a line feed."""


@pytest.mark.parametrize(
    "room", sorted({*range(0, 3 * LINE_BYTES, 37), *range(LINE_BYTES - 3, LINE_BYTES + 4)})
)
def test_failed_append_can_be_tried_again_and_nothing_is_there_twice(file, monkeypatch, room):
    session = opened(stored(file))
    session.append(next_entries(1))
    disk = FullDisk(monkeypatch)
    disk.room = room
    entries = next_entries(3, "n0", "m")
    with pytest.raises(SessionError):
        session.append(entries)
    disk.room = 10_000
    heads = session.append([*entries, *next_entries(1, "m2", "z")]).heads
    session.close()
    loaded = load_session(file, thorough=True)
    assert [head.id for head in loaded.heads] == ["e1", "e2", "n0", "m0", "m1", "m2", "z0"]
    assert loaded.heads[3:] == heads
    assert {issue.kind for issue in loaded.issues} <= {"bad_json"}


def test_entry_that_cannot_be_written_as_json_leaves_the_file_alone(file):
    before = stored(file).read_bytes()
    session = opened(file)
    with pytest.raises(TypeError):
        session.append([*next_entries(), *path(state("custom", data=object()))])
    session.close()
    assert file.read_bytes() == before


def test_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SessionError, match="Not a directory"):
        SessionFile.create(tmp_path / "file" / "s.jsonl", HEADER).append(next_entries())


def test_newer_version_is_not_opened_for_writing(file):
    file.parent.mkdir()
    write_lines(file, header_line(4), *chain("a"))
    with pytest.raises(SessionError, match="version 4 is newer than this musepi understands"):
        opened(file)
    assert not file.with_name("s.jsonl.lock").exists()


def test_symlink_stays_one_and_shares_the_lock(file, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(stored(file))
    session = opened(link)
    with pytest.raises(SessionBusyError):
        opened(file)
    session.append(next_entries())
    session.close()
    assert link.is_symlink()
    assert load_session(file).tree.leaf_id == "n0"


def old_file(file: Path) -> bytes:
    file.parent.mkdir(parents=True)
    lines = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")}
        for line in chain("a", "b")
    ]
    return write_lines(
        file, header_line(None, modelId="m"), lines[0], b"junk\n", lines[1], b"torn"
    ).read_bytes()


def test_old_version_is_rewritten_at_the_first_append(file):
    before = old_file(file)
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    assert file.read_bytes() == before
    leaf = loaded.tree.leaf_id
    session.append(next_entries(1, leaf))
    session.append(next_entries(1, "n0", "m"))
    session.close()
    assert file.with_name("s.jsonl.v1.bak").read_bytes() == before
    again = load_session(file, thorough=True)
    assert (again.version_on_disk, again.header.extra) == (3, {"modelId": "m"})
    assert [head.id for head in again.tree.path()] == [*(head.id for head in loaded.heads), "n0", "m0"]
    assert b"\njunk\n" in file.read_bytes()
    assert b"\ntorn\n" in file.read_bytes()


def test_entries_of_an_old_version_are_read_from_the_new_file_once_it_is_written(file):
    old_file(file)
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    told = session.append(next_entries(1, loaded.tree.leaf_id))
    session.close()
    data = file.read_bytes()
    assert set(told.moved) == set(loaded.tree.order)
    for head in told.moved.values():
        assert json.loads(data[head.offset : head.offset + head.length])["id"] == head.id
    loaded.bodies.forget(loaded.tree.order)
    texts = [loaded.bodies.get(head).message.content for head in loaded.heads]
    assert (loaded.bodies.hot_ids, texts) == ((), ["a", "b"])


def test_name_of_an_old_version_becomes_the_title_of_its_new_header(file):
    file.parent.mkdir(parents=True)
    named = {"type": "session_info", "timestamp": "2026-01-01T00:00:02.000Z", "name": "my session"}
    write_lines(file, header_line(2), *chain("a"), {**named, "id": "i1", "parentId": "e1"})
    session = opened(file)
    session.append(next_entries(1, "i1"))
    session.close()
    header = json.loads(file.read_bytes().split(b"\n")[0])
    assert (header["title"], header["titleSource"], header["version"]) == ("my session", "user", 3)


def test_backup_of_an_old_version_is_never_overwritten(file):
    old_file(file)
    backup = file.with_name("s.jsonl.v1.bak")
    backup.write_bytes(b"precious")
    session = opened(file)
    session.append(next_entries())
    session.close()
    assert backup.read_bytes() == b"precious"


def test_old_version_changed_meanwhile_is_not_rewritten(file):
    old_file(file)
    session = opened(file)
    with file.open("ab") as other:
        other.write(b"\nmore\n")
    before = file.read_bytes()
    with pytest.raises(SessionChangedOnDiskError):
        session.append(next_entries())
    assert file.read_bytes() == before
    session.close()


def test_old_version_survives_a_failed_rewrite(file, monkeypatch):
    before = old_file(file)
    session = opened(file)
    monkeypatch.setattr(os, "fsync", _fail)
    with pytest.raises(SessionError, match="could not write"):
        session.append(next_entries())
    session.close()
    assert file.read_bytes() == before


def _fail(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_failed_sync_is_an_error(file, monkeypatch):
    session = new_session(file)
    session.append(next_entries(after=None))
    monkeypatch.setattr(os, "fdatasync", _fail)
    with pytest.raises(SessionError, match="could not sync"):
        session.sync()
    session.close()


def test_written_file_passes_the_checker_of_the_format(file):
    checker = shared_path("tools", "make_session.py")
    entries = path(
        state("model_change", provider="test", modelId="model"),
        state("thinking_level_change", thinkingLevel="high"),
        u("hi"),
        a("let me see", [call("read", "c1", path="x"), call("ls", "c2")], thinking="hm"),
        t("x", "c1"),
        t("y", "c2", "ls", error=True),
        a("done", usage=Usage(1, 2, 3, 4)),
        state("label", targetId="e3", label="start"),
        compaction("S", "e3", tokens_before=99, tokens_after=9, reason="manual", usage=Usage(5, 6)),
        branch_summary("B", "e3"),
        custom("note"),
        state("session_info", name="n"),
    )
    session = new_session(file)
    for entry in entries:
        session.append([entry])
    session.close()
    result = subprocess.run(
        [sys.executable, str(checker), "--check", str(file)], capture_output=True, text=True, check=False
    )
    found = json.loads(result.stdout)
    assert (result.returncode, found["problems"], found["warnings"]) == (0, [], {})
    assert (found["entries"], found["leafId"], found["contextMessages"]) == (12, "e12", 8)


def test_entries_read_back_as_they_were_written(file):
    entries = path(u("hi \ud800 é"), a("x", [call("read", n=2**70)]), compaction("S", "e1"))
    session = new_session(file)
    session.append(entries)
    session.close()
    again = load_session(file).read_path()
    assert [encode_entry(entry) for entry in again] == [encode_entry(entry) for entry in entries]
