"""The artifacts of an imported session: plain files only, names of links and devices are not followed."""

import errno
import os
import stat
from pathlib import Path

from musepi_tui.base.files import make_private_folder
from musepi_tui.storage.importers.tally import Tally
from musepi_tui.storage.new_file import copy_range

MAX_DEPTH = 8
"""How deep folders are copied; sub-agents of sub-agents need three levels."""

_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_MAKE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def copy_attachments(source: Path, target: Path, tally: Tally) -> None:
    """Copies the artifact folder ``source``, if there is one, to ``target``; both readable by the owner only.

    What cannot be copied is a warning. Anything but files and folders is left out and counted.
    """
    waiting = [(source, target, 0)] if source.is_dir() and not source.is_symlink() else []
    while waiting:
        folder, copy, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            tally.warnings.append(f"{folder} could not be read: {error.strerror or error}")
            continue
        for entry in found:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
                waiting.append((path, copy / entry.name, depth + 1))
            elif entry.is_file(follow_symlinks=False):
                _copy_file(path, copy, tally)
            else:
                tally.skip("artifact that is no file")


def count_left_files(folder: Path, tally: Tally) -> None:
    """Counts what Claude Code keeps in the folder of a session: files of sub-agents and long results. They
    stay where they are."""
    for name in ("subagents", "tool-results"):
        try:
            with os.scandir(folder / name) as entries:
                found = sum(entry.is_file(follow_symlinks=False) for entry in entries)
        except OSError:
            continue
        if found:
            tally.skipped[f"{name} file"] += found


def _copy_file(path: Path, folder: Path, tally: Tally) -> None:
    try:
        make_private_folder(folder)
        origin = os.open(path, _READ)
        try:
            status = os.fstat(origin)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            made = os.open(folder / path.name, _MAKE, 0o600)
            try:
                copy_range(origin, made, 0, status.st_size)
                os.fsync(made)
            finally:
                os.close(made)
        finally:
            os.close(origin)
    except OSError as error:
        tally.warnings.append(f"{path} could not be copied: {error.strerror or error}")
    else:
        tally.carry("artifact")
