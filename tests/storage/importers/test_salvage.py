import pytest

from musepi_tui.base.errors import NotASessionFileError
from musepi_tui.storage.importers import import_session
from tests.support.imports import Import, assert_sound, paths_in
from tests.support.lines import chain, header_line, record, user_record, write_lines

TORN = b'{"type":"session","version":3,"id":"s-9","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p","par\n'


def test_entries_behind_a_torn_header_are_saved(tmp_path):
    done = Import(tmp_path, TORN, *chain("a", "b"), b"junk\n", user_record("c", "e2", "c", 3), salvage=True)
    assert done.path_roles == ["user", "user", "user"]
    assert (done.loaded.header.cwd, done.entries[-1].fields["data"]["sourceId"]) == ("/p", "s-9")
    assert done.done.skipped == {"unreadable line": 2}
    assert done.loaded.header.parent_session == str(done.source)
    assert_sound(done.done)


def test_without_any_header_the_session_belongs_to_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = Import(tmp_path, *chain("a"), user_record("o", "gone", "x", 2), salvage=True)
    assert (done.path_roles, done.loaded.header.cwd) == (["user", "user"], str(tmp_path))
    assert len(done.done.warnings) == 1


def test_records_of_version_1_become_a_chain(tmp_path):
    old = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")}
        for line in chain("a", "b")
    ]
    cut = {
        "type": "compaction",
        "timestamp": "2026-01-01T00:00:09.000Z",
        "summary": "S",
        "firstKeptEntryIndex": 2,
    }
    done = Import(tmp_path, TORN, *old, cut, salvage=True)
    assert done.path_roles == ["user", "user", "compaction"]
    assert done.entries[2].first_kept_entry_id == done.entries[1].id
    assert_sound(done.done)


def test_sound_file_is_imported_as_ever(tmp_path):
    plain = Import(tmp_path, header_line(), *chain("a"))
    saved = Import(tmp_path, header_line(), *chain("a"), salvage=True)
    assert saved.done.path.read_bytes().split(b"\n")[1] == plain.done.path.read_bytes().split(b"\n")[1]


def test_header_in_the_middle_tells_the_folder(tmp_path):
    lines = (user_record("z", None, "z"), header_line(), record("label", "l", "z", targetId="z", label="m"))
    done = Import(tmp_path, *lines, salvage=True)
    assert (done.path_roles, done.loaded.header.cwd) == (["user", "label"], "/p")


@pytest.mark.parametrize("kind", [{}, [1], None, 5])
def test_record_whose_type_is_no_text_is_left_out_and_told(tmp_path, kind):
    done = Import(tmp_path, *chain("a"), {"type": kind, "text": "x"}, salvage=True)
    assert (done.path_roles, done.done.skipped) == (["user"], {"record of another kind": 1})


@pytest.mark.parametrize(
    "lines", [(), (b"junk\n",), (b'{"a":1}\n', b"\0\0\0")], ids=["empty", "junk", "no entries"]
)
def test_nothing_to_save_is_an_error_and_leaves_nothing(tmp_path, lines):
    source = write_lines(tmp_path / "s.jsonl", *lines)
    with pytest.raises(NotASessionFileError, match="no line of it"):
        import_session(source, paths_in(tmp_path), salvage=True)
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


def test_without_salvage_it_is_refused_and_offered(tmp_path):
    source = write_lines(tmp_path / "s.jsonl", TORN, *chain("a"))
    with pytest.raises(NotASessionFileError, match=r"line 1: first record .* --salvage"):
        import_session(source, paths_in(tmp_path))
