"""Choosing a session (tui 4.5)."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import group_digits, plural
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.tui.screens.elsewhere import open_stored
from musepi_tui.tui.screens.panel import Item, Panel, PanelText, matches

if TYPE_CHECKING:
    from musepi_tui.storage.listing import Batch, DamagedFile, SessionInfo
    from musepi_tui.tui.shell import Shell

HERE = "enter open · ctrl+a all folders · esc close"
ALL = "enter open · ctrl+a this folder only · esc close"
TOOLS = {"musepi": "MusePi", "claude": "Claude Code", "codex": "Codex"}
"""What tools are called that do not go by the name of their command."""

FOLDER_CHARS = 24
"""What is shown of a folder, its end: enough for two names, and the title keeps half of a narrow screen."""

UNREADABLE = "files that are no sessions"


@dataclass(frozen=True, slots=True)
class _Shown:
    """A session, its row and what a search looks at."""

    info: "SessionInfo"
    item: Item
    text: str


class SessionPanel(Panel):
    """The stored sessions, newest first. A thread reads them; the list fills as their rows arrive."""

    def __init__(self, app: "Shell", query: str) -> None:
        self._shell = app
        self._wanted = query
        self._shown: dict[str, _Shown] = {}
        self._damaged: list[Item] = []
        self._reading = 0
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
        self._load()

    def info_of(self, path: str) -> "SessionInfo | None":
        """What is known of a session that was shown."""
        shown = self._shown.get(path)
        return None if shown is None else shown.info

    def _load(self) -> None:
        self._reading += 1
        self._shown, self._damaged = {}, []
        self.empty_text = "reading the sessions…"
        self._entitle()
        self.search(self.query_text)
        self.run_worker(self._list(), exclusive=True, exit_on_error=False)

    def _entitle(self, progress: str = "") -> None:
        self.text = PanelText(f"Sessions{progress}", "type to search", ALL if self._everywhere else HERE)

    async def _list(self) -> None:
        take = partial(self._take, self._reading)
        try:
            rows = await self._shell.runtime.list_sessions(everywhere=self._everywhere, progress=take)
            before = self._shown
            self._shown = {str(info.path): self._show(info, before) for info in rows}
            self.empty_text = "no session fits" if rows else "no stored session yet"
        except (MusepiError, OSError) as error:
            self.empty_text = f"the sessions cannot be listed: {error}"
        self._entitle()
        self._refill()
        self._choose_wanted()

    def _take(self, reading: int, batch: "Batch") -> None:
        """Shows a part of the list, unless another list was asked for meanwhile."""
        if reading != self._reading or not self.is_attached:
            return
        self._shown.update((str(info.path), self._show(info, self._shown)) for info in batch.rows)
        self._damaged += [describe_damaged(file) for file in batch.damaged]
        for notice in batch.notices:
            self._shell.tell("warning", notice)
        is_read = batch.done == batch.total
        self._entitle("" if is_read else f" · {group_digits(batch.done)} of {group_digits(batch.total)} read")
        if batch.rows or batch.damaged or is_read:
            self._refill()

    def _show(self, info: "SessionInfo", before: dict[str, _Shown]) -> _Shown:
        shown = before.get(str(info.path))
        if shown is not None and shown.info is info:
            return shown
        current = info.id == self._shell.runtime.view().header.id
        folder = _short_folder(info.cwd, self._shell.environ.get("HOME", "")) if self._everywhere else ""
        item = describe(info, self._shell.clock.now_ms(), current=current, folder=folder)
        tool = "" if info.is_own else _tool_name(info)
        return _Shown(info, item, f"{info.title} {info.first_message} {info.id} {folder} {tool}")

    def _refill(self) -> None:
        """Shows what is there now; the marked row stays marked where it stood."""
        kept, row = self.chosen, self.index - self.top
        self.search(self.query_text)
        if kept is None:
            return
        at = next((index for index, item in enumerate(self.items) if item.key == kept.key), None)
        if at is not None:
            self.index, self.top = at, max(0, at - row)
            self._keep_visible()
            self.view.refresh()

    def _matching(self, query: str) -> list[Item]:
        shown = self._shown.values()
        items = [each.item for each in shown if not query or matches(query, each.text)]
        damaged = [item for item in self._damaged if not query or matches(query, item.label)]
        return [*items, Item(None, UNREADABLE), *damaged] if damaged else items

    def _choose_wanted(self) -> None:
        """Takes the one session that an argument of the command names, if nothing was typed since."""
        wanted = self._wanted.lower()
        if not wanted or self.query_text != self._wanted:
            return
        found = [key for key, each in self._shown.items() if each.info.id.lower().startswith(wanted)]
        found = found or [key for key, each in self._shown.items() if each.info.title.lower() == wanted]
        if len(found) == 1:
            self.dismiss(found[0])


def open_sessions(app: "Shell", argument: str) -> None:
    """Shows the stored sessions and opens the chosen one.

    An argument is searched for; a path, or the id or whole title of one session, is opened.
    """

    wanted = argument.strip()
    if "/" in wanted or wanted.endswith(".jsonl"):
        app.send(OpenSession(str(app.runtime.options.cwd / Path(wanted).expanduser())))
        return
    panel = SessionPanel(app, wanted)

    def chosen(path: str | None) -> None:
        info = None if path is None else panel.info_of(path)
        if info is not None:
            open_stored(app, info)

    app.push_screen(panel, chosen)


def describe(info: "SessionInfo", now_ms: int, *, current: bool, folder: str = "") -> Item:
    """The row of a session; one of another tool names it, and says when it was copied already.

    ``folder`` is shown, its end, when it is not empty.
    """
    title = _one_line(info.title or "(no prompt yet)")
    count = plural(info.messages, "message")
    facts = [count if info.messages_exact else count.replace(" ", "+ ", 1), age(info.modified, now_ms)]
    if folder:
        facts.insert(0, _end_of(_one_line(folder), FOLDER_CHARS))
    if not info.is_own:
        facts.insert(0, _tool_name(info) + (", imported" if info.imported else ""))
    return Item(str(info.path), title, " · ".join(facts), current)


def describe_damaged(file: "DamagedFile") -> Item:
    """The row of a file that cannot be opened, and why."""
    return Item(None, _one_line(file.path.name), _one_line(file.reason))


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


def _short_folder(folder: str, home: str) -> str:
    """A folder, with ``~`` for the home folder."""
    is_below = home not in ("", "/") and (folder == home or folder.startswith(f"{home}/"))
    return f"~{folder[len(home) :]}" if is_below else folder


def _tool_name(info: "SessionInfo") -> str:
    return TOOLS.get(info.tool, info.tool)


def _one_line(text: str) -> str:
    return " ".join(display_safe(text).split())


def _end_of(text: str, chars: int) -> str:
    """The last ``chars`` characters, after an ellipsis when something was left out."""
    return text if len(text) <= chars else f"…{text[len(text) - chars + 1 :]}"
