"""One writer for a session: an advisory lock next to the file (SAF-20 to 25)."""

import contextlib
import errno
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from musepi_tui.base.errors import SessionBusyError, SessionError, SessionUnwritableError
from musepi_tui.base.files import LOCK_BUSY, lock_now, put_in_place
from musepi_tui.session.fields import as_object

_TRIES = 3
"""How often the lock file may vanish under us before giving up (SAF-21)."""

UNREADABLE_FOR_S = 10.0
"""Without kernel locks: how old a lock file without a readable owner has to be until it counts as left
behind. Its owner writes its name right after making it; a younger one may not have come to that yet."""

_CONTENT_BYTES = 4096
_UNSUPPORTED = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})


class WriterLock:
    """The writer lock of a session file, held from ``acquire`` to ``release``.

    The kernel's lock decides; what the lock file says is for messages, so one left behind by a dead process
    never blocks. On a file system without such locks the existence of the file decides, ``warning`` says so
    once, and what the file says tells a dead owner from a living one (SAF-25).
    """

    def __init__(self, session_path: Path) -> None:
        self.warning: str | None = None
        self._session_path = session_path
        self._path = session_path.with_name(session_path.name + ".lock")
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Takes the lock without waiting. The folder must exist.

        Raises ``SessionBusyError`` when another process has it, ``SessionUnwritableError`` when no lock file
        can be made, ``SessionError``.
        """
        if self._descriptor is not None:
            return
        try:
            for _ in range(_TRIES):
                descriptor = self._try_once()
                if descriptor is not None:
                    self._descriptor = descriptor
                    _describe_owner(descriptor)
                    return
        except OSError as error:
            raise SessionUnwritableError(
                f"could not lock {self._session_path} with a file beside it: {error.strerror}",
                f"free some space or check the permissions of its folder, or use --fork {self._session_path}",
            ) from error
        raise SessionError(f"could not lock {self._session_path}: its lock file is removed again and again")

    def renew(self) -> None:
        """Takes the lock again when its file was removed under us. Errors of ``acquire``."""
        descriptor = self._descriptor
        if descriptor is not None and not self._is_in_place(descriptor):
            self._descriptor = None
            os.close(descriptor)
        self.acquire()

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
        is_new = True
        try:
            descriptor = os.open(self._path, flags | os.O_EXCL, 0o600)
        except FileExistsError:
            is_new = False
            descriptor = os.open(self._path, flags, 0o600)
        try:
            lock_now(descriptor)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return self._take_without_kernel(descriptor, is_new=is_new)
            owner = _pid_of(_read_owner(descriptor))
            os.close(descriptor)
            if error.errno not in LOCK_BUSY:
                raise
            raise self._busy(owner) from error
        if self._is_in_place(descriptor):
            return descriptor
        os.close(descriptor)
        return None

    def _take_without_kernel(self, descriptor: int, *, is_new: bool) -> int | None:
        """The descriptor when we made the file; None when it was left behind and is gone now.

        Raises ``SessionBusyError`` when its owner may be alive.
        """
        if is_new:
            self.warning = (
                f"session: {self._session_path.parent} has no file locks; musepi on another computer is "
                "noticed only by its lock file"
            )
            return descriptor
        try:
            owner = _read_owner(descriptor)
            if not _is_left_behind(owner, time.time() - os.fstat(descriptor).st_mtime):
                raise self._busy(_pid_of(owner))
            self._remove_left_behind(descriptor, owner)
        finally:
            os.close(descriptor)
        return None

    def _remove_left_behind(self, seen: int, owner: Mapping[str, Any] | None) -> None:
        """Takes the file of a dead ``owner`` away, which ``seen`` is open on; one that another process made
        just now is put back."""
        aside = self._path.with_name(f"{self._path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return
        descriptor = os.open(aside, os.O_RDONLY | os.O_CLOEXEC)
        # A new file says nothing for a moment, as an old one may that was damaged.
        is_it = _read_owner(descriptor) == owner
        is_it = is_it and (owner is not None or os.path.sameopenfile(descriptor, seen))
        os.close(descriptor)
        if not is_it:
            with contextlib.suppress(FileExistsError):
                put_in_place(aside, self._path)
                return
        aside.unlink()

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            there = self._path.stat(follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))

    def _busy(self, pid: int | None) -> SessionBusyError:
        who = "" if pid is None else f" (pid {pid})"
        return SessionBusyError(
            f"session is open in another musepi{who}; close it, or use --fork {self._session_path}", pid=pid
        )


def _describe_owner(descriptor: int) -> None:
    pid = os.getpid()
    owner = {
        "pid": pid,
        "host": _host(),
        "started": int(time.time()),
        "boot": _boot_id(),
        "born": _birth_of(pid),
    }
    with contextlib.suppress(OSError):  # the lock is held, the text is only for others
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode(), 0)


def _read_owner(descriptor: int) -> dict[str, Any] | None:
    try:
        return as_object(json.loads(os.pread(descriptor, _CONTENT_BYTES, 0)))
    except (OSError, ValueError):
        return None


def _pid_of(owner: Mapping[str, Any] | None) -> int | None:
    pid = (owner or {}).get("pid")
    return pid if type(pid) is int else None


def _is_left_behind(owner: Mapping[str, Any] | None, age_s: float) -> bool:
    """Whether the process that made a lock file is surely gone. Of another computer that is never sure."""
    pid = _pid_of(owner)
    if owner is None or pid is None:
        return age_s > UNREADABLE_FOR_S
    if owner.get("host") != _host():
        return False
    if owner.get("boot") != _boot_id():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return owner.get("born") != _birth_of(pid)


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


def _boot_id() -> str:
    """What tells this run of the machine from the one before; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _birth_of(pid: int) -> str:
    """When a process started, in ticks since the boot; empty where the system does not say."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    # The name of the program, in parentheses, may hold anything; behind it the start is the 20th field.
    fields = status.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
