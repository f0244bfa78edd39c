"""Stored sessions that are not open: listed in a thread while the screen fills, and named (tui 4.5)."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.errors import SessionError
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


def rename_stored(path: Path, name: str, timestamp: str, open_file: Path | None) -> str | None:
    """Names the session at ``path`` as its own musepi would; its name from now on. Blocks.

    An empty name takes the name away. ``timestamp`` is when the person said so, ``open_file`` that of the
    open session. Raises ``SessionBusyError`` when another process has the session, ``SessionError`` when it
    is the open one or cannot be read or written.
    """
    # deferred: only when somebody asks
    from musepi_tui.base.ids import new_entry_id
    from musepi_tui.session.entries import StateEntry
    from musepi_tui.storage.entry_file import Changes
    from musepi_tui.storage.lines import Title
    from musepi_tui.storage.loading import load_session
    from musepi_tui.storage.session_file import SessionFile
    from musepi_tui.storage.titles import clean_title

    if open_file is not None and path.resolve() == open_file.resolve():
        raise SessionError("this session is open here; /name names it")
    cleaned = clean_title(name)
    loaded = load_session(path)
    try:
        file = SessionFile.open(path, loaded)
        try:
            entry_id, fields = new_entry_id(loaded.tree), {"name": cleaned}
            entry = StateEntry(entry_id, loaded.tree.leaf_id, timestamp, type="session_info", fields=fields)
            file.rewrite(Changes(title=Title(cleaned, "user", timestamp), tail=(entry,)))
            file.sync()
        finally:
            file.close()
    finally:
        loaded.bodies.close()
    return cleaned or None
