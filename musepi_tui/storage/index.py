"""One pass over a session file: where every line is and what its head says.

The pass trusts a line that starts with ``type, id, parentId, timestamp`` in that order, as every writer of
the family makes it, and ends like an object; other lines are parsed. Bodies are not kept.
"""

import os
import re
from array import array
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import IntEnum
from functools import partial
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import cut
from musepi_tui.session.codec import dump_json, header_version, is_header, record_id
from musepi_tui.session.columns import ID_BYTES, NO_PARENT, TIME_BYTES, HeadColumns, HeadList
from musepi_tui.session.entries import EntryHead, LoadIssue
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.records import Record, Unreadable, is_title_slot, parse_record, shape_problem
from musepi_tui.session.tree import LEAF_MARK

BLOCK_BYTES = 1024 * 1024
"""How much is read at once. Bigger blocks are no faster and take memory that is not given back."""

MAX_LINE_BYTES = 256 * 1024 * 1024
"""Longer lines are kept as they are and never parsed (session-format 7)."""

JOINED_LINE_BYTES = 4 * 1024 * 1024
"""A line longer than this is not put together from its blocks: most are known by their head alone, the others
are read once more."""

MAX_LINES = 5_000_000
MAX_FILE_BYTES = 8 * 1024**3
"""What lies beyond is not read (SAF-141); such a file is not continued either."""

HEAD = re.compile(
    rb'\{"type":"([!#-\[\]-~]+)","id":"([!#-\[\]-~]+)","parentId":(?:null|"([!#-\[\]-~]*)"),'
    rb'"timestamp":"([!#-\[\]-~]*)"(?:,"message":\{"role":"(\w+)"|,"customType":"(musepi\.leaf)")?'
)
"""Printable ASCII without quote and backslash in each string; a line with anything else there is parsed."""

HEAD_BYTES = 4096
"""How much of a line that was not put together is looked at for its head."""

HEADER_BYTES = 4096
"""How much of a file is read to find its header; as much again when that was not enough."""

MAX_HEADER_BYTES = 1024 * 1024
"""A first line longer than this is no header."""

_PARENT_KEY = b'"parentId":'
_CLOSING_BRACE = ord("}")
_NO_ID = b" "
"""Equals no id and no parent that ``HEAD`` finds."""
_PARSED = -1
"""In place of a code: lines with this type and role are parsed."""


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

    ``columns`` hold the heads in file order, repeated ids included, and ``lines`` their line numbers. A file
    of version 1 or 2 has ``old_records`` in their place. ``ends_with_lf`` is true for an empty file.
    ``first_problem`` says why the first record is no header; then ``header`` is None and the rest was not
    read. ``is_cut``: the file goes on beyond the limits.
    """

    header: dict[str, Any] | None = None
    slot: dict[str, Any] | None = None
    version: int = 0
    columns: HeadColumns = field(default_factory=HeadColumns)
    lines: "array[int]" = field(default_factory=lambda: array("I"))
    issues: list[LoadIssue] = field(default_factory=list[LoadIssue])
    old_records: list[OldRecord] = field(default_factory=list[OldRecord])
    size_bytes: int = 0
    ends_with_lf: bool = True
    first_problem: str | None = None
    is_cut: bool = False

    @property
    def heads(self) -> HeadList:
        """The heads in file order."""
        return HeadList(self.columns, range(len(self.columns)))


class Care(IntEnum):
    """How closely lines are looked at.

    ``HEADS`` trusts a line whose head and end are intact. ``GLUED`` also finds a line glued to a torn one in
    front of it, for files that show other damage. ``WHOLE`` parses every line.
    """

    HEADS = 0
    GLUED = 1
    WHOLE = 2


def build_index(descriptor: int, care: Care = Care.HEADS) -> Index:
    """The index of an open file, read from its start."""
    builder = _Builder(partial(os.pread, descriptor), care)
    offset = 0
    while not builder.is_done and (data := os.pread(descriptor, BLOCK_BYTES, offset)):
        if offset + len(data) > MAX_FILE_BYTES:
            builder.stop(f"the file is larger than {MAX_FILE_BYTES} bytes", offset)
            break
        builder.add_block(data, offset)
        offset += len(data)
    builder.finish()
    return builder.index


def index_from(descriptor: int, offset: int, *, line: int = 0) -> Index:
    """The index of the entries behind ``offset``, where a line begins; ``line`` lines are before it.

    For lines that came after a file was indexed. Every line is parsed. Headers among them are reported.
    """
    builder = _Builder(partial(os.pread, descriptor), Care.WHOLE)
    builder.index.header, builder.index.version = {}, VERSION
    builder.skip_lines(line)
    while not builder.is_done and (data := os.pread(descriptor, BLOCK_BYTES, offset)):
        builder.add_block(data, offset)
        offset += len(data)
    builder.finish()
    return builder.index


def read_header(descriptor: int) -> Index:
    """The index of the first lines of an open file, up to its header; ``size_bytes`` is where they end."""
    builder = _Builder(partial(os.pread, descriptor), Care.HEADS)
    offset = 0
    data = b""
    while not builder.is_done and builder.index.header is None:
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
    """The state of a pass. Blocks come in as they were read; a line cut by the end of a block waits.

    ``read`` gives bytes of the file again: how many, from where.
    """

    def __init__(self, read: Callable[[int, int], bytes], care: Care) -> None:
        self.index = Index()
        self._read = read
        self._care = care
        self._line = 0
        self._codes: dict[tuple[bytes, bytes | None], int] = {}
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._is_suspect = False
        self._keys = 0
        self._end = b""

    @property
    def is_done(self) -> bool:
        """Whether reading on is of no use: the file is no session, or too large."""
        return self.index.first_problem is not None or self.index.is_cut

    def skip_lines(self, number: int) -> None:
        """Count lines that are known already."""
        self._line += number

    def stop(self, detail: str, offset: int) -> None:
        """Leave out the rest of the file, from ``offset`` on."""
        self._line += 1
        self._report("too_long", f"{detail}; the rest is not read", offset)
        self.index.is_cut = True
        self._waiting, self._waiting_bytes = [], 0

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
        """Take in the last line when it has no LF. It may be torn behind any ``}``, so it is parsed."""
        if self._waiting_bytes and not self.is_done:
            self.index.ends_with_lf = False
            self._care = Care.WHOLE
            self._add_waiting(self.index.size_bytes)

    def _wait(self, piece: bytes) -> None:
        self._waiting_bytes += len(piece)
        if piece:
            self._waiting.append(piece)
        if self._waiting_bytes > JOINED_LINE_BYTES:
            self._let_go()

    def _let_go(self) -> None:
        """Forget the pieces of a long line but for what they tell: damage, or another line glued to it."""
        for piece in self._waiting:
            if self._care is Care.GLUED:
                joined = self._end + piece
                self._keys += joined.count(_PARENT_KEY)
                self._end = joined[-len(_PARENT_KEY) + 1 :]
            self._is_suspect = self._is_suspect or b"\0" in piece or self._keys > 1
        self._waiting.clear()

    def _add_waiting(self, end: int) -> None:
        """Take in the line that was cut, now complete; ``end`` is the byte behind it."""
        length, offset = self._waiting_bytes, end - self._waiting_bytes
        if length > MAX_LINE_BYTES:
            self._line += 1
            self._report("too_long", f"{length} bytes in one line", offset)
        elif length <= JOINED_LINE_BYTES:
            self._add_lines(b"".join(self._waiting), offset, 0, length)
        elif not self._add_by_head(offset, length):
            self._add_lines(self._read(length, offset), offset, 0, length)
        self._waiting, self._waiting_bytes = [], 0
        self._is_suspect, self._keys, self._end = False, 0, b""

    def _add_by_head(self, offset: int, length: int) -> bool:
        """Take in a long line without reading it again; False when it has to be parsed."""
        if self._care is Care.WHOLE or self._is_suspect or self.index.version < VERSION or self.is_done:
            return False
        front, end = self._read(HEAD_BYTES, offset), self._read(2, offset + length - 2)
        match = HEAD.match(front)
        kind = b"" if match is None else match[1]
        if match is None or end != b"}\n" or kind == b"session" or (kind == b"message" and match[5] is None):
            return False
        self._line += 1
        self.index.columns.add(head_of_match(match, offset, length - 1))
        self.index.lines.append(self._line)
        return True

    def _add_lines(self, data: bytes, base: int, start: int, stop: int) -> None:
        """Take in the lines from ``start`` to ``stop``; ``base`` is the offset of ``data`` in the file."""
        while start < stop and self.index.version < VERSION and not self.is_done:
            start = self._add_line_at(data, base, start, stop)
        if start >= stop or self.is_done:
            return
        is_whole = self._care is Care.WHOLE
        if not is_whole and data.find(b"\0", start, stop) < 0 and _is_utf8(data, start, stop):
            columns, issues, line = len(self.index.columns), len(self.index.issues), self._line
            keys = self._add_fast(data, base, start, stop)
            # A line glued to a torn one holds the key of the parent twice.
            is_glued = self._care is Care.GLUED and data.count(_PARENT_KEY, start, stop) > keys
            if not is_glued and self._line <= MAX_LINES:
                return
            self.index.columns.cut(columns)
            del self.index.lines[columns:], self.index.issues[issues:]
            self._line = line
        while start < stop and not self.is_done:
            start = self._add_line_at(data, base, start, stop)

    def _add_fast(self, data: bytes, base: int, start: int, stop: int) -> int:
        """Take in lines by their heads. Returns how often these lines hold the key of the parent, if each
        line that was not parsed holds it once."""
        # One loop without calls: it runs for every line of every file.
        find, match_head, codes, columns = data.find, HEAD.match, self._codes, self.index.columns
        add_plain, add_parent, add_number = columns.add_plain, columns.parents.append, self.index.lines.append
        before_bytes, keys = _NO_ID, 0
        while start < stop:
            end = find(b"\n", start, stop)
            end = stop if end < 0 else end
            match = match_head(data, start, end) if data[end - 1] == _CLOSING_BRACE else None
            if match is None:
                keys += data.count(_PARENT_KEY, start, end)
                self._add_line_at(data, base, start, stop)
                start, before_bytes = end + 1, _NO_ID
                continue
            kind, id_bytes, parent_bytes, time_bytes, role, custom = match.groups()
            code = codes.get((kind, role or custom))
            if code is None:
                code = codes[kind, role or custom] = self._code_of(kind, role or custom)
            if code == _PARSED:
                keys += data.count(_PARENT_KEY, start, end)
                self._add_line_at(data, base, start, stop)
                before_bytes = _NO_ID
            else:
                keys += 1
                self._line += 1
                add_number(self._line)
                if len(id_bytes) != ID_BYTES or len(time_bytes) != TIME_BYTES:
                    columns.add(head_of_match(match, base + start, end - start))
                else:
                    add_plain(id_bytes, time_bytes, code, base + start, end - start)
                    if parent_bytes == before_bytes:
                        add_parent(len(columns) - 2)
                    elif parent_bytes is None:
                        add_parent(NO_PARENT)
                    else:
                        columns.await_parent(parent_bytes.decode())
                before_bytes = id_bytes
            start = end + 1
        return keys

    def _code_of(self, kind: bytes, role: bytes | None) -> int:
        if kind == b"session" or (kind == b"message" and role is None):
            return _PARSED
        return self.index.columns.code_of(kind.decode(), None if role is None else role.decode())

    def _add_line_at(self, data: bytes, base: int, start: int, stop: int) -> int:
        """Take in one line by parsing it; where the next one starts."""
        end = data.find(b"\n", start, stop)
        if self._line >= MAX_LINES:
            self.stop(f"more than {MAX_LINES} lines", base + start)
            return stop
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
            version = header_version(record.fields)
            if version is None:
                named = dump_json(record.fields["version"]).decode()
                self.index.first_problem = f"its version is {cut(named, 40)}, not a whole number from 1 up"
                return
            self.index.header = record.fields
            self.index.version = version
        elif self._line == 1 and is_title_slot(record.fields):
            self.index.slot = record.fields
        elif record.fields.get("type") == "session":
            self.index.first_problem = "its id is no text, or an empty one"
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
            self.index.columns.add(head)
            self.index.lines.append(self._line)

    def _report(self, kind: str, detail: str, offset: int) -> None:
        self.index.issues.append(LoadIssue(self._line, offset, kind, detail))


def _is_utf8(data: bytes, start: int, stop: int) -> bool:
    """Whether whole lines are UTF-8. Most blocks are ASCII, which is seen at once."""
    if data.isascii():
        return True
    try:
        data[start:stop].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def head_of(fields: Mapping[str, Any], offset: int, length: int) -> EntryHead | None:
    """The head of a parsed record; None when it has no id."""
    entry_id = record_id(fields)
    if entry_id is None:
        return None
    return EntryHead(
        entry_id,
        as_text(fields.get("parentId")),
        as_text(fields.get("type")) or "",
        as_text(fields.get("timestamp")) or "",
        offset,
        length,
        role_of(fields),
    )


def head_of_match(match: re.Match[bytes], offset: int, length: int) -> EntryHead:
    """The head that ``HEAD`` found at the start of a line."""
    kind, entry_id, parent_id, time, role, custom = match.groups()
    role = role or custom
    return EntryHead(
        entry_id.decode(),
        None if parent_id is None else parent_id.decode(),
        kind.decode(),
        time.decode(),
        offset,
        length,
        None if role is None else role.decode(),
    )


def role_of(fields: Mapping[str, Any]) -> str | None:
    """The role a head has: that of a message, and ``musepi.leaf`` of the mark of a moved leaf."""
    kind = fields.get("type")
    if kind == "message":
        return as_text((as_object(fields.get("message")) or {}).get("role"))
    return LEAF_MARK if kind == "custom" and fields.get("customType") == LEAF_MARK else None
