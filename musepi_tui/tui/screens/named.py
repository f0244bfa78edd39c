"""Opening a session by what a person calls it: its id, its name, its path (TUI-4.9)."""

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.errors import MusepiError, SessionError
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.runtime.opening import session_override
from musepi_tui.storage.paths import expand_home
from musepi_tui.tui.screens.elsewhere import folder_of, open_stored
from musepi_tui.tui.screens.resume import ALL, open_sessions
from musepi_tui.tui.screens.search import Search
from musepi_tui.tui.screens.session_rows import texts_of_info

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell


def open_named(app: "Shell", argument: str) -> None:
    """Opens the session at a path, or the one whose id begins so or whose title is this; without an argument
    the list.

    The sessions of this folder come before those of others. What names several sessions, or stands somewhere
    in one, is searched for in the list, with ``--all`` in that of all folders; what names none is told.
    """
    words = argument.split()
    wanted = " ".join(word for word in words if word != ALL)
    if wanted:
        work = _open(app, wanted, everywhere=ALL in words)
        app.run_worker(work, name="session", exit_on_error=False)
    else:
        open_sessions(app, everywhere=ALL in words)


async def _open(app: "Shell", wanted: str, *, everywhere: bool) -> None:
    from musepi_tui.storage.listing import find_session  # deferred: not needed for the first frame

    options, here = app.runtime.options, folder_of(app)
    foreign = options.settings.values.session.foreign_roots
    find = partial(find_session, options.paths, here, wanted, foreign=foreign)
    try:
        info = await asyncio.to_thread(find, override=session_override(options))
    except (SessionError, OSError):
        if "/" in wanted or wanted.endswith(".jsonl"):
            _leave_to_runtime(app, here, wanted)
        else:
            await _offer(app, wanted, everywhere=everywhere)
    else:
        open_stored(app, info)


def _leave_to_runtime(app: "Shell", here: Path, path: str) -> None:
    """Lets the runtime say why a file cannot be opened."""
    try:
        app.send(OpenSession(str(here / expand_home(path))))
    except SessionError as error:
        app.tell("error", str(error))


async def _offer(app: "Shell", wanted: str, *, everywhere: bool) -> None:
    """The list of the sessions in which it stands: those of this folder, else of all."""
    search, home = Search(wanted), app.environ.get("HOME", "")
    for scope in (True,) if everywhere else (False, True):
        try:
            rows = await app.runtime.list_sessions(everywhere=scope)
        except (MusepiError, OSError) as error:
            app.tell("error", f"The sessions cannot be listed: {error}")
            return
        if any(search.hit(texts_of_info(row, home)) is not None for row in rows):
            open_sessions(app, wanted, everywhere=scope)
            return
    app.tell("error", f'Session "{wanted}" not found. /resume without a name lists them.')
