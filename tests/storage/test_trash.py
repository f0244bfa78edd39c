import os
import re
import stat
from urllib.parse import unquote

import pytest

from musepi_tui.base.errors import NotASessionFileError, SessionBusyError
from musepi_tui.storage import trash_folder
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.trash import delete_session
from musepi_tui.storage.trash_folder import TrashFolder, move_to_trash
from tests.support.lines import chain, header_line, write_lines


@pytest.fixture
def no_commands(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


@pytest.fixture
def environ(no_commands, clean_environment):
    return {"HOME": str(clean_environment), "XDG_DATA_HOME": str(clean_environment / "data")}


@pytest.fixture
def session(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    return write_lines(folder / "2026_s-1.jsonl", header_line(), *chain("a"))


def command(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def trash_of(environ):
    from pathlib import Path

    return Path(environ["XDG_DATA_HOME"]) / "Trash"


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_file_goes_to_the_home_trash_with_a_note_where_it_was(environ, tmp_path):
    path = tmp_path / "a file%ü.txt"
    path.write_text("x")
    assert move_to_trash(path, environ) is None
    trash = trash_of(environ)
    assert (trash / "files" / path.name).read_text() == "x"
    note = (trash / "info" / f"{path.name}.trashinfo").read_text()
    match = re.fullmatch(r"\[Trash Info\]\nPath=(.+)\nDeletionDate=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\n", note)
    assert unquote(match[1]) == str(path)
    assert match[1].isascii()
    assert stat.S_IMODE((trash / "files").stat().st_mode) == 0o700


def test_taken_names_are_numbered_and_nothing_in_the_trash_is_replaced(environ, tmp_path):
    trash = trash_of(environ)
    for folder in ("files", "info"):
        (trash / folder).mkdir(parents=True)
    (trash / "files" / "a.txt").write_text("older, without a note")
    (trash / "info" / "a 2.txt.trashinfo").write_text("somebody reserved this")
    for _ in range(2):
        (tmp_path / "a.txt").write_text("x")
        assert move_to_trash(tmp_path / "a.txt", environ) is None
    assert names(trash / "files") == ["a 3.txt", "a 4.txt", "a.txt"]
    assert (trash / "files" / "a.txt").read_text() == "older, without a note"


def test_trash_on_another_file_system_gets_a_whole_copy_first(environ, tmp_path, monkeypatch):
    folder = tmp_path / "artifacts"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "0.bash.log").write_text("log")
    (folder / "link").symlink_to("deep")
    monkeypatch.setattr(trash_folder, "_trashes", lambda *_: iter([TrashFolder(trash_of(environ))]))

    def other_disk(self, target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("pathlib.Path.rename", other_disk)
    assert move_to_trash(folder, environ) is None
    assert not folder.exists()
    moved = trash_of(environ) / "files" / "artifacts"
    assert (moved / "deep" / "0.bash.log").read_text() == "log"
    assert (moved / "link").is_symlink()


def test_failed_move_leaves_the_file_and_no_note(environ, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("x")

    def refuse(self, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.rename", refuse)
    assert move_to_trash(path, environ) == "Permission denied"
    assert path.read_text() == "x"
    assert names(trash_of(environ) / "info") == []


def test_other_file_systems_have_a_trash_of_their_own(environ, tmp_path, monkeypatch):
    path = tmp_path / "disk" / "in" / "a.txt"
    path.parent.mkdir(parents=True)
    path.write_text("x")
    monkeypatch.setattr(trash_folder, "_device_of", lambda folder: -1)
    monkeypatch.setattr(trash_folder, "_top_of", lambda path, device: tmp_path / "disk")
    assert move_to_trash(path, environ) is None
    own = tmp_path / "disk" / f".Trash-{os.getuid()}"
    assert (own / "files" / "a.txt").exists()
    assert "Path=in/a.txt\n" in (own / "info" / "a.txt.trashinfo").read_text()


@pytest.mark.parametrize("sticky", [True, False])
def test_shared_trash_is_used_only_when_it_is_safe(environ, tmp_path, monkeypatch, sticky):
    path = tmp_path / "disk" / "a.txt"
    shared = tmp_path / "disk" / ".Trash"
    shared.mkdir(parents=True)
    shared.chmod(0o1777 if sticky else 0o777)
    path.write_text("x")
    monkeypatch.setattr(trash_folder, "_device_of", lambda folder: -1)
    monkeypatch.setattr(trash_folder, "_top_of", lambda path, device: tmp_path / "disk")
    assert move_to_trash(path, environ) is None
    assert (shared / str(os.getuid()) / "files" / "a.txt").exists() is sticky


def test_link_in_place_of_a_trash_is_not_followed(environ, tmp_path, monkeypatch):
    path = tmp_path / "disk" / "a.txt"
    trap = tmp_path / "trap"
    trap.mkdir()
    path.parent.mkdir()
    path.write_text("x")
    (path.parent / f".Trash-{os.getuid()}").symlink_to(trap)
    (path.parent / ".Trash").symlink_to(trap)
    monkeypatch.setattr(trash_folder, "_device_of", lambda folder: -1)
    monkeypatch.setattr(trash_folder, "_top_of", lambda path, device: tmp_path / "disk")
    assert move_to_trash(path, environ) is None
    assert names(trap) == []
    assert (trash_of(environ) / "files" / "a.txt").exists()


@pytest.mark.parametrize("name", ["trash", "gio"])
def test_command_of_the_system_goes_first(environ, no_commands, tmp_path, name):
    shift = "shift; " if name == "gio" else ""
    command(no_commands, name, f'{shift}[ "$1" = -- ] && /bin/mv "$2" {tmp_path}/taken')
    path = tmp_path / "-rf"
    path.write_text("x")
    assert move_to_trash(path, environ) is None
    assert (tmp_path / "taken").read_text() == "x"
    assert not trash_of(environ).exists()


@pytest.mark.parametrize("body", ["exit 0", "exit 1", "echo no >&2; exit 127"])
def test_command_that_does_not_take_the_file_is_not_believed(environ, no_commands, tmp_path, body):
    command(no_commands, "trash", body)
    (tmp_path / "a.txt").write_text("x")
    assert move_to_trash(tmp_path / "a.txt", environ) is None
    assert (trash_of(environ) / "files" / "a.txt").exists()


def test_session_goes_with_all_that_belongs_to_it(environ, session):
    folder = session.parent
    other = write_lines(folder / "2026_s-2.jsonl", header_line(id="s-2"))
    beside = (
        ".plan-state-s-1.json",
        "2026_s-1.jsonl.v1.bak",
        "2026_s-1.jsonl.abc.bak",
        ".2026_s-1.jsonl.99.ab.tmp",
        "2026_s-1.jsonl.background-late.jsonl",
    )
    for name in beside:
        (folder / name).write_text("x")
    (folder / "2026_s-1").mkdir()
    (folder / "2026_s-1" / "0.bash.log").write_text("log")
    outcome = delete_session(session, environ=environ)
    assert (outcome.done, outcome.left) == (True, ())
    assert names(folder) == [other.name]
    assert names(trash_of(environ) / "files") == sorted([*beside, "2026_s-1", "2026_s-1.jsonl"])


def test_session_open_elsewhere_stays(environ, session):
    lock = WriterLock(session)
    lock.acquire()
    try:
        with pytest.raises(
            SessionBusyError, match=f"session is open in another musepi \\(pid {os.getpid()}\\)"
        ):
            delete_session(session, environ=environ)
    finally:
        lock.release()
    assert session.exists()


def test_session_no_trash_takes_stays_whole_until_it_is_deleted_for_good(environ, session, monkeypatch):
    (session.parent / "2026_s-1").mkdir()
    monkeypatch.setattr(trash_folder, "_trashes", lambda *_: iter(()))
    outcome = delete_session(session, environ=environ)
    assert (outcome.done, outcome.reason) == (False, "there is no trash folder")
    assert names(session.parent) == ["2026_s-1", "2026_s-1.jsonl"]
    assert delete_session(session, environ=environ, permanently=True).done
    assert names(session.parent) == []


def test_other_files_and_missing_ones_are_refused(environ, tmp_path):
    (tmp_path / "notes.jsonl").write_text("{}\n")
    with pytest.raises(NotASessionFileError):
        delete_session(tmp_path / "notes.jsonl", environ=environ)
    assert (tmp_path / "notes.jsonl").exists()


def test_id_in_the_file_never_leads_elsewhere(environ, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "x.json").write_text("mine")
    path = write_lines(tmp_path / "s" / "a.jsonl", header_line(id="/../../x"))
    assert delete_session(path, environ=environ).done
    assert (tmp_path / "x.json").read_text() == "mine"


def test_link_to_a_session_goes_and_the_session_stays(environ, session, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(session)
    assert delete_session(link, environ=environ).done
    assert not link.is_symlink()
    assert session.exists()
