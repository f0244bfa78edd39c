"""A session file that appears whole or not at all, and copying parts of one into another."""

import contextlib
import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from musepi_tui.base.files import make_private_folder, put_in_place, sync_folder, temporary_beside

_BLOCK_BYTES = 1024 * 1024
_FILE_MODE = 0o600


@contextmanager
def new_session_file(path: Path) -> Generator[int]:
    """A descriptor to write a new file through; it gets its name, synced, when the block ends well.

    Until then it is ``.<name>.<pid>.<random>.tmp`` beside it, which is removed when the block fails. The
    folder is made where it is missing. Raises ``FileExistsError`` when the name is taken, else ``OSError``.
    """
    make_private_folder(path.parent)
    temporary = temporary_beside(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags, _FILE_MODE)
    try:
        try:
            yield descriptor
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        put_in_place(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes every byte. Raises ``OSError``."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def copy_range(source: int, target: int, start: int, end: int) -> None:
    """Appends bytes ``start`` to ``end`` of one file to another, inside the kernel where it can do that.

    Raises ``OSError``, also when the source is shorter than that.
    """
    position = start
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):  # another file system, or one that cannot
            while position < end:
                copied = os.copy_file_range(source, target, end - position, position)
                if copied == 0:
                    break
                position += copied
    while position < end:
        data = os.pread(source, min(_BLOCK_BYTES, end - position), position)
        if not data:
            raise OSError(errno.EIO, "the file is shorter than it was")
        write_all(target, data)
        position += len(data)
