"""The passes that run, and how they are cancelled (compaction 12.3)."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from musepi_tui.maintenance.triggers import Reason


class Handle:
    """Cancels the task it was made in, until the pass is sealed. ``is_handoff``: a document is being written
    for a new session."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        self.is_handoff = False
        self.is_sealed = False
        self._is_requested = False
        self._task = asyncio.current_task()

    def cancel(self) -> bool:
        """Whether there was something to cancel."""
        if self.is_sealed or self._task is None:
            return False
        if not self._is_requested:
            self._is_requested = True
            self._task.cancel()
        return True

    def seal(self) -> None:
        """From now on it is too late: the pass is being written."""
        self.is_sealed = True

    def was_ours(self) -> bool:
        """Whether a ``CancelledError`` came from here alone; then it is used up."""
        return self._is_requested and self._task is not None and self._task.uncancel() == 0


class Handles:
    """The handles of the passes that run or wait for their turn."""

    def __init__(self) -> None:
        self._open: list[Handle] = []

    @contextmanager
    def opened(self, reason: Reason) -> Generator[Handle]:
        """A handle for the block."""
        handle = Handle(reason)
        self._open.append(handle)
        try:
            yield handle
        finally:
            self._open.remove(handle)

    def cancel(self, *, but: Handle | None = None) -> bool:
        """Cancels all of them but one; false when none could be cancelled."""
        return any([handle.cancel() for handle in self._open if handle is not but])

    @property
    def has_manual(self) -> bool:
        """Whether somebody asked for one of them."""
        return any(handle.reason is Reason.MANUAL for handle in self._open)

    @property
    def word(self) -> str | None:
        """What people call the pass that runs; None at rest."""
        is_handoff = any(handle.is_handoff for handle in self._open)
        return "handoff" if is_handoff else "compaction" if self._open else None
