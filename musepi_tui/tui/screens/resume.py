"""Choosing a session (tui 4.5)."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import plural
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.tui.screens.panel import Item, Panel, PanelText, matches

if TYPE_CHECKING:
    from musepi_tui.storage.listing import SessionInfo
    from musepi_tui.tui.shell import Shell

HERE = "enter open · ctrl+a all folders · esc close"
ALL = "enter open · ctrl+a this folder only · esc close"


class SessionPanel(Panel):
    """The stored sessions, newest first; they are listed in a thread while the panel is open."""

    def __init__(self, app: "Shell", query: str) -> None:
        self._shell = app
        self._sessions: Sequence[SessionInfo] | None = None
        self._everywhere = False
        super().__init__(app.looks.palette, PanelText("Sessions", "type to search", HERE), self._matching)
        self.query_text = query
        self.empty_text = "reading the sessions…"

    def on_mount(self) -> None:
        """Shows the empty list and fills it."""
        super().on_mount()
        self._load()

    def action_everywhere(self) -> None:
        """Between the sessions of this folder and those of all folders."""
        self._everywhere = not self._everywhere
        self.text = PanelText("Sessions", "type to search", ALL if self._everywhere else HERE)
        self._load()

    def _load(self) -> None:
        self.run_worker(self._list(), exclusive=True, exit_on_error=False)

    async def _list(self) -> None:
        try:
            self._sessions = await self._shell.runtime.list_sessions(everywhere=self._everywhere)
            self.empty_text = "no session fits" if self._sessions else "no stored session yet"
        except (MusepiError, OSError) as error:
            self._sessions = ()
            self.empty_text = f"the sessions cannot be listed: {error}"
        self.search(self.query_text)

    def _matching(self, query: str) -> list[Item]:
        now_ms = self._shell.clock.now_ms()
        current = self._shell.runtime.view().header.id
        return [
            describe(info, now_ms, current=info.id == current, with_folder=self._everywhere)
            for info in self._sessions or ()
            if matches(query, f"{info.title} {info.id} {info.cwd if self._everywhere else ''}")
        ]


def open_sessions(app: "Shell", argument: str) -> None:
    """Shows the stored sessions; an argument is what to search for."""

    def chosen(path: str | None) -> None:
        if path is not None:
            app.send(OpenSession(path))

    app.push_screen(SessionPanel(app, argument.strip()), chosen)


def describe(info: "SessionInfo", now_ms: int, *, current: bool, with_folder: bool) -> Item:
    """The row of a session."""
    title = " ".join(display_safe(info.title or "(no prompt yet)").split())
    facts = [plural(info.messages, "message"), age(info.modified, now_ms)]
    facts = [display_safe(info.cwd), *facts] if with_folder else facts
    return Item(str(info.path), title, " · ".join(facts), current)


def age(time: str, now_ms: int) -> str:
    """How long ago a time of a session file was: ``now``, ``5m``, ``3h``, ``2d``; empty when it is none."""
    try:
        then_ms = datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:
        return ""
    minutes = int(max(0.0, now_ms - then_ms)) // 60_000
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes}m"
    return f"{minutes // 60}h" if minutes < 48 * 60 else f"{minutes // 1440}d"
