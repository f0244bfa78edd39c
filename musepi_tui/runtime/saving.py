"""Getting entries into the file: what is written, what waits, when it is synced (safety 2, session-format
9)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import SessionChangedOnDiskError, SessionError
from musepi_tui.base.text import plural
from musepi_tui.runtime.events import Event, Notice, SaveStateChanged
from musepi_tui.runtime.tasks import Children, cancel_once
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.storage.entry_file import (
    Appended,
    Changes,
    EntryFile,
    NotWritableError,
    RecoveryNeededError,
)
from musepi_tui.storage.lines import Title
from musepi_tui.storage.rescue import write_rescue

T = TypeVar("T")

RETRY_FIRST_S = 5.0
RETRY_LONGEST_S = 300.0
"""Seconds between two tries to write what is in memory only: doubling from the first to the longest
(SAF-11)."""


class Saver:
    """The file of one session and the entries it does not have yet.

    ``policy`` is ``session.fsync``: ``turn`` syncs at the moments ``sync_soon`` is called, in a thread and
    one at a time; ``entry`` syncs every write before it counts; ``never`` leaves it to the system.
    ``on_saved`` is told what entries that were in memory only are in the file now, and what other programs
    did to it. ``rewrites_edits`` is whether ``session.pruneStorage`` is ``rewrite``.
    """

    def __init__(
        self,
        file: EntryFile,
        policy: str,
        children: Children,
        clock: Clock,
        emit: Callable[[Event], None],
    ) -> None:
        self.on_saved: Callable[[Appended], None] = _ignore
        self.rewrites_edits = False
        self._file = file
        self._policy = policy
        self._children = children
        self._clock = clock
        self._emit = emit
        self._unsaved: list[Entry] = []
        self._unsynced: list[Entry] = []
        self._synced = 0
        self._occupied = False
        self._rewriting = asyncio.Lock()
        self._needs_recovery = False
        self._is_failure_told = False
        self._is_ending = False
        self._retrying: asyncio.Task[None] | None = None
        self._sync_wanted = False
        self._syncing: asyncio.Task[None] | None = None

    @property
    def path(self) -> Path | None:
        """Where the session is stored; the file may not exist yet. None for a session in memory only."""
        return self._file.path

    @property
    def unsaved(self) -> int:
        """How many entries are in memory only, or on the disk only perhaps."""
        return len(self._unsaved)

    def write(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...] | None:
        """The heads of ``entries`` once their lines were taken by the kernel.

        None when they could not be written: they are kept, a notice says so, and they are written before
        anything else the next time. While the file is being written anew they wait without a notice. Raises
        ``NotWritableError`` for a session opened for reading only; nothing is kept then.
        """
        try:
            return self.write_or_raise(entries)
        except NotWritableError:
            raise
        except SessionError as error:
            self._keep(entries, error)
            return None

    def write_or_raise(self, entries: Sequence[Entry]) -> tuple[EntryHead, ...]:
        """As ``write``, but raises ``SessionError`` and keeps nothing of ``entries``."""
        if self._occupied:
            raise RecoveryNeededError(f"{self.path} is being written anew")
        waiting = tuple(self._unsaved)
        try:
            appended = self._file.append((*waiting, *entries) if waiting else entries)
            self._tell_found(appended)
            if self._policy == "entry":
                self._sync_entry()
        except RecoveryNeededError:
            self._needs_recovery = True
            raise
        if self._policy == "turn":
            self._unsynced += (*waiting, *entries)
        self._settle(appended, len(waiting))
        return appended.heads[len(waiting) :]

    def flush(self) -> bool:
        """Tries to write everything that waits; whether nothing waits any more."""
        if not self._unsaved:
            return True
        try:
            self.write_or_raise(())
        except RecoveryNeededError:
            self._retry_soon(0.0)
            return False
        except SessionError:
            return False
        return True

    async def make_ready(self) -> None:
        """Does in a thread what the next write would have to do first: merging a file that was replaced by
        another program, writing one again that was deleted or could not be synced.

        What waits is written with it. Raises ``SessionError``.
        """
        if self._needs_recovery or self._unsaved or self._occupied:
            await self.rewrite(Changes())

    async def rewrite(self, changes: Changes) -> tuple[EntryHead, ...]:
        """Writes the file anew, in a thread, and what waits with it; the heads of ``changes.tail``.

        A cancel that arrives meanwhile is dropped. What is written meanwhile waits. Raises ``SessionError``;
        then the old file is there as it was.
        """
        async with self._rewriting:
            waiting = tuple(self._unsaved)
            whole = replace(changes, tail=(*waiting, *changes.tail))
            self._occupied = True
            try:
                appended = await run_through_cancel(partial(self._file.rewrite, whole))
            finally:
                self._occupied = False
        self._needs_recovery = self._is_failure_told = False
        self._tell_found(appended)
        if self._policy == "turn":
            self._unsynced += whole.tail
        self._settle(appended, len(waiting))
        if not self.flush():
            self._retry_soon(RETRY_FIRST_S)
        return appended.heads[len(waiting) :]

    def set_title(self, title: Title) -> None:
        """Puts a new title where the file has a place for it besides the entry; a failure is a notice."""
        if self._occupied or self._unsaved or self._needs_recovery:
            self._children.start("session title", self._set_title_later(title))
            return
        try:
            self._tell_found(self._file.rewrite(Changes(title=title)))
        except SessionError as error:
            self._tell_title_failure(error)

    async def _set_title_later(self, title: Title) -> None:
        try:
            await self.rewrite(Changes(title=title))
        except SessionError as error:
            self._tell_title_failure(error)

    def _tell_title_failure(self, error: SessionError) -> None:
        self._emit(Notice("warning", f"session: the title could not be stored: {_reason(error)}", "session"))

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
        mark = self._synced + len(self._unsynced)
        try:
            await run_through_cancel(self._file.sync)
        except SessionError as error:
            self._take_sync_failure(error)
            raise
        self._note_synced(mark)

    async def finish(self, session_id: str) -> Path | None:
        """Writes and syncs what it can, before the file is given back.

        Returns where the rescue file is when entries could not be written, else None. Raises ``SessionError``
        when that cannot be written either: they are in memory only, and the session can go on.
        """
        if self._is_ending:
            return None
        self._stop_retrying()
        await self._write_last()
        if self._policy != "never" and not await self._sync():
            await self._write_last()
        unsaved = tuple(self._unsaved)
        if not unsaved:
            return None
        pieces = partial(self._file.remains, unsaved)
        rescue = await run_through_cancel(partial(write_rescue, session_id, pieces))
        if rescue is None:
            self._is_ending = False
            self._retry_soon(RETRY_FIRST_S)
            raise SessionError(_nowhere(self.path, len(unsaved)))
        return rescue

    def close(self) -> None:
        """Gives the file back. What is in memory only stays there: see ``finish``."""
        self._stop_retrying()
        self._file.close()

    def _stop_retrying(self) -> None:
        """Nothing is tried again in the background from here on."""
        self._is_ending = True
        if self._retrying is not None:
            cancel_once(self._retrying)

    async def _write_last(self) -> None:
        if not self.flush() and (self._needs_recovery or self._occupied):
            try:
                await self.make_ready()
            except SessionError as error:
                self._tell_failure(error)

    def _keep(self, entries: Sequence[Entry], error: SessionError) -> None:
        self._unsaved.extend(entries)
        if not isinstance(error, RecoveryNeededError):
            self._tell_failure(error)
        self._emit(SaveStateChanged(self.unsaved))
        if not self._occupied:
            self._retry_soon(0.0 if self._needs_recovery else RETRY_FIRST_S)

    def _tell_failure(self, error: SessionError) -> None:
        self._emit(Notice("error", f"session: {_failure(self.path, error)}", "session"))

    def _tell_found(self, appended: Appended) -> None:
        """What other programs did to the file, before anything else is told about it."""
        if appended.foreign or appended.moved or appended.changed:
            self.on_saved(replace(appended, heads=(), notices=()))
        for text in appended.notices:
            self._emit(Notice("warning", text, "session"))

    def _settle(self, appended: Appended, waited: int) -> None:
        """The first ``waited`` of what was in memory only is in the file now."""
        if waited:
            del self._unsaved[:waited]
            self.on_saved(Appended(appended.heads[:waited]))
            self._emit(SaveStateChanged(self.unsaved))

    def _retry_soon(self, delay_s: float) -> None:
        if self._is_ending or (self._retrying is not None and not self._retrying.done()):
            return
        self._retrying = self._children.start("session save retry", self._retry(delay_s))

    async def _retry(self, delay_s: float) -> None:
        """Tries until nothing waits, the first time after ``delay_s``."""
        while not self._is_ending and (self._unsaved or self._needs_recovery):
            if delay_s:
                await self._clock.sleep(delay_s)
            delay_s = min(max(delay_s * 2, RETRY_FIRST_S), RETRY_LONGEST_S)
            await self._try_again()

    async def _try_again(self) -> None:
        if self._occupied:
            return
        if not self._needs_recovery:
            self.flush()
            return
        try:
            await self.make_ready()
        except SessionError as error:
            if not self._is_failure_told:
                self._is_failure_told = True
                self._tell_failure(error)

    async def _sync_until_done(self) -> None:
        while self._sync_wanted:
            self._sync_wanted = False
            await self._sync()

    async def _sync(self) -> bool:
        """Syncs in a thread; whether that went well. A failure is told."""
        mark = self._synced + len(self._unsynced)
        try:
            await asyncio.to_thread(self._file.sync)
        except SessionError as error:
            self._take_sync_failure(error)
            return False
        self._note_synced(mark)
        return True

    def _sync_entry(self) -> None:
        try:
            self._file.sync()
        except SessionError:
            self._needs_recovery = True
            raise

    def _note_synced(self, mark: int) -> None:
        """The first ``mark`` of all entries are on the disk, counted from the first one that was written."""
        count = max(0, mark - self._synced)
        del self._unsynced[:count]
        self._synced += count

    def _take_sync_failure(self, error: SessionError) -> None:
        """What was written since the last sync may be lost: it counts as unsaved and is written again, to a
        new file (SAF-3)."""
        # While the file is written anew the first of the unsaved are on their way into it.
        place = len(self._unsaved) if self._occupied else 0
        self._unsaved[place:place] = self._unsynced
        self._note_synced(self._synced + len(self._unsynced))
        self._needs_recovery = True
        self._emit(Notice("error", f"session: could not sync {self.path}: {_reason(error)}", "session"))
        self._emit(SaveStateChanged(self.unsaved))
        self._retry_soon(0.0)


async def run_through_cancel(work: Callable[[], T]) -> T:
    """What ``work`` returns, run in a thread and waited for whatever happens meanwhile.

    A cancel that arrives while it runs is dropped: what it does cannot be taken back, so the caller has to
    finish what it is doing.
    """
    task = asyncio.current_task()
    running = asyncio.ensure_future(asyncio.to_thread(work))
    while not running.done():
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if task is not None:
                task.uncancel()
    return running.result()


def _failure(path: Path | None, error: SessionError) -> str:
    """What is told when entries could not be written."""
    if isinstance(error, SessionChangedOnDiskError):
        # Trying again helps only once somebody puts the right file back.
        return f"{error}; the conversation goes on in memory, and at the end into a rescue file"
    return (
        f"could not write {path}: {_reason(error)}; the conversation is kept in memory and will be written "
        "at the next attempt"
    )


def _nowhere(path: Path | None, unsaved: int) -> str:
    """What is told when not even a rescue file can be written."""
    what = plural(unsaved, "entry", "entries")
    return (
        f"{what} of this session could be written nowhere, neither to {path} nor to a rescue file; free some "
        "space or check the permissions"
    )


def _reason(error: SessionError) -> str:
    cause = error.__cause__
    return cause.strerror or str(cause) if isinstance(cause, OSError) else str(error)


def _ignore(_: Appended) -> None:
    return None
