"""Opening a session by what a person calls it: its id, its name, its path (TUI-4.9)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.errors import MusepiError
from musepi_tui.tui.screens.elsewhere import open_file, open_stored
from musepi_tui.tui.screens.resume import ALL, open_sessions
from musepi_tui.tui.screens.search import Search, Texts, texts_of

if TYPE_CHECKING:
    from musepi_tui.storage.glance import SessionInfo
    from musepi_tui.tui.shell import Shell


def open_named(app: "Shell", argument: str) -> None:
    """Opens the session at a path, or the one whose id begins so or whose title is this; without an argument
    the list.

    The sessions of this folder come before those of others. What names several sessions, or stands somewhere
    in one, is searched for in the list; what names none is told.
    """
    words = argument.split()
    wanted = " ".join(word for word in words if word != ALL)
    if not wanted or ALL in words:
        open_sessions(app, argument)
        return
    is_path = "/" in wanted or wanted.endswith(".jsonl")
    path = app.runtime.options.cwd / Path(wanted).expanduser()
    work = open_file(app, path) if is_path else _find(app, wanted)
    app.run_worker(work, name="session", exit_on_error=False)


def sessions_named(rows: Sequence["SessionInfo"], wanted: str) -> list["SessionInfo"]:
    """The sessions that are called so, in any case: by a whole id or file name, else by the beginning of one,
    else by the whole title."""
    name = wanted.lower()
    known = [(row, (row.id.lower(), row.path.stem.lower())) for row in rows]
    found = [row for row, names in known if name in names]
    found = found or [row for row, names in known if any(each.startswith(name) for each in names)]
    return found or [row for row in rows if row.title.lower() == name]


async def _find(app: "Shell", wanted: str) -> None:
    search = Search(wanted)
    for everywhere in (False, True):
        try:
            rows = await app.runtime.list_sessions(everywhere=everywhere)
        except (MusepiError, OSError) as error:
            app.tell("error", f"The sessions cannot be listed: {error}")
            return
        named = sessions_named(rows, wanted)
        if len(named) == 1:
            open_stored(app, named[0])
            return
        if named or any(search.hit(_texts(row)) is not None for row in rows):
            open_sessions(app, f"{ALL} {wanted}" if everywhere else wanted)
            return
    app.tell("error", f'Session "{wanted}" not found. /resume without a name lists them.')


def _texts(row: "SessionInfo") -> Texts:
    return texts_of(row.title, row.first_message, row.id, row.cwd)
