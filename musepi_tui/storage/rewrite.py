"""Writing a session file anew: what does not change is copied byte for byte (session-format 10)."""

import errno
import io
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError, SessionUnwritableError
from musepi_tui.base.files import replacing
from musepi_tui.session.codec import decode_header, dump_json, encode_header, is_header
from musepi_tui.session.entries import EntryHead, SessionHeader
from musepi_tui.session.fields import overlay
from musepi_tui.session.records import Record, is_title_slot, parse_record
from musepi_tui.storage.file_state import Identity, identity_of
from musepi_tui.storage.index import MAX_HEADER_BYTES
from musepi_tui.storage.lines import Title, encode_slot
from musepi_tui.storage.new_file import copy_range, write_all

_FRONT_BYTES = 64 * 1024
_BOM = b"\xef\xbb\xbf"


class Span(NamedTuple):
    """Bytes of a file; ``end`` is the first one behind it."""

    start: int
    end: int


Piece: TypeAlias = bytes | Span
"""A part of the new file: these bytes, or a span of the old one."""

Replaced: TypeAlias = tuple[Identity, int]
"""A file whose name a new one gets: which one it is, and how many bytes of it are known."""


@dataclass(frozen=True, slots=True)
class Front:
    """Where slot and header are, LF included, and what the header says. ``slot`` None: the file has none."""

    header_at: Span
    header: Record
    slot: Span | None = None


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What is to be different: lines (LF not counted) by the head of the entry, header bytes, and what comes
    behind the old end. ``old_end`` is how much of the old file counts."""

    old_end: int
    lines: Sequence[tuple[EntryHead, bytes]] = ()
    header: tuple[Span, bytes] | None = None
    tail: bytes = b""


@dataclass(slots=True)
class Moves:
    """How far everything behind some places of the old file moved in the new one."""

    places: list[int] = field(default_factory=list[int])
    deltas: list[int] = field(default_factory=list[int])

    def note(self, place: int, delta: int) -> None:
        """What lies at ``place`` or behind it lies ``delta`` bytes further on than what is before it."""
        self.deltas.append((self.deltas[-1] if self.deltas else 0) + delta)
        self.places.append(place)

    def delta_at(self, offset: int) -> int:
        """How far the byte at ``offset`` of the old file moved."""
        index = bisect_right(self.places, offset)
        return self.deltas[index - 1] if index else 0


def find_front(descriptor: int) -> Front:
    """Slot and header of an open session file. Raises ``SessionChangedOnDiskError`` when it has no header."""
    data = os.pread(descriptor, _FRONT_BYTES, 0)
    if data.count(b"\n") < 3:
        data = os.pread(descriptor, MAX_HEADER_BYTES, 0)
    start, slot = 0, None
    for line in io.BytesIO(data):  # it splits at LF alone
        at = Span(start, start + len(line))
        start = at.end
        if not line.strip():
            continue
        record = parse_record(line.rstrip(b"\n"))
        if isinstance(record, Record) and is_header(record.fields):
            return Front(at, record, slot)
        if not isinstance(record, Record) or slot is not None or not is_title_slot(record.fields):
            break
        slot = at
    raise SessionChangedOnDiskError("the file has no session header any more; open it again")


def header_line(descriptor: int, front: Front, header: SessionHeader) -> bytes:
    """The header's line, LF included; fields that did not change keep their form and place, as a BOM does."""
    before = decode_header(front.header.fields)
    fields = overlay(front.header.fields, encode_header(before), encode_header(header))
    bom = os.pread(descriptor, len(_BOM), front.header_at.start) == _BOM
    return (_BOM if bom else b"") + dump_json(fields) + b"\n"


def plan_pieces(wanted: Rewriting) -> tuple[list[Piece], Moves]:
    """The new file as pieces in order, and where the bytes of the old one lie in it."""
    pieces: list[Piece] = []
    moves = Moves()
    position = 0
    parts = [(Span(head.offset, head.offset + head.length), data) for head, data in wanted.lines]
    if wanted.header is not None:
        parts.append(wanted.header)
    for span, data in sorted(parts, key=_start_of):
        pieces += [Span(position, span.start), data]
        position = span.end
        # What begins inside the span is the changed line itself, which does not move by its own growth.
        moves.note(span.start + 1, len(data) - (span.end - span.start))
    pieces.append(Span(position, wanted.old_end))
    if wanted.tail:
        pieces.append(wanted.tail)
    return [piece for piece in pieces if isinstance(piece, bytes) or piece.start < piece.end], moves


def moved_heads(
    heads: Iterable[EntryHead], moves: Moves, lines: Sequence[tuple[EntryHead, bytes]]
) -> dict[str, EntryHead]:
    """The new heads of all entries whose place or length is another one, by id."""
    lengths = {head.id: len(data) for head, data in lines}
    moved: dict[str, EntryHead] = {}
    for head in heads:
        delta, length = moves.delta_at(head.offset), lengths.get(head.id, head.length)
        if delta or length != head.length:
            moved[head.id] = head._replace(offset=head.offset + delta, length=length)
    return moved


def write_anew(target: Path, source: int, pieces: Sequence[Piece], over: Replaced | None) -> Identity:
    """Writes a file made of pieces in place of another one, ``over``; None: the name is free. Returns its
    identity. Spans among the pieces are those of ``source``.

    The new file is complete and synced before it gets the name. Raises ``OSError``, also when another program
    changed the other file or took the name meanwhile, ``SessionError`` for a file with several names; then
    nothing was changed.
    """
    refuse_hard_links(target)
    last_look = None if over is None else partial(refuse_changed, target, over)
    mode = 0o600 if over is None else None
    with replacing(target, mode=mode, only_new=over is None, last_look=last_look) as file:
        for piece in pieces:
            if isinstance(piece, bytes):
                write_all(file.fileno(), piece)
            else:
                copy_range(source, file.fileno(), piece.start, piece.end)
        return identity_of(os.fstat(file.fileno()))


def refuse_changed(target: Path, known: Replaced) -> None:
    """Raises ``OSError`` when the file is another one or of another size by now: who replaced it would lose
    what another program wrote."""
    there = target.stat()
    if (identity_of(there), there.st_size) != known:
        raise OSError(errno.EBUSY, "another program changed it at the same time")


def refuse_hard_links(path: Path) -> None:
    """Raises ``SessionUnwritableError`` when the file has more than one name: replacing one would part
    them."""
    try:
        links = path.stat().st_nlink
    except FileNotFoundError:
        return
    if links > 1:
        raise SessionUnwritableError(
            f"{path} has {links} names (hard links) and would have to be written anew under one of them",
            f"copy it first, or use --fork {path}",
        )


def write_slot(target: Path, known: int, slot: Span, title: Title) -> None:
    """Overwrites the title slot in place, as its inventors do. Raises ``OSError``.

    ``known`` is open on the file that has the slot; another one that got its name stays as it is, as does a
    slot that is too short for any title.
    """
    data = encode_slot(title, slot.end - slot.start)
    if data is None:
        return
    # Not through the descriptor for appending: with O_APPEND a write goes to the end, whatever its place.
    descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if os.path.sameopenfile(descriptor, known):
            os.pwrite(descriptor, data, slot.start)
    finally:
        os.close(descriptor)


def with_title(header: SessionHeader, title: Title | None) -> SessionHeader:
    """The header with a title; as it was without one."""
    if title is None:
        return header
    text = title.text or None
    return replace(header, title=text, title_source=None if text is None else title.source)


def with_parent(line: bytes, parent_id: str | None) -> bytes:
    """A line with another parent; as it was when it cannot be parsed."""
    record = parse_record(line)
    if not isinstance(record, Record):
        return line
    return dump_json(record.fields | {"parentId": parent_id})


def changed_lines(
    lines: Mapping[str, bytes], known: Mapping[str, EntryHead]
) -> list[tuple[EntryHead, bytes]]:
    """The heads of the lines that are to change, in file order. Raises ``SessionError`` for unknown ids."""
    missing = [entry_id for entry_id in lines if entry_id not in known]
    if missing:
        raise SessionError(f"entry {missing[0]} is not in the file, so its line cannot be changed")
    return sorted(((known[entry_id], data) for entry_id, data in lines.items()), key=_offset_of)


def _start_of(part: tuple[Span, bytes]) -> int:
    return part[0].start


def _offset_of(pair: tuple[EntryHead, bytes]) -> int:
    return pair[0].offset
