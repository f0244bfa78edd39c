"""Files that may be sessions: where they are, whose they are, how big and how old (session-format 1)."""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from musepi_tui.storage.foreign import IMPORTED_TOOLS
from musepi_tui.storage.leftovers import clean_folder
from musepi_tui.storage.paths import Paths, ToolRoot, folders_of, tool_of_path

_CODEX_FOLDER = re.compile(r"\d{1,4}")
_CODEX_LEVELS = 3
"""Codex keeps its files below year, month and day."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to list: sessions of ``cwd``, or all when it is None. ``override`` replaces the own root."""

    paths: Paths
    cwd: Path | None
    override: Path | None = None
    foreign: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that is named like a session. ``problem`` says why it cannot be read; it is empty mostly."""

    path: str
    tool: str
    is_own: bool
    size: int
    mtime_ns: int
    problem: str = ""


@dataclass(slots=True)
class Scan:
    """What was found: files, the folders looked at, sentences for the person."""

    files: list[Candidate] = field(default_factory=list[Candidate])
    folders: set[str] = field(default_factory=set[str])
    notices: list[str] = field(default_factory=list[str])


def scan_files(scope: Scope) -> Scan:
    """The candidates of a scope, newest first. Own folders are cleaned of what dead writers left."""
    scan = Scan()
    seen: set[tuple[int, int]] = set()
    for folder, tool, is_own in _folders(scope):
        try:
            status = folder.stat()
        except OSError:
            continue
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            _scan_folder(scan, str(folder), tool, is_own=is_own)
    scan.files.sort(key=lambda file: (file.mtime_ns, file.path), reverse=True)
    return scan


def folders_in(scope: Scope) -> set[str]:
    """The folders a scope looks at."""
    return {str(folder) for folder, _, _ in _folders(scope)}


def is_unchanged(path: str, size: int, mtime_ns: int) -> bool:
    """Whether a file is still as big and as old as it was."""
    try:
        status = Path(path).stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and (status.st_size, status.st_mtime_ns) == (size, mtime_ns)


def _folders(scope: Scope) -> Iterator[tuple[Path, str, bool]]:
    """Folders with session files, whose they are, and whether they are our own."""
    own = scope.override if scope.override is not None else scope.paths.sessions
    tool = tool_of_path(scope.paths, own)
    for folder in _buckets(own, scope.cwd):
        yield folder, tool or "musepi", tool is None
    for root in scope.paths.tools if scope.foreign else ():
        yield from ((folder, root.tool, False) for folder in _foreign_folders(root, scope.cwd))


def _foreign_folders(root: ToolRoot, cwd: Path | None) -> Iterator[Path]:
    if root.tool in IMPORTED_TOOLS and cwd is not None:
        return
    for folder in root.roots():
        if root.tool == "codex":
            yield from _levels(folder, _CODEX_LEVELS)
        else:
            yield from _buckets(folder, cwd)


def _buckets(root: Path, cwd: Path | None) -> Iterator[Path]:
    """A root, where files may lie flat, and its folders for ``cwd``, or all of them."""
    yield root
    if cwd is not None:
        yield from folders_of(root, cwd)
    else:
        yield from _subfolders(root, lambda name: not os.path.lexists(root / f"{name}.jsonl"))


def _levels(folder: Path, levels: int) -> Iterator[Path]:
    below = _subfolders(folder, lambda name: _CODEX_FOLDER.fullmatch(name) is not None)
    for path in below:
        if levels == 1:
            yield path
        else:
            yield from _levels(path, levels - 1)


def _subfolders(folder: Path, fits: Callable[[str], bool]) -> list[Path]:
    """The folders in a folder, those of artifacts and hidden ones left out by ``fits`` and by name."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if fits(name)]


def _scan_folder(scan: Scan, folder: str, tool: str, *, is_own: bool) -> None:
    try:
        with os.scandir(folder) as found:
            entries = list(found)
    except OSError:
        return
    scan.folders.add(folder)
    if is_own and any(entry.name.endswith((".tmp", ".bak")) for entry in entries):
        notices = clean_folder(Path(folder), [entry.name for entry in entries])
        scan.notices += notices
        if notices:
            with os.scandir(folder) as found:
                entries = list(found)
    for entry in entries:
        if _is_session_name(entry.name):
            candidate = _candidate(entry, tool, is_own=is_own)
            if candidate is not None:
                scan.files.append(candidate)


def _is_session_name(name: str) -> bool:
    """Whether a file is named like a session; sidecars such as ``s.jsonl.background-late.jsonl`` are not."""
    return name.endswith(".jsonl") and not name.startswith(".") and ".jsonl." not in name


def _candidate(entry: "os.DirEntry[str]", tool: str, *, is_own: bool) -> Candidate | None:
    """The file as a candidate; None for a folder and for what went away."""
    problem = ""
    try:
        status = entry.stat()
    except OSError as error:
        if error.errno == errno.ENOENT and not entry.is_symlink():
            return None
        return Candidate(entry.path, tool, is_own, 0, 0, error.strerror or "it cannot be read")
    if stat.S_ISDIR(status.st_mode):
        return None
    if not stat.S_ISREG(status.st_mode):
        problem = "not a regular file"
    elif status.st_size == 0:
        problem = "empty"
    return Candidate(entry.path, tool, is_own, status.st_size, status.st_mtime_ns, problem)
