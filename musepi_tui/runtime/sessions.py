"""Loading a session wholly, for work (architecture 7d)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from musepi_tui.base.errors import SessionBusyError, SessionUnwritableError
from musepi_tui.runtime.cooling import context_heads
from musepi_tui.runtime.events import Notice
from musepi_tui.runtime.history import Loaded
from musepi_tui.runtime.opening import Opened, ReadOnly, busy, too_new, unwritable
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.session.entries import Entry, EntryHead, LoadIssue, SessionHeader
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.rebuild import SessionContext, build_session_context
from musepi_tui.session.totals import Totals
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import EntryFile
from musepi_tui.storage.loading import LoadedSession, describe_issues, load_session
from musepi_tui.storage.other_files import MemoryFile, ReadOnlyFile
from musepi_tui.storage.seeded_file import SeededFile
from musepi_tui.storage.session_file import SessionFile

LOADS_AGAIN = 2
"""How often a file that grew under the load is loaded again; a program that ignores the lock may go on."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session that is wholly there. ``cwd`` is where its tools work.

    It is locked for writing, unless ``read_only`` says why not. ``takes_over``: the worker of the session
    that is open goes on in this one.
    """

    loaded: Loaded
    file: EntryFile
    cwd: Path
    issues: tuple[LoadIssue, ...] = ()
    notices: tuple[Notice, ...] = ()
    read_totals: Callable[[], Totals] | None = None
    read_only: ReadOnly | None = None
    takes_over: bool = False


def load_wholly(opened: Opened, options: RuntimeOptions) -> StoredSession:
    """The whole session, its context rebuilt. Blocking: call it in a thread. Raises ``SessionError``."""
    if opened.is_new or opened.path is None:
        return _begin(opened, options)
    stored, file, read_only = _load_locked(opened.path, options)
    context = build_session_context(_read(stored.tree, stored.bodies))
    loaded = Loaded(stored.header, stored.tree, stored.bodies, context, stored.name)
    folder, notices = _work_folder(stored.header, options.cwd)
    damage = describe_issues(stored.issues)
    warnings = context.warnings if damage is None else (damage, *context.warnings)
    notices += tuple(Notice("warning", text, "session") for text in warnings)
    return StoredSession(
        loaded, file, folder, tuple(stored.issues), notices, lambda: stored.totals, read_only
    )


def _begin(opened: Opened, options: RuntimeOptions) -> StoredSession:
    """A session that is not on disk yet, or never will be."""
    bodies = Bodies(opened.path)
    for entry in opened.seed:
        bodies.remember(entry)
    heads = [EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp) for entry in opened.seed]
    context = build_session_context(opened.seed) if opened.seed else SessionContext((), ())
    tree = SessionTree.from_heads(heads) if heads else SessionTree.empty()
    loaded = Loaded(opened.header, tree, bodies, context, opened.header.title)
    file: EntryFile = MemoryFile()
    if opened.path is not None:
        file = _with_blobs(SessionFile.create(opened.path, opened.header, bodies), options)
        file = SeededFile(file, opened.seed) if opened.seed else file
    folder, notices = _work_folder(opened.header, options.cwd)
    return StoredSession(loaded, file, folder, notices=notices)


def _load_locked(path: Path, options: RuntimeOptions) -> tuple[LoadedSession, EntryFile, ReadOnly | None]:
    """The session as it is under the lock.

    A writer that was just ending may add lines between the load and the lock; then it is loaded again, so
    that work goes on from the true end.
    """
    stored = load_session(path)
    file, read_only = _open_file(path, stored, options)
    for _ in range(LOADS_AGAIN):
        if read_only is not None or _size_bytes(path) == stored.size_bytes:
            break
        file.close()
        stored = load_session(path)
        file, read_only = _open_file(path, stored, options)
    return stored, file, read_only


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone: the file says so when it is written
        return -1


def _open_file(
    path: Path, stored: LoadedSession, options: RuntimeOptions
) -> tuple[EntryFile, ReadOnly | None]:
    """The file for writing; for reading, with the reason, where it may not be written."""
    if stored.is_cut:
        return _unwritable(
            path, ReadOnly(stored.read_only_reason or "", f"use --fork {path}", can_wait=False)
        )
    read_only = too_new(path, stored.version_on_disk, options)
    if read_only is None:
        # With --force a newer file is written as one of this version; its header stays what it is.
        stored.version_on_disk = min(stored.version_on_disk, VERSION)
        try:
            return _with_blobs(SessionFile.open(path, stored), options), None
        except SessionBusyError as error:
            read_only = busy(path, error, options)
        except SessionUnwritableError as error:
            read_only = unwritable(error, options)
    return _unwritable(path, read_only)


def _unwritable(path: Path, read_only: ReadOnly) -> tuple[EntryFile, ReadOnly]:
    return ReadOnlyFile(path, read_only.reason), read_only


def _with_blobs(file: SessionFile, options: RuntimeOptions) -> SessionFile:
    """The file, told where large images go when they are to lie outside it."""
    if options.settings.values.session.externalize_images:
        from musepi_tui.storage.blobs import BlobStore  # deferred: hashes load slowly, it is off

        file.put_blob = BlobStore(lambda: options.paths.data / "blobs", file.path).put
    return file


def _work_folder(header: SessionHeader, cwd: Path) -> tuple[Path, tuple[Notice, ...]]:
    """The folder the session belongs to; ``cwd`` with a notice when that is gone (P-098)."""
    own = Path(header.cwd) if header.cwd else cwd
    if own.is_dir():
        return own, ()
    text = f"The folder of this session, {own}, does not exist here; tools work in {cwd}."
    return cwd, (Notice("warning", text, "session"),)


def _read(tree: SessionTree, bodies: Bodies) -> Sequence[Entry]:
    return bodies.read_all(context_heads(tree, bodies))
