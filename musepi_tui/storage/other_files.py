"""Sessions that write nothing: in memory only, or opened for reading only."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from musepi_tui.session.entries import Entry
from musepi_tui.storage.entry_file import Appended, Changes, NotWritableError
from musepi_tui.storage.lines import unplaced_head


class MemoryFile:
    """The entries of a session without a file (``--no-session``): every append succeeds, nothing is kept
    here."""

    @property
    def path(self) -> Path | None:
        """There is none."""
        return None

    def append(self, entries: Sequence[Entry]) -> Appended:
        """Heads without a place: the entries have to stay in memory."""
        return Appended(tuple(unplaced_head(entry) for entry in entries))

    def rewrite(self, changes: Changes) -> Appended:
        """Takes the tail; there are no lines to change. What memory holds is changed by its owner."""
        return self.append(changes.tail)

    def sync(self) -> None:
        """Nothing to wait for."""

    def remains(self, unsaved: Sequence[Entry]) -> Iterator[bytes]:
        """Nothing: no entry ever waits to be written."""
        return iter(())

    def close(self) -> None:
        """Nothing to give back."""


class ReadOnlyFile:
    """A session file that is only read; no lock is taken. Every write raises ``NotWritableError``.

    ``reason`` is the sentence for the person.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        self._path = path

    @property
    def path(self) -> Path | None:
        """The file."""
        return self._path

    def append(self, entries: Sequence[Entry]) -> Appended:
        """Refuses, unless there is nothing to write."""
        if entries:
            raise NotWritableError(self.reason)
        return Appended()

    def rewrite(self, changes: Changes) -> Appended:
        """Refuses, unless there is nothing to write."""
        if changes.lines or changes.header is not None or changes.title is not None:
            raise NotWritableError(self.reason)
        return self.append(changes.tail)

    def sync(self) -> None:
        """Nothing to wait for."""

    def remains(self, unsaved: Sequence[Entry]) -> Iterator[bytes]:
        """Nothing: no entry ever waits to be written."""
        return iter(())

    def close(self) -> None:
        """Nothing to give back."""
