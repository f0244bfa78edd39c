"""Appending to a session file (session-format 9, 11; safety 2)."""

import os
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.base.files import make_private_folder, sync_folder
from musepi_tui.session.codec import dump_json, encode_header
from musepi_tui.session.entries import Entry, SessionHeader
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import Appended, Changes, RecoveryNeededError
from musepi_tui.storage.file_state import (
    APPEND_FLAGS,
    FileObject,
    FileState,
    adopt_lines,
    identity_of,
    make_or_take,
    open_object,
    pin_object,
    refuse_unwritable,
    relinked_ids,
    take_back,
    write_lines,
)
from musepi_tui.storage.known import KnownEntries
from musepi_tui.storage.lines import Line, PutBlob, line_of
from musepi_tui.storage.loading import LoadedSession
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.migration import rewrite_migrated
from musepi_tui.storage.paths import resolve_path
from musepi_tui.storage.recovery import create_again, merge, replace_lines, update_slot
from musepi_tui.storage.rescue import remaining_bytes
from musepi_tui.storage.rewrite import refuse_hard_links, with_title

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


INLINE_BYTES = 4 * 1024 * 1024
"""How much of a file an append reads or copies by itself to bring it in order; more takes over 20 ms and is
left to ``rewrite`` in a thread."""


class SessionFile:
    """The file of one session, open for appending; holds the writer lock from then on.

    A new session has no file until the first ``append``. Whatever goes wrong there raises ``SessionError``
    and leaves the caller with its entries: the same ``append`` may be tried again, and lines that reached the
    file the first time are not written twice. May be called by several threads; one waits for the other.

    ``put_blob``, when set, stores large images outside the lines (``session.externalizeImages``).
    """

    def __init__(
        self, path: Path, header: SessionHeader, bodies: Bodies, loaded: LoadedSession | None
    ) -> None:
        self.put_blob: PutBlob | None = None
        target = resolve_path(path)
        tree = SessionTree.empty() if loaded is None else loaded.tree
        known = KnownEntries(tree.heads, tree.order[-1] if len(tree) else None)
        self._state = FileState(path, target, header, bodies, known)
        self._name = os.fspath(target)
        self._old = loaded if loaded is not None and loaded.version_on_disk < VERSION else None
        self._lock = WriterLock(target)
        self._guard = threading.Lock()
        self._is_named_on_disk = loaded is not None
        self._is_closed = False

    @classmethod
    def create(cls, path: Path, header: SessionHeader, bodies: Bodies | None = None) -> "SessionFile":
        """A session that is not on disk yet. Nothing is created, no lock is taken before the first append.

        ``bodies`` reads its entries back; it is told where they are.
        """
        return cls(path, header, Bodies(path) if bodies is None else bodies, None)

    @classmethod
    def open(cls, path: Path, loaded: LoadedSession) -> "SessionFile":
        """A session that was loaded from ``path``; takes the writer lock.

        Raises ``SessionBusyError`` when another process has it, ``SessionChangedOnDiskError`` when the file
        was replaced since it was loaded, ``SessionUnwritableError`` when its folder or its other names forbid
        to write it, ``SessionError`` for one that may only be read. The file itself is not touched before the
        first append.
        """
        if loaded.read_only_reason is not None:
            raise SessionError(f"{path}: {loaded.read_only_reason}")
        file = cls(path, loaded.header, loaded.bodies, loaded)
        refuse_unwritable(file._state.target)
        if file._old is not None:
            refuse_hard_links(file._state.target)  # it will have to be written anew
        file._take_lock()
        try:
            file._state.object = pin_object(loaded, file._state.target)
            file._state.orphans = relinked_ids(loaded)
        except OSError as error:
            file.close()
            raise SessionError(f"{path}: {error.strerror}") from error
        except SessionError:
            file.close()
            raise
        return file

    @property
    def path(self) -> Path:
        """The file, as it was named at opening."""
        return self._state.path

    @property
    def is_created(self) -> bool:
        """Whether the session has a file."""
        return self._state.object is not None

    def append(self, entries: Sequence[Entry]) -> Appended:
        """Writes entries at the end, in one call of whole lines: see ``EntryFile``."""
        with self._guard:
            try:
                lines = self._lines_of(entries)
                self._bring_in_order(INLINE_BYTES)
                self._write_new(lines)
            except OSError as error:
                raise self._write_error(error) from error
            return self._report(lines)

    def rewrite(self, changes: Changes) -> Appended:
        """Writes the file anew with some lines changed; without changes only brings it in order. Blocks."""
        with self._guard:
            try:
                lines = self._lines_of(changes.tail)
                self._bring_in_order(None)
                self._apply(changes, lines)
            except OSError as error:
                raise self._write_error(error) from error
            return self._report(lines)

    def sync(self) -> None:
        """Waits until everything appended is on the disk. Blocks; may run in another thread.

        Raises ``SessionError``; what was written may then be lost in a power cut, and nothing is appended
        before ``rewrite`` wrote the unsynced entries again, to a new file object (SAF-3).
        """
        with self._guard:
            file = self._state.object
            if file is None or not file.can_append:
                return
            own = os.dup(file.descriptor)
        try:
            _sync_data(own)
            if not self._is_named_on_disk:
                sync_folder(self._state.target.parent)
                self._is_named_on_disk = True
        except OSError as error:
            with self._guard:
                self._state.is_suspect = self._state.is_suspect or self._state.object is file
            raise SessionError(f"could not sync {self.path}: {error.strerror}") from error
        finally:
            os.close(own)

    def remains(self, unsaved: Sequence[Entry]) -> Iterator[bytes]:
        """What the file at the path lacks: see ``EntryFile``. Images that are due to lie outside stay in
        their lines."""
        with self._guard:
            yield from remaining_bytes(self._state, self._old, [line_of(entry) for entry in unsaved])

    def close(self) -> None:
        """Gives descriptor and lock back."""
        with self._guard:
            self._is_closed = True
            file, self._state.object = self._state.object, None
            if file is not None:
                file.close()
            self._lock.release()

    def _lines_of(self, entries: Sequence[Entry]) -> list[Line]:
        return [line_of(entry, self.put_blob) for entry in entries]

    def _report(self, lines: Sequence[Line]) -> Appended:
        known = self._state.known
        return self._state.found.report([known[line.id] for line in lines])

    def _write_error(self, error: OSError) -> SessionError:
        return SessionError(f"could not write {self.path}: {error.strerror or error}")

    def _take_lock(self) -> None:
        self._lock.acquire()
        if self._lock.warning is not None:
            self._state.found.notices.append(self._lock.warning)

    def _bring_in_order(self, limit_bytes: int | None) -> None:
        """Makes sure that the file is the one we know, whatever other programs did to it, and can be written.

        ``limit_bytes`` is how much of it may be read or copied for that, None: as much as it takes. Raises
        ``RecoveryNeededError`` when it takes more.
        """
        if self._is_closed:
            raise SessionError(f"{self.path} was given back; nothing is written to it any more")
        file = self._state.object
        if file is None:
            return
        try:
            there = os.stat(self._name)  # noqa: PTH116 - before every append; Path.stat takes twice as long
        except (FileNotFoundError, NotADirectoryError):
            there = None
        if (
            there is not None
            and there.st_size == file.end
            and there.st_mtime_ns == file.mtime_ns
            and file.can_append
            and identity_of(there) == file.identity
            and not self._state.is_suspect
        ):
            return
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise SessionChangedOnDiskError(
                f"{self.path} was replaced by another program and is no regular file any more"
            )
        if self._state.is_suspect and limit_bytes is not None:
            raise RecoveryNeededError(f"{self.path} could not be synced, so it has to be written anew")
        if self._old is not None:
            self._migrate(self._old, file, limit_bytes)
        else:
            self._recover(file, there, limit_bytes)
        self._open_for_append()

    def _recover(self, file: FileObject, there: os.stat_result | None, limit_bytes: int | None) -> None:
        """Undoes what another program did to the file, or takes it in."""
        state = self._state
        if there is None:
            self._refuse_over(limit_bytes, file.end)
            make_private_folder(state.target.parent)
            self._lock.renew()
            create_again(state, file)
            return
        is_same = identity_of(there) == file.identity
        size = there.st_size
        # After a failed sync the kernel may have dropped what we wrote: it is written again in any case.
        if is_same and size == file.end and (state.is_suspect or not file.is_overwritten()):
            file.note_time()
            return
        if is_same and size > file.end and not file.is_overwritten():
            self._refuse_over(limit_bytes, size - file.line_start)
            adopt_lines(state, file, size)
            return
        self._refuse_over(limit_bytes, size + file.end)
        merge(state, file, is_same=is_same)

    def _refuse_over(self, limit_bytes: int | None, needed_bytes: int) -> None:
        if limit_bytes is not None and needed_bytes > limit_bytes:
            raise RecoveryNeededError(f"{self.path} was changed by another program")

    def _migrate(self, old: LoadedSession, file: FileObject, limit_bytes: int | None) -> None:
        self._refuse_over(limit_bytes, file.end)
        moved = rewrite_migrated(self._state.target, old)
        self._old = None
        new = pin_object(old, self._state.target, APPEND_FLAGS)
        self._state.put_object(new, moved)
        self._state.orphans.clear()

    def _open_for_append(self) -> None:
        """The object we read from is the one at the name: it gets a descriptor that can write."""
        file = self._state.object
        if file is None or file.can_append:
            return
        writable = open_object(self._state.target)
        if writable.identity != file.identity:
            writable.close()
            raise SessionChangedOnDiskError(f"{self.path} was replaced by another program just now")
        file.close()
        file.descriptor, file.can_append = writable.descriptor, True

    def _write_new(self, lines: Sequence[Line]) -> None:
        """Writes the lines that the file does not have."""
        known = self._state.known
        fresh = [line for line in lines if line.id not in known]
        file = self._state.object
        if fresh and file is None:
            self._create_with(fresh)
        elif fresh and file is not None:
            write_lines(self._state, file, fresh)

    def _create_with(self, lines: Sequence[Line]) -> None:
        """Makes the file with the header and the first lines; on failure it is as if nothing had happened."""
        state = self._state
        make_private_folder(state.target.parent)
        self._take_lock()
        file, is_ours = make_or_take(state)
        try:
            header = dump_json(encode_header(with_title(state.header, state.title))) + b"\n"
            write_lines(state, file, lines, header)
        except BaseException:
            # A file with half a header could never be opened again; nothing in it was acknowledged.
            take_back(state, file, is_ours=is_ours)
            file.close()
            state.known = KnownEntries({})
            raise
        state.put_object(file, {})

    def _apply(self, changes: Changes, lines: Sequence[Line]) -> None:
        """Makes the changes of a rewrite; what may stay in the file as it is stays there."""
        state = self._state
        state.title = changes.title or state.title
        if changes.header is not None:
            state.header = changes.header
        file = state.object
        if file is None:
            self._write_new(lines)
            return
        changed = dict(changes.lines)
        fresh = [line for line in lines if line.id not in state.known]
        # What is not in the file yet gets there changed right away.
        fresh = [
            line._replace(data=changed.pop(line.id) + b"\n") if line.id in changed else line for line in fresh
        ]
        if state.is_suspect:  # the kernel may have dropped what it could not write: not read back, written
            changed |= {line.id: line.data[:-1] for line in lines if line.id in state.known}
        if changed or changes.header is not None or state.is_suspect:
            replace_lines(state, file, changed, fresh, header=changes.header is not None)
            self._is_named_on_disk = True
        else:
            self._write_new(fresh)
        if changes.title is not None and state.object is not None:
            update_slot(state, state.object, changes.title)
