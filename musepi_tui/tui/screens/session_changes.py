"""Naming and deleting a stored session from the list, and why a file is none (TUI-4.82)."""

import shlex
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Protocol

from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import DeleteSession, RenameSession, SetName
from musepi_tui.tui.conversation import failure_of
from musepi_tui.tui.screens.confirm import ask
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.screens.session_rows import is_same_file, tool_name
from musepi_tui.tui.widgets.drawing import one_line

if TYPE_CHECKING:
    from musepi_tui.storage.listing import DamagedFile, SessionInfo
    from musepi_tui.tui.shell import Shell

OPEN_HERE = "this session is open here: go to another one first, then delete it"
MARGIN_CELLS = 4


class SessionList(Protocol):
    """What a change tells the list."""

    def say(self, text: str) -> None:
        """Something for the person."""
        ...

    def forget(self, path: str) -> None:
        """A session is gone."""
        ...

    def rename(self, path: str, name: str | None) -> None:
        """A session is called something else."""
        ...


def ask_name(app: "Shell", sessions: SessionList, info: "SessionInfo") -> None:
    """Asks how the session is to be called, and names it."""
    if not info.is_own:
        sessions.say(_foreign(info))
        return

    def find(query: str) -> tuple[Item, ...]:
        name = " ".join(query.split())
        return (Item("name", f"Call it {name}" if name else "Take its name away"),)

    text = PanelText(f"Name of {_title(info)}", "type the name", "enter name it · esc close")
    panel = Panel(app.looks.palette, text, find)
    panel.query_text = info.title if info.is_named else ""

    def decided(key: str | None) -> None:
        if key is None:
            return
        name = " ".join(panel.query_text.split())

        def named(_: IntentSettled) -> None:
            sessions.rename(str(info.path), name or None)

        is_open = is_same_file(info.path, app.runtime.view().file)
        rename = SetName(name) if is_open else RenameSession(str(info.path), name)
        app.talk.send(rename, named, partial(_failed, app, sessions))

    app.push_screen(panel, decided)


def ask_deletion(app: "Shell", sessions: SessionList, info: "SessionInfo") -> None:
    """Asks, then moves the session to the trash."""
    if not info.is_own:
        sessions.say(_foreign(info))
        return
    if is_same_file(info.path, app.runtime.view().file):
        sessions.say(OPEN_HERE)
        return
    path = str(info.path)

    def gone(event: IntentSettled) -> None:
        app.tell("info", f"Moved to the trash: {_title(info)}")
        for left in (event.data or {}).get("left", ()):
            app.tell("warning", f"{left} belonged to the session and could not go with it.")
        sessions.forget(path)

    question = f"Delete {_title(info)}?"
    failed = partial(_failed, app, sessions)
    ask(app, question, "move it to the trash", lambda: app.talk.send(DeleteSession(path), gone, failed))


def explain_damage(app: "Shell", file: "DamagedFile") -> None:
    """Shows where a file that is no session is, why it is none, and what may help."""
    name = shlex.quote(str(file.path))
    lines = (
        str(file.path),
        "",
        file.reason,
        "",
        "These commands tell more, and make a session of what can be read:",
        f"musepi sessions check {name}",
        f"musepi sessions import --salvage {name}",
    )
    cells = max(20, app.size.width - MARGIN_CELLS)
    wrap = partial(textwrap.wrap, width=cells, break_on_hyphens=False)
    items = [Item(None, part, " ") for line in lines for part in wrap(one_line(line)) or [""]]
    text = PanelText("Not a session", hint="esc close")
    app.push_screen(Panel(app.looks.palette, text, lambda _: items, searchable=False))


def _failed(app: "Shell", sessions: SessionList, event: IntentSettled) -> None:
    """Tells it in the list too: the transcript lies under it."""
    app.tell("warning", failure_of(event))
    sessions.say(one_line(failure_of(event)))


def _foreign(info: "SessionInfo") -> str:
    return f"{tool_name(info)} keeps this session; musepi changes only its own"


def _title(info: "SessionInfo") -> str:
    return one_line(info.title or "(no prompt yet)")
