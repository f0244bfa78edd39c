"""Sessions of a folder or of all, and finding one by what a person typed (session-format 14, 15)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.storage.glance import SessionInfo, glance_at
from musepi_tui.storage.paths import Paths, folders_of, same_folder

__all__ = ["SessionInfo", "find_session", "list_sessions", "newest_session"]

SHOWN_MATCHES = 20
"""How many sessions a message about an ambiguous reference names."""


def list_sessions(paths: Paths, cwd: Path | None, *, override: Path | None = None) -> tuple[SessionInfo, ...]:
    """Sessions that belong to ``cwd``, or all of them when it is None, newest first.

    ``override`` is a folder that replaces the sessions root. Files that cannot be read are left out. Blocks.
    """
    rows = _rows(_files(_folders(paths, cwd, override)), cwd)
    return tuple(sorted(rows, key=_age, reverse=True))


def newest_session(paths: Paths, cwd: Path, *, override: Path | None = None) -> SessionInfo | None:
    """The session of ``cwd`` that was written last; None when there is none."""
    dated = [(_modified_ns(path), path) for path in _files(_folders(paths, cwd, override))]
    newest_first = (path for _, path in sorted(dated, reverse=True))
    return next(_rows(newest_first, cwd), None)


def find_session(paths: Paths, cwd: Path, reference: str, *, override: Path | None = None) -> SessionInfo:
    """The one session a person means: a path, the start of an id or file name, or a whole title.

    Sessions of ``cwd`` are looked at first, then all. Raises ``SessionError`` when none fits or several do.
    """
    if "/" in reference or "\\" in reference or reference.endswith(".jsonl"):
        return glance_at((cwd / Path(reference).expanduser()).absolute())
    for scope in (cwd, None):
        rows = list_sessions(paths, scope, override=override)
        found = [row for row in rows if _matches(row, reference)] or [
            row for row in rows if _is_named(row, reference)
        ]
        if len(found) > 1:
            raise SessionError(_ambiguous(reference, found))
        if found:
            return found[0]
    raise SessionError(f'Session "{reference}" not found.')


def _matches(row: SessionInfo, reference: str) -> bool:
    wanted = reference.lower()
    name = row.path.stem.lower()
    return (
        any(text.startswith(wanted) for text in (row.id.lower(), name, name.rpartition("_")[2]))
        and wanted != ""
    )


def _is_named(row: SessionInfo, reference: str) -> bool:
    return row.is_named and row.title.lower() == reference.lower()


def _ambiguous(reference: str, found: list[SessionInfo]) -> str:
    lines = [f"  {row.id}  {row.title}" for row in found[:SHOWN_MATCHES]]
    if len(found) > SHOWN_MATCHES:
        lines.append(f"  and {len(found) - SHOWN_MATCHES} more")
    head = f'"{reference}" fits {len(found)} sessions; give more of the id:'
    return "\n".join([head, *lines])


def _folders(paths: Paths, cwd: Path | None, override: Path | None) -> Iterator[Path]:
    if override is not None:
        yield override
        if cwd is not None:
            yield from folders_of(override, cwd)
    elif cwd is not None:
        yield from folders_of(paths.sessions, cwd)
    else:
        yield paths.sessions
    root = override if override is not None else paths.sessions
    if cwd is None and root.is_dir():
        yield from (
            folder for folder in sorted(root.iterdir()) if folder.is_dir() and not _is_artifacts(folder)
        )


def _is_artifacts(folder: Path) -> bool:
    """Whether the folder belongs to a session file next to it."""
    return folder.with_name(folder.name + ".jsonl").exists()


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        try:
            yield from (path for path in folder.iterdir() if path.suffix == ".jsonl" and path.is_file())
        except OSError:
            continue


def _rows(files: Iterable[Path], cwd: Path | None) -> Iterator[SessionInfo]:
    for path in files:
        try:
            row = glance_at(path)
        except SessionError:
            continue
        if cwd is None or same_folder(row.cwd, cwd):
            yield row


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _age(row: SessionInfo) -> tuple[str, str, str]:
    return row.modified, row.created, str(row.path)
