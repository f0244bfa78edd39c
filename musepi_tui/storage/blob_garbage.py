"""Blobs of our own store that no session needs any more (session-format 12)."""

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import open_regular

MIN_AGE_MS = 7 * 24 * 3600 * 1000
"""Younger blobs stay: the line that names a new one is written after it, and may wait in memory."""

_BLOB_NAME = re.compile(r"([0-9a-f]{64})(?:\.[a-z0-9]{1,8})?")
_MENTION = re.compile(rb"sha256:([0-9a-f]{64})")
_STEP_BYTES = 4 * 1024 * 1024
_OVERLAP_BYTES = 80
"""Longer than a mention: one that is cut by the end of a step is found in the next."""

_FILES = (".jsonl", ".bak")
"""Session files and what is kept of them when they are written anew."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Blobs that can go, and their sizes together."""

    files: tuple[Path, ...]
    size_bytes: int


def find_garbage(store: Path, roots: Sequence[Path], now_ms: int) -> Garbage:
    """The blobs in ``store`` that are older than a week and that no session file below ``roots`` mentions.

    Blocks, for as long as it takes to read all those files when there are such blobs. Raises ``SessionError``
    when one of them cannot be read, because it might mention any.
    """
    old = {path: status.st_size for path, status in _blobs(store) if is_old(status, now_ms)}
    left = {path.name[:64] for path in old}
    for file in _session_files(roots) if left else ():
        left -= _mentions(file)
    files = tuple(path for path in sorted(old) if path.name[:64] in left)
    return Garbage(files, sum(old[path] for path in files))


def delete_blob(path: Path, now_ms: int) -> bool:
    """Deletes a blob unless somebody wrote it anew meanwhile; whether it is gone. Raises ``OSError``."""
    try:
        if not is_old(path.lstat(), now_ms):
            return False
        path.unlink()
    except FileNotFoundError:
        pass
    return True


def is_old(status: os.stat_result, now_ms: int) -> bool:
    """Whether a file was written more than a week ago."""
    return now_ms - status.st_mtime_ns // 1_000_000 > MIN_AGE_MS


def _blobs(store: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The plain files in the store that are named like blobs."""
    try:
        found = list(store.iterdir())
    except OSError:
        return
    for path in found:
        if _BLOB_NAME.fullmatch(path.name) is None:
            continue
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            yield path, status


def _session_files(roots: Sequence[Path]) -> Iterator[Path]:
    """Everything below the roots that may mention a blob, sessions of sub-agents included."""

    def fail(error: OSError) -> None:
        raise SessionError(_stopped(error.filename, error)) from error

    for root in dict.fromkeys(roots):
        for folder, _, names in os.walk(root, onerror=fail) if root.is_dir() else ():
            paths = (Path(folder) / name for name in names if name.endswith(_FILES))
            yield from (path for path in paths if _is_file(path))


def _is_file(path: Path) -> bool:
    """False for what can mention nothing: a link that leads nowhere or in a circle, a pipe, a device."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ELOOP)


def _mentions(path: Path) -> set[str]:
    """The digests a file mentions. Raises ``SessionError``; a file that is gone mentions none."""
    found: set[str] = set()
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return found
    except OSError as error:
        raise SessionError(_stopped(path, error)) from error
    try:
        offset = 0
        while data := os.pread(descriptor, _STEP_BYTES + _OVERLAP_BYTES, offset):
            found.update(digest.decode("ascii") for digest in _MENTION.findall(data))
            offset += _STEP_BYTES
    except OSError as error:
        raise SessionError(_stopped(path, error)) from error
    finally:
        os.close(descriptor)
    return found


def _stopped(path: object, error: OSError) -> str:
    return (
        f"{path}: {error.strerror}; nothing was deleted, as it may mention any blob. Make it readable or put "
        "it elsewhere, then try again"
    )
