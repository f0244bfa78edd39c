"""A session that gets another working folder; its file moves to where the sessions of that folder are
(session-format 15)."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import make_private_folder, sync_folder
from musepi_tui.storage.entry_file import Changes
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.paths import Paths, same_folder, session_folder
from musepi_tui.storage.session_file import SessionFile
from musepi_tui.storage.sidecars import move_sidecars

_LOG = logging.getLogger("musepi.storage")


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the session is now. ``warnings`` name what stayed behind."""

    path: Path
    warnings: tuple[str, ...] = ()


def move_session(path: Path, cwd: Path, paths: Paths, *, override: Path | None = None) -> Moved:
    """Makes ``cwd`` the working folder of a session. Blocks; the writer lock is held meanwhile.

    The file goes to the folder of ``cwd`` with its artifacts and what other tools keep beside it. Only its
    header changes when it lies outside musepi's own sessions, or when ``override`` holds the sessions of all
    folders. Nothing happens when the session belongs to ``cwd`` already.

    Raises ``SessionBusyError`` when another process has it, ``SessionError`` when there is no such folder, a
    file of that name is there, or something fails; then everything is as it was.
    """
    if not cwd.is_dir():
        raise SessionError(f"{cwd}: there is no such folder")
    loaded = load_session(path)
    try:
        if same_folder(loaded.header.cwd, cwd):
            return Moved(path)
        target = _target(path, cwd, paths, override)
        file = SessionFile.open(path, loaded)
        try:
            return _move(file, loaded, cwd, target)
        finally:
            file.close()
    finally:
        loaded.bodies.close()


def _target(path: Path, cwd: Path, paths: Paths, override: Path | None) -> Path:
    """The path the file gets; its own when it stays where it is. Raises ``SessionError`` when that is
    taken."""
    own = paths.sessions.resolve()
    is_own = override is None and not path.is_symlink() and path.resolve().parent.parent == own
    target = session_folder(paths, cwd) / path.name if is_own else path
    if target != path and (target.exists() or target.is_symlink()):
        raise SessionError(f"{target} exists already; nothing was moved")
    return target


def _move(file: SessionFile, loaded: LoadedSession, cwd: Path, target: Path) -> Moved:
    old = loaded.header
    file.rewrite(Changes(header=replace(old, cwd=str(cwd.resolve()))))
    if target == loaded.path:
        return Moved(target)
    with ExitStack() as undo:
        undo.callback(_undo, lambda: file.rewrite(Changes(header=old)))
        try:
            warnings = _rename(loaded.path, target, old.id, undo)
        except OSError as error:
            raise SessionError(f"could not move {loaded.path}: {error.strerror or error}") from error
        undo.pop_all()
    return Moved(target, warnings)


def _rename(path: Path, target: Path, session_id: str, undo: ExitStack) -> tuple[str, ...]:
    make_private_folder(target.parent)
    lock = WriterLock(target)
    lock.acquire()
    try:
        path.rename(target)
        undo.callback(_undo, lambda: target.rename(path))
        undo.callback(_undo, lambda: move_sidecars(target, path, session_id))
        warnings = move_sidecars(path, target, session_id)
        sync_folder(target.parent)
        sync_folder(path.parent)
    finally:
        lock.release()
    return warnings


def _undo(step: Callable[[], object]) -> None:
    """One step back after a failure; one that fails as well is left to the log."""
    try:
        step()
    except (OSError, SessionError):
        _LOG.exception("a session that could not be moved could not be put back either")
