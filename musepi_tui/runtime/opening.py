"""Opening a session quickly, for the first screen; the rest is left to ``sessions.load_wholly``."""

from pathlib import Path

from musepi_tui.base.clock import iso_time
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import (
    NotASessionFileError,
    SessionBusyError,
    SessionError,
    SessionUnwritableError,
)
from musepi_tui.base.files import refuse_irregular
from musepi_tui.base.ids import new_session_id
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.session.entries import Entry, LoadIssue, SessionHeader
from musepi_tui.session.migrate import VERSION
from musepi_tui.storage.paths import expand_home, resolve_path, session_folder, session_path

TAIL_ENTRIES = 100
"""Entries read for the first screen of a stored session: as many as rows, for those that take only one."""


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """Why a session may only be read: the ``cause``, and the ``remedy`` outside the screen. ``can_wait``: it
    may end."""

    cause: str
    remedy: str
    can_wait: bool

    @property
    def reason(self) -> str:
        """What whoever wants to change the session is told (contract 4.1)."""
        return f"{self.cause}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Opened:
    """A session of which only the end was read. ``tail`` are the newest entries of the path, oldest first.

    ``path`` None is a session in memory only. ``seed`` are entries that a new session begins with once it
    gets a file.
    """

    header: SessionHeader
    path: Path | None
    is_new: bool
    tail: tuple[Entry, ...] = ()
    tail_is_whole: bool = True
    issues: tuple[LoadIssue, ...] = ()
    read_only: ReadOnly | None = None
    seed: tuple[Entry, ...] = ()


def session_override(options: RuntimeOptions) -> Path | None:
    """The folder of sessions that the settings name instead of the usual one."""
    folder = options.settings.values.session.dir
    return None if folder is None else expand_home(folder)


def open_quickly(choice: SessionChoice, options: RuntimeOptions) -> Opened:
    """Header and tail of the chosen session. Blocking, but reads only a few blocks.

    Raises ``SessionError`` when it is no session, and unless it may be shown read-only ``SessionBusyError``
    when another process writes it, ``SessionUnwritableError`` when nothing can be written there.
    """
    if choice.kind == "open" and choice.path is not None:
        return _open_stored(choice.path, options)
    cwd = options.cwd
    header = SessionHeader(new_session_id(), iso_time(options.clock.now_ms()), str(cwd))
    if choice.kind == "memory":
        return Opened(header, None, is_new=True)
    if choice.path is not None:
        _refuse_unfit(choice.path)
    folder = session_folder(options.paths, cwd, session_override(options))
    return Opened(header, choice.path or session_path(folder, header), is_new=True)


def busy(path: Path, error: SessionBusyError, options: RuntimeOptions) -> ReadOnly:
    """The session of another process, to be read. Raises the error where that is not wanted."""
    if options.on_busy == "refuse":
        raise error
    who = "" if error.pid is None else f" (pid {error.pid})"
    cause = f"session is open in another musepi{who}"
    return ReadOnly(cause, f"close it, or use --fork {path}", can_wait=True)


def unwritable(error: SessionUnwritableError, options: RuntimeOptions) -> ReadOnly:
    """A session that cannot be written where it lies, to be read. Raises the error where that is not
    wanted."""
    if options.on_busy == "refuse":
        raise error
    return ReadOnly(error.cause, error.remedy, can_wait=False)


def too_new(path: Path, version: int, options: RuntimeOptions) -> ReadOnly | None:
    """A session of a newer format, to be read; None when it may be written. Raises ``SessionError``."""
    if version <= VERSION or options.force:
        return None
    cause = f"session file version {version} is newer than this musepi understands ({VERSION})"
    remedy = f"use --fork {path}, or --force to write to it all the same"
    why = ReadOnly(cause, remedy, can_wait=False)
    if options.on_busy == "refuse":
        raise SessionError(f"{path}: {why.reason}")
    return why


def _refuse_unfit(path: Path) -> None:
    """Raises ``SessionError`` when a folder, a pipe or a device stands where a session is to begin."""
    try:
        refuse_irregular(path.stat(), path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error


def _open_stored(path: Path, options: RuntimeOptions) -> Opened:
    from musepi_tui.storage.lock import WriterLock  # deferred: a new session needs neither
    from musepi_tui.storage.tail import open_tail

    try:
        tail = open_tail(path, want=TAIL_ENTRIES)
    except NotASessionFileError as error:
        raise _with_way_out(error, path) from error
    read_only = too_new(path, tail.header.version, options)
    if read_only is None:
        # The lock that counts is taken by the full load; this one tells right away who may only read.
        lock = WriterLock(resolve_path(path))
        try:
            lock.acquire()
        except SessionBusyError as error:
            read_only = busy(path, error, options)
        except SessionUnwritableError as error:
            read_only = unwritable(error, options)
        finally:
            lock.release()
    return Opened(
        tail.header,
        path,
        is_new=False,
        tail=tuple(tail.entries),
        tail_is_whole=tail.whole,
        issues=tuple(tail.issues),
        read_only=read_only,
    )


def _with_way_out(error: NotASessionFileError, path: Path) -> NotASessionFileError:
    """The error with the command that makes a session of the file, where there is one."""
    # deferred: only for a file that is refused
    from musepi_tui.storage.importers import find_import_command

    command = find_import_command(path)
    return error if command is None else NotASessionFileError(f"{error}; try: {command}")
