"""An open session file: the file object its places belong to, writing to it, what others added to it."""

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from musepi_tui.base.errors import SessionChangedOnDiskError, SessionUnwritableError
from musepi_tui.base.files import refuse_irregular
from musepi_tui.session.entries import EntryHead, SessionHeader
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.known import Findings, KnownEntries, read_new_lines, start_of_last_line
from musepi_tui.storage.lines import Line, Title, place
from musepi_tui.storage.loading import LoadedSession

_MARK_BYTES = 64
"""So many of the last bytes tell a file that has grown from one that was overwritten in place."""

_FILE_MODE = 0o600

APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC

Identity = tuple[int, int]
"""Device and number of a file object."""


@dataclass(slots=True)
class FileObject:
    """A file object, kept open so that places in it stay valid whatever happens to its name.

    ``end`` is how far it is known, ``line_start`` where its last line begins when that lacks its LF, else
    ``end``. ``mark`` are the last bytes before ``end``, ``mtime_ns`` its time when that was looked at.
    """

    descriptor: int
    identity: Identity
    end: int = 0
    line_start: int = 0
    can_append: bool = True
    mark: bytes = b""
    mtime_ns: int = 0

    def note_end(self, end: int, line_start: int) -> None:
        """It is known up to ``end`` now."""
        self.end, self.line_start = end, line_start
        start = max(0, end - _MARK_BYTES)
        self.mark = os.pread(self.descriptor, end - start, start)
        self.note_time()

    def note_time(self) -> None:
        """Whatever changed it last is known."""
        self.mtime_ns = os.fstat(self.descriptor).st_mtime_ns

    def is_overwritten(self) -> bool:
        """Whether the bytes before ``end`` are not those they were."""
        return os.pread(self.descriptor, len(self.mark), self.end - len(self.mark)) != self.mark

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self.descriptor)


@dataclass(slots=True)
class FileState:
    """Everything about one session file that its parts share.

    ``path`` is its name as it was given, ``target`` with links resolved. ``orphans`` are entries linked to
    another parent in memory than in the file. ``is_suspect``: a sync failed, so what was written since the
    last one may be lost.
    """

    path: Path
    target: Path
    header: SessionHeader
    bodies: Bodies
    known: KnownEntries
    object: FileObject | None = None
    orphans: set[str] = field(default_factory=set[str])
    found: Findings = field(default_factory=Findings)
    title: Title | None = None
    is_suspect: bool = False
    told_foreign: bool = False

    def put_object(self, file: FileObject, moved: dict[str, EntryHead]) -> None:
        """Another file object takes the place of the one known so far; ``moved`` are new places in it."""
        old, self.object = self.object, file
        self.known.put(moved.values())
        self.found.moved.update(moved)
        self.bodies.relocate(self.path, os.dup(file.descriptor), moved)
        if old is not None:
            old.close()


def identity_of(status: os.stat_result) -> Identity:
    """The identity of a file object."""
    return status.st_dev, status.st_ino


def open_object(target: Path, flags: int = APPEND_FLAGS) -> FileObject:
    """The file object that has the name now; nothing of it is known yet. Raises ``OSError``."""
    descriptor = os.open(target, flags)
    return FileObject(descriptor, identity_of(os.fstat(descriptor)), can_append=bool(flags & os.O_APPEND))


def refuse_unwritable(target: Path) -> None:
    """Raises ``SessionUnwritableError`` for a file that may only be read. One that is gone is not refused."""
    if os.path.lexists(target) and not os.access(target, os.W_OK):
        raise SessionUnwritableError(
            f"{target} may only be read", f"check its permissions, or use --fork {target}"
        )


def make_or_take(state: FileState) -> tuple[FileObject, bool]:
    """A new file at the place of a session, or the empty one that is there; whether it was made.

    Raises ``SessionChangedOnDiskError`` for a file with something in it, ``OSError`` for what is no file.
    """
    target = state.target
    flags = APPEND_FLAGS | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        made = os.open(target, flags | os.O_CREAT | os.O_EXCL, _FILE_MODE)
        return FileObject(made, identity_of(os.fstat(made))), True
    except FileExistsError:
        refuse_irregular(target.lstat(), target)
    taken = os.open(target, flags)
    status = os.fstat(taken)
    if status.st_size or not stat.S_ISREG(status.st_mode):
        os.close(taken)
        raise SessionChangedOnDiskError(f"{state.path} was made by another program in the meantime")
    return FileObject(taken, identity_of(status)), False


def take_back(state: FileState, file: FileObject, *, is_ours: bool) -> None:
    """Undoes ``make_or_take`` and what was written since; a file that others wrote to, or put in its place,
    stays."""
    with contextlib.suppress(OSError):
        there = state.target.lstat()
        written = os.lseek(file.descriptor, 0, os.SEEK_CUR)
        if identity_of(there) != file.identity or there.st_size != written:
            return
        if is_ours:
            state.target.unlink()
        else:
            os.ftruncate(file.descriptor, 0)


def pin_object(loaded: LoadedSession, target: Path, flags: int = os.O_RDONLY | os.O_CLOEXEC) -> FileObject:
    """The file object a session was loaded from.

    Raises ``OSError``, ``SessionChangedOnDiskError`` when another one has its name now.
    """
    file = open_object(target, flags)
    if loaded.file_id is not None and file.identity != loaded.file_id:
        file.close()
        raise SessionChangedOnDiskError(f"{loaded.path} was replaced by another program; open it again")
    end = loaded.size_bytes
    file.note_end(end, end if loaded.ends_with_lf else start_of_last_line(file.descriptor, end))
    return file


def relinked_ids(loaded: LoadedSession) -> set[str]:
    """Ids of the entries whose parent is missing in the file and was replaced in memory."""
    offsets = {issue.offset for issue in loaded.issues if issue.kind == "orphan_relinked"}
    return {head.id for head in loaded.tree.heads.values() if head.offset in offsets} if offsets else set()


def write_lines(state: FileState, file: FileObject, lines: Sequence[Line], header: bytes = b"") -> None:
    """Appends whole lines, behind ``header``; after a failure those that got through are known.

    Raises ``OSError``.
    """
    prefix = header or (b"" if file.line_start == file.end else b"\n")
    data = prefix + b"".join([line.data for line in lines])
    written = 0
    is_glued = False
    try:
        while written < len(data):
            written += os.write(file.descriptor, data[written:] if written else data)
    finally:
        if written:
            is_glued = _note_written(state, file, lines, data[:written], len(prefix))
    if is_glued:
        write_lines(state, file, lines[:1])


def _note_written(
    state: FileState, file: FileObject, lines: Sequence[Line], data: bytes, prefix_bytes: int
) -> bool:
    """Takes note of what got into the file.

    Whether the first line hangs on a torn one of another program, so that it has to be written again.
    """
    # The kernel moved the descriptor behind our bytes, wherever other writers had put the end.
    end = os.lseek(file.descriptor, 0, os.SEEK_CUR)
    start = end - len(data)
    is_glued = False
    if start != file.end:
        adopt_lines(state, file, start)
        is_glued = file.line_start != start and not prefix_bytes
    placed = place(lines, start + prefix_bytes, end)
    state.known.add(placed[1:] if is_glued else placed)
    file.end, file.line_start = end, start + data.rfind(b"\n") + 1
    file.mark = (data if len(data) >= _MARK_BYTES else file.mark + data)[-_MARK_BYTES:]
    file.note_time()
    return is_glued


def adopt_lines(state: FileState, file: FileObject, size: int) -> None:
    """Takes in what another program appended up to ``size``. Raises ``OSError``."""
    found = read_new_lines(file.descriptor, file.line_start, size, state.known)
    state.orphans.update(found.orphans)
    state.known.add(found.foreign)
    state.found.foreign += found.foreign
    for head in found.repeated:
        _take_repeated(state, file, head)
    file.note_end(size, found.line_start)
    if not state.told_foreign and (found.unreadable or found.foreign) and not found.is_exit_only:
        state.told_foreign = True
        count = len(found.foreign) + found.unreadable
        lines = "its line is" if count == 1 else f"its {count} lines are"
        state.found.notices.append(
            f"session: another program writes {state.path} too; {lines} kept beside this conversation, which "
            "goes on where it was"
        )


def _take_repeated(state: FileState, file: FileObject, head: EntryHead) -> None:
    """An id that is known stands in another line as well: where it says something else, the file counts."""
    ours = state.known[head.id]
    if ours.offset == head.offset and ours.length == head.length:
        return
    theirs = os.pread(file.descriptor, head.length, head.offset)
    if theirs == os.pread(file.descriptor, ours.length, ours.offset):
        return
    state.known.put([head])
    state.found.moved[head.id] = head
    state.bodies.relocate(state.path, os.dup(file.descriptor), {head.id: head})
    note_conflicts(state, [head.id])


def note_conflicts(state: FileState, ids: Sequence[str]) -> None:
    """Entries of ours have another content in the file: that counts from now on."""
    if not ids:
        return
    state.bodies.forget(ids)
    state.found.changed += ids
    what = f"entry {ids[0]}" if len(ids) == 1 else f"{len(ids)} entries, {ids[0]} among them,"
    state.found.notices.append(
        f"session: conflict: another program changed {what} in {state.path}; what the file says counts now"
    )
