import pytest

from musepi_tui.base.errors import EntryNotFoundError, SessionCorruptError
from musepi_tui.session.entries import EntryHead
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
