"""The file an import reads: opened once, never written, read up to the size it had then (SAF-140, 145)."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from musepi_tui.base.errors import NotASessionFileError, SessionChangedOnDiskError, SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.storage.index import BLOCK_BYTES, MAX_LINE_BYTES

MAX_FILE_BYTES = 8 * 1024**3
MAX_LINES = 5_000_000
"""Limits for files of strangers (SAF-141). Without them a made-up file could keep an import busy for long."""

_CONTAINERS = (
    (b"\x1f\x8b", "a gzip file"),
    (b"PK\x03\x04", "a zip file"),
    (b"PK\x05\x06", "a zip file"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
)
"""What files begin with that hold something else; a session file begins with ``{``."""

_MAGIC_BYTES = 16


class Place(NamedTuple):
    """The bytes of one line, LF not counted."""

    offset: int
    length: int


class SourceFile:
    """A file opened for an import. ``size`` and ``mtime_ms`` are those it had when it was opened.

    What a program appends meanwhile is not seen. ``is_cut``: it has more lines than ``places`` gave. Close it
    when done.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self.path = path
        self.size = status.st_size
        self.mtime_ms = status.st_mtime_ns // 1_000_000
        self.file_id = (status.st_dev, status.st_ino)
        self.is_cut = False
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> "SourceFile":
        """The file at ``path``, made absolute, links kept as they are named.

        Raises ``SessionError`` in one line and at once: for what cannot be read, folders, pipes and devices,
        files that are too large, and files of another kind by their first bytes.
        """
        path = path.absolute()
        try:
            descriptor = open_regular(path)
        except OSError as error:
            raise SessionError(f"{path}: {_reason(error)}") from error
        source = cls(path, descriptor)
        try:
            source._refuse_unfit()
        except BaseException:
            source.close()
            raise
        return source

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self._descriptor)

    def read(self, place: Place) -> bytes:
        """The bytes at a place. Raises ``SessionChangedOnDiskError`` when they are gone, ``SessionError``."""
        try:
            data = os.pread(self._descriptor, place.length, place.offset)
            while len(data) < place.length:
                more = os.pread(self._descriptor, place.length - len(data), place.offset + len(data))
                if not more:
                    raise SessionChangedOnDiskError(f"{self.path} was cut short while it was read; try again")
                data += more
        except OSError as error:
            raise SessionError(f"{self.path}: {_reason(error)}") from error
        return data

    def blocks(self) -> Iterator[bytes]:
        """All bytes, in order."""
        offset = 0
        while offset < self.size:
            data = self.read(Place(offset, min(BLOCK_BYTES, self.size - offset)))
            yield data
            offset += len(data)

    def places(self) -> Iterator[Place]:
        """Where the lines are that hold something, in order; at most ``MAX_LINES``."""
        start = position = lines = 0
        for block in self.blocks():
            at = block.find(b"\n")
            while at >= 0:
                end = position + at
                if end > start:
                    if lines >= MAX_LINES:
                        self.is_cut = True
                        return
                    lines += 1
                    yield Place(start, end - start)
                start = end + 1
                at = block.find(b"\n", at + 1)
            position += len(block)
        if position > start and lines < MAX_LINES:
            yield Place(start, position - start)
        elif position > start:
            self.is_cut = True

    def sha256(self) -> str:
        """The digest of all bytes, in hex digits."""
        import hashlib  # deferred: a picked row is looked at without a digest

        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block)
        return digest.hexdigest()

    def _refuse_unfit(self) -> None:
        if self.size > MAX_FILE_BYTES:
            raise SessionError(f"{self.path}: larger than {MAX_FILE_BYTES // 1024**3} GiB")
        start = self.read(Place(0, min(_MAGIC_BYTES, self.size)))
        for magic, name in _CONTAINERS:
            if start.startswith(magic):
                raise NotASessionFileError(f"{self.path}: {name}, not a session file")


def is_too_long(place: Place) -> bool:
    """Whether a line is beyond what is parsed."""
    return place.length > MAX_LINE_BYTES


def _reason(error: OSError) -> str:
    return error.strerror or errno.errorcode.get(error.errno or 0, "it cannot be read")
