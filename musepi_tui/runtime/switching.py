"""Getting another session ready to take the place of the open one (session-format 15). Everything blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from musepi_tui.base.clock import iso_time
from musepi_tui.base.errors import SessionError
from musepi_tui.base.ids import new_session_id
from musepi_tui.runtime.events import Notice, Reason
from musepi_tui.runtime.history import History
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.runtime.opening import Opened, open_quickly, session_override
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.messages import UserMessage, text_of
from musepi_tui.storage.branching import CopyPlace, SessionCopy, branch_session, fork_session
from musepi_tui.storage.moving import move_session
from musepi_tui.storage.paths import session_folder

NOT_SAVED = "Cannot fork: this session is not saved"
"""The answer to a fork or clone of a session without a file (tui 4.3)."""

COPIED = "You are in a copy now; the session it was made from is as it was."


@dataclass(frozen=True, slots=True)
class Prepared:
    """A session that can be opened. ``data`` is what the intent settles with, ``notices`` are told once."""

    opened: Opened
    reason: Reason
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notices: tuple[Notice, ...] = ()


Prepare: TypeAlias = Callable[[], Prepared]
"""Gets a session ready, in a thread. Raises ``SessionError`` when it cannot."""


def prepare_new(options: RuntimeOptions, cwd: Path) -> Prepared:
    """An empty session of the folder ``cwd``, in memory when the program keeps nothing."""
    kind = "memory" if options.session.kind == "memory" else "new"
    opened = open_quickly(SessionChoice(kind), replace(options, cwd=cwd))
    return Prepared(opened, "new", _data(opened))


def prepare_path(intent: OpenSession, options: RuntimeOptions) -> Prepared:
    """The session at a path; imported, moved or forked first where that is wanted."""
    path = Path(intent.path)
    if intent.how == "fork":
        return _copied(fork_session(path, copy_place(options, options.cwd)), options, "fork")
    if intent.how == "move":
        moved = move_session(path, options.cwd, options.paths, override=session_override(options))
        return _opened(moved.path, options, "move", moved.warnings)
    # deferred: few sessions come from another tool
    from musepi_tui.storage.importers import SourceKind, detect_source

    if detect_source(path) in (SourceKind.CLAUDE, SourceKind.CODEX):
        return _imported(path, options)
    return _opened(path, options, "resume")


def prepare_reopening(path: Path, options: RuntimeOptions) -> Prepared:
    """The open session anew: what is on the disk now, for writing where that is possible."""
    return _opened(path, options, "resume")


def prepare_fork(history: History, entry_id: str | None, cwd: Path, options: RuntimeOptions) -> Prepared:
    """A copy of the open session: whole, or up to an entry."""
    place = copy_place(options, cwd)
    path = saved_path(history)
    if entry_id is None:
        return _copied(fork_session(path, place), options, "fork")
    entry = history.entry(entry_id)
    if not (isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)):
        return _copied(branch_session(path, entry_id, place), options, "fork")
    parent_id = history.tree.parent(entry_id)
    prepared = _copied(branch_session(path, parent_id, place), options, "fork")
    return replace(prepared, data={**prepared.data, "text": text_of(entry.message.content)})


def prepare_clone(history: History, cwd: Path, options: RuntimeOptions) -> Prepared:
    """A copy of the path from the root to the leaf of the open session."""
    copy = branch_session(saved_path(history), history.tree.leaf_id, copy_place(options, cwd))
    return _copied(copy, options, "clone")


def prepare_move(path: Path, folder: Path, options: RuntimeOptions) -> Prepared:
    """The session at ``path`` after its move to another folder. Nobody may hold its lock."""
    moved = move_session(path, folder, options.paths, override=session_override(options))
    return _opened(moved.path, options, "move", moved.warnings)


def saved_path(history: History) -> Path:
    """The file of the open session. Raises ``SessionError`` when not all of it is in one."""
    path = history.saver.path
    if path is None or not path.exists():
        raise SessionError(NOT_SAVED)
    if history.saver.unsaved:
        raise SessionError(f"not everything could be written to {path} yet; try again when it is")
    return path


def copy_place(options: RuntimeOptions, cwd: Path) -> CopyPlace:
    """Where a copy goes that belongs to the folder ``cwd``."""
    folder = session_folder(options.paths, cwd, session_override(options))
    return CopyPlace(folder, new_session_id(), iso_time(options.clock.now_ms()), str(cwd))


def _opened(path: Path, options: RuntimeOptions, reason: Reason, warnings: Sequence[str] = ()) -> Prepared:
    opened = open_quickly(SessionChoice("open", path), options)
    return Prepared(opened, reason, _data(opened), _notices(warnings))


def _copied(copy: SessionCopy, options: RuntimeOptions, reason: Reason) -> Prepared:
    if copy.is_written:
        prepared = _opened(copy.path, options, reason, copy.warnings)
    else:
        opened = Opened(copy.header, copy.path, is_new=True, tail=copy.entries, seed=copy.entries)
        prepared = Prepared(opened, reason, _data(opened), _notices(copy.warnings))
    return replace(prepared, notices=(Notice("info", COPIED, "session"), *prepared.notices))


def _imported(path: Path, options: RuntimeOptions) -> Prepared:
    from musepi_tui.storage.importers import import_session  # deferred: see above

    made = import_session(path, options.paths, override=session_override(options), clock=options.clock)
    return _opened(made.path, options, "import", made.warnings)


def _data(opened: Opened) -> dict[str, Any]:
    return {
        "sessionId": opened.header.id,
        "sessionFile": None if opened.path is None else str(opened.path),
    }


def _notices(warnings: Sequence[str]) -> tuple[Notice, ...]:
    return tuple(Notice("warning", text, "session") for text in warnings)
