"""A session of another folder: open it here, or there (TUI-4.84)."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from musepi_tui.runtime.intents import OpenSession
from musepi_tui.storage.foreign import needs_import
from musepi_tui.storage.paths import same_folder
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.screens.session_rows import is_same_file
from musepi_tui.tui.widgets.drawing import one_line

if TYPE_CHECKING:
    from musepi_tui.storage.glance import SessionInfo
    from musepi_tui.tui.shell import Shell

COPY = Item("fork", "Open a copy here", "the session itself stays as it is")
IMPORT = Item("fork", "Open here", "the copy that is made belongs to this folder")
MOVE = Item("move", "Move it here", "the session belongs to this folder from now on")
THERE = Item("there", "Open there", "tools work in its own folder")
CANCEL = Item("cancel", "Cancel")


def folder_of(app: "Shell") -> Path:
    """The folder the open session works in."""
    return Path(app.bridge.status.cwd or app.runtime.options.cwd)


def open_stored(app: "Shell", info: "SessionInfo") -> None:
    """Opens a stored session; where it belongs to another folder, after asking which one counts.

    What another tool wrote in a format of its own is copied either way.
    """
    here = folder_of(app)
    is_open = is_same_file(info.path, app.runtime.view().file)
    if is_open or not info.cwd or same_folder(info.cwd, here):
        app.send(OpenSession(str(info.path)))
        return
    is_there = Path(info.cwd).is_dir()
    folder = one_line(info.cwd)
    title = f"This session belongs to {folder}" if is_there else f"The folder {folder} is gone"
    items = _choices(info, is_there=is_there)
    panel = Panel(app.looks.palette, PanelText(title), lambda _: items, searchable=False)

    def decided(key: str | None) -> None:
        how: Literal["there", "move", "fork"]
        for how in ("there", "move", "fork"):
            if key == how:
                app.send(OpenSession(str(info.path), how, "" if how == "there" else str(here)))

    app.push_screen(panel, decided)


def _choices(info: "SessionInfo", *, is_there: bool) -> tuple[Item, ...]:
    """The answers, the one that changes least first: a file of another tool is moved only when asked to."""
    if needs_import(info):
        here: tuple[Item, ...] = (IMPORT,)
    elif is_there:
        here = (COPY,)
    else:
        here = (MOVE, COPY) if info.is_own else (COPY, MOVE)
    return (THERE, *here, CANCEL) if is_there else (*here, CANCEL)
