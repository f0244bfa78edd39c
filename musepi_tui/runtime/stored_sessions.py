"""The sessions that are stored, listed in a thread while the screen fills (tui 4.5)."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.runtime.opening import session_override
from musepi_tui.runtime.options import RuntimeOptions

if TYPE_CHECKING:
    from musepi_tui.storage.listing import Batch, SessionInfo


class _NotWantedError(Exception):
    """Nobody waits for the rest of a listing."""


async def list_stored(
    options: RuntimeOptions, cwd: Path | None, progress: "Callable[[Batch], None] | None"
) -> "tuple[SessionInfo, ...]":
    """Stored sessions of ``cwd``, or all of them when it is None, newest first.

    ``progress`` is called in the event loop with every part as it is read. Cancelling ends the reading.
    """
    from musepi_tui.storage.listing import list_sessions  # deferred: only when somebody asks

    loop = asyncio.get_running_loop()
    is_over = threading.Event()

    def tell(batch: "Batch") -> None:
        if is_over.is_set():
            raise _NotWantedError
        if progress is not None:
            loop.call_soon_threadsafe(progress, batch)

    def read() -> "tuple[SessionInfo, ...]":
        foreign = options.settings.values.session.foreign_roots
        override = session_override(options)
        try:
            return list_sessions(options.paths, cwd, override=override, foreign=foreign, progress=tell)
        except _NotWantedError:
            return ()

    try:
        return await asyncio.to_thread(read)
    finally:
        is_over.set()
