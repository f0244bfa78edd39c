"""Opening a session quickly, for the first screen; the rest is left to ``sessions.load_wholly``."""

from pathlib import Path

from musepi_tui.base.clock import iso_time
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.base.ids import new_session_id
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.session.entries import Entry, LoadIssue, SessionHeader
from musepi_tui.session.migrate import VERSION
from musepi_tui.storage.paths import session_folder, session_path

TAIL_ENTRIES = 100
"""Entries read for the first screen of a stored session: as many as rows, for those that take only one."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session of which only the end was read. ``tail`` are the newest entries of the path, oldest first."""

    header: SessionHeader
    path: Path
    is_new: bool
    tail: tuple[Entry, ...] = ()
    tail_is_whole: bool = True
    issues: tuple[LoadIssue, ...] = ()


def session_override(options: RuntimeOptions) -> Path | None:
    """The folder of sessions that the settings name instead of the usual one."""
    folder = options.settings.values.session.dir
    return None if folder is None else Path(folder).expanduser()


def open_quickly(choice: SessionChoice, options: RuntimeOptions) -> Opened:
    """Header and tail of the chosen session. Blocking, but reads only a few blocks.

    Raises ``SessionBusyError`` when another process writes it, ``SessionError`` when it is no session.
    """
    if choice.kind == "open" and choice.path is not None:
        return _open_stored(choice.path)
    cwd = options.cwd
    header = SessionHeader(new_session_id(), iso_time(options.clock.now_ms()), str(cwd))
    folder = session_folder(options.paths, cwd, session_override(options))
    return Opened(header, choice.path or session_path(folder, header), is_new=True)


def _open_stored(path: Path) -> Opened:
    from musepi_tui.storage.lock import WriterLock  # deferred: a new session needs neither
    from musepi_tui.storage.tail import open_tail

    tail = open_tail(path, want=TAIL_ENTRIES)
    if tail.header.version > VERSION:
        raise SessionError(
            f"{path}: session file version {tail.header.version} is newer than this musepi understands "
            f"({VERSION}); update musepi"
        )
    # The lock that counts is taken by the full load; a session that is taken already is refused right here.
    lock = WriterLock(path.resolve())
    lock.acquire()
    lock.release()
    return Opened(
        tail.header,
        path,
        is_new=False,
        tail=tuple(tail.entries),
        tail_is_whole=tail.whole,
        issues=tuple(tail.issues),
    )
