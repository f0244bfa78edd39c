"""Appending to a session file (session-format 9, safety 2)."""

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.session.codec import dump_json, encode_entry, encode_header
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.migrate import VERSION
from musepi_tui.storage.loading import LoadedSession
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.migration import rewrite_migrated
from musepi_tui.storage.paths import make_private_folder

if sys.platform == "darwin":
    import fcntl

    def _sync_data(descriptor: int) -> None:
        # There fsync leaves the data in the cache of the drive.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
elif sys.platform == "win32":

    def _sync_data(descriptor: int) -> None:
        os.fsync(descriptor)
else:

    def _sync_data(descriptor: int) -> None:
        os.fdatasync(descriptor)


_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class _Line:
    """A line ready to be written, LF included; ``head`` has no place in the file yet."""

    head: EntryHead
    data: bytes


class SessionFile:
    """The file of one session, open for appending; holds the writer lock from then on.

    A new session has no file until the first ``append``. Whatever goes wrong there raises ``SessionError``
    and leaves the caller with its entries: the same ``append`` may be tried again, and lines that reached the
    file the first time are not written twice. Not for use by several threads at once, except ``sync``.
    """

    def __init__(self, path: Path, header: SessionHeader, loaded: LoadedSession | None) -> None:
        self.path = path
        self._target = path.resolve()
        self._header = header
        self._loaded = loaded
        self._lock = WriterLock(self._target)
        self._descriptor: int | None = None
        self._size_bytes: int | None = None
        self._landed: dict[str, EntryHead] = {}
        self._folder_synced = loaded is not None

    @classmethod
    def create(cls, path: Path, header: SessionHeader) -> "SessionFile":
        """A session that is not on disk yet. Nothing is created, no lock is taken before the first append."""
        return cls(path, header, None)

    @classmethod
    def open(cls, path: Path, loaded: LoadedSession) -> "SessionFile":
        """A session that was loaded from ``path``; takes the writer lock.

        Raises ``SessionBusyError`` when another process has it, ``SessionError`` for a file that may only be
        read. The file itself is not touched before the first append.
        """
        if loaded.read_only_reason is not None:
            raise SessionError(f"{path}: {loaded.read_only_reason}")
        file = cls(path, loaded.header, loaded)
        file._lock.acquire()
        return file

    @property
    def is_created(self) -> bool:
        """Whether the session has a file."""
        return self._loaded is not None or self._descriptor is not None

    def append(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...]:
        """Writes entries at the end, in one call of whole lines; their heads with their places.

        Raises ``SessionChangedOnDiskError`` when the file was replaced, removed or cut, ``SessionError`` when
        it cannot be written.
        """
        lines = [_line_of(entry) for entry in entries]
        fresh = [line for line in lines if line.head.id not in self._landed]
        if fresh:
            try:
                placed = self._write_new(fresh)
            except OSError as error:
                raise SessionError(f"could not write {self.path}: {error.strerror or error}") from error
            self._landed.update({head.id: head for head in placed})
        heads = tuple(self._landed[line.head.id] for line in lines)
        self._landed.clear()
        return heads

    def sync(self) -> None:
        """Waits until everything appended is on the disk. Blocks; may run in another thread.

        Raises ``SessionError``; what was written may then be lost in a power cut.
        """
        if self._descriptor is None:
            return
        try:
            own = os.dup(self._descriptor)
            try:
                _sync_data(own)
            finally:
                os.close(own)
            if not self._folder_synced:
                _sync_folder(self._target.parent)
                self._folder_synced = True
        except OSError as error:
            raise SessionError(f"could not sync {self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Gives descriptor and lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._lock.release()

    def _write_new(self, lines: Sequence[_Line]) -> list[EntryHead]:
        if self._descriptor is None and self._loaded is None:
            return self._create_with(lines)
        descriptor = self._open_existing() if self._descriptor is None else self._descriptor
        size = self._check_unchanged(descriptor)
        needs_lf = size > 0 and size != self._size_bytes and os.pread(descriptor, 1, size - 1) != b"\n"
        return self._write(descriptor, b"\n" if needs_lf else b"", lines, size)

    def _create_with(self, lines: Sequence[_Line]) -> list[EntryHead]:
        """Makes the file with the header and the first lines; on failure it is as if nothing had happened."""
        make_private_folder(self._target.parent)
        self._lock.acquire()
        descriptor = os.open(self._target, _FLAGS | os.O_CREAT, _FILE_MODE)
        try:
            if os.fstat(descriptor).st_size:
                raise SessionChangedOnDiskError(f"{self.path} was made by another program in the meantime")
            header = dump_json(encode_header(self._header)) + b"\n"
            placed = self._write(descriptor, header, lines, 0)
        except BaseException as error:
            # A file with half a header could never be opened again; nothing in it was acknowledged.
            if not isinstance(error, SessionChangedOnDiskError):
                with contextlib.suppress(OSError):
                    self._target.unlink()
            os.close(descriptor)
            self._landed.clear()
            self._size_bytes = None
            raise
        self._descriptor = descriptor
        return placed

    def _open_existing(self) -> int:
        """The descriptor of a loaded file; a file of an older version is rewritten first."""
        assert self._loaded is not None
        if self._loaded.version_on_disk < VERSION:
            rewrite_migrated(self._target, self._loaded)
        try:
            descriptor = os.open(self._target, _FLAGS)
        except FileNotFoundError as error:
            raise SessionChangedOnDiskError(f"{self.path} was removed by another program") from error
        self._descriptor = descriptor
        self._size_bytes = None
        status = os.fstat(descriptor)
        known = self._loaded.file_id
        if known is not None and known != (status.st_dev, status.st_ino):
            raise SessionChangedOnDiskError(f"{self.path} was replaced by another program; open it again")
        return descriptor

    def _check_unchanged(self, descriptor: int) -> int:
        """The size of the file, after making sure that it is the one we know. It may have grown."""
        status = os.fstat(descriptor)
        try:
            there = self._target.stat()
        except FileNotFoundError as error:
            raise SessionChangedOnDiskError(f"{self.path} was removed by another program") from error
        if not os.path.samestat(status, there):
            raise SessionChangedOnDiskError(f"{self.path} was replaced by another program; open it again")
        if self._size_bytes is not None and status.st_size < self._size_bytes:
            raise SessionChangedOnDiskError(f"{self.path} was cut short by another program; open it again")
        return status.st_size

    def _write(self, descriptor: int, prefix: bytes, lines: Sequence[_Line], size: int) -> list[EntryHead]:
        """Writes ``prefix`` and the lines; after a failure whole lines that got through are remembered."""
        data = prefix + b"".join(line.data for line in lines)
        written = 0
        try:
            while written < len(data):
                written += os.write(descriptor, data[written:] if written else data)
        finally:
            is_whole = written == len(data)
            # The kernel moved the descriptor behind our bytes, wherever other writers had put the end.
            start = os.lseek(descriptor, 0, os.SEEK_CUR) - written if written else size
            placed = _place(lines, start + len(prefix), start + written)
            self._size_bytes = start + written if is_whole else None
            self._landed.update({head.id: head for head in placed})
        return placed


def _line_of(entry: Entry) -> _Line:
    obj = encode_entry(entry)
    data = dump_json(obj) + b"\n"
    message = as_object(obj.get("message")) if entry.type == "message" else None
    role = None if message is None else as_text(message.get("role"))
    return _Line(
        EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp, 0, len(data) - 1, role), data
    )


def _place(lines: Sequence[_Line], start: int, end: int) -> list[EntryHead]:
    """The heads of the lines that lie whole before ``end`` when the first one begins at ``start``.

    A line that lacks only its LF counts: the next append brings it, writing the line again would double it.
    """
    placed: list[EntryHead] = []
    for line in lines:
        if start + len(line.data) - 1 > end:
            break
        placed.append(line.head._replace(offset=start))
        start += len(line.data)
    return placed


def _sync_folder(folder: Path) -> None:
    """Makes the name of a new file durable; not every file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
