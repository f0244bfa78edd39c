"""Files into the trash of the desktop, never destroyed (SAF-9).

A trash command of the system goes first, because it knows where the desktop looks. Without one the rules of
the freedesktop trash (version 1.0) are followed here: a file goes to the trash of its own file system, the
note about where it came from is written before it moves.
"""

import contextlib
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.files import PRIVATE_FOLDER, make_private_folder, sync_folder
from musepi_tui.base.process import find_program, run_quick

COMMAND_TIMEOUT_S = 15.0
"""A trash on a slow disk may copy; whoever waits longer is better served by the rules below."""

_COMMANDS = (("trash",), ("gio", "trash"))
_TAKEN = 10_000
"""How many names are tried for one file. Every session has a name of its own, so two are rare."""


@dataclass(frozen=True, slots=True)
class TrashFolder:
    """One trash: ``root`` holds ``files`` and ``info``. ``top`` is what noted paths are relative to, None for
    the trash in the home folder, whose notes are absolute."""

    root: Path
    top: Path | None = None


def move_to_trash(path: Path, environ: Mapping[str, str]) -> str | None:
    """Moves a file or folder to the trash: None when it went there, else why it could not. Blocks.

    ``path`` is absolute. After a failure it is where it was.
    """
    if _run_command(path):
        return None
    if sys.platform == "win32":
        return "there is no trash command"
    try:
        if sys.platform == "darwin":
            _move_beside(path, Path(environ.get("HOME") or Path.home()) / ".Trash")
        else:
            _move_by_rules(path, environ)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _run_command(path: Path) -> bool:
    """Whether a command of the system took the file: only that it is gone counts, not what it answered."""
    for name, *arguments in _COMMANDS:
        program = find_program(name)
        if program is None:
            continue
        run_quick((program, *arguments, "--", str(path)), timeout_s=COMMAND_TIMEOUT_S)
        if not os.path.lexists(path):
            return True
    return False


def _move_by_rules(path: Path, environ: Mapping[str, str]) -> None:
    """Into the first trash that takes it. Raises the ``OSError`` of the last one."""
    problem: OSError | None = None
    for trash in _trashes(path, environ):
        try:
            _move_into(trash, path)
        except OSError as error:
            if not os.path.lexists(path):
                raise
            problem = error
        else:
            return
    raise problem or OSError(errno.ENOENT, "there is no trash folder")


def _trashes(path: Path, environ: Mapping[str, str]) -> Iterator[TrashFolder]:
    """Where a file may go, best first: the home trash when it is on the same file system, the trash of the
    file system, and at last the home trash again, which means copying."""
    home = TrashFolder(_data_home(environ) / "Trash")
    device = path.lstat().st_dev
    if _device_of(home.root) == device:
        yield home
        return
    top = _top_of(path, device)
    user = os.getuid() if hasattr(os, "getuid") else 0
    shared = top / ".Trash"
    if _is_shared_trash(shared):
        yield TrashFolder(shared / str(user), top)
    own = top / f".Trash-{user}"
    if _is_ours(own, user):
        yield TrashFolder(own, top)
    yield home


def _data_home(environ: Mapping[str, str]) -> Path:
    named = environ.get("XDG_DATA_HOME", "")
    if named.startswith("/"):
        return Path(named)
    return Path(environ.get("HOME") or Path.home()) / ".local" / "share"


def _device_of(folder: Path) -> int:
    """The file system a folder is on, or will be once it is made."""
    for known in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            return known.stat().st_dev
    return -1


def _top_of(path: Path, device: int) -> Path:
    """The highest folder of the file system ``device`` above ``path``."""
    top = path.parent.resolve()
    while top != top.parent and top.parent.stat().st_dev == device:
        top = top.parent
    return top


def _is_shared_trash(folder: Path) -> bool:
    """A folder the administrator made for everybody: only with the sticky bit and never a link."""
    try:
        mode = folder.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)


def _is_ours(folder: Path, user: int) -> bool:
    """Whether the folder may be made, or is a folder of this user: another's could be a trap."""
    try:
        status = folder.lstat()
    except OSError:
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user


def _move_into(trash: TrashFolder, path: Path) -> None:
    """Notes where the file came from, then moves it. Without the move the note is taken back."""
    files, notes = trash.root / "files", trash.root / "info"
    make_private_folder(files)
    make_private_folder(notes)
    name, note = _reserve(files, notes, path.name, _note(trash, path))
    try:
        _move(path, files / name)
    except BaseException:
        if not os.path.lexists(files / name):
            with contextlib.suppress(OSError):
                note.unlink()
        raise
    sync_folder(files)
    sync_folder(path.parent)


def _note(trash: TrashFolder, path: Path) -> bytes:
    place = path if trash.top is None else (path.parent.resolve() / path.name).relative_to(trash.top)
    now = datetime.now()  # the rules ask for local time without a zone
    return (f"[Trash Info]\nPath={quote(os.fsencode(place))}\nDeletionDate={now:%Y-%m-%dT%H:%M:%S}\n").encode(
        "ascii"
    )


def _reserve(files: Path, notes: Path, wanted: str, note: bytes) -> tuple[str, Path]:
    """A name nobody has, taken by writing its note first: that is what makes it ours."""
    stem, suffix = Path(wanted).stem, Path(wanted).suffix
    for number in range(1, _TAKEN):
        name = wanted if number == 1 else f"{stem} {number}{suffix}"
        path = notes / f"{name}.trashinfo"
        if os.path.lexists(files / name):
            continue
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(note)
            file.flush()
            os.fsync(file.fileno())
        return name, path
    raise OSError(errno.EEXIST, f"the trash holds {_TAKEN:,} files of that name", str(files / wanted))


def _move_beside(path: Path, folder: Path) -> None:
    """Into a plain trash folder, under a free name."""
    folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    target, number = folder / path.name, 1
    while os.path.lexists(target):
        number += 1
        target = folder / f"{path.stem} {number}{path.suffix}"
    _move(path, target)


def _move(path: Path, target: Path) -> None:
    """Renames; to another file system it copies wholly before anything is removed."""
    try:
        path.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    else:
        return
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copy2(path, target, follow_symlinks=False)
        _sync_tree(target)
    except BaseException:
        _remove(target)
        raise
    _remove(path)


def _sync_tree(path: Path) -> None:
    """Makes a copy durable before the original goes."""
    found = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in found:
        if file.is_symlink():
            continue
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
