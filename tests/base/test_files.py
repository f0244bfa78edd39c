import errno
import os
import socket
import stat
from pathlib import Path

import pytest

from musepi_tui.base.files import atomic_write, locked, make_private_folder, read_regular, replacing


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_gets_what_the_umask_leaves(tmp_path):
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "f", b"data")
    finally:
        os.umask(old)
    assert (tmp_path / "f").read_bytes() == b"data"
    assert _mode(tmp_path / "f") == 0o640


def test_the_mode_of_an_old_file_is_kept(tmp_path):
    file = tmp_path / "run.sh"
    file.write_bytes(b"old")
    file.chmod(0o751)
    atomic_write(file, b"new")
    assert (file.read_bytes(), _mode(file)) == (b"new", 0o751)


def test_the_mode_asked_for_wins_over_umask_and_old_mode(tmp_path):
    file = tmp_path / "auth.json"
    file.write_bytes(b"old")
    file.chmod(0o644)
    atomic_write(file, b"new", mode=0o600)
    assert _mode(file) == 0o600


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    file = tmp_path / "f"
    file.write_bytes(b"old")

    def fail(_descriptor):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        atomic_write(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_last_look_that_refuses_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b"old")
    seen = []

    def look():
        seen.append({each.read_bytes() for each in tmp_path.iterdir()})
        raise OSError(errno.EBUSY, "changed")

    with pytest.raises(OSError, match="changed"), replacing(path, last_look=look) as file:
        file.write(b"new")
    assert seen == [{b"old", b"new"}]
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("settings.json", b"old")]


def test_a_link_is_replaced_and_its_target_untouched(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"target")
    link = tmp_path / "link"
    link.symlink_to(target)
    atomic_write(link, b"new")
    assert (target.read_bytes(), link.is_symlink(), link.read_bytes()) == (b"target", False, b"new")


def test_a_very_long_name_still_gets_a_temporary_one(tmp_path):
    file = tmp_path / ("n" * 255)
    atomic_write(file, b"x")
    assert file.read_bytes() == b"x"


def test_a_long_name_of_wide_letters_still_gets_a_temporary_one(tmp_path):
    file = tmp_path / ("ä" * 120 + ".md")
    atomic_write(file, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_name_no_file_can_have_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="NUL"):
        read_regular(tmp_path / "a\0b", 10)


def test_a_device_and_a_socket_are_not_opened(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)
        server.bind("s")
    monkeypatch.setattr(os, "open", None)
    for path in (tmp_path / "s", Path(os.devnull)):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 10)


def test_private_folder_is_private_with_its_parents(tmp_path):
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


def test_reading_stops_at_the_limit(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"12345")
    assert read_regular(file, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes") as caught:
        read_regular(file, 4)
    assert caught.value.errno == errno.EFBIG


def test_reading_a_pipe_fails_instead_of_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(tmp_path / "pipe", 10)


def test_reading_a_folder_fails(tmp_path):
    with pytest.raises(OSError, match="(not a regular file|directory)"):
        read_regular(tmp_path, 10)


def test_lock_is_held_by_one_at_a_time_and_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr("musepi_tui.base.files.LOCK_WAIT_S", 0.0)
    with locked(tmp_path / "f"):
        with pytest.raises(TimeoutError), locked(tmp_path / "f"):
            pass
        with locked(tmp_path / "other"):
            pass
    with locked(tmp_path / "f"):
        pass
    assert _mode(tmp_path / "f.lock") == 0o600


def test_file_system_without_locks_is_gone_on_with(tmp_path, monkeypatch):
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    with locked(tmp_path / "f"), locked(tmp_path / "f"):
        pass
