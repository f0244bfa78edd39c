"""Getting another session ready to take the place of the open one (session-format 15). Everything blocks."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from musepi_tui.base.clock import iso_time
from musepi_tui.base.errors import SessionError
from musepi_tui.base.ids import new_entry_id, new_session_id
from musepi_tui.base.text import group_digits
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.runtime.events import Notice, Reason
from musepi_tui.runtime.handoff import Letter
from musepi_tui.runtime.history import Fields, History
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.runtime.opening import Opened, open_quickly, session_override
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import CustomMessageEntry, Entry, MessageEntry, SessionHeader, StateEntry
from musepi_tui.session.messages import UserMessage, text_of
from musepi_tui.session.transcript import HANDOFF_TYPE
from musepi_tui.storage.branching import CopyPlace, SessionCopy, branch_session, fork_session
from musepi_tui.storage.candidates import Scope, folders_in
from musepi_tui.storage.moving import move_session
from musepi_tui.storage.new_file import new_session_file, write_all
from musepi_tui.storage.paths import session_folder, session_path

if TYPE_CHECKING:
    from musepi_tui.storage.importers import Imported

NOT_SAVED = "Cannot {}: this session is not saved"
"""The answer to a change that needs a file, for a session without one (tui 4.3)."""

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
    # deferred: few sessions come from another tool
    from musepi_tui.storage.importers import SourceKind, detect_source

    path = Path(intent.path)
    here = Path(intent.folder) if intent.folder else options.cwd
    if intent.how == "again":
        return _opened(path, options, "reload")
    if detect_source(path) in (SourceKind.CLAUDE, SourceKind.CODEX):
        return _imported(path, options, None if intent.how == "there" else here)
    if intent.how == "fork":
        return _copied(fork_session(path, copy_place(options, here)), options, "fork")
    return prepare_move(path, here, options) if intent.how == "move" else _opened(path, options, "resume")


def prepare_reopening(path: Path, options: RuntimeOptions) -> Prepared:
    """The open session anew: what is on the disk now, for writing where that is possible."""
    return _opened(path, options, "resume")


def prepare_fork(history: History, entry_id: str | None, cwd: Path, options: RuntimeOptions) -> Prepared:
    """A copy of the open session: whole, or up to an entry."""
    place = copy_place(options, cwd)
    path = saved_path(history, "fork")
    if entry_id is None:
        return _copied(fork_session(path, place), options, "fork")
    entry = history.entry(entry_id)
    if not (isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)):
        return _copied(branch_session(path, entry_id, place), options, "fork")
    parent_id = history.tree.parent(entry_id)
    prepared = _copied(branch_session(path, parent_id, place), options, "branch")
    return replace(prepared, data={**prepared.data, "text": text_of(entry.message.content)})


def fork_reason(history: History, entry_id: str | None) -> Reason:
    """Why a copy is made: ``branch`` where it ends before a prompt, which is going to be another one."""
    if entry_id is None or entry_id not in history.tree:
        return "fork"
    head = history.tree.head(entry_id)
    return "branch" if (head.type, head.role) == ("message", "user") else "fork"


def prepare_clone(history: History, cwd: Path, options: RuntimeOptions) -> Prepared:
    """A copy of the path from the root to the leaf of the open session."""
    copy = branch_session(saved_path(history, "clone"), history.tree.leaf_id, copy_place(options, cwd))
    return _copied(copy, options, "clone")


def prepare_handoff(
    old: History, cwd: Path, states: Sequence[tuple[str, Fields]], letter: Letter, options: RuntimeOptions
) -> Prepared:
    """A new session that begins with a handoff document. It is stored at once where the old one has a file;
    of that nothing is changed."""
    place, parent = copy_place(options, cwd), old.saver.path
    header = SessionHeader(
        place.session_id,
        place.timestamp,
        str(cwd),
        parent_session=None if parent is None else str(parent.resolve()),
        title=old.name,
        title_source=None if old.name is None else "user",
    )
    told = _notices_of(notices.handed_off(old.header.id, _name_of(old, options)))
    entries = _first_entries(place.timestamp, states, letter)
    if parent is None:
        opened = Opened(header, None, is_new=True, tail=entries, seed=entries)
        return Prepared(opened, "handoff", _data(opened), told)
    path = session_path(place.folder, header)
    try:
        with new_session_file(path) as descriptor:
            lines = (dump_json(encode_header(header)), *map(dump_line, entries))
            write_all(descriptor, b"".join(line + b"\n" for line in lines))
    except OSError as error:
        raise SessionError(f"could not write {path}: {error.strerror or error}") from error
    return replace(_opened(path, options, "handoff"), notices=told)


def forget_prepared(prepared: Prepared) -> None:
    """Removes the file of a handoff that could not be entered. It holds nothing that is not known."""
    path = prepared.opened.path
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()


def prepare_move(path: Path, folder: Path, options: RuntimeOptions) -> Prepared:
    """The session at ``path`` after its move to another folder. Nobody may hold its lock."""
    moved = move_session(path, folder, options.paths, override=session_override(options))
    return _opened(moved.path, options, "move", moved.warnings)


def saved_path(history: History, purpose: str = "move") -> Path:
    """The file of the open session. Raises ``SessionError``, which names the purpose, when not all of it is
    in one."""
    path = history.saver.path
    if path is None or not path.exists():
        raise SessionError(NOT_SAVED.format(purpose))
    if history.saver.unsaved:
        raise SessionError(f"not everything could be written to {path} yet; try again when it is")
    return path


def copy_place(options: RuntimeOptions, cwd: Path) -> CopyPlace:
    """Where a copy goes that belongs to the folder ``cwd``."""
    folder = session_folder(options.paths, cwd, session_override(options))
    return CopyPlace(folder, new_session_id(), iso_time(options.clock.now_ms()), str(cwd))


def _first_entries(timestamp: str, states: Sequence[tuple[str, Fields]], letter: Letter) -> tuple[Entry, ...]:
    """Model and level, what the document cost, and the document."""
    spent = () if letter.spent is None else (("usage", letter.spent),)
    made: list[Entry] = []
    for entry_type, fields in (*states, *spent):
        parent = made[-1].id if made else None
        entry_id = new_entry_id({entry.id for entry in made})
        made.append(StateEntry(entry_id, parent, timestamp, type=entry_type, fields=dict(fields)))
    document = CustomMessageEntry(
        new_entry_id({entry.id for entry in made}),
        made[-1].id if made else None,
        timestamp,
        custom_type=HANDOFF_TYPE,
        content=letter.content,
        details=dict(letter.details),
        attribution="agent",
    )
    return (*made, document)


def _name_of(old: History, options: RuntimeOptions) -> str | None:
    """What ``/resume`` finds a session by: its id, or its file where no listing comes by. None without a
    file."""
    path = old.saver.path
    if path is None:
        return None
    scope = Scope(options.paths, None, session_override(options), foreign=False)
    folders = {Path(folder).resolve() for folder in folders_in(scope)}
    is_listed = path.suffix == ".jsonl" and path.resolve().parent in folders
    return old.header.id if is_listed else str(path.resolve())


def _notices_of(*texts: NoticeText) -> tuple[Notice, ...]:
    return tuple(Notice(text.level, text.text, "session") for text in texts)


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


def _imported(path: Path, options: RuntimeOptions, folder: Path | None) -> Prepared:
    """A copy of a session of another tool's format, and what became of it. It belongs to ``folder``, to its
    own one without."""
    from musepi_tui.storage.importers import import_session  # deferred: see above

    override = session_override(options)
    made = import_session(path, options.paths, override=override, clock=options.clock)
    file, warnings = made.path, made.warnings
    if folder is not None:
        moved = move_session(file, folder, options.paths, override=override)
        file, warnings = moved.path, (*warnings, *moved.warnings)
    prepared = _opened(file, options, "import", warnings)
    notices = [Notice("info", text, "session") for text in _import_report(path, file, made)]
    return replace(prepared, notices=(*notices, *prepared.notices))


def _import_report(source: Path, file: Path, made: "Imported") -> Iterator[str]:
    """What was copied, what was not, and where to, as ``musepi sessions import`` tells it."""
    yield f"Copied {source} into a new session, {file}. The original stays as it is."
    skipped = _listed(made.skipped)
    carried = f"Carried over {_listed(made.counts) or 'nothing'}"
    yield f"{carried}; left out {skipped}." if skipped else f"{carried}; nothing was left out."
    if made.earlier is not None:
        yield f"It was copied before, as {made.earlier}."


def _listed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{group_digits(count)} {kind}" for kind, count in ordered)


def _data(opened: Opened) -> dict[str, Any]:
    return {
        "sessionId": opened.header.id,
        "sessionFile": None if opened.path is None else str(opened.path),
    }


def _notices(warnings: Sequence[str]) -> tuple[Notice, ...]:
    return tuple(Notice("warning", text, "session") for text in warnings)
