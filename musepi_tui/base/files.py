"""Files replaced as a whole or not at all, reads with a limit, locks between processes (SAF-8, 27)."""

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    def lock_now(descriptor: int) -> None:
        """Locks an open file for this process without waiting. Raises ``OSError``: see ``LOCK_BUSY``."""
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def lock_now(descriptor: int) -> None:
        """Locks an open file for this process without waiting. Raises ``OSError``: see ``LOCK_BUSY``."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


PRIVATE_FOLDER = 0o700

KEPT_NAME_BYTES = 180
"""So much of a name goes into that of its temporary file: most file systems stop at 255 bytes."""

_SHARING_RETRIES = 5
_SHARING_DELAY_S = 0.2

LOCK_BUSY = frozenset({errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK, errno.EDEADLK})
"""What the system says when another process holds a lock; anything else means that it has none to give."""

LOCK_WAIT_S = 5.0
_LOCK_PAUSE_S = 0.02


def atomic_write(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replaces ``path`` by ``data``: after a crash the file is the old one or the new one, never a mixture.

    ``mode`` are the permission bits of the result; without it those of the old file, or what the umask leaves
    of 0666 for a new one. Group, owner and extended attributes of the old file are kept where the system
    allows. A symbolic link is replaced, not followed. Raises ``OSError``; then the old file is intact.
    """
    with replacing(path, mode=mode) as file:
        file.write(data)


@contextmanager
def replacing(
    path: Path,
    *,
    mode: int | None = None,
    only_new: bool = False,
    last_look: Callable[[], None] | None = None,
) -> Generator[BinaryIO]:
    """A file to write into that takes the place of ``path`` when the block ends well: see ``atomic_write``.

    With ``only_new`` a file that appeared at ``path`` meanwhile stays and the block ends in
    ``FileExistsError``. ``last_look`` is called when only the rename is left, and may refuse it by raising.
    Raises ``OSError``; then, as after any error inside the block, nothing was changed.
    """
    old = _status(path)
    final_mode = mode if mode is not None or old is None else stat.S_IMODE(old.st_mode)
    temporary = temporary_beside(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags, 0o666 if final_mode is None else final_mode & 0o777)
    try:
        with os.fdopen(descriptor, "wb", closefd=True) as file:
            yield file
            file.flush()
            _copy_identity(path, old, file.fileno(), final_mode)
            os.fsync(file.fileno())
        if last_look is not None:
            last_look()
        if only_new:
            put_in_place(temporary, path)
        else:
            _replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Holds the lock of a small file that is read, changed and replaced: ``<name>.lock`` beside it (SAF-27).

    Waits for other processes. Raises ``OSError``, after ``LOCK_WAIT_S`` seconds ``TimeoutError``. Where the
    file system has no locks it goes on without: the file is replaced as a whole in any case.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    try:
        until = time.monotonic() + LOCK_WAIT_S
        while not _try_lock(descriptor):
            if time.monotonic() > until:
                raise TimeoutError(errno.ETIMEDOUT, "the lock is held by another process", str(path))
            time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Creates the folder and its missing parents, readable by the owner only. Raises ``OSError``."""
    missing = [folder, *folder.parents]
    for path in reversed([path for path in missing if not path.exists()]):
        path.mkdir(PRIVATE_FOLDER, exist_ok=True)


def temporary_beside(path: Path) -> Path:
    """A name in the same folder for what is to take the place of ``path``: ``.<name>.<pid>.<random>.tmp``."""
    kept = os.fsdecode(os.fsencode(path.name)[:KEPT_NAME_BYTES])
    return path.with_name(f".{kept}.{os.getpid()}.{os.urandom(4).hex()}.tmp")


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file of at most ``limit_bytes``.

    Raises ``OSError``: ``EINVAL`` for what is no regular file (never waits for a pipe or a device), ``EFBIG``
    above the limit.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"larger than {limit_bytes} bytes", str(path))
    return data


def open_regular(path: Path) -> int:
    """A descriptor for reading a regular file; never waits for a pipe, never opens a device.

    Raises ``OSError``, ``EINVAL`` for what is no regular file and for a name that no file can have.
    """
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "a file name cannot hold a NUL character", str(path))
    refuse_irregular(path.stat(), path)  # opening some devices does something already
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        refuse_irregular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def refuse_irregular(status: os.stat_result, path: Path) -> None:
    """Raises ``OSError`` when ``status``, that of ``path``, is of a folder, a pipe, a socket or a device."""
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "Is a directory", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def _try_lock(descriptor: int) -> bool:
    try:
        lock_now(descriptor)
    except OSError as error:
        return error.errno not in LOCK_BUSY
    return True


def _status(path: Path) -> os.stat_result | None:
    """The status of an existing regular file, links not followed."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _copy_identity(path: Path, old: os.stat_result | None, descriptor: int, mode: int | None) -> None:
    if old is not None:
        if hasattr(os, "listxattr"):
            with contextlib.suppress(OSError):
                for name in os.listxattr(path, follow_symlinks=False):
                    os.setxattr(descriptor, name, os.getxattr(path, name, follow_symlinks=False))
        made = os.fstat(descriptor)
        if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
            _chown_where_possible(descriptor, old)
    if mode is not None:
        os.fchmod(descriptor, mode)


def _chown_where_possible(descriptor: int, old: os.stat_result) -> None:
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except OSError:
        with contextlib.suppress(OSError):
            os.fchown(descriptor, -1, old.st_gid)


def _replace(temporary: Path, path: Path) -> None:
    """Renames; where another process may hold a file open (Windows) it is tried for a second."""
    for _ in range(_SHARING_RETRIES if os.name == "nt" else 0):
        try:
            temporary.replace(path)
        except PermissionError:
            time.sleep(_SHARING_DELAY_S)
        else:
            return
    temporary.replace(path)


def put_in_place(temporary: Path, path: Path) -> None:
    """Gives a new file its name. Raises ``FileExistsError`` when that is taken, ``OSError``.

    A link fails where a rename would replace what is there; file systems without links have to do with
    looking first.
    """
    try:
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        _replace(temporary, path)
    else:
        temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Makes the new name durable. Not every file system can; the data is synced by then."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
