import os
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import SessionHeader
from musepi_tui.storage.entry_file import EntryFile
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.rescue import write_rescue
from musepi_tui.storage.seeded_file import SeededFile
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import path as entries_of
from tests.support.builders import u
from tests.support.lines import chain, dump, header_line, write_lines

HEADER = SessionHeader("s-1", "2026-01-01T00:00:00.000Z", "/p")
TORN = b'{"type":"message","id":"torn'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "sessions").mkdir()
    return write_lines(tmp_path / "sessions" / "s.jsonl", header_line(), *chain("a", "b"))


def rescued(session: EntryFile, tmp_path: Path, *ids: str) -> Path:
    """What remains of a session whose entries of these ids could not be written."""
    unsaved = entries_of(*(u(f"text of {entry_id}") for entry_id in ids), ids=list(ids))
    path = tmp_path / "rescue.jsonl"
    path.write_bytes(b"".join(session.remains(unsaved)))
    session.close()
    return path


def ids_in(path: Path) -> list[str]:
    return [head.id for head in load_session(path, thorough=True).heads]


def opened(file: Path) -> SessionFile:
    return SessionFile.open(file, load_session(file))


def delete(file: Path) -> None:
    file.unlink()


def replace_by_a_stranger(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(dump(header_line(id="stranger")))
    other.replace(file)


def replace_by_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def test_what_the_file_holds_is_not_rescued(file, tmp_path):
    assert ids_in(rescued(opened(file), tmp_path, "n1", "n2")) == ["n1", "n2"]


@pytest.mark.parametrize("spoil", [delete, replace_by_a_stranger, replace_by_a_folder, replace_by_a_pipe])
def test_lines_whose_file_lost_its_name_are_rescued_byte_for_byte(spoil, file, tmp_path):
    with file.open("ab") as end:
        end.write(TORN)
    before = file.read_bytes()
    session = opened(file)
    spoil(file)
    rescue = rescued(session, tmp_path, "n1")
    assert rescue.read_bytes().startswith(before + b"\n")
    assert ids_in(rescue) == ["e1", "e2", "n1"]


def test_entries_that_are_in_the_lost_file_already_are_rescued_once(file, tmp_path):
    session = opened(file)
    session.append(entries_of(u("text of n1"), ids=["n1"]))
    delete(file)
    assert ids_in(rescued(session, tmp_path, "n1", "n2")) == ["e1", "e2", "n1", "n2"]


def test_what_memory_holds_of_an_overwritten_file_is_rescued(tmp_path):
    file = tmp_path / "new.jsonl"
    session = SessionFile.create(file, HEADER)
    made = entries_of(u("one"), u("two"), ids=["m1", "m2"])
    session.append(made)
    for entry in made:
        session._state.bodies.remember(entry)
    with file.open("r+b") as there:
        there.write(b"#" * file.stat().st_size)
    assert ids_in(rescued(session, tmp_path, "n1")) == ["m1", "m2", "n1"]


def test_a_file_of_an_old_version_is_rescued_whole(tmp_path):
    header = {key: value for key, value in header_line().items() if key != "version"}
    first = {"type": "message", "message": {"role": "user", "content": "old"}}
    file = write_lines(tmp_path / "old.jsonl", header, first)
    (known,) = load_session(file).heads
    rescue = rescued(opened(file), tmp_path, "n1")
    assert ids_in(rescue) == [known.id, "n1"]
    assert load_session(rescue).version_on_disk == 3


def test_copied_entries_that_have_no_file_yet_are_rescued(tmp_path):
    seed = entries_of(u("copied"), ids=["c1"])
    session = SeededFile(SessionFile.create(tmp_path / "copy.jsonl", HEADER), seed)
    assert ids_in(rescued(session, tmp_path, "n1")) == ["c1", "n1"]


def test_no_rescue_file_takes_the_place_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = [write_rescue("s-1", lambda number=number: [b"%d" % number]) for number in range(3)]
    assert [path.name for path in made] == [
        "musepi-rescue-s-1.jsonl",
        "musepi-rescue-s-1-2.jsonl",
        "musepi-rescue-s-1-3.jsonl",
    ]
    assert [path.read_bytes() for path in made] == [b"0", b"1", b"2"]


def test_the_home_folder_comes_second_and_then_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert write_rescue("s-1", lambda: [b"x"]) == Path.home() / "musepi-rescue-s-1.jsonl"
    monkeypatch.setenv("HOME", str(tmp_path / "gone too"))
    assert write_rescue("s-1", lambda: [b"x"]) is None


def test_an_id_of_a_stranger_leads_to_no_other_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = write_rescue("../../evil/" + "x" * 300, lambda: [b"x"])
    assert path is not None
    assert path.parent == tmp_path


def test_a_session_that_was_given_back_says_so(file):
    session = opened(file)
    session.close()
    with pytest.raises(SessionError, match="was given back"):
        session.append(entries_of(u("late"), ids=["n1"]))
