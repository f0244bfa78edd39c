"""Deleting a session: into the trash, with everything that belongs to it (session-format 15)."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from musepi_tui.base.dataclass import dataclass
from musepi_tui.storage.glance import glance_at
from musepi_tui.storage.list_cache import drop_row
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.paths import Paths, artifact_folder, resolve_path
from musepi_tui.storage.sidecars import sidecar_files
from musepi_tui.storage.trash_folder import move_to_trash

MOVED = "Session moved to trash"
REMOVED = "Session deleted"


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """How it went. ``done`` is false when no trash took the session: then it is where it was, ``reason`` says
    why, and only deleting it for good is left. ``left`` are files that belonged to it and could not go."""

    done: bool
    reason: str = ""
    left: tuple[Path, ...] = ()


def delete_session(
    path: Path,
    paths: Paths | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    permanently: bool = False,
) -> DeleteOutcome:
    """Moves a session file, its artifacts and what else stands beside it to the trash. Blocks.

    The writer lock is held meanwhile. ``permanently`` removes everything for good instead. Older copies of
    the file go first: one that stayed behind alone would be taken for the session itself. With ``paths`` its
    row leaves the stored list at once, else at the next listing.

    Raises ``SessionBusyError`` when the session is open elsewhere, ``NotASessionFileError`` for another file,
    ``SessionError`` when it cannot be read or locked.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - a link goes to the trash itself, not what it points at
    session_id = glance_at(path).id
    variables = os.environ if environ is None else environ
    lock = WriterLock(resolve_path(path))
    lock.acquire()
    try:
        for copy in _copies(path):
            _take(copy, variables, permanently=permanently)
        reason = _take(path, variables, permanently=permanently)
        if reason is not None:
            return DeleteOutcome(done=False, reason=reason)
        if paths is not None:
            drop_row(paths, path)
        beside = tuple(_beside(path, session_id))
        left = [part for part in beside if _take(part, variables, permanently=permanently) is not None]
        return DeleteOutcome(done=True, left=tuple(left))
    finally:
        lock.release()


def _take(path: Path, environ: Mapping[str, str], *, permanently: bool) -> str | None:
    """Why a file or folder could not go; None when it went."""
    if not permanently:
        return move_to_trash(path, environ)
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _copies(path: Path) -> Iterator[Path]:
    """What earlier versions and interrupted rewrites of the file left beside it."""
    with contextlib.suppress(OSError):
        names = sorted(os.listdir(path.parent))  # noqa: PTH208 - names are all that is needed
        for name in names:
            is_backup = name.startswith(f"{path.name}.") and name.endswith(".bak")
            is_unfinished = name.startswith(f".{path.name}.") and name.endswith(".tmp")
            if is_backup or is_unfinished:
                yield path.with_name(name)


def _beside(path: Path, session_id: str) -> Iterator[Path]:
    """Artifacts and the files other programs of the family keep for a session (session-format 13)."""
    artifacts = artifact_folder(path)
    if os.path.lexists(artifacts):
        yield artifacts
    yield from sidecar_files(path, session_id)
