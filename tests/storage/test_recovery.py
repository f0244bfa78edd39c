import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import Changes, RecoveryNeededError
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import INLINE_BYTES, SessionFile
from tests.support.builders import path, u
from tests.support.lines import chain, dump, header_line, record, user_record, write_lines

HEADER = SessionHeader("s-1", "2026-01-01T00:00:00.000Z", "/p")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "s.jsonl", header_line(), *chain("a", "b"))


def opened(file: Path) -> SessionFile:
    return SessionFile.open(file, load_session(file))


def said(entry_id: str, parent_id: str | None, text: str = "text") -> Entry:
    return replace(path(u(text))[0], id=entry_id, parent_id=parent_id)


def ids(file: Path) -> list[str]:
    return [head.id for head in load_session(file, thorough=True).heads]


def add(file: Path, *lines: dict | bytes) -> None:
    with file.open("ab") as other:
        for line in lines:
            other.write(line if isinstance(line, bytes) else dump(line))


def replace_by(file: Path, *lines: dict | bytes) -> None:
    file.unlink()
    write_lines(file, *lines)


def heads_lead_to_their_lines(file: Path, heads) -> bool:
    data = file.read_bytes()
    return all(json.loads(data[head.offset : head.offset + head.length])["id"] == head.id for head in heads)


def test_lines_another_program_appended_are_told_once(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    add(file, user_record("f1", "e2", "theirs"), user_record("f2", "f1", "more"))
    told = session.append([said("n1", "n0")])
    add(file, user_record("f3", "f2", "again"))
    again = session.append([said("n2", "n1")])
    session.close()
    assert [head.id for head in told.foreign] == ["f1", "f2"]
    assert [head.id for head in again.foreign] == ["f3"]
    assert "another program writes" in told.notices[0]
    assert "2 lines" in told.notices[0]
    assert again.notices == ()
    assert ids(file) == ["e1", "e2", "n0", "f1", "f2", "n1", "f3", "n2"]
    assert heads_lead_to_their_lines(file, (*told.foreign, *told.heads, *again.foreign, *again.heads))


def test_note_another_tool_leaves_at_its_exit_is_taken_in_silently(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    add(file, record("custom", "x1", "n0", customType="session_exit"))
    told = session.append([said("n1", "n0")])
    session.close()
    assert [head.id for head in told.foreign] == ["x1"]
    assert told.notices == ()


def test_what_was_appended_between_loading_and_the_first_append_is_taken_in(file):
    session = opened(file)
    add(file, user_record("f1", "e2", "theirs"))
    told = session.append([said("n0", "e2")])
    session.close()
    assert [head.id for head in told.foreign] == ["f1"]


def test_line_that_was_being_written_while_the_file_was_loaded_is_taken_in(file):
    line = dump(user_record("f1", "e2", "theirs"))
    add(file, line[:30])
    session = opened(file)
    add(file, line[30:])
    told = session.append([said("n0", "e2")])
    session.close()
    assert [head.id for head in told.foreign] == ["f1"]
    assert ids(file) == ["e1", "e2", "f1", "n0"]


def test_parent_of_a_foreign_line_that_is_nowhere_becomes_the_entry_before_it(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    add(file, user_record("f1", "gone", "theirs"))
    told = session.append([said("n1", "n0")])
    session.close()
    assert told.foreign[0].parent_id == "n0" == load_session(file).tree.head("f1").parent_id


def test_unreadable_foreign_lines_stay_and_are_told(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    add(file, b"junk\n", b'{"half')
    told = session.append([said("n1", "n0")])
    session.close()
    assert told.foreign == ()
    assert "2 lines" in told.notices[0]
    assert b'junk\n{"half\n{"type"' in file.read_bytes()


def test_entry_of_ours_that_says_something_else_in_the_file_counts_as_it_is_there(file):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    ours = said("n0", "e2")
    loaded.bodies.remember(ours)
    first = session.append([ours])
    add(file, user_record("n0", "e2", "theirs"))
    told = session.append([said("n1", "n0")])
    session.close()
    assert told.changed == ("n0",)
    assert "conflict" in told.notices[0]
    assert loaded.bodies.get(first.heads[0]).message.content == "theirs"
    assert heads_lead_to_their_lines(file, told.moved.values())


def test_equal_repetition_of_a_line_is_no_conflict(file):
    session = opened(file)
    (head,) = session.append([said("n0", "e2")]).heads
    add(file, file.read_bytes()[head.offset : head.offset + head.length + 1])
    told = session.append([said("n1", "n0")])
    session.close()
    assert (told.changed, told.moved, told.foreign) == ((), None, ())


def test_deleted_file_is_written_again_with_everything(file):
    add(file, b"junk\n")
    session = opened(file)
    session.append([said("n0", "e2")])
    before = file.read_bytes()
    file.unlink()
    told = session.append([said("n1", "n0")])
    assert "deleted" in told.notices[0]
    assert file.read_bytes().startswith(before)
    assert ids(file) == ["e1", "e2", "n0", "n1"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert session.append([said("n2", "n1")]).notices == ()
    session.close()


def test_deleted_folder_is_made_again_and_the_lock_with_it(tmp_path):
    folder = tmp_path / "sub"
    folder.mkdir()
    file = write_lines(folder / "s.jsonl", header_line(), *chain("a"))
    session = opened(file)
    session.append([said("n0", "e1")])
    for there in folder.iterdir():
        there.unlink()
    folder.rmdir()
    session.append([said("n1", "n0")])
    assert ids(file) == ["e1", "n0", "n1"]
    with pytest.raises(SessionError, match="another musepi"):
        opened(file)
    session.close()


def test_bodies_of_a_file_written_again_can_be_read(file):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    (head,) = session.append([said("n0", "e2", "mine")]).heads
    file.unlink()
    (later,) = session.append([said("n1", "n0", "late")]).heads
    assert loaded.bodies.get(head).message.content[0].text == "mine"
    assert loaded.bodies.get(later).message.content[0].text == "late"
    session.close()


def test_replaced_file_gets_what_it_lacks_byte_for_byte(file):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    first = session.append([said("n0", "e2", "mine")])
    line = file.read_bytes()[first.heads[0].offset :]
    replace_by(
        file, header_line(title="theirs"), *chain("a longer text", "b"), user_record("f1", "e2", "theirs")
    )
    told = session.append([said("n1", "n0")])
    assert told.notices[1] == (
        f"session: {file} was replaced by another program; 1 entry that it lacked was written again"
    )
    assert [head.id for head in told.foreign] == ["f1"]
    assert told.changed == ("e1",)
    assert line in file.read_bytes()
    assert ids(file) == ["e1", "e2", "f1", "n0", "n1"]
    assert heads_lead_to_their_lines(file, (*told.moved.values(), *told.heads))
    assert set(told.moved) == {"e1", "e2", "n0"}
    assert loaded.bodies.get(loaded.tree.head("e1")).message.content == "a longer text"
    assert session.append([said("n2", "n1")]).notices == ()
    session.close()


def test_replacement_with_the_same_entries_changes_nothing(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    before = file.read_bytes()
    replace_by(file, before)
    told = session.append([said("n1", "n0")])
    session.close()
    assert (told.changed, told.foreign) == ((), ())
    assert told.notices == (f"session: {file} was replaced by another program; it lacks nothing",)
    assert file.read_bytes().startswith(before)
    assert ids(file) == ["e1", "e2", "n0", "n1"]


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_file_cut_short_gets_back_what_memory_holds(file, kept):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    for entry in (said("n0", "e2", "mine"), said("n1", "n0", "too")):
        loaded.bodies.remember(entry)
        session.append([entry])
    lines = file.read_bytes().splitlines(keepends=True)
    os.truncate(file, sum(map(len, lines[: kept + 1])) - 5)
    told = session.append([said("n2", "n1")])
    session.close()
    assert "cut short" in told.notices[0]
    found = ids(file)
    # What was read from the file and is not in memory is gone with its bytes; that is told.
    assert found[-3:] == ["n0", "n1", "n2"]
    assert ("lost" in told.notices[0]) == (kept < 3)
    assert heads_lead_to_their_lines(file, told.heads)


def test_file_overwritten_in_place_is_merged(file):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    ours = said("n0", "e2", "mine")
    loaded.bodies.remember(ours)
    session.append([ours])
    write_lines(file, header_line(), *chain("x" * 500, "b"), user_record("f1", "e2", "theirs"))
    told = session.append([said("n1", "n0")])
    session.close()
    assert ids(file) == ["e1", "e2", "f1", "n0", "n1"]
    assert [head.id for head in told.foreign] == ["f1"]


def test_last_line_overwritten_in_place_at_the_same_length_is_noticed(file):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    for entry in (said("n0", "e2", "mine"), said("n1", "n0", "mine")):
        loaded.bodies.remember(entry)
        session.append([entry])
    data = file.read_bytes()
    at = data.rindex(b"mine")
    with file.open("r+b") as other:
        other.write(data[:at] + b"ours" + data[at + 4 :])
    told = session.append([said("n2", "n1")])
    session.close()
    assert (told.changed, ids(file)) == (("n1",), ["e1", "e2", "n0", "n1", "n2"])
    assert heads_lead_to_their_lines(file, told.heads)


def test_last_line_that_was_blotted_out_is_written_again(file):
    loaded = load_session(file)
    session = SessionFile.open(file, loaded)
    ours = said("n0", "e2", "mine")
    loaded.bodies.remember(ours)
    (head,) = session.append([ours]).heads
    with file.open("r+b") as other:
        other.seek(head.offset)
        other.write(bytes(head.length))
    session.append([said("n1", "n0")])
    session.close()
    assert ids(file) == ["e1", "e2", "n0", "n1"]


@pytest.mark.parametrize("tail", [b"", b'{"type":"mess'], ids=["whole", "torn"])
def test_file_that_was_only_touched_is_gone_on_with_in_silence(file, tail):
    add(file, tail)
    session = opened(file)
    os.utime(file)
    told = [session.append([said("n0", "e2")])]
    os.utime(file)
    told.append(session.append([said("n1", "n0")]))
    session.close()
    assert [(each.notices, each.moved) for each in told] == [((), None)] * 2
    assert ids(file) == ["e1", "e2", "n0", "n1"]


def meanwhile(monkeypatch, call: str, act) -> None:
    """Another program does something before the next ``call`` of ours."""
    real = getattr(os, call)

    def late(*arguments, **options):
        monkeypatch.setattr(os, call, real)
        act()
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, late)


@pytest.mark.parametrize("call", ["fchmod", "fsync"])
def test_line_another_program_appends_while_the_file_is_written_anew_is_not_lost(file, monkeypatch, call):
    session = opened(file)
    session.append([said("n0", "e2")])
    changes = Changes(lines={"e1": dump(user_record("e1", None, "changed"))[:-1]})
    meanwhile(monkeypatch, call, lambda: add(file, user_record("f1", "n0", "theirs")))
    with pytest.raises(SessionError, match="another program changed it at the same time"):
        session.rewrite(changes)
    assert [there.name for there in file.parent.iterdir() if there.suffix == ".tmp"] == []
    told = session.rewrite(changes)
    session.close()
    assert [head.id for head in told.foreign] == ["f1"]
    assert ids(file) == ["e1", "e2", "n0", "f1"]
    assert b"changed" in file.read_bytes()


def test_file_another_program_makes_while_the_deleted_one_is_written_again_is_not_lost(file, monkeypatch):
    session = opened(file)
    session.append([said("n0", "e2")])
    file.unlink()
    theirs = (header_line(), *chain("a", "b"), user_record("f1", "e2", "theirs"))
    meanwhile(monkeypatch, "fsync", lambda: write_lines(file, *theirs))
    with pytest.raises(SessionError, match="File exists"):
        session.append([said("n1", "n0")])
    session.append([said("n1", "n0")])
    session.close()
    assert ids(file) == ["e1", "e2", "f1", "n0", "n1"]


def test_line_another_program_appends_while_an_old_file_is_written_anew_is_not_lost(tmp_path, monkeypatch):
    old = [{key: line[key] for key in line if key not in ("id", "parentId")} for line in chain("a", "b")]
    file = write_lines(tmp_path / "old.jsonl", header_line(None), *old)
    (tmp_path / "old.jsonl.v1.bak").write_bytes(file.read_bytes())
    session = opened(file)
    meanwhile(monkeypatch, "fsync", lambda: add(file, old[0]))
    with pytest.raises(SessionError, match="another program changed it"):
        session.append([said("n0", None)])
    session.close()
    assert file.read_bytes() == b"".join(map(dump, (header_line(None), *old, old[0])))


def test_emptied_file_is_filled_again(file):
    loaded = load_session(file)
    for head in loaded.heads:
        loaded.bodies.remember(loaded.bodies.get(head))
    session = SessionFile.open(file, loaded)
    session.append([said("n0", "e2")])
    loaded.bodies.remember(said("n0", "e2"))
    os.truncate(file, 0)
    session.append([said("n1", "n0")])
    session.close()
    assert ids(file) == ["e1", "e2", "n0", "n1"]
    assert load_session(file).header.id == "s-1"


def test_empty_file_in_place_of_the_session_gets_everything(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    before = file.read_bytes()
    replace_by(file)
    told = session.append([said("n1", "n0")])
    session.close()
    assert file.read_bytes().startswith(before)
    assert ids(file) == ["e1", "e2", "n0", "n1"]
    assert len(told.notices) == 1


def test_file_without_its_header_is_not_touched(file):
    session = opened(file)
    session.append([said("n0", "e2")])
    os.truncate(file, 20)
    with pytest.raises(SessionChangedOnDiskError, match="cut short"):
        session.append([said("n1", "n0")])
    assert file.stat().st_size == 20
    session.close()


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_in_its_place_stays_there(kind, file):
    session = opened(file)
    session.append([said("n0", "e2")])
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    before = file.stat()
    for write in (lambda: session.append([said("n1", "n0")]), lambda: session.rewrite(Changes())):
        with pytest.raises(SessionChangedOnDiskError, match="is no regular file any more"):
            write()
    assert (file.stat().st_ino, file.stat().st_mode) == (before.st_ino, before.st_mode)
    session.close()


def test_merging_that_fails_is_begun_anew(file, monkeypatch):
    session = opened(file)
    session.append([said("n0", "e2"), said("n1", "n0")])
    replace_by(file, header_line(), *chain("a", "b"))
    real, calls = os.write, []

    def write(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 1:
            return real(descriptor, data[:40])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(SessionError):
        session.append([said("n2", "n1")])
    monkeypatch.setattr(os, "write", real)
    session.append([said("n2", "n1")])
    session.close()
    assert ids(file) == ["e1", "e2", "n0", "n1", "n2"]


def test_large_repairs_are_left_to_a_rewrite(file):
    add(file, user_record("big", "e2", "x" * INLINE_BYTES))
    session = opened(file)
    session.append([said("n0", "big")])
    file.unlink()
    with pytest.raises(RecoveryNeededError):
        session.append([said("n1", "n0")])
    assert not file.exists()
    told = session.rewrite(Changes(tail=(said("n1", "n0"),)))
    assert [head.id for head in told.heads] == ["n1"]
    assert session.append([said("n2", "n1")]).notices == ()
    session.close()
    assert ids(file) == ["e1", "e2", "big", "n0", "n1", "n2"]


def fail(_: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_after_a_failed_sync_the_tail_is_written_to_a_new_file(file, monkeypatch):
    session = opened(file)
    entries = (said("n0", "e2", "mine"), said("n1", "n0"))
    session.append(entries[:1])
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(SessionError, match="could not sync"):
        session.sync()
    before = file.stat().st_ino
    with pytest.raises(RecoveryNeededError):
        session.append(entries[1:])
    # The kernel dropped the page: what can be read back is not what was written.
    with file.open("r+b") as damaged:
        damaged.seek(file.read_bytes().index(b"mine"))
        damaged.write(b"\0\0\0\0")
    told = session.rewrite(Changes(tail=entries))
    session.close()
    assert file.stat().st_ino != before
    assert ids(file) == ["e1", "e2", "n0", "n1"]
    assert b"\0" not in file.read_bytes()
    assert heads_lead_to_their_lines(file, told.heads)


def test_line_glued_to_a_torn_one_of_another_program_is_written_again(file, monkeypatch):
    session = opened(file)
    session.append([said("n0", "e2")])
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", real)
        add(file, b'{"type":"mess')  # between our look at the size and our write
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    told = session.append([said("n1", "n0")])
    session.append([said("n2", "n1")])
    session.close()
    assert ids(file) == ["e1", "e2", "n0", "n1", "n2"]
    assert heads_lead_to_their_lines(file, told.heads)


def test_line_another_program_wrote_just_before_ours_is_taken_in(file, monkeypatch):
    session = opened(file)
    session.append([said("n0", "e2")])
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", real)
        add(file, user_record("f1", "n0", "theirs"))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    told = session.append([said("n1", "n0")])
    session.close()
    assert [head.id for head in told.foreign] == ["f1"]
    assert ids(file) == ["e1", "e2", "n0", "f1", "n1"]
    assert heads_lead_to_their_lines(file, (*told.heads, *told.foreign))


def test_new_session_reads_back_what_it_wrote(tmp_path):
    file = tmp_path / "new.jsonl"
    bodies = Bodies(file)
    session = SessionFile.create(file, HEADER, bodies)
    (head,) = session.append(path(u("hello"))).heads
    assert bodies.get(head).message.content[0].text == "hello"
    session.close()
