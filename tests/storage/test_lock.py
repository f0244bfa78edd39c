import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionBusyError, SessionError
from musepi_tui.storage.lock import WriterLock


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def lock_file(session: Path) -> Path:
    return session.with_name("s.jsonl.lock")


def test_lock_is_private_and_gone_after_release(session):
    lock = WriterLock(session)
    lock.acquire()
    assert lock.is_held
    assert stat.S_IMODE(lock_file(session).stat().st_mode) == 0o600
    lock.release()
    lock.release()
    assert not lock.is_held
    assert not lock_file(session).exists()


def test_held_lock_names_its_owner(session):
    first = WriterLock(session)
    first.acquire()
    first.acquire()
    with pytest.raises(SessionBusyError, match=f"pid {os.getpid()}") as caught:
        WriterLock(session).acquire()
    assert caught.value.pid == os.getpid()
    first.release()
    WriterLock(session).acquire()


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"pid":1}', b'{"pid":"x"}', b"[]"])
def test_lock_file_left_behind_never_blocks(session, content):
    lock_file(session).write_bytes(content)
    lock = WriterLock(session)
    lock.acquire()
    assert str(os.getpid()).encode() in lock_file(session).read_bytes()
    lock.release()


def test_lock_of_another_process_ends_with_it(session):
    code = (
        "import sys; from pathlib import Path; from musepi_tui.storage.lock import WriterLock; "
        "WriterLock(Path(sys.argv[1])).acquire(); print('held', flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(session)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"held\n"
    with pytest.raises(SessionBusyError) as caught:
        WriterLock(session).acquire()
    assert caught.value.pid == owner.pid
    owner.kill()
    owner.communicate()
    lock = WriterLock(session)
    lock.acquire()
    lock.release()


def test_child_does_not_inherit_the_lock(session):
    lock = WriterLock(session)
    lock.acquire()
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False
    )
    lock.release()
    again = WriterLock(session)
    again.acquire()
    assert child.poll() is None
    again.release()
    child.communicate()


def test_lock_file_made_by_another_owner_is_not_removed(session):
    lock = WriterLock(session)
    lock.acquire()
    lock_file(session).unlink()
    other = WriterLock(session)
    other.acquire()
    lock.release()
    assert lock_file(session).exists()
    other.release()


def test_link_in_place_of_the_lock_file_is_not_followed(session, tmp_path):
    lock_file(session).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionError, match="could not lock"):
        WriterLock(session).acquire()
    assert not (tmp_path / "elsewhere").exists()


def test_missing_folder_is_an_error(tmp_path):
    with pytest.raises(SessionError, match="could not lock"):
        WriterLock(tmp_path / "no" / "s.jsonl").acquire()
