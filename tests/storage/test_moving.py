import json
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionBusyError, SessionError
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.moving import move_session
from musepi_tui.storage.paths import Paths, artifact_folder, find_paths, session_folder
from tests.support.lines import chain, header_line, write_lines


@pytest.fixture
def paths(musepi_home: Path) -> Paths:
    return find_paths({"MUSEPI_HOME": str(musepi_home)})


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return folder(tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return folder(tmp_path / "new")


def folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.fixture
def stored(paths: Paths, old: Path) -> Path:
    place = session_folder(paths, old)
    place.mkdir(parents=True)
    return write_lines(
        place / "x_s-1.jsonl", header_line(cwd=str(old), odd=[1]), *chain("a", "b"), b"not json\n"
    )


def header(path: Path) -> dict:
    return json.loads(path.read_bytes().split(b"\n")[0])


def below(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_file_goes_to_the_folder_of_its_new_place(stored, new, paths):
    lines = stored.read_bytes().split(b"\n", 1)[1]
    moved = move_session(stored, new, paths)
    assert moved.path == session_folder(paths, new) / stored.name
    assert not stored.exists()
    assert header(moved.path) == header_line(cwd=str(new), odd=[1])
    assert moved.path.read_bytes().split(b"\n", 1)[1] == lines


def test_no_lock_is_left_and_the_session_can_be_opened(stored, new, paths):
    moved = move_session(stored, new, paths)
    lock = WriterLock(moved.path)
    lock.acquire()
    lock.release()
    assert [file for file in paths.sessions.rglob("*") if file.is_file()] == [moved.path]


def test_artifacts_and_files_of_other_tools_go_along(stored, new, paths):
    folder(artifact_folder(stored))
    (artifact_folder(stored) / "0.bash.log").write_text("out")
    stored.with_name(".plan-state-s-1.json").write_text("{}")
    stored.with_name(f"{stored.name}.background-late.jsonl").write_text("late")
    moved = move_session(stored, new, paths)
    assert sorted(below(moved.path.parent)) == [
        ".plan-state-s-1.json",
        "x_s-1.jsonl",
        "x_s-1.jsonl.background-late.jsonl",
        "x_s-1/0.bash.log",
    ]
    assert below(stored.parent) == {}
    assert moved.warnings == ()


def test_an_artifact_folder_that_is_there_takes_in_what_it_lacks(stored, new, paths):
    folder(artifact_folder(stored))
    for name in ("0.bash.log", "1.read.log"):
        (artifact_folder(stored) / name).write_text(f"ours {name}")
    target = artifact_folder(session_folder(paths, new) / stored.name)
    target.mkdir(parents=True)
    (target / "0.bash.log").write_text("theirs")
    moved = move_session(stored, new, paths)
    assert below(target) == {"0.bash.log": b"theirs", "1.read.log": b"ours 1.read.log"}
    assert below(artifact_folder(stored)) == {"0.bash.log": b"ours 0.bash.log"}
    assert "0.bash.log stayed where it is" in moved.warnings[0]


def test_the_same_folder_changes_nothing(stored, old, paths):
    before = stored.read_bytes()
    assert move_session(stored, old, paths).path == stored
    assert stored.read_bytes() == before


@pytest.mark.parametrize("kind", ["override", "elsewhere"])
def test_a_file_outside_the_own_folders_stays_where_it_is(kind, stored, new, paths, tmp_path):
    path = stored
    if kind == "elsewhere":
        path = tmp_path / "s.jsonl"
        stored.rename(path)
    moved = move_session(path, new, paths, override=stored.parent if kind == "override" else None)
    assert moved.path == path
    assert header(path)["cwd"] == str(new)


def test_a_taken_name_moves_nothing(stored, new, paths):
    target = session_folder(paths, new) / stored.name
    target.parent.mkdir(parents=True)
    target.write_text("mine")
    before = stored.read_bytes()
    with pytest.raises(SessionError, match="exists already; nothing was moved"):
        move_session(stored, new, paths)
    assert (stored.read_bytes(), target.read_text()) == (before, "mine")


def test_a_folder_that_is_not_there_is_refused(stored, tmp_path, paths):
    with pytest.raises(SessionError, match="there is no such folder"):
        move_session(stored, tmp_path / "nowhere", paths)


def test_a_session_somebody_writes_is_refused(stored, new, paths):
    lock = WriterLock(stored)
    lock.acquire()
    before = stored.read_bytes()
    with pytest.raises(SessionBusyError):
        move_session(stored, new, paths)
    lock.release()
    assert stored.read_bytes() == before


@pytest.mark.parametrize("fails_at", ["x_s-1.jsonl", "x_s-1", ".plan-state-s-1.json"])
def test_everything_is_as_before_when_a_step_fails(fails_at, stored, new, paths, monkeypatch):
    folder(artifact_folder(stored))
    (artifact_folder(stored) / "0.bash.log").write_text("out")
    stored.with_name(".plan-state-s-1.json").write_text("{}")
    before = below(stored.parent)
    rename = Path.rename
    failed = []

    def fails_once(self: Path, target: Path) -> Path:
        if self.name == fails_at and not failed:
            failed.append(self)
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails_once)
    monkeypatch.setattr("shutil.move", lambda *_: None)
    with pytest.raises(SessionError, match="Permission denied"):
        move_session(stored, new, paths)
    assert below(stored.parent) == before
    assert not any(file.is_file() for file in session_folder(paths, new).rglob("*"))
    assert load_session(stored).header.cwd != str(new)


def test_a_link_to_a_session_keeps_its_place(stored, new, paths, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(stored)
    assert move_session(link, new, paths).path == link
    assert header(stored)["cwd"] == str(new)
