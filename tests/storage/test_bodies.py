from pathlib import Path

import pytest

from musepi_tui.base.errors import EntryNotFoundError, SessionCorruptError
from musepi_tui.session.codec import dump_line
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.messages import text_of
from musepi_tui.storage import bodies
from musepi_tui.storage.bodies import KEPT_READS, Bodies
from musepi_tui.storage.loading import load_session
from tests.support.builders import path, u
from tests.support.lines import chain, header_line, write_lines


@pytest.fixture
def loaded(tmp_path):
    return load_session(write_lines(tmp_path / "s.jsonl", header_line(), *chain("a", "b", "c")))


def test_entry_is_read_from_its_line_and_kept_for_a_while(loaded):
    head = loaded.heads[1]
    entry = loaded.bodies.get(head)
    assert entry.id == "e2"
    assert loaded.bodies.get(head) is entry


def test_remembered_entry_comes_from_memory_until_forgotten(loaded):
    entry = path(u("new"), ids=["n"])[0]
    head = EntryHead("n", None, "message", "t")
    loaded.bodies.remember(entry)
    assert loaded.bodies.get(head) is entry
    loaded.bodies.forget(["n", "unknown"])
    with pytest.raises(EntryNotFoundError):
        loaded.bodies.get(head)


def test_entry_of_an_old_file_is_never_forgotten(tmp_path):
    old = [{key: line[key] for key in line if key not in ("id", "parentId")} for line in chain("a")]
    loaded = load_session(write_lines(tmp_path / "old.jsonl", header_line(None), *old))
    entry = loaded.bodies.get(loaded.heads[0])
    loaded.bodies.forget([entry.id])
    assert loaded.bodies.get(loaded.heads[0]) is entry


def test_file_is_read_after_its_name_is_gone(loaded):
    loaded.path.unlink()
    assert loaded.bodies.get(loaded.heads[2]).id == "e3"


def test_wrong_place_is_an_error(loaded):
    head = loaded.heads[0]._replace(id="other")
    with pytest.raises(SessionCorruptError, match=f"other could not be read back from bytes {head.offset}-"):
        loaded.bodies.get(head)


def test_session_in_memory_has_only_what_was_remembered():
    bodies = Bodies()
    with pytest.raises(EntryNotFoundError):
        bodies.get(EntryHead("x", None, "message", "t", 0, 10))


def test_missing_file_is_an_error(tmp_path):
    with pytest.raises(SessionCorruptError, match="No such file"):
        Bodies(tmp_path / "no.jsonl").get(EntryHead("x", None, "message", "t", 0, 10))


def test_many_reads_do_not_pile_up(tmp_path):
    lines = chain(*(str(number) for number in range(KEPT_READS * 2)))
    loaded = load_session(write_lines(tmp_path / "s.jsonl", header_line(), *lines))
    first = loaded.bodies.get(loaded.heads[0])
    for head in loaded.heads:
        loaded.bodies.get(head)
    assert loaded.bodies.get(loaded.heads[0]) is not first


def replaced(loaded, *lines) -> dict[str, EntryHead]:
    """Another file under the same name, read from there from now on; the new heads by id."""
    other = load_session(
        write_lines(loaded.path.with_name("other.jsonl"), header_line(note="x" * 99), *lines)
    )
    other.path.replace(loaded.path)
    moved = {head.id: head for head in other.heads}
    loaded.bodies.relocate(loaded.path, None, moved)
    return moved


def test_old_heads_lead_to_their_entries_after_the_file_was_replaced(loaded):
    old = loaded.heads[1]
    before = loaded.bodies.get(old)
    new = replaced(loaded, *chain("a", "b", "c"))["e2"]
    assert new.offset != old.offset
    assert loaded.bodies.get(old) == loaded.bodies.get(new) == before
    assert loaded.bodies.read_line(old) == loaded.bodies.raw_line(new)


def test_entry_that_did_not_move_is_read_from_the_new_file(loaded):
    lines = chain("a", "other", "c")
    path = write_lines(loaded.path.with_name("other.jsonl"), header_line(), *lines)
    path.replace(loaded.path)
    loaded.bodies.relocate(loaded.path, None, {})
    assert text_of(loaded.bodies.get(loaded.heads[0]).message.content) == "a"


def test_many_moves_are_remembered_one_upon_the_other(loaded, monkeypatch):
    monkeypatch.setattr(bodies, "_MANY_MOVED", 1)
    first = replaced(loaded, *chain("a", "b", "c"))
    second = replaced(loaded, *reversed(chain("a", "b", "c")))
    for heads in (loaded.heads, first.values(), second.values()):
        assert [text_of(loaded.bodies.get(head).message.content) for head in heads] in (
            ["a", "b", "c"],
            ["c", "b", "a"],
        )


def test_reader_in_the_middle_of_a_read_keeps_the_old_file(loaded):
    file = loaded.bodies._file
    line = loaded.bodies.read_line(loaded.heads[0])
    replaced(loaded, *chain("other"))
    assert file.read(loaded.heads[0]) == line


def test_old_descriptor_is_given_back_with_its_last_reader(loaded):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        replaced(loaded, *chain("a", "b", "c"))
        loaded.bodies.get(loaded.heads[0])
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_line_of_an_entry_in_memory_is_what_would_be_written(loaded):
    entry = path(u("new"), ids=["n"])[0]
    head = EntryHead("n", None, "message", "t")
    loaded.bodies.remember(entry)
    assert loaded.bodies.raw_line(head) == dump_line(entry)
    with pytest.raises(EntryNotFoundError):
        loaded.bodies.raw_line(EntryHead("gone", None, "message", "t"))


def test_line_of_an_old_file_is_that_of_the_migrated_entry(tmp_path):
    old = [{key: line[key] for key in line if key not in ("id", "parentId")} for line in chain("a")]
    loaded = load_session(write_lines(tmp_path / "old.jsonl", header_line(None), *old))
    head = loaded.heads[0]
    assert f'"id":"{head.id}"'.encode() in loaded.bodies.raw_line(head)
    assert b'"id"' not in loaded.bodies.read_line(head)


def test_start_of_a_line_is_that_of_the_file(loaded):
    head = loaded.heads[0]
    line = loaded.bodies.read_line(head)
    assert loaded.bodies.line_start(head, 20) == line[:20]
    assert loaded.bodies.line_start(head, 10_000) == line


def test_line_that_the_file_does_not_hold_has_no_start(loaded):
    head = loaded.heads[0]
    loaded.bodies.remember(loaded.bodies.get(head))
    assert loaded.bodies.line_start(head, 20) is None
    assert loaded.bodies.line_start(head._replace(id="new", length=0), 20) is None
    assert Bodies(Path("gone.jsonl")).line_start(head._replace(id="gone"), 20) is None


def test_all_are_read_in_order_without_being_kept(loaded):
    entries = loaded.bodies.read_all(loaded.heads)
    assert [entry.id for entry in entries] == ["e1", "e2", "e3"]
    assert loaded.bodies.get(loaded.heads[0]) is not entries[0]
    assert list(loaded.bodies.read_path(loaded.heads)) == list(entries)


def test_long_lines_are_kept_only_as_far_as_they_fit(loaded, monkeypatch):
    monkeypatch.setattr(bodies, "KEPT_READ_BYTES", loaded.heads[0].length + 10)
    first = loaded.bodies.get(loaded.heads[0])
    assert loaded.bodies.get(loaded.heads[0]) is first
    loaded.bodies.get(loaded.heads[1])
    assert loaded.bodies.get(loaded.heads[0]) is not first
