"""Deleting the session that is open (TUI-4.48)."""

from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.runtime.events import IntentSettled, SessionView
from musepi_tui.runtime.intents import DeleteSession, NewSession, OpenSession
from musepi_tui.storage.paths import Paths, tool_of_path
from musepi_tui.tui.conversation import failure_of
from musepi_tui.tui.screens.confirm import ask
from musepi_tui.tui.screens.session_rows import TOOLS
from musepi_tui.tui.widgets.drawing import one_line

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

NOT_STORED = "This session is not on disk, so there is nothing to delete. /new starts another one."


def open_deletion(app: "Shell", argument: str) -> None:
    """Asks, moves the open session to the trash and shows the list of the others.

    An empty session takes its place first: a file that somebody writes is not deleted. Where no trash takes
    it, it is opened again.
    """
    view = app.runtime.view()
    path = view.file
    if path is None or not path.exists():
        app.tell("info", NOT_STORED)
        return
    refusal = _refusal(view, path, app.runtime.options.paths)
    if refusal:
        app.tell("warning", refusal)
        return
    title = one_line(view.name or "")

    def gone(event: IntentSettled) -> None:
        app.tell("info", f"Moved to the trash: {title or path.name}")
        for file in (event.data or {}).get("left", ()):
            app.tell("warning", f"{file} belonged to the session and could not go with it.")
        app.host.show("resume")

    def kept(event: IntentSettled) -> None:
        app.send(OpenSession(str(path)), lambda _: app.tell("error", failure_of(event)))

    def left(_: IntentSettled) -> None:
        app.talk.send(DeleteSession(str(path)), gone, kept)

    def delete() -> None:
        app.send(NewSession(), left)

    ask(app, f"Delete {title or 'this session'}?", "move it to the trash", delete)


def _refusal(view: SessionView, path: Path, paths: Paths) -> str:
    """Why the session stays where it is; empty when it may go."""
    tool = tool_of_path(paths, path)
    if tool is not None:
        return f"{TOOLS.get(tool, tool)} keeps this session; musepi deletes only its own."
    if view.read_only:
        return f"This session can only be read, so it is not deleted: {view.read_only_cause}."
    return ""
