import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import SessionError
from musepi_tui.session.codec import dump_json
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.storage.entry_file import Appended, Changes, NotWritableError
from musepi_tui.storage.lines import EXTERNAL_CHARS, SLOT_BYTES, Title, encode_slot
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.other_files import MemoryFile, ReadOnlyFile
from musepi_tui.storage.rewrite import Rewriting, Span, moved_heads, plan_pieces, write_slot
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import path, u
from tests.support.lines import chain, dump, header_line, record, user_record, write_lines

TITLE = Title("New name", "user", "2026-02-01T00:00:00.000Z")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = (*chain("a", "b"), b"junk\n", record("future_kind", "f1", "e2", payload={"keep": [1, 2]}))
    return write_lines(tmp_path / "s.jsonl", header_line(spare=1), *lines, user_record("e3", "f1", "c"))


def opened(file: Path) -> SessionFile:
    return SessionFile.open(file, load_session(file))


def said(entry_id: str, parent_id: str | None) -> Entry:
    return replace(path(u("text"))[0], id=entry_id, parent_id=parent_id)


def slot(title: str, source: str = "auto") -> bytes:
    made = encode_slot(Title(title, source, "2026-01-01T00:00:00.000Z"))
    assert made is not None
    return made


def line(entry_id: str, parent_id: str | None, text: str) -> bytes:
    return dump(user_record(entry_id, parent_id, text))[:-1]


def read_back(session: SessionFile, told: Appended, file: Path) -> None:
    data = file.read_bytes()
    for head in (*(told.moved or {}).values(), *told.heads):
        assert json.loads(data[head.offset : head.offset + head.length])["id"] == head.id


def test_changed_line_takes_the_place_of_the_old_one_and_all_else_stays(file):
    before = file.read_bytes().splitlines(keepends=True)
    inode = file.stat().st_ino
    session = opened(file)
    told = session.rewrite(Changes(lines={"e2": line("e2", "e1", "a much longer text")}))
    after = file.read_bytes().splitlines(keepends=True)
    assert after[2] == line("e2", "e1", "a much longer text") + b"\n"
    assert after[:2] + after[3:] == before[:2] + before[3:]
    assert file.stat().st_ino != inode
    assert set(told.moved) == {"e2", "f1", "e3"}
    read_back(session, told, file)
    later = session.append([said("n0", "e3")])
    read_back(session, later, file)
    session.close()
    assert load_session(file).tree.leaf_id == "n0"


def test_bytes_before_the_first_change_stay_where_they_are(file):
    before = file.read_bytes()
    session = opened(file)
    told = session.rewrite(Changes(lines={"e3": line("e3", "f1", "shorter")}))
    session.close()
    start = before.index(b'{"type":"message","id":"e3"')
    assert file.read_bytes()[:start] == before[:start]
    assert set(told.moved) == {"e3"}


def test_bodies_read_from_the_new_file(file):
    loaded = load_session(file)
    old_heads = loaded.heads
    session = SessionFile.open(file, loaded)
    session.rewrite(Changes(lines={"e1": line("e1", None, "changed " * 50)}, tail=(said("n0", "e3"),)))
    texts = [loaded.bodies.get(head).message.content for head in old_heads if head.type == "message"]
    session.close()
    assert texts == ["changed " * 50, "b", "c"]


def test_tail_is_appended_in_the_same_step(file):
    with file.open("ab") as other:
        other.write(b'{"torn')
    session = opened(file)
    told = session.rewrite(Changes(lines={"e1": line("e1", None, "x")}, tail=(said("n0", "e3"),)))
    session.close()
    assert [head.id for head in told.heads] == ["n0"]
    assert b'\n{"torn\n{"type":"message","id":"n0"' in file.read_bytes()
    read_back(session, told, file)


def test_changed_line_of_an_entry_that_was_not_written_yet_is_written_changed(file):
    session = opened(file)
    told = session.rewrite(Changes(lines={"n0": line("n0", "e3", "changed")}, tail=(said("n0", "e3"),)))
    session.close()
    assert load_session(file).read_path()[-1].message.content == "changed"
    read_back(session, told, file)


def test_unknown_entry_cannot_be_changed(file):
    before = file.read_bytes()
    session = opened(file)
    with pytest.raises(SessionError, match="gone is not in the file"):
        session.rewrite(Changes(lines={"gone": b"{}"}))
    session.close()
    assert file.read_bytes() == before


def test_header_keeps_its_other_fields_and_gets_the_title(file):
    session = opened(file)
    header = replace(load_session(file).header, cwd="/elsewhere")
    session.rewrite(Changes(header=header, title=TITLE))
    session.append([said("n0", "e3")])
    session.close()
    first = json.loads(file.read_bytes().split(b"\n")[0])
    assert first == header_line(spare=1, title="New name", titleSource="user") | {"cwd": "/elsewhere"}
    assert list(first)[:5] == ["type", "version", "id", "timestamp", "cwd"]
    assert [head.id for head in load_session(file).tree.path()] == ["e1", "e2", "f1", "e3", "n0"]


def test_title_alone_writes_nothing_into_a_file_without_a_slot(file):
    before = file.read_bytes()
    session = opened(file)
    session.rewrite(Changes(title=TITLE))
    session.close()
    assert file.read_bytes() == before


def test_slot_is_overwritten_in_place(tmp_path):
    file = write_lines(tmp_path / "s.jsonl", slot("old"), header_line(), *chain("a"))
    inode, size = file.stat().st_ino, file.stat().st_size
    session = opened(file)
    session.rewrite(Changes(title=TITLE))
    session.append([said("n0", "e1")])
    session.close()
    loaded = load_session(file)
    assert loaded.name == "New name"
    assert file.stat().st_ino == inode
    assert file.read_bytes()[SLOT_BYTES:size] == dump(header_line()) + dump(chain("a")[0])


@pytest.mark.parametrize("text", ["", "short", "é" * 300, "日本" * 100, '"\\' * 100, "\ud800" * 60])
def test_slot_has_its_length_whatever_the_title(text):
    made = slot(text, "user")
    assert len(made) == SLOT_BYTES
    assert made.endswith(b'"}\n')
    assert text.startswith(json.loads(made)["title"])


def test_title_is_not_written_into_a_file_that_took_the_place_of_ours(tmp_path):
    ours, theirs = (write_lines(tmp_path / name, slot("Old"), header_line()) for name in "ab")
    before = theirs.read_bytes()
    with ours.open("rb") as known:
        write_slot(theirs, known.fileno(), Span(0, SLOT_BYTES), TITLE)
        assert theirs.read_bytes() == before
        write_slot(ours, known.fileno(), Span(0, SLOT_BYTES), TITLE)
    assert ours.read_bytes() == slot("New name", "user").replace(b"01-01T", b"02-01T") + before[SLOT_BYTES:]


def test_title_of_a_session_without_a_file_goes_into_its_header(tmp_path):
    header = SessionHeader("s-1", "2026-01-01T00:00:00.000Z", "/p")
    session = SessionFile.create(tmp_path / "s.jsonl", header)
    session.rewrite(Changes(title=TITLE))
    assert not (tmp_path / "s.jsonl").exists()
    session.append([said("n0", None)])
    session.close()
    assert load_session(tmp_path / "s.jsonl").header.title == "New name"


def test_orphan_gets_its_new_parent_when_the_file_is_written_for_another_reason(tmp_path):
    lines = (*chain("a"), user_record("o1", "gone", "orphan"), user_record("o2", "o1", "last"))
    file = write_lines(tmp_path / "s.jsonl", header_line(), *lines)
    session = opened(file)
    session.append([said("n0", "o2")])
    assert b'"parentId":"gone"' in file.read_bytes()
    told = session.rewrite(Changes(lines={"o2": line("o2", "o1", "changed")}))
    read_back(session, told, file)
    session.close()
    loaded = load_session(file)
    assert loaded.issues == ()
    assert [head.id for head in loaded.tree.path()] == ["e1", "o1", "o2", "n0"]


def test_file_with_two_names_is_not_replaced(file):
    other = file.with_name("other.jsonl")
    other.hardlink_to(file)
    session = opened(file)
    with pytest.raises(SessionError, match="copy it first"):
        session.rewrite(Changes(lines={"e1": line("e1", None, "x")}))
    session.append([said("n0", "e3")])
    session.close()
    assert other.read_bytes() == file.read_bytes()


def test_link_stays_a_link_and_its_target_keeps_its_mode(file, tmp_path):
    file.chmod(0o640)
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    session = opened(link)
    session.rewrite(Changes(lines={"e1": line("e1", None, "x")}))
    session.close()
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert load_session(file).read_path()[0].message.content == "x"


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_failed_rewrite_leaves_the_old_file_and_nothing_else(file, monkeypatch, call):
    before = file.read_bytes()
    session = opened(file)

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        if call == "rename":
            patched.setattr(Path, "replace", fail)
        else:
            patched.setattr(os, call, fail)
        with pytest.raises(SessionError, match="No space left"):
            session.rewrite(Changes(lines={"e1": line("e1", None, "x")}))
    assert file.read_bytes() == before
    assert sorted(there.name for there in file.parent.iterdir()) == ["s.jsonl", "s.jsonl.lock"]
    session.append([said("n0", "e3")])
    session.close()
    assert file.read_bytes().startswith(before)


def test_foreign_lines_are_carried_along(file):
    session = opened(file)
    session.append([said("n0", "e3")])
    with file.open("ab") as other:
        other.write(dump(user_record("x1", "n0", "theirs")) + b"junk\n")
    told = session.rewrite(Changes(lines={"e1": line("e1", None, "x")}))
    session.close()
    assert [head.id for head in told.foreign] == ["x1"]
    assert file.read_bytes().endswith(b"junk\n")
    read_back(session, told, file)


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    changes=st.dictionaries(st.integers(0, 11), st.integers(1, 40)),
    header_bytes=st.one_of(st.none(), st.integers(1, 60)),
)
def test_every_entry_lies_where_its_head_says_after_any_change(lengths, changes, header_bytes):
    old_header = b"H" * 20 + b"\n"
    data, heads = old_header, []
    for index, length in enumerate(lengths):
        heads.append(EntryHead(f"e{index}", None, "t", "", len(data), length))
        data += bytes([97 + index]) * length + b"\n"
    lines = [(heads[i], bytes([65 + i]) * length) for i, length in sorted(changes.items()) if i < len(heads)]
    header = None if header_bytes is None else (Span(0, 21), b"N" * header_bytes + b"\n")
    pieces, moves = plan_pieces(Rewriting(len(data), lines, header, b"tail\n"))
    new = b"".join(piece if isinstance(piece, bytes) else data[piece.start : piece.end] for piece in pieces)
    moved = moved_heads(heads, moves, lines)
    for index, head in enumerate(heads):
        now = moved.get(head.id, head)
        expected = dict((changed.id, text) for changed, text in lines).get(
            head.id, bytes([97 + index]) * head.length
        )
        assert new[now.offset : now.offset + now.length + 1] == expected + b"\n"
    assert new.endswith(b"\ntail\n")


def picture(data: str) -> Entry:
    content = [{"type": "text", "text": "see"}, {"type": "image", "data": data, "mimeType": "image/png"}]
    from musepi_tui.session.codec import decode_entry

    return decode_entry(record("message", "p1", "e3", message={"role": "user", "content": content}))


@pytest.mark.parametrize(
    ("data", "goes_out"),
    [
        pytest.param("QUJD" * (EXTERNAL_CHARS // 4 + 1), True, id="large"),
        pytest.param("QUJD" * (EXTERNAL_CHARS // 4), False, id="at the limit"),
        pytest.param("not base64 " * EXTERNAL_CHARS, False, id="no base64"),
    ],
)
def test_large_images_go_out_of_the_line_where_that_is_wanted(file, data, goes_out):
    stored: list[bytes] = []

    def put(raw: bytes) -> str:
        stored.append(raw)
        return "blob:sha256:" + "0" * 64

    session = opened(file)
    session.put_blob = put
    session.append([picture(data)])
    session.close()
    written = json.loads(file.read_bytes().splitlines()[-1])["message"]["content"]
    assert written[0] == {"type": "text", "text": "see"}
    assert bool(stored) == goes_out
    assert written[1]["data"] == ("blob:sha256:" + "0" * 64 if goes_out else data)


def test_line_is_not_written_when_its_image_cannot_be_stored(file):
    def put(_: bytes) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = file.read_bytes()
    session = opened(file)
    session.put_blob = put
    with pytest.raises(SessionError, match="No space left"):
        session.append([picture("QUJD" * EXTERNAL_CHARS)])
    session.close()
    assert file.read_bytes() == before


def test_session_in_memory_takes_everything_and_has_no_path():
    file = MemoryFile()
    told = file.append(path(u("a"), u("b")))
    assert [(head.id, head.length, head.role) for head in told.heads] == [
        ("e1", 0, "user"),
        ("e2", 0, "user"),
    ]
    assert [head.id for head in file.rewrite(Changes(tail=path(u("c")))).heads] == ["e1"]
    assert file.path is None
    file.sync()
    file.close()


def test_session_opened_for_reading_refuses_every_write(tmp_path):
    file = ReadOnlyFile(tmp_path / "s.jsonl", "it is open elsewhere")
    for changes in (Changes(tail=path(u("a"))), Changes(title=TITLE), Changes(lines={"e1": dump_json({})})):
        with pytest.raises(NotWritableError, match="it is open elsewhere"):
            file.rewrite(changes)
    with pytest.raises(NotWritableError):
        file.append(path(u("a")))
    assert file.append(()) == Appended() == file.rewrite(Changes())
    file.sync()
    file.close()
    assert list(tmp_path.iterdir()) == []
