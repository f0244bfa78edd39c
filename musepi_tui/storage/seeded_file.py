"""A new session that begins with entries copied from another one (session-format 15, lazy copies)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from musepi_tui.session.entries import Entry
from musepi_tui.storage.entry_file import Appended, Changes, EntryFile


class SeededFile:
    """The file of a copy that was not worth one yet: the copied entries go in front of the first append.

    ``seed`` are in file order, parents before children. Until the append succeeds nothing is on disk.
    """

    def __init__(self, file: EntryFile, seed: Sequence[Entry]) -> None:
        self._file = file
        self._seed = tuple(seed)

    @property
    def path(self) -> Path | None:
        """Where the session will be, or is."""
        return self._file.path

    def append(self, entries: Sequence[Entry]) -> Appended:
        """Writes entries at the end, the copied ones before the first. Errors as of the file itself."""
        if not self._seed or not entries:
            return self._file.append(entries)
        return self._placed(self._file.append((*self._seed, *entries)))

    def rewrite(self, changes: Changes) -> Appended:
        """As of the file itself; the copied entries are appended in the same step when they are due."""
        if not self._seed or not changes.tail:
            return self._file.rewrite(changes)
        return self._placed(self._file.rewrite(replace(changes, tail=(*self._seed, *changes.tail))))

    def sync(self) -> None:
        """As of the file itself."""
        self._file.sync()

    def remains(self, unsaved: Sequence[Entry]) -> Iterator[bytes]:
        """As of the file itself; the copied entries are among what it lacks until they are written."""
        return self._file.remains((*self._seed, *unsaved))

    def close(self) -> None:
        """As of the file itself."""
        self._file.close()

    def _placed(self, done: Appended) -> Appended:
        """What the caller asked for; the copied entries are known to it already and only get their places."""
        count = len(self._seed)
        self._seed = ()
        moved = {head.id: head for head in done.heads[:count]}
        return replace(done, heads=done.heads[count:], moved={**(done.moved or {}), **moved})
