"""What is known about the entries of an open session file, and what was found out about it."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.entry_file import Appended
from musepi_tui.storage.index import MAX_LINE_BYTES, head_of

_BLOCK_BYTES = 1024 * 1024


class KnownEntries(Mapping[str, EntryHead]):
    """The last known place of every entry of a file: those it was loaded with, and later ones.

    Iterates in file order. What was loaded is not copied; ``last_id`` is the last entry of all.
    """

    def __init__(self, base: Mapping[str, EntryHead], last_id: str | None = None) -> None:
        self.last_id = last_id
        self._base = base
        self._own: dict[str, EntryHead] = {}
        self._added: list[str] = []

    def __getitem__(self, entry_id: str) -> EntryHead:
        own = self._own.get(entry_id)
        return self._base[entry_id] if own is None else own

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._own or (bool(self._base) and entry_id in self._base)

    def __iter__(self) -> Iterator[str]:
        return chain(self._base, self._added)

    def __len__(self) -> int:
        return len(self._base) + len(self._added)

    def add(self, heads: Iterable[EntryHead]) -> None:
        """Entries that were not known are at the end now."""
        for head in heads:
            self._own[head.id] = head
            self._added.append(head.id)
            self.last_id = head.id

    def put(self, heads: Iterable[EntryHead]) -> None:
        """Entries that are known are at other places now."""
        for head in heads:
            self._own[head.id] = head


@dataclass(slots=True)
class Findings:
    """What was found out about a file and not reported yet; it outlives a failed attempt to write."""

    foreign: list[EntryHead] = field(default_factory=list[EntryHead])
    moved: dict[str, EntryHead] = field(default_factory=dict[str, EntryHead])
    changed: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])

    def report(self, heads: Sequence[EntryHead]) -> Appended:
        """What was appended with everything so far, each told once."""
        if not (self.foreign or self.moved or self.changed or self.notices):
            return Appended(tuple(heads))
        told = Appended(
            tuple(heads),
            tuple(self.foreign),
            dict(self.moved) or None,
            tuple(self.changed),
            tuple(self.notices),
        )
        self.foreign.clear()
        self.moved.clear()
        self.changed.clear()
        self.notices.clear()
        return told


@dataclass(slots=True)
class NewLines:
    """The entries of a part of a file.

    ``foreign`` had unknown ids, ``repeated`` known ones; of ``orphans`` the parent is nowhere, the entry
    before took its place. ``line_start`` is where the last line begins when it lacks its LF, else the end.
    ``is_exit_only``: nothing but the notes some tools leave when they close a session.
    """

    foreign: list[EntryHead] = field(default_factory=list[EntryHead])
    repeated: list[EntryHead] = field(default_factory=list[EntryHead])
    orphans: list[str] = field(default_factory=list[str])
    unreadable: int = 0
    line_start: int = 0
    is_exit_only: bool = True


def read_new_lines(descriptor: int, start: int, end: int, known: KnownEntries) -> NewLines:
    """The entries between two places of an open file, by the rules of the loader."""
    found = NewLines(line_start=end)
    fresh: set[str] = set()
    last_id = known.last_id
    for offset, line, has_lf in _lines(descriptor, start, end):
        if not has_lf:
            found.line_start = offset
        if not line.strip():
            continue
        record = parse_record(line) if len(line) <= MAX_LINE_BYTES else None
        if not isinstance(record, Record):
            found.unreadable += 1
            found.is_exit_only = False
            continue
        head = None if record.fields.get("type") == "session" else head_of(record.fields, offset, len(line))
        if head is None:
            continue
        if head.id in known or head.id in fresh:
            found.repeated.append(head)
            continue
        if head.parent_id is not None and head.parent_id not in known and head.parent_id not in fresh:
            found.orphans.append(head.id)
            head = head._replace(parent_id=last_id)
        is_exit = head.type == "custom" and record.fields.get("customType") == "session_exit"
        found.is_exit_only = found.is_exit_only and is_exit
        found.foreign.append(head)
        fresh.add(head.id)
        last_id = head.id
    return found


def first_difference(first: int, second: int) -> int:
    """How many bytes two open files have in common at their beginning, in whole blocks."""
    offset = 0
    while True:
        one, other = os.pread(first, _BLOCK_BYTES, offset), os.pread(second, _BLOCK_BYTES, offset)
        if one != other or not one:
            return offset
        offset += len(one)


def start_of_last_line(descriptor: int, end: int) -> int:
    """Where the line begins that the byte before ``end`` belongs to."""
    position = end
    while position > 0:
        start = max(0, position - _BLOCK_BYTES)
        found = os.pread(descriptor, position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
    return 0


def _lines(descriptor: int, start: int, end: int) -> Iterator[tuple[int, bytes, bool]]:
    """Offset and bytes of each line, LF not included, and whether it has one."""
    offset = position = start
    waiting = b""
    while position < end:
        data = os.pread(descriptor, min(_BLOCK_BYTES, end - position), position)
        if not data:
            break
        position += len(data)
        *whole, waiting = (waiting + data).split(b"\n")
        for line in whole:
            yield offset, line, True
            offset += len(line) + 1
    if waiting:
        yield offset, waiting, False
