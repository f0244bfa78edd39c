"""Entries by id: the hot ones in memory, the others read back from their place in the file."""

import os
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock

from musepi_tui.base.collector import collector_paused
from musepi_tui.base.errors import EntryNotFoundError, SessionCorruptError
from musepi_tui.session.codec import decode_entry, dump_line
from musepi_tui.session.entries import Entry, EntryHead, StateEntry
from musepi_tui.session.payload import holds_reference
from musepi_tui.session.records import Unreadable, parse_record
from musepi_tui.session.tree import SessionTree

KEPT_READS = 64
"""How many entries read back stay in memory (session-format 16)."""

KEPT_READ_BYTES = 16 * 1024 * 1024
"""How long the lines of entries read back may be together: 64 pictures of 10 MB would be the whole budget."""

_MANY_MOVED = 1000
"""So many new places are kept as columns, a tenth of the memory."""


class _File:
    """An open file object the places of heads belong to. Closed when nobody reads from it any more.

    ``moved`` are heads of entries that lay elsewhere before this file took the place of another one.
    """

    __slots__ = ("__weakref__", "_closer", "_descriptor", "moved", "path")

    def __init__(
        self, path: Path | None, descriptor: int | None, moved: Mapping[str, EntryHead] | None = None
    ) -> None:
        self.path = path
        self.moved: Mapping[str, EntryHead] = moved or {}
        self._descriptor = descriptor
        self._closer = None if descriptor is None else weakref.finalize(self, os.close, descriptor)

    def read(self, head: EntryHead, most_bytes: int | None = None) -> bytes:
        """The bytes of a line at the place of its head, or the first of them. Raises ``OSError``,
        ``EntryNotFoundError``."""
        if head.length == 0 or self.path is None:
            raise EntryNotFoundError(f"Entry {head.id} not found")
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._closer = weakref.finalize(self, os.close, self._descriptor)
        length = head.length if most_bytes is None else min(head.length, most_bytes)
        return os.pread(self._descriptor, length, head.offset)

    def close(self) -> None:
        """Give the descriptor back at once."""
        if self._closer is not None:
            self._closer()
        self._closer = self._descriptor = None


class _Recent:
    """The last entries read back, within both limits. For several threads."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, int], tuple[Entry, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, key: tuple[str, int]) -> Entry | None:
        """The entry with that id from that place, if it was read lately."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def keep(self, key: tuple[str, int], entry: Entry, size_bytes: int) -> None:
        """One more entry; the oldest ones go when there are too many."""
        with self._lock:
            before = self._entries.pop(key, None)
            self._entries[key] = entry, size_bytes
            self._bytes += size_bytes - (0 if before is None else before[1])
            while len(self._entries) > KEPT_READS or (self._bytes > KEPT_READ_BYTES and self._entries):
                _, (_, gone_bytes) = self._entries.popitem(last=False)
                self._bytes -= gone_bytes

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0


class Bodies:
    """Reads entries on demand through a descriptor of its own.

    The descriptor stays on the file object the offsets were taken from, whatever happens to the name, until
    ``relocate`` names another one. References to blobs are resolved as an entry is read. ``get`` may be
    called by several threads at once.
    """

    def __init__(self, path: Path | None = None, descriptor: int | None = None) -> None:
        """Of a session in memory only when nothing is given; ``descriptor`` is owned from here on."""
        self._file = _File(path, descriptor)
        self._hot: dict[str, Entry] = {}
        self._pinned: set[str] = set()
        self._recent = _Recent()

    @property
    def hot_ids(self) -> tuple[str, ...]:
        """Ids of the entries in memory, but for those that have to stay there."""
        return tuple(entry_id for entry_id in tuple(self._hot) if entry_id not in self._pinned)

    def get(self, head: EntryHead) -> Entry:
        """The entry of a head.

        A line that turns out not to be readable gives a ``StateEntry`` without fields, which is kept out of
        the context. Raises ``EntryNotFoundError`` for an entry that is neither in memory nor in the file, and
        ``SessionCorruptError`` when the line holds another entry.
        """
        hot = self._hot.get(head.id)
        if hot is not None:
            return hot
        key = (head.id, head.offset)
        entry = self._recent.find(key)
        if entry is None:
            entry = self._read(head)
            self._recent.keep(key, entry, head.length)
        return entry

    def read_path(self, heads: Iterable[EntryHead]) -> Iterator[Entry]:
        """The entries of many heads, in order, one at a time; none of them is kept. Errors as of ``get``."""
        return (self._hot.get(head.id) or self._read(head) for head in heads)

    def read_all(self, heads: Iterable[EntryHead]) -> tuple[Entry, ...]:
        """The entries of many heads, in order. Those read for it are not kept. Errors as of ``get``.

        50,000 entries of 2 kB take about 1.5 s: not on the event loop.
        """
        hot = self._hot
        with collector_paused():
            return tuple([hot.get(head.id) or self._read(head) for head in heads])

    def is_hot(self, entry_id: str) -> bool:
        """Whether the entry is in memory."""
        return entry_id in self._hot

    def remember(self, entry: Entry, *, pinned: bool = False) -> None:
        """Keep an entry in memory from now on; a ``pinned`` one, which the file does not hold, for good."""
        self._hot[entry.id] = entry
        if pinned:
            self._pinned.add(entry.id)

    def forget(self, entry_ids: Collection[str]) -> None:
        """Let go of entries that are in the file; they are read back when needed."""
        for entry_id in entry_ids:
            if entry_id not in self._pinned:
                self._hot.pop(entry_id, None)

    def relocate(self, path: Path, descriptor: int | None, moved: Mapping[str, EntryHead]) -> None:
        """Read from another file object from now on: the file was replaced, re-created or written anew.

        ``descriptor`` is owned from here on; None opens ``path`` at the first read. ``moved`` are the new
        heads of all entries whose place is not the same in both, by id; heads from before still lead to
        their entries. Entries in memory stay as they are, pinned ones among ``moved`` may be forgotten now.
        """
        everything: Mapping[str, EntryHead] = {**self._file.moved, **moved}
        if len(everything) > _MANY_MOVED:
            everything = SessionTree.from_heads(everything.values()).heads
        # One assignment: a thread in the middle of a read goes on with the file it began with.
        self._file = _File(path, descriptor, everything)
        self._pinned.difference_update(moved)
        self._recent.clear()

    def close(self) -> None:
        """Give the descriptor back; what is in memory stays readable."""
        self._file.close()

    def raw_line(self, head: EntryHead) -> bytes:
        """The line of an entry as a file has to hold it, without its LF.

        That is what the file holds; an entry that is only in memory, or that was migrated there, is written
        out. Errors as of ``get``.
        """
        if head.length == 0 or head.id in self._pinned:
            hot = self._hot.get(head.id)
            if hot is not None:
                return dump_line(hot)
        return self.read_line(head)

    def line_start(self, head: EntryHead, size_bytes: int) -> bytes | None:
        """The first bytes of an entry's line, as many as there are up to ``size_bytes``.

        None for an entry in memory, which ``get`` gives at once, and for one that cannot be read, of which
        ``get`` says why.
        """
        if head.id in self._hot:
            return None
        file = self._file
        try:
            return file.read(file.moved.get(head.id, head), size_bytes)
        except (OSError, EntryNotFoundError):
            return None

    def read_line(self, head: EntryHead) -> bytes:
        """The bytes of an entry's line as they are in the file. Errors as of ``get``."""
        file = self._file
        try:
            return file.read(file.moved.get(head.id, head))
        except OSError as error:
            raise SessionCorruptError(
                f"Session entry {head.id} could not be read back from {file.path}: {error.strerror}"
            ) from error

    def _read(self, head: EntryHead) -> Entry:
        path = self._file.path
        entry = decode_line(self.read_line(head), head, path)
        if entry.id != head.id or entry.type != head.type:
            raise SessionCorruptError(
                f"Session entry {head.id} could not be read back from "
                f"bytes {head.offset}-{head.offset + head.length} of {path}"
            )
        return entry


def decode_line(line: bytes, head: EntryHead, path: Path | None) -> Entry:
    """The entry in a line of the session file ``path``, blobs resolved as far as they are there.

    One that cannot be parsed is a ``StateEntry`` without fields. The caller compares id and type.
    """
    record = parse_record(line)
    if isinstance(record, Unreadable):
        return StateEntry(head.id, head.parent_id, head.timestamp, head.type)
    if path is None or not holds_reference(line):
        return decode_entry(record.fields)
    from musepi_tui.storage.blobs import (
        BlobStore,
    )  # deferred: few sessions have blobs, and hashes load slowly

    resolved = decode_entry(BlobStore.of_session(path).resolve(record.fields))
    return replace(resolved, raw=record.fields)
