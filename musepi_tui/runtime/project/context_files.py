"""Instruction files of the project and the person: AGENTS.md and its kin (tui 10.1, safety 8)."""

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE_NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""In each folder the first of these that is there counts."""
MAX_FILE_BYTES = 65_536
MAX_TOTAL_BYTES = 262_144
"""Most bytes of one file and of all together (SAF-78): more would leave small windows no room."""
_MAX_DEPTH = 40
"""Folders looked at between the project root and the cwd (SAF-77)."""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One instruction file; ``text`` is cut at ``MAX_FILE_BYTES``."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """What was found: the user's file, then from the project root down to the cwd. ``notes`` are for the
    person."""

    files: tuple[ContextFile, ...]
    notes: tuple[str, ...]


def find_context_files(config_dir: Path, cwd: Path) -> ContextFiles:
    """The instruction files that hold for ``cwd``. Reads files; never raises.

    The project root is the nearest folder with a ``.git`` entry; without one only ``cwd`` itself is looked
    at. A file whose real path lies outside the root (or outside ``config_dir`` for the user's own) is left
    out. Files with the same bytes count once.
    """
    root = find_project_root(cwd)
    files: list[ContextFile] = []
    notes: list[str] = []
    seen: set[str] = set()
    room_bytes = MAX_TOTAL_BYTES
    for path, allowed in _candidates(config_dir, root, cwd):
        text, note = _read(path, allowed, min(MAX_FILE_BYTES, room_bytes))
        if note is not None:
            notes.append(note)
        if text is None or not text.strip() or text in seen:
            continue
        seen.add(text)
        room_bytes -= len(text.encode("utf-8"))
        files.append(ContextFile(path, text))
    return ContextFiles(tuple(files), tuple(notes))


def find_project_root(cwd: Path) -> Path:
    """The nearest folder above (or at) ``cwd`` that holds ``.git``; ``cwd`` when there is none."""
    for folder in (cwd, *cwd.parents[:_MAX_DEPTH]):
        try:
            if (folder / ".git").exists():
                return folder
        except OSError:
            break
    return cwd


def _candidates(config_dir: Path, root: Path, cwd: Path) -> Iterator[tuple[Path, Path]]:
    """Paths that exist, with the folder their real path has to stay in."""
    yield from ((path, config_dir) for path in _first_of(config_dir, FILE_NAMES[:1]))
    for folder in _folders_between(root, cwd):
        yield from ((path, root) for path in _first_of(folder, FILE_NAMES))


def _folders_between(root: Path, cwd: Path) -> tuple[Path, ...]:
    above = [folder for folder in (cwd, *cwd.parents) if folder == root or root in folder.parents]
    return tuple(reversed(above[:_MAX_DEPTH]))


def _first_of(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    try:
        return next(((folder / name,) for name in names if (folder / name).is_file()), ())
    except OSError:
        return ()


def _read(path: Path, allowed: Path, limit_bytes: int) -> tuple[str | None, str | None]:
    """The text, cut at ``limit_bytes``, and a note for the person."""
    if limit_bytes <= 0:
        return (
            None,
            f"{path} was left out: the instruction files together are over {MAX_TOTAL_BYTES:,} bytes.",
        )
    try:
        if not path.resolve().is_relative_to(allowed.resolve()):
            return None, f"{path} was left out: it is a link that leads outside {allowed}."
        data = _read_start(path, limit_bytes + 1)
    except OSError as error:
        return None, f"{path} was left out: {error.strerror or error}."
    if len(data) <= limit_bytes:
        return data.decode("utf-8", "replace"), None
    cut = data[:limit_bytes].decode("utf-8", "ignore")
    return f"{cut}\n[cut here]", f"{path} was cut after {limit_bytes:,} bytes."


def _read_start(path: Path, count: int) -> bytes:
    if not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as file:
        return file.read(count)
