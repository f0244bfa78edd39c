"""What a session needs of the place its entries are written to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.storage.lines import Title


class RecoveryNeededError(SessionChangedOnDiskError):
    """The file has to be brought in order first, which takes too long for the event loop: call ``rewrite``
    in a thread."""


class NotWritableError(SessionError):
    """The session was opened for reading only."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append or a rewrite did.

    ``heads`` are those of the entries given, in order. ``foreign`` are heads of lines that another program
    appended meanwhile; they belong into the tree, the leaf stays. ``moved`` are new places of entries known
    before, ``changed`` ids of those among them whose content on disk is not ours any more. ``notices`` are
    sentences for the person, each told once.
    """

    heads: tuple[EntryHead, ...] = ()
    foreign: tuple[EntryHead, ...] = ()
    moved: Mapping[str, EntryHead] | None = None
    changed: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What a rewrite changes; without any it only brings the file in order.

    ``lines`` are new lines, LF not counted, by entry id. ``header`` replaces the header. ``title`` goes into
    the title slot where the file has one, and into the header whenever that is written. ``tail`` are entries
    to append in the same step.
    """

    lines: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    header: SessionHeader | None = None
    title: Title | None = None
    tail: tuple[Entry, ...] = ()


class EntryFile(Protocol):
    """Where the entries of one session are written.

    It has a sixth member: what is left when nothing can be written is known to the file alone.
    """

    @property
    def path(self) -> Path | None:
        """The file; None for a session in memory only."""
        ...

    def append(self, entries: Sequence[Entry]) -> Appended:
        """Writes entries at the end, whole lines in one call.

        Entries that are in the file already are not written twice, so the same call may be tried again.
        Raises ``SessionError``, ``RecoveryNeededError`` when ``rewrite`` has to be called first,
        ``SessionChangedOnDiskError`` when the file is not this session any more.
        """
        ...

    def rewrite(self, changes: Changes) -> Appended:
        """Writes the file anew with some lines changed, all or nothing. Blocks; call it in a thread.

        Errors as of ``append``.
        """
        ...

    def sync(self) -> None:
        """Waits until everything appended is on the disk. Blocks; may run in another thread.

        Raises ``SessionError``: what was appended since the last sync may be lost in a power cut then, and
        the next ``rewrite`` has to write it again.
        """
        ...

    def remains(self, unsaved: Sequence[Entry]) -> Iterator[bytes]:
        """A session file, in pieces, with what the one at ``path`` lacks: ``unsaved``, and all entries
        before them where another program took the file away. Raises ``OSError``. Blocks."""
        ...

    def close(self) -> None:
        """Gives descriptors and locks back; from then on every write raises ``SessionError``."""
        ...
