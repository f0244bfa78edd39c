"""Getting a session file back in order after other programs removed, replaced or cut it (SAF-26)."""

import os
from collections.abc import Iterator, Sequence

from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.base.text import plural
from musepi_tui.session.codec import dump_json, dump_line, encode_entry, encode_header
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.file_state import (
    APPEND_FLAGS,
    FileObject,
    FileState,
    Identity,
    identity_of,
    note_conflicts,
    open_object,
    pin_object,
    relinked_ids,
    write_lines,
)
from musepi_tui.storage.known import KnownEntries, first_difference
from musepi_tui.storage.lines import Line, Title, line_at, place
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.rewrite import (
    Piece,
    Replaced,
    Rewriting,
    Span,
    changed_lines,
    find_front,
    header_line,
    moved_heads,
    plan_pieces,
    with_parent,
    with_title,
    write_anew,
    write_slot,
)

_BATCH_BYTES = 1024 * 1024


def create_again(state: FileState, ours: FileObject, over: Replaced | None = None) -> None:
    """Writes the whole file again after it was deleted, from the file object that is still open.

    ``over`` is an empty file that has its name by now. Raises ``OSError``.
    """
    pieces: list[Piece] = [Span(0, ours.end)]
    new = reopen(state, write_anew(state.target, ours.descriptor, pieces, over))
    new.note_end(ours.end, ours.line_start)
    state.put_object(new, {})
    state.found.notices.append(
        f"session: {state.path} was deleted by another program; it was written again, with everything in it"
    )


def merge(state: FileState, ours: FileObject, *, is_same: bool) -> None:
    """Goes on in the file that has the name now, after writing into it what it lacks of ours.

    ``is_same``: it is the same file object, cut short or written over in place, so that our places in it mean
    nothing any more. Raises ``SessionChangedOnDiskError`` when it holds no session or another one, and
    ``OSError``.
    """
    there = state.target.stat()
    if there.st_size == 0 and is_same:
        _fill_again(state)
        return
    if there.st_size == 0:
        create_again(state, ours, (identity_of(there), 0))
        return
    loaded = _load_theirs(state, is_same=is_same)
    try:
        new = pin_object(loaded, state.target, APPEND_FLAGS)
        try:
            _merge_into(state, ours, new, loaded, is_same=is_same)
        except BaseException:
            if state.object is not new:
                new.close()
            raise
    finally:
        loaded.bodies.close()


def replace_lines(
    state: FileState, file: FileObject, lines: dict[str, bytes], fresh: Sequence[Line], *, header: bool
) -> None:
    """Writes the file anew: with these lines (LF not counted, by entry id), ``fresh`` ones behind the others
    and, if ``header``, the header of ``state``. Entries linked to another parent in memory keep that one.

    Raises ``OSError``, ``SessionError``; then the old file is intact.
    """
    known = state.known
    for entry_id in state.orphans:
        head = known[entry_id]
        line = lines.get(entry_id) or state.bodies.raw_line(head)
        lines[entry_id] = with_parent(line, head.parent_id)
    pairs = changed_lines(lines, known)
    front = None
    if header:
        found = find_front(file.descriptor)
        front = found.header_at, header_line(file.descriptor, found, with_title(state.header, state.title))
    data = b"".join(line.data for line in fresh)
    needs_lf = bool(data) and file.line_start != file.end
    tail = b"\n" + data if needs_lf else data
    pieces, moves = plan_pieces(Rewriting(file.end, pairs, front, tail))
    new = reopen(state, write_anew(state.target, file.descriptor, pieces, (file.identity, file.end)))
    size = os.fstat(new.descriptor).st_size
    moved = moved_heads(known.values(), moves, pairs)
    new.note_end(size, size if data else file.line_start + moves.delta_at(file.line_start))
    state.orphans.clear()
    state.is_suspect = False
    state.put_object(new, moved)
    known.add(place(fresh, size - len(data), size))


def update_slot(state: FileState, file: FileObject, title: Title) -> None:
    """Writes a title into the slot of a file that has one. Raises ``OSError``."""
    front = find_front(file.descriptor)
    if front.slot is not None:
        write_slot(state.target, file.descriptor, front.slot, title)
        file.note_end(file.end, file.line_start)


def reopen(state: FileState, identity: Identity) -> FileObject:
    """The file just written, for appending.

    Raises ``SessionChangedOnDiskError`` when somebody else was faster, ``OSError``.
    """
    file = open_object(state.target)
    if file.identity != identity:
        file.close()
        raise SessionChangedOnDiskError(f"{state.path} was replaced by another program just now")
    return file


def _load_theirs(state: FileState, *, is_same: bool) -> LoadedSession:
    what = "cut short or overwritten" if is_same else "replaced"
    try:
        loaded = load_session(state.target)
    except SessionError as error:
        reason = str(error).removeprefix(f"{state.target}: ")
        raise SessionChangedOnDiskError(
            f"{state.path} was {what} by another program and holds no session any more ({reason})"
        ) from error
    if loaded.header.id == state.header.id and loaded.version_on_disk == VERSION:
        return loaded
    loaded.bodies.close()
    raise SessionChangedOnDiskError(
        f"{state.path} was {what} by another program and holds another session now"
    )


def _merge_into(
    state: FileState, ours: FileObject, new: FileObject, loaded: LoadedSession, *, is_same: bool
) -> None:
    known, theirs = state.known, loaded.tree.heads
    common = 0 if is_same else first_difference(ours.descriptor, new.descriptor)
    changed = [
        entry_id
        for entry_id, head in theirs.items()
        if entry_id in known
        and not _is_unchanged(state.bodies, known[entry_id], head, new, None if is_same else common)
    ]
    missing = [head for entry_id, head in known.items() if entry_id not in theirs]
    state.known = KnownEntries(theirs, loaded.tree.order[-1] if len(loaded.tree) else None)
    try:
        lost = _write_missing(state, new, missing, is_same=is_same)
    except BaseException:
        state.known = known  # the next attempt begins anew, with what the file holds by then
        raise
    state.header = loaded.header
    state.orphans = relinked_ids(loaded)
    state.found.foreign += [head for entry_id, head in theirs.items() if entry_id not in known]
    state.put_object(new, {entry_id: state.known[entry_id] for entry_id in known if entry_id in state.known})
    note_conflicts(state, changed)
    what = "cut short or overwritten" if is_same else "replaced"
    state.found.notices.append(
        f"session: {state.path} was {what} by another program; {_fate(len(missing) - lost, lost)}"
    )


def _fate(written: int, lost: int) -> str:
    """What became of the entries that a file lacked."""
    kept = "it lacks nothing" if not lost else ""
    if written:
        kept = f"{_count(written)} that it lacked {'was' if written == 1 else 'were'} written again"
    gone = f"{_count(lost)} {'is' if lost == 1 else 'are'} lost" if lost else ""
    return " and ".join(part for part in (kept, gone) if part)


def _count(number: int) -> str:
    return plural(number, "entry", "entries")


def _fill_again(state: FileState) -> None:
    """Writes everything again after the file was emptied in place: nothing but memory has it then."""
    new = open_object(state.target)
    known = state.known
    header = dump_json(encode_header(with_title(state.header, state.title))) + b"\n"
    state.known = KnownEntries({})
    try:
        write_lines(state, new, (), header)
        lost = _write_missing(state, new, tuple(known.values()), is_same=True)
    except BaseException:
        state.known = known
        new.close()
        raise
    state.put_object(new, dict(state.known))
    state.found.notices.append(
        f"session: {state.path} was emptied by another program; {_fate(len(state.known), lost)}"
    )


def _write_missing(state: FileState, new: FileObject, missing: Sequence[EntryHead], *, is_same: bool) -> int:
    """Appends entries of ours that the file does not hold; how many of them are nowhere any more."""
    batch: list[Line] = []
    size = count = 0
    for line in recall_lines(state.bodies, missing, is_same=is_same):
        batch.append(line)
        size += len(line.data)
        count += 1
        if size >= _BATCH_BYTES:
            write_lines(state, new, batch)
            batch, size = [], 0
    if batch:
        write_lines(state, new, batch)
    return len(missing) - count


def recall_lines(bodies: Bodies, heads: Sequence[EntryHead], *, is_same: bool) -> Iterator[Line]:
    """The lines of entries as they were: from the open file object, or only from memory when that one was
    written over (``is_same``)."""
    for head in heads:
        if is_same:
            data = dump_line(bodies.get(head)) if bodies.is_hot(head.id) else None
        else:
            data = bodies.raw_line(head)
        if data is not None:
            yield line_at(head, data)


def _is_unchanged(
    bodies: Bodies, ours: EntryHead, theirs: EntryHead, new: FileObject, common: int | None
) -> bool:
    """Whether an entry says the same in both files. ``common``: so many first bytes of both are the same;
    None when our file object was written over, so that only memory can tell."""
    if common is not None:
        is_inside = ours.offset == theirs.offset and ours.offset + ours.length <= common
        return is_inside or bodies.raw_line(ours) == _line(new, theirs)
    if not bodies.is_hot(ours.id):
        return True
    record = parse_record(_line(new, theirs))
    return isinstance(record, Record) and record.fields == encode_entry(bodies.get(ours))


def _line(file: FileObject, head: EntryHead) -> bytes:
    return os.pread(file.descriptor, head.length, head.offset)
