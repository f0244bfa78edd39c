"""Getting entries into the file: what is written, what waits, when it is synced (safety 2, session-format
9)."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import atomic_write
from musepi_tui.runtime.events import Event, Notice, SaveStateChanged
from musepi_tui.runtime.tasks import Children
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.storage.session_file import SessionFile

RETRY_FIRST_S = 5.0
RETRY_LONGEST_S = 300.0
"""Seconds between two tries to write what is in memory only: doubling from the first to the longest
(SAF-11)."""


class Saver:
    """The file of one session and the entries it does not have yet.

    ``policy`` is ``session.fsync``: ``turn`` syncs at the moments ``sync_soon`` is called, in a thread and
    one at a time; ``entry`` syncs every write before it counts; ``never`` leaves it to the system.
    ``on_saved`` gets the heads of entries that were in memory only and are in the file now.
    """

    def __init__(
        self,
        file: SessionFile,
        policy: str,
        children: Children,
        clock: Clock,
        emit: Callable[[Event], None],
    ) -> None:
        self.on_saved: Callable[[Sequence[EntryHead]], None] = _ignore
        self._file = file
        self._policy = policy
        self._children = children
        self._clock = clock
        self._emit = emit
        self._unsaved: list[Entry] = []
        self._retrying = False
        self._sync_wanted = False
        self._syncing: asyncio.Task[None] | None = None

    @property
    def path(self) -> Path:
        """Where the session is stored; the file may not exist yet."""
        return self._file.path

    @property
    def unsaved(self) -> int:
        """How many entries are in memory only."""
        return len(self._unsaved)

    def write(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...] | None:
        """The heads of ``entries`` once their lines were taken by the kernel.

        None when they could not be written: they are kept, a notice says so, and they are written before
        anything else the next time.
        """
        try:
            return self.write_or_raise(entries)
        except SessionError as error:
            self._keep(entries, error)
            return None

    def write_or_raise(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...]:
        """As ``write``, but raises ``SessionError`` and keeps nothing of ``entries``."""
        waiting = tuple(self._unsaved)
        heads = self._file.append((*waiting, *entries))
        if self._policy == "entry":
            self._file.sync()
        self._settle(heads[: len(waiting)])
        return tuple(heads[len(waiting) :])

    def flush(self) -> bool:
        """Tries to write everything that waits; whether nothing waits any more."""
        if not self._unsaved:
            return True
        try:
            self.write_or_raise(())
        except SessionError:
            return False
        return True

    def sync_soon(self) -> None:
        """Syncs the file in a thread, soon; at most one sync runs at a time."""
        if self._policy != "turn":
            return
        self._sync_wanted = True
        if self._syncing is None or self._syncing.done():
            self._syncing = self._children.start("session sync", self._sync_until_done())

    async def sync_through_cancel(self) -> None:
        """Syncs now and waits for it, whatever happens meanwhile.

        A cancel that arrives while the sync runs is dropped: the lines are in the file already, so the caller
        has to finish what it is doing. Raises ``SessionError``.
        """
        task = asyncio.current_task()
        sync = asyncio.ensure_future(asyncio.to_thread(self._file.sync))
        while not sync.done():
            try:
                await asyncio.shield(sync)
            except asyncio.CancelledError:
                if task is not None:
                    task.uncancel()
        sync.result()

    async def close(self, header: SessionHeader) -> Path | None:
        """Writes and syncs what it can and gives the file back.

        Returns where the rescue file is when entries could not be written, else None.
        """
        rescue = None if self.flush() else self._rescue(header)
        if self._policy != "never":
            await self._sync_last()
        self._file.close()
        return rescue

    def _keep(self, entries: Sequence[Entry], error: SessionError) -> None:
        self._unsaved.extend(entries)
        self._emit(
            Notice(
                "error",
                f"session: could not write {self.path}: {_reason(error)}; the conversation is kept in memory "
                "and will be written at the next attempt",
                "session",
            )
        )
        self._emit(SaveStateChanged(self.unsaved))
        if not self._retrying:
            self._retrying = True
            self._children.start("session save retry", self._retry())

    def _settle(self, saved: Sequence[EntryHead]) -> None:
        if not self._unsaved:
            return
        self._unsaved.clear()
        self.on_saved(saved)
        self._emit(SaveStateChanged(0))

    async def _retry(self) -> None:
        delay_s = RETRY_FIRST_S
        try:
            while self._unsaved:
                await self._clock.sleep(delay_s)
                delay_s = min(delay_s * 2, RETRY_LONGEST_S)
                self.flush()
        finally:
            self._retrying = False

    async def _sync_until_done(self) -> None:
        while self._sync_wanted:
            self._sync_wanted = False
            try:
                await asyncio.to_thread(self._file.sync)
            except SessionError as error:
                self._emit(
                    Notice("error", f"session: could not sync {self.path}: {_reason(error)}", "session")
                )

    async def _sync_last(self) -> None:
        try:
            await asyncio.to_thread(self._file.sync)
        except SessionError as error:
            self._emit(Notice("error", f"session: could not sync {self.path}: {_reason(error)}", "session"))

    def _rescue(self, header: SessionHeader) -> Path | None:
        lines = [dump_json(encode_header(header)), *(dump_line(entry) for entry in self._unsaved)]
        data = b"".join(line + b"\n" for line in lines)
        for folder in _rescue_folders():
            path = folder / f"musepi-rescue-{header.id}.jsonl"
            try:
                atomic_write(path, data, mode=0o600)
            except OSError:
                continue
            self._emit(Notice("error", f"session: what could not be saved is in {path}", "session"))
            return path
        return None


def _reason(error: SessionError) -> str:
    cause = error.__cause__
    return cause.strerror or str(cause) if isinstance(cause, OSError) else str(error)


def _rescue_folders() -> tuple[Path, ...]:
    """Where a rescue file may go. A full disk has no folder for temporary files either."""
    try:
        return Path(tempfile.gettempdir()), Path.home()
    except OSError:
        return (Path.home(),)


def _ignore(_: Sequence[EntryHead]) -> None:
    return None
