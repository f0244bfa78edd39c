"""What a killed writer left beside session files (session-format 10). Own folders only."""

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

OLD_S = 60 * 60
"""A temporary file younger than this may belong to a writer on another machine."""

_TEMPORARY = re.compile(r"\..+\.jsonl\.(\d+)\.[A-Za-z0-9_-]+\.tmp")
_BACKUP = re.compile(r"([^.].*\.jsonl)\.(?!v\d+\.)[^.]+\.bak")
"""Not ``.v1.bak``, which a migration keeps for good (SAF-9): its session may have been deleted on purpose."""


def clean_folder(folder: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Removes temporary files of dead writers and brings a session back of which only the backup is left.

    ``names`` are all names in the folder. Returns a sentence for the person for each session brought back.
    Nothing that fails here matters: the next listing tries again.
    """
    known = set(names)
    backups: dict[str, list[Path]] = {}
    for name in names:
        if (match := _TEMPORARY.fullmatch(name)) is not None:
            _remove_dead(folder / name, int(match[1]))
        elif (match := _BACKUP.fullmatch(name)) is not None and match[1] not in known:
            backups.setdefault(match[1], []).append(folder / name)
    promoted = (_promote(folder / name, found) for name, found in sorted(backups.items()))
    return tuple(notice for notice in promoted if notice is not None)


def _remove_dead(path: Path, pid: int) -> None:
    with contextlib.suppress(OSError):
        if _is_old(path) and not _is_alive(pid):
            path.unlink()


def _promote(primary: Path, backups: Sequence[Path]) -> str | None:
    """Makes the newest backup of a session its file again; None when that did not work."""
    try:
        newest = max(backups, key=lambda path: path.stat(follow_symlinks=False).st_mtime_ns)
        # A link fails when the file exists after all: a rename would replace it.
        os.link(newest, primary, follow_symlinks=False)
        newest.unlink()
    except OSError:
        return None
    return f"{primary} was missing; its backup {newest.name} took its place"


def _is_old(path: Path) -> bool:
    return time.time() - path.stat(follow_symlinks=False).st_mtime > OLD_S


def _is_alive(pid: int) -> bool:
    """Whether a process of this machine has that number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True
