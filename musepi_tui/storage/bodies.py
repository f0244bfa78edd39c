"""Entries by id: the hot ones in memory, the others read back from their place in the file."""

import contextlib
import os
import weakref
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path

from musepi_tui.base.errors import EntryNotFoundError, SessionCorruptError
from musepi_tui.session.codec import decode_entry
from musepi_tui.session.entries import Entry, EntryHead, StateEntry
from musepi_tui.session.records import Unreadable, parse_record

KEPT_READS = 64
"""How many entries read back stay in memory (session-format 16)."""


class Bodies:
    """Reads entries on demand through a descriptor of its own.

    The descriptor stays on the file object the offsets were taken from, whatever happens to the name. ``get``
    may be called by several threads at once.
    """

    def __init__(self, path: Path | None = None, descriptor: int | None = None) -> None:
        """Of a session in memory only when nothing is given; ``descriptor`` is owned from here on."""
        self._path = path
        self._descriptor = descriptor
        self._closer = None if descriptor is None else weakref.finalize(self, os.close, descriptor)
        self._hot: dict[str, Entry] = {}
        self._pinned: set[str] = set()
        self._recent: OrderedDict[tuple[str, int], Entry] = OrderedDict()

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
        recent = self._recent.get(key)
        if recent is not None:
            with contextlib.suppress(KeyError):
                self._recent.move_to_end(key)
            return recent
        entry = self._read(head)
        self._recent[key] = entry
        while len(self._recent) > KEPT_READS:
            with contextlib.suppress(KeyError):
                self._recent.popitem(last=False)
        return entry

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

    def close(self) -> None:
        """Give the descriptor back; what is in memory stays readable."""
        if self._closer is not None:
            self._closer()
        self._closer = None
        self._descriptor = None

    def _read(self, head: EntryHead) -> Entry:
        place = f"bytes {head.offset}-{head.offset + head.length}"
        line = self.read_line(head)
        record = parse_record(line)
        if isinstance(record, Unreadable):
            return StateEntry(head.id, head.parent_id, head.timestamp, head.type)
        entry = decode_entry(record.fields)
        if entry.id != head.id or entry.type != head.type:
            raise SessionCorruptError(
                f"Session entry {head.id} could not be read back from {place} of {self._path}"
            )
        return entry

    def read_line(self, head: EntryHead) -> bytes:
        """The bytes of an entry's line as they are in the file. Errors as of ``get``."""
        if head.length == 0 or self._path is None:
            raise EntryNotFoundError(f"Entry {head.id} not found")
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
                self._closer = weakref.finalize(self, os.close, self._descriptor)
            return os.pread(self._descriptor, head.length, head.offset)
        except OSError as error:
            raise SessionCorruptError(
                f"Session entry {head.id} could not be read back from {self._path}: {error.strerror}"
            ) from error
