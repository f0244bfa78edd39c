"""A session of another folder: open it here, or there (TUI-4.84)."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from musepi_tui.base.safe_text import display_safe
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.storage.foreign import needs_import
from musepi_tui.storage.paths import same_folder
from musepi_tui.tui.screens.panel import Item, Panel, PanelText

if TYPE_CHECKING:
    from musepi_tui.storage.glance import SessionInfo
    from musepi_tui.tui.shell import Shell

COPY = Item("fork", "Open here", "in a copy; the session itself stays as it is")
MOVE = Item("move", "Open here", "the session belongs to this folder from now on")
CANCEL = Item("cancel", "Cancel")


def open_stored(app: "Shell", info: "SessionInfo") -> None:
    """Opens a stored session; where it belongs to another folder, after asking which one counts.

    What another tool wrote in a format of its own is copied anyway, so there is nothing to ask.
    """
    here = Path(app.bridge.status.cwd or app.runtime.options.cwd)
    if needs_import(info) or not info.cwd or same_folder(info.cwd, here):
        app.send(OpenSession(str(info.path)))
        return
    is_there = Path(info.cwd).is_dir()
    folder = " ".join(display_safe(info.cwd).split())
    title = f"This session belongs to {folder}" if is_there else f"The folder {folder} is gone"
    there = Item("there", "Open there", "tools work in its own folder")
    items = (there, COPY, CANCEL) if is_there else (MOVE, COPY, CANCEL)
    panel = Panel(app.looks.palette, PanelText(title), lambda _: items, searchable=False)

    def decided(key: str | None) -> None:
        how: Literal["there", "move", "fork"]
        for how in ("there", "move", "fork"):
            if key == how:
                app.send(OpenSession(str(info.path), how))

    app.push_screen(panel, decided)
