"""One writer for a session: an advisory lock next to the file (SAF-20 to 22)."""

import contextlib
import errno
import json
import os
import sys
import time
from pathlib import Path

from musepi_tui.base.errors import SessionBusyError, SessionError
from musepi_tui.session.fields import as_object

if sys.platform == "win32":
    import msvcrt

    def _lock_now(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock_now(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_TRIES = 3
"""How often the lock file may vanish under us before giving up (SAF-21)."""

_CONTENT_BYTES = 4096
_BUSY = frozenset({errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK, errno.EDEADLK})


class WriterLock:
    """The writer lock of a session file, held from ``acquire`` to ``release``.

    Only the kernel's lock decides; what the lock file says is for messages. A lock file left behind by a dead
    process therefore never blocks.
    """

    def __init__(self, session_path: Path) -> None:
        self._session_path = session_path
        self._path = session_path.with_name(session_path.name + ".lock")
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Takes the lock without waiting. The folder must exist.

        Raises ``SessionBusyError`` when another process has it, ``SessionError`` when no lock can be made.
        """
        if self._descriptor is not None:
            return
        try:
            for _ in range(_TRIES):
                descriptor = self._try_once()
                if descriptor is not None:
                    self._descriptor = descriptor
                    self._describe_owner(descriptor)
                    return
        except OSError as error:
            raise SessionError(f"could not lock {self._session_path}: {error.strerror}") from error
        raise SessionError(f"could not lock {self._session_path}: its lock file is removed again and again")

    def release(self) -> None:
        """Gives the lock back and removes its file. Harmless when it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if self._is_in_place(descriptor):
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(descriptor)

    def _try_once(self) -> int | None:
        """A locked descriptor; None when the file was removed between opening and locking."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            _lock_now(descriptor)
        except OSError as error:
            owner = _owner_pid(descriptor)
            os.close(descriptor)
            if error.errno not in _BUSY:
                raise
            raise SessionBusyError(_busy_text(owner), pid=owner) from error
        if self._is_in_place(descriptor):
            return descriptor
        os.close(descriptor)
        return None

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            there = self._path.stat(follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))

    def _describe_owner(self, descriptor: int) -> None:
        host = os.uname().nodename if hasattr(os, "uname") else ""
        owner = {"pid": os.getpid(), "host": host, "started": int(time.time())}
        with contextlib.suppress(OSError):  # the lock is held, the text is only for messages
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(owner).encode(), 0)


def _owner_pid(descriptor: int) -> int | None:
    try:
        owner = as_object(json.loads(os.pread(descriptor, _CONTENT_BYTES, 0)))
    except (OSError, ValueError):
        return None
    pid = (owner or {}).get("pid")
    return pid if type(pid) is int else None


def _busy_text(pid: int | None) -> str:
    who = "" if pid is None else f" (pid {pid})"
    return f"session is open in another musepi{who}; close it there first"
