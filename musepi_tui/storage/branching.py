"""A session copied into a new file: whole, or one path of it (session-format 15). The source is only read."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.base.ids import new_entry_id
from musepi_tui.session.codec import decode_entry, dump_json, dump_line, encode_header
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader, StateEntry
from musepi_tui.session.fields import as_text
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.payload import holds_reference
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.blobs import BlobStore, blob_folder_beside
from musepi_tui.storage.index import HEAD, read_header
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.new_file import copy_range, new_session_file, write_all
from musepi_tui.storage.paths import artifact_folder, session_path
from musepi_tui.storage.sidecars import copy_artifacts
from musepi_tui.storage.titles import clean_title

_SPOKEN = frozenset({"message", "custom_message"})
"""Types of entries that make a session worth a file."""

Write: TypeAlias = Callable[[int, int], None]
"""Fills a new file: its descriptor and one of the source."""

_OWN_FIELDS = frozenset({"previousSessionFiles", "branchedFrom"})
"""Header fields that speak of the source file itself."""

_WHOLE_FIELDS = frozenset({"providerPromptCacheKey"})
"""Header fields that are right only for a copy of the whole session (session-format 2.1)."""


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where a copy goes. ``timestamp`` (ISO 8601) and ``session_id`` are those of the new session.

    ``cwd`` None keeps the working folder of the source.
    """

    folder: Path
    session_id: str
    timestamp: str
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class SessionCopy:
    """A copy that was made.

    ``is_written`` is false for a path without a message: such a session has no file until something is said
    (SAF-5); ``entries`` are what its file must begin with then, the last one its leaf.
    """

    path: Path
    header: SessionHeader
    is_written: bool
    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()


def fork_session(source: Path, place: CopyPlace) -> SessionCopy:
    """A new session with every line of ``source``, other branches and unreadable lines included.

    Lines are copied byte for byte; written anew are only those of a file of version 1 or 2, those whose
    parent was missing and found again, and those that name a blob the copy would not find: it is put in their
    place. A torn last line is left out. Blocks. Raises ``SessionError``; then nothing was made.
    """
    loaded = load_session(source)
    try:
        header = _header(loaded, place, _OWN_FIELDS)
        target = session_path(place.folder, header)
        blobs = _blobs_to_inline(loaded, target)

        def write(descriptor: int, origin: int) -> None:
            write_all(descriptor, _header_line(header))
            position, end = read_header(origin).size_bytes, _whole_end(loaded)
            for head, line in _changed_lines(loaded, blobs):
                copy_range(origin, descriptor, position, head.offset)
                write_all(descriptor, line)
                position = head.offset + head.length
            copy_range(origin, descriptor, position, end)
            if end > position and os.pread(origin, 1, end - 1) != b"\n":
                write_all(descriptor, b"\n")

        warnings = _make(loaded, target, write)
    finally:
        loaded.bodies.close()
    return SessionCopy(target, header, is_written=True, warnings=warnings)


def branch_session(source: Path, leaf_id: str | None, place: CopyPlace) -> SessionCopy:
    """A new session with the path from the root to ``leaf_id`` alone; None is a path without entries.

    Label entries are taken out and what hung under them is linked to their parents; the labels that entries
    of the path have now are made again at the end, with the time they were given. Blocks. Raises
    ``EntryNotFoundError`` for an unknown entry and ``SessionError``; then nothing was made.
    """
    loaded = load_session(source)
    try:
        heads = () if leaf_id is None else loaded.tree.path(leaf_id)
        header = _header(loaded, place, _OWN_FIELDS | _WHOLE_FIELDS)
        target = session_path(place.folder, header)
        lines = _branch_lines(loaded, heads, _blobs_to_inline(loaded, target))
        if not any(head.type in _SPOKEN for head in heads):
            return SessionCopy(target, header, is_written=False, entries=tuple(map(_decoded, lines)))

        def write(descriptor: int, _: int) -> None:
            for line in (dump_json(encode_header(header)), *lines):
                write_all(descriptor, line + b"\n")

        return SessionCopy(target, header, is_written=True, warnings=_make(loaded, target, write))
    finally:
        loaded.bodies.close()


def linked_to(line: bytes, parent_id: str | None) -> bytes:
    """The line of an entry, LF not included, with another parent; everything else stays byte for byte.

    A line that does not begin as every writer of the family makes it is written anew from what it says.
    """
    new = b"null" if parent_id is None else dump_json(parent_id)
    match = HEAD.match(line)
    if match is None:
        return dump_json({**_fields(line), "parentId": parent_id})
    if match[3] is None:
        start = match.end(2) + len(b'","parentId":')
        return line[:start] + new + line[start + len(b"null") :]
    return line[: match.start(3) - 1] + new + line[match.end(3) + 1 :]


def _header(loaded: LoadedSession, place: CopyPlace, left_out: frozenset[str]) -> SessionHeader:
    old = loaded.header
    title, source = _title(loaded)
    return SessionHeader(
        id=place.session_id,
        timestamp=place.timestamp,
        cwd=old.cwd if place.cwd is None else place.cwd,
        version=VERSION,
        parent_session=str(loaded.path.resolve()),
        title=title,
        title_source=source,
        extra={key: value for key, value in old.extra.items() if key not in left_out},
    )


def _title(loaded: LoadedSession) -> tuple[str | None, str | None]:
    """The title and where it comes from: ``auto`` only where a tool made it up."""
    name = loaded.name
    if name is None:
        return None, None
    made, source = loaded.header.title, loaded.header.title_source
    if loaded.slot is not None:
        made, source = as_text(loaded.slot.get("title")), as_text(loaded.slot.get("source"))
    return name, "auto" if source == "auto" and clean_title(made or "") == name else "user"


def _header_line(header: SessionHeader) -> bytes:
    return dump_json(encode_header(header)) + b"\n"


def _make(loaded: LoadedSession, target: Path, write: Write) -> tuple[str, ...]:
    """Makes the file and copies the artifacts before it has its name; what could not be copied, as
    warnings."""
    try:
        with new_session_file(target) as descriptor:
            origin = os.open(loaded.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                status = os.fstat(origin)
                if loaded.file_id != (status.st_dev, status.st_ino):
                    raise SessionChangedOnDiskError(f"{loaded.path} was replaced meanwhile; try again")
                write(descriptor, origin)
            finally:
                os.close(origin)
            return copy_artifacts(artifact_folder(loaded.path), artifact_folder(target))
    except OSError as error:
        raise SessionError(f"could not write {target}: {error.strerror or error}") from error


def _whole_end(loaded: LoadedSession) -> int:
    """Where the last line that is whole ends."""
    torn = (issue.offset for issue in loaded.issues if issue.kind == "torn_tail")
    return next(torn, loaded.size_bytes)


def _changed_lines(loaded: LoadedSession, blobs: BlobStore | None) -> Iterator[tuple[EntryHead, bytes]]:
    """The lines that are not copied as they are, in file order, with what they become."""
    relinked = {issue.offset for issue in loaded.issues if issue.kind == "orphan_relinked"}
    for head in sorted(loaded.heads, key=_place_of):
        if head.offset in relinked or head.offset in loaded.migrated:
            yield head, _with_blobs(_line(loaded, head, head.parent_id), blobs)
        elif blobs is not None:
            line = loaded.bodies.read_line(head)
            if holds_reference(line):
                yield head, _with_blobs(line, blobs)


def _blobs_to_inline(loaded: LoadedSession, target: Path) -> BlobStore | None:
    """The blobs that lie beside the sessions of another tool, where the copy does not look; None without."""
    beside = blob_folder_beside(loaded.path.resolve())
    if beside is None or not beside.is_dir() or beside == blob_folder_beside(target):
        return None
    return BlobStore.of_session(loaded.path.resolve())


def _with_blobs(line: bytes, blobs: BlobStore | None) -> bytes:
    """The line with payloads in place of the blobs it names; those that are missing stay references."""
    if blobs is None or not holds_reference(line):
        return line
    fields = _fields(line)
    resolved = blobs.resolve(fields)
    return line if resolved == fields else dump_json(resolved)


def _place_of(head: EntryHead) -> int:
    return head.offset


def _line(loaded: LoadedSession, head: EntryHead, parent_id: str | None) -> bytes:
    """The line of an entry as it is stored, under another parent where that changed."""
    migrated = loaded.migrated.get(head.offset)
    if migrated is not None:
        return dump_json({**migrated, "parentId": parent_id})
    line = loaded.bodies.read_line(head)
    stored = HEAD.match(line)
    if stored is not None and parent_id == (None if stored[3] is None else stored[3].decode()):
        return line
    return linked_to(line, parent_id)


def _branch_lines(
    loaded: LoadedSession, heads: Sequence[EntryHead], blobs: BlobStore | None
) -> Iterator[bytes]:
    """The lines of a path without its labels, then the name and labels it has now."""
    kept = [head for head in heads if head.type != "label"]
    boundaries = _moved_boundaries(heads)
    parent: str | None = None
    for head in kept:
        line = _with_blobs(_line(loaded, head, parent), blobs)
        yield _with_boundary(line, boundaries) if head.type == "compaction" else line
        parent = head.id
    for entry in _added_entries(loaded, kept):
        yield dump_line(replace(entry, parent_id=parent))
        parent = entry.id


def _moved_boundaries(heads: Sequence[EntryHead]) -> dict[str, str]:
    """For every label on the path the next entry that stays: a keep boundary may name the label."""
    moved: dict[str, str] = {}
    following: str | None = None
    for head in reversed(heads):
        if head.type != "label":
            following = head.id
        elif following is not None:
            moved[head.id] = following
    return moved


def _with_boundary(line: bytes, moved: Mapping[str, str]) -> bytes:
    if not moved:
        return line
    fields = _fields(line)
    boundary = moved.get(as_text(fields.get("firstKeptEntryId")) or "")
    return line if boundary is None else dump_json({**fields, "firstKeptEntryId": boundary})


def _added_entries(loaded: LoadedSession, kept: Sequence[EntryHead]) -> list[StateEntry]:
    """What the copy needs beside its path: the name, where another branch gave it, and the labels."""
    found: list[StateEntry] = []
    title, source = _title(loaded)
    if title is not None and source == "user" and title != _name_on(loaded, kept):
        named = _last(loaded.heads, "session_info")
        timestamp = loaded.header.timestamp if named is None else named.timestamp
        found.append(StateEntry("", None, timestamp, type="session_info", fields={"name": title}))
    found += _labels(loaded, {head.id for head in kept})
    taken = set(loaded.tree.order)
    added: list[StateEntry] = []
    for entry in found:
        entry_id = new_entry_id(taken)
        taken.add(entry_id)
        added.append(replace(entry, id=entry_id, raw=None))
    return added


def _name_on(loaded: LoadedSession, kept: Sequence[EntryHead]) -> str | None:
    """The name that the path alone gives."""
    head = _last(kept, "session_info")
    entry = None if head is None else loaded.bodies.get(head)
    if not isinstance(entry, StateEntry):
        return None
    return clean_title(as_text(entry.fields.get("name")) or "") or None


def _last(heads: Sequence[EntryHead], kind: str) -> EntryHead | None:
    return next((head for head in reversed(heads) if head.type == kind), None)


def _labels(loaded: LoadedSession, targets: set[str]) -> list[StateEntry]:
    """The label entry that counts for each target, in the order they stand in the file."""
    found: dict[str, StateEntry] = {}
    for head in loaded.heads:
        entry = loaded.bodies.get(head) if head.type == "label" else None
        target_id = as_text(entry.fields.get("targetId")) if isinstance(entry, StateEntry) else None
        if target_id in targets and isinstance(entry, StateEntry):
            found.pop(target_id, None)
            if as_text(entry.fields.get("label")):
                found[target_id] = entry
    return list(found.values())


def _fields(line: bytes) -> Mapping[str, Any]:
    record = parse_record(line)
    if not isinstance(record, Record):
        raise SessionError(f"an entry that is needed cannot be read: {record.detail}")
    return record.fields


def _decoded(line: bytes) -> Entry:
    return decode_entry(_fields(line))
