"""What lies beside a session file and belongs to it (session-format 13): copied with it, moved with it."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from musepi_tui.base.files import make_private_folder
from musepi_tui.storage.paths import artifact_folder

_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def sidecar_files(path: Path, session_id: str) -> tuple[Path, ...]:
    """The existing files that other tools keep beside a session file; its artifact folder is not one."""
    names = [f"{path.name}.background-late.jsonl"]
    if _PLAIN_ID.fullmatch(session_id):  # the id comes from the file and must not name another folder
        names.append(f".plan-state-{session_id}.json")
    return tuple(file for name in names if (file := path.with_name(name)).is_file())


def copy_artifacts(source: Path, target: Path) -> tuple[str, ...]:
    """Copies an artifact folder; a missing one is fine. What could not be copied, as warnings.

    Symbolic links stay links. Files that are there already stay as they are.
    """
    if not source.is_dir():
        return ()
    warnings: list[str] = []
    for folder, file in _files_below(source, warnings):
        copied = target / file.relative_to(source)
        try:
            make_private_folder(target / folder.relative_to(source))
            if not os.path.lexists(copied):
                shutil.copy2(file, copied, follow_symlinks=False)
        except OSError as error:
            warnings.append(f"{file} could not be copied: {error.strerror or error}")
    return tuple(warnings)


def move_artifacts(source: Path, target: Path) -> tuple[str, ...]:
    """Moves an artifact folder. One that is there already takes in what it does not have; the names of what
    stayed behind, as warnings. Raises ``OSError``."""
    if not source.is_dir():
        return ()
    if not target.exists():
        make_private_folder(target.parent)
        _move(source, target)
        return ()
    stayed: list[str] = []
    for file in sorted(source.iterdir()):
        if os.path.lexists(target / file.name):
            stayed.append(str(file))
        else:
            _move(file, target / file.name)
    if not stayed:
        source.rmdir()
    return tuple(f"{name} stayed where it is: {target} has a file of that name" for name in stayed)


def move_sidecars(source: Path, target: Path, session_id: str) -> tuple[str, ...]:
    """Moves what lies beside the session file ``source`` to beside ``target``; warnings. Raises
    ``OSError``."""
    warnings = list(move_artifacts(artifact_folder(source), artifact_folder(target)))
    for file in sidecar_files(source, session_id):
        suffix = file.name.removeprefix(source.name)
        moved = target.with_name(target.name + suffix if suffix != file.name else file.name)
        if os.path.lexists(moved):
            warnings.append(f"{file} stayed where it is: {moved} exists")
        else:
            _move(file, moved)
    return tuple(warnings)


def _move(source: Path, target: Path) -> None:
    """Renames; between two file systems it copies and removes."""
    try:
        source.rename(target)
    except OSError:
        with contextlib.suppress(shutil.Error):
            shutil.move(source, target)
        if not os.path.lexists(target) or os.path.lexists(source):
            raise


def _files_below(folder: Path, warnings: list[str]) -> Iterator[tuple[Path, Path]]:
    def failed(error: OSError) -> None:
        warnings.append(f"{error.filename} could not be read: {error.strerror or error}")

    for root, folders, files in os.walk(folder, onerror=failed):
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        yield from ((Path(root), Path(root) / name) for name in sorted([*files, *links]))
