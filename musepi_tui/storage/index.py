"""One pass over a session file: where every line is and what its head says.

The pass trusts a line that starts with ``type, id, parentId, timestamp`` in that order, as every writer of
the family makes it, and ends like an object; other lines are parsed. Bodies are not kept.
"""

import os
import re
from array import array
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.codec import is_header, record_id
from musepi_tui.session.entries import EntryHead, LoadIssue
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.records import Record, Unreadable, is_title_slot, parse_record, shape_problem

BLOCK_BYTES = 1024 * 1024
"""How much is read at once. Bigger blocks are no faster and take memory that is not given back."""

MAX_LINE_BYTES = 256 * 1024 * 1024
"""Longer lines are kept as they are and never parsed (session-format 7)."""

HEAD = re.compile(
    rb'\{"type":"([!#-\[\]-~]+)","id":"([!#-\[\]-~]+)","parentId":(?:null|"([!#-\[\]-~]*)"),'
    rb'"timestamp":"([!#-\[\]-~]*)"(?:,"message":\{"role":"(\w+)")?'
)
"""Printable ASCII without quote and backslash in each string; a line with anything else there is parsed."""

HEADER_BYTES = 4096
"""How much of a file is read to find its header; as much again when that was not enough."""

MAX_HEADER_BYTES = 1024 * 1024
"""A first line longer than this is no header."""

_PARENT_KEY = b'"parentId":'
_CLOSING_BRACE = ord("}")


@dataclass(frozen=True, slots=True)
class OldRecord:
    """A parsed record of a file of version 1 or 2 and where its line is."""

    fields: dict[str, Any]
    line: int
    offset: int
    length: int


@dataclass(slots=True)
class Index:
    """What the pass found.

    ``heads`` are in file order, repeated ids included, and ``lines`` their line numbers. A file of version 1
    or 2 has ``old_records`` in their place. ``ends_with_lf`` is true for an empty file. ``first_problem``
    says why the first record is no header; then ``header`` is None and the rest was not read.
    """

    header: dict[str, Any] | None = None
    slot: dict[str, Any] | None = None
    version: int = 0
    heads: list[EntryHead] = field(default_factory=list[EntryHead])
    lines: "array[int]" = field(default_factory=lambda: array("Q"))
    issues: list[LoadIssue] = field(default_factory=list[LoadIssue])
    old_records: list[OldRecord] = field(default_factory=list[OldRecord])
    size_bytes: int = 0
    ends_with_lf: bool = True
    first_problem: str | None = None


def build_index(descriptor: int, *, thorough: bool = False) -> Index:
    """The index of an open file, read from its start.

    ``thorough`` parses every line, so that damage inside a line with an intact head is found as well.
    """
    builder = _Builder(is_thorough=thorough)
    offset = 0
    while not builder.is_refused and (data := os.pread(descriptor, BLOCK_BYTES, offset)):
        builder.add_block(data, offset)
        offset += len(data)
    builder.finish()
    return builder.index


def read_header(descriptor: int) -> Index:
    """The index of the first lines of an open file, up to its header; ``size_bytes`` is where they end."""
    builder = _Builder(is_thorough=False)
    offset = 0
    data = b""
    while not builder.is_refused and builder.index.header is None:
        end = data.find(b"\n") + 1
        if end:
            builder.add_block(data[:end], offset)
            data, offset = data[end:], offset + end
            continue
        more = os.pread(descriptor, HEADER_BYTES, offset + len(data))
        if not more or len(data) > MAX_HEADER_BYTES:
            builder.add_block(data, offset)
            builder.finish()
            break
        data += more
    return builder.index


class _Builder:
    """The state of a pass. Blocks come in as they were read; a line cut by the end of a block waits."""

    def __init__(self, *, is_thorough: bool) -> None:
        self.index = Index()
        self._is_thorough = is_thorough
        self._line = 0
        self._words: dict[bytes, str] = {}
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    @property
    def is_refused(self) -> bool:
        """Whether the file is no session, so that reading on is of no use."""
        return self.index.first_problem is not None

    def add_block(self, data: bytes, offset: int) -> None:
        """Take in the next block, which starts at byte ``offset`` of the file."""
        self.index.size_bytes = offset + len(data)
        start = data.find(b"\n") + 1 if self._waiting_bytes else 0
        if self._waiting_bytes and start == 0:
            self._wait(data)
            return
        if self._waiting_bytes:
            self._wait(data[:start])
            self._add_waiting(offset + start)
        end = data.rfind(b"\n") + 1
        if end > start:
            self._add_lines(data, offset, start, end)
        self._wait(data[max(start, end) :])

    def finish(self) -> None:
        """Take in the last line when it has no LF."""
        if self._waiting_bytes and not self.is_refused:
            self.index.ends_with_lf = False
            self._add_waiting(self.index.size_bytes)

    def _wait(self, piece: bytes) -> None:
        self._waiting_bytes += len(piece)
        if self._waiting_bytes > MAX_LINE_BYTES:
            self._waiting.clear()
        elif piece:
            self._waiting.append(piece)

    def _add_waiting(self, end: int) -> None:
        """Take in the line that was cut, now complete; ``end`` is the byte behind it."""
        offset = end - self._waiting_bytes
        if self._waiting_bytes > MAX_LINE_BYTES:
            self._line += 1
            self._report("too_long", f"{self._waiting_bytes} bytes in one line", offset)
        else:
            line = b"".join(self._waiting)
            self._add_lines(line, offset, 0, len(line))
        self._waiting, self._waiting_bytes = [], 0

    def _add_lines(self, data: bytes, base: int, start: int, stop: int) -> None:
        """Take in the lines from ``start`` to ``stop``; ``base`` is the offset of ``data`` in the file."""
        while start < stop and self.index.version < VERSION and not self.is_refused:
            start = self._add_line_at(data, base, start, stop)
        if start >= stop or self.is_refused:
            return
        if not self._is_thorough and data.find(b"\0", start, stop) < 0:
            heads, issues, line = len(self.index.heads), len(self.index.issues), self._line
            self._add_fast(data, base, start, stop)
            # A line glued to a torn one in front of it holds the key of the parent twice.
            if data.count(_PARENT_KEY, start, stop) <= self._line - line:
                return
            del self.index.heads[heads:], self.index.lines[heads:], self.index.issues[issues:]
            self._line = line
        while start < stop:
            start = self._add_line_at(data, base, start, stop)

    def _add_fast(self, data: bytes, base: int, start: int, stop: int) -> None:
        """Take in lines by their heads. One loop without calls: it runs for every line of every file."""
        find, match_head, words = data.find, HEAD.match, self._words
        add_head, add_number = self.index.heads.append, self.index.lines.append
        id_before, before_bytes = "", b""
        while start < stop:
            end = find(b"\n", start, stop)
            end = stop if end < 0 else end
            match = match_head(data, start, end) if data[end - 1] == _CLOSING_BRACE else None
            if match is None:
                self._add_line_at(data, base, start, stop)
                start = end + 1
                continue
            kind_bytes, id_bytes, parent_bytes, time_bytes, role_bytes = match.groups()
            kind = words.get(kind_bytes) or words.setdefault(kind_bytes, kind_bytes.decode())
            role = None
            if role_bytes is not None:
                role = words.get(role_bytes) or words.setdefault(role_bytes, role_bytes.decode())
            if kind == "session" or (kind == "message" and role is None):
                self._add_line_at(data, base, start, stop)
            else:
                self._line += 1
                if parent_bytes == before_bytes:
                    parent_id = id_before  # one string for both saves 3 MB in a large session
                else:
                    parent_id = None if parent_bytes is None else parent_bytes.decode()
                id_before, before_bytes = id_bytes.decode(), id_bytes
                fields = (
                    id_before,
                    parent_id,
                    kind,
                    time_bytes.decode(),
                    base + start,
                    end - start,
                    role,
                )
                add_head(EntryHead._make(fields))
                add_number(self._line)
            start = end + 1

    def _add_line_at(self, data: bytes, base: int, start: int, stop: int) -> int:
        """Take in one line by parsing it; where the next one starts."""
        end = data.find(b"\n", start, stop)
        self._line += 1
        self._add_line(data[start : stop if end < 0 else end], base + start, has_lf=end >= 0)
        return stop if end < 0 else end + 1

    def _add_line(self, line: bytes, offset: int, *, has_lf: bool) -> None:
        """Take in a line by parsing it."""
        if not line.strip():
            return
        record = parse_record(line)
        if self.index.header is None:
            self._add_first(record)
        elif isinstance(record, Unreadable):
            is_torn = record.kind == "bad_json" and not has_lf
            detail = "the line has no end" if is_torn else record.detail
            self._report("torn_tail" if is_torn else record.kind, detail, offset)
        elif record.fields.get("type") == "session":
            self._report("extra_header", "another session header", offset)
        else:
            self._add_record(record, offset, len(line))

    def _add_first(self, record: Record | Unreadable) -> None:
        """A record before the header: the title slot on line 1, the header itself, or a reason to stop."""
        if isinstance(record, Unreadable):
            self.index.first_problem = record.detail
        elif is_header(record.fields):
            version = record.fields.get("version")
            self.index.header = record.fields
            self.index.version = version if type(version) is int else 1
        elif self._line == 1 and is_title_slot(record.fields):
            self.index.slot = record.fields
        else:
            self.index.first_problem = "it has another type"

    def _add_record(self, record: Record, offset: int, length: int) -> None:
        fields = record.fields
        if record.is_repaired:
            self._report("bad_utf8", "bytes that are not UTF-8", offset)
        if self.index.version < VERSION:
            self.index.old_records.append(OldRecord(fields, self._line, offset, length))
            return
        problem = shape_problem(fields)
        if problem is not None:
            self._report("bad_shape", problem, offset)
        head = head_of(fields, offset, length)
        if head is not None:
            self.index.heads.append(head)
            self.index.lines.append(self._line)

    def _report(self, kind: str, detail: str, offset: int) -> None:
        self.index.issues.append(LoadIssue(self._line, offset, kind, detail))


def head_of(fields: Mapping[str, Any], offset: int, length: int) -> EntryHead | None:
    """The head of a parsed record; None when it has no id."""
    entry_id = record_id(fields)
    if entry_id is None:
        return None
    message = as_object(fields.get("message")) if fields.get("type") == "message" else None
    return EntryHead(
        entry_id,
        as_text(fields.get("parentId")),
        as_text(fields.get("type")) or "",
        as_text(fields.get("timestamp")) or "",
        offset,
        length,
        None if message is None else as_text(message.get("role")),
    )
