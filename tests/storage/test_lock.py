import errno
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from musepi_tui.base.errors import SessionBusyError, SessionError
from musepi_tui.storage.lock import UNREADABLE_FOR_S, WriterLock


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


@pytest.fixture
def no_kernel_locks(monkeypatch):
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr("fcntl.flock", flock)


def owner(session: Path, **fields: object) -> None:
    """Writes the lock file as another process of this machine would, with some fields changed."""
    lock = WriterLock(session)
    lock.acquire()
    content = json.loads(lock_file(session).read_bytes())
    lock.release()
    lock_file(session).write_text(json.dumps(content | fields))


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.usefixtures("no_kernel_locks")
def test_without_kernel_locks_the_file_decides_and_that_is_told(session):
    first = WriterLock(session)
    first.acquire()
    assert "has no file locks" in first.warning
    with pytest.raises(SessionBusyError) as caught:
        WriterLock(session).acquire()
    assert caught.value.pid == os.getpid()
    first.release()
    assert not lock_file(session).exists()
    WriterLock(session).acquire()


@pytest.mark.usefixtures("no_kernel_locks")
@pytest.mark.parametrize("fields", [{"boot": "another"}, {"born": "0"}, {"pid": None}])
def test_without_kernel_locks_what_a_dead_owner_left_does_not_block(session, fields):
    owner(session, **({"pid": dead_pid()} if "pid" in fields else fields))
    lock = WriterLock(session)
    lock.acquire()
    assert json.loads(lock_file(session).read_bytes())["pid"] == os.getpid()
    assert [there.name for there in session.parent.iterdir()] == ["s.jsonl.lock"]
    lock.release()


@pytest.mark.usefixtures("no_kernel_locks")
def test_without_kernel_locks_the_lock_of_another_computer_counts(session):
    owner(session, host="elsewhere", pid=1)
    with pytest.raises(SessionBusyError):
        WriterLock(session).acquire()


@pytest.mark.usefixtures("no_kernel_locks")
@pytest.mark.parametrize(("age_s", "is_busy"), [(0, True), (UNREADABLE_FOR_S + 5, False)])
def test_without_kernel_locks_a_lock_file_that_says_nothing_counts_for_a_while(session, age_s, is_busy):
    lock_file(session).touch()
    at = time.time() - age_s
    os.utime(lock_file(session), (at, at))
    lock = WriterLock(session)
    if is_busy:
        with pytest.raises(SessionBusyError):
            lock.acquire()
    else:
        lock.acquire()
        assert lock.is_held


@pytest.mark.usefixtures("no_kernel_locks")
@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_without_kernel_locks_a_lock_file_made_just_now_is_put_back(session, monkeypatch, links):
    lock_file(session).touch()
    at = time.time() - UNREADABLE_FOR_S - 5
    os.utime(lock_file(session), (at, at))

    def another_is_faster(size: int) -> bytes:
        lock_file(session).unlink()
        lock_file(session).touch()
        return bytes(size)

    def no_link(*_names: object, **_options: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("os.urandom", another_is_faster)
    if not links:
        monkeypatch.setattr("os.link", no_link)
    lock = WriterLock(session)
    with pytest.raises(SessionBusyError):
        lock.acquire()
    assert [there.name for there in session.parent.iterdir()] == ["s.jsonl.lock"]


def test_with_kernel_locks_nothing_is_warned_of(session):
    lock = WriterLock(session)
    lock.acquire()
    assert lock.warning is None


def test_lock_whose_file_was_removed_is_taken_again(session):
    lock = WriterLock(session)
    lock.acquire()
    lock_file(session).unlink()
    lock.renew()
    with pytest.raises(SessionBusyError):
        WriterLock(session).acquire()
    lock.renew()
    lock.release()
    assert not lock_file(session).exists()
