"""The last entries of a big file, read backwards: the first screen, before the index is built."""

import os
from pathlib import Path

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.session.entries import Entry, EntryHead, LoadIssue, SessionHeader
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.records import Unreadable, parse_record
from musepi_tui.storage.bodies import decode_line
from musepi_tui.storage.index import HEAD, Index, head_of, head_of_match, read_header
from musepi_tui.storage.loading import header_of, load_session

FIRST_BLOCK_BYTES = 64 * 1024
"""The first step back; each further step is twice as long, so that huge lines are not joined many times."""

LIMIT_BYTES = 16 * 1024 * 1024
"""No more than this is read. A path that jumps further back, to an old branch, is shown from its jump on."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the path of the last entry, oldest first. ``whole`` says that it starts at the root."""

    header: SessionHeader
    entries: tuple[Entry, ...]
    whole: bool
    issues: tuple[LoadIssue, ...] = ()


def open_tail(path: Path, want: int = 200) -> Tail:
    """The last ``want`` entries of the path, or all of it; damage is left to the full load.

    Raises ``NotASessionFileError``, ``SessionError``. Reads a file of version 1 or 2 whole.
    """
    try:
        descriptor = open_regular(path)
        try:
            index = read_header(descriptor)
            header = header_of(path, index)
            if index.version >= VERSION:
                return _read_back(descriptor, index, header, _Walk(path, want))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error
    loaded = load_session(path)
    entries = loaded.read_path()
    return Tail(header, entries[-want:], len(entries) <= want, loaded.issues)


def _read_back(descriptor: int, index: Index, header: SessionHeader, walk: "_Walk") -> Tail:
    position = end = os.fstat(descriptor).st_size
    step = FIRST_BLOCK_BYTES
    cut = b""
    while position > index.size_bytes and end - position < LIMIT_BYTES and not walk.is_done:
        start = max(index.size_bytes, position - step)
        data = os.pread(descriptor, position - start, start) + cut
        cut_end = 0 if start == index.size_bytes else data.find(b"\n") + 1
        if cut_end == 0 and start != index.size_bytes:
            cut = data
        else:
            cut = data[:cut_end]
            walk.add_lines(data[cut_end:])
        position = start
        step *= 2
    return Tail(header, walk.entries(), walk.is_whole and not walk.has_more)


class _Walk:
    """Lines by id as they are met from the end, and the way from the last entry towards the root."""

    def __init__(self, path: Path, want: int) -> None:
        self._file = path
        self._want = want
        self._lines: dict[str, tuple[EntryHead, bytes]] = {}
        self._path: list[str] = []
        self._seen: set[str] = set()
        self._next: str | None = None
        self._has_leaf = False
        self.is_whole = False

    @property
    def has_more(self) -> bool:
        """Whether more of the path was found than is wanted."""
        return len(self._path) > self._want

    @property
    def is_done(self) -> bool:
        """Whether enough of the path is known."""
        return self.is_whole or len(self._path) >= self._want

    def add_lines(self, data: bytes) -> None:
        """Take in whole lines that stand in front of all lines before."""
        for line in reversed(data.split(b"\n")):
            head = _head_of_line(line)
            if head is None:
                continue
            self._lines.setdefault(head.id, (head, line))
            if not self._has_leaf:
                self._has_leaf = True
                self._next = head.id
        while self._has_leaf and not self.is_whole and self._next in self._lines:
            self._step(self._next)

    def entries(self) -> tuple[Entry, ...]:
        """The newest wanted entries of what was found of the path, oldest first."""
        wanted = (self._lines[entry_id] for entry_id in reversed(self._path[: self._want]))
        return tuple(decode_line(line, head, self._file) for head, line in wanted)

    def _step(self, entry_id: str) -> None:
        self._seen.add(entry_id)
        self._path.append(entry_id)
        self._next = self._lines[entry_id][0].parent_id
        self.is_whole = self._next is None or self._next in self._seen


def _head_of_line(line: bytes) -> EntryHead | None:
    match = HEAD.match(line)
    if match and line.endswith(b"}"):
        return head_of_match(match, 0, len(line))
    if not line.strip():
        return None
    record = parse_record(line)
    if isinstance(record, Unreadable) or record.fields.get("type") == "session":
        return None
    return head_of(record.fields, 0, len(line))
