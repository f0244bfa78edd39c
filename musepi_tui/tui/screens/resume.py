"""Choosing a session (tui 4.5)."""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.text import group_digits
from musepi_tui.storage.paths import same_folder
from musepi_tui.tui.keys import bindings
from musepi_tui.tui.screens.elsewhere import open_file, open_stored
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.screens.search import Search, best_first, texts_of
from musepi_tui.tui.screens.session_changes import ask_deletion, ask_name, explain_damage
from musepi_tui.tui.screens.session_rows import (
    DAMAGED,
    ORDERS,
    Facts,
    Order,
    SessionRow,
    describe_damaged,
    item_of,
    row_of,
    sort_key,
)

if TYPE_CHECKING:
    from musepi_tui.storage.listing import Batch, DamagedFile, SessionInfo
    from musepi_tui.tui.shell import Shell

HINT = "enter open · ctrl+a {} · ctrl+r rename · ctrl+d delete · ctrl+s sort"
UNREADABLE = "files that are no sessions"
ALL = "--all"
"""The word of the command that begins with the sessions of all folders."""


class SessionPanel(Panel, inherit_bindings=False):
    """The stored sessions, newest first, or the best first while something is searched for. A thread reads
    them; the list fills as their rows arrive."""

    BINDINGS = bindings("sessions")

    def __init__(self, app: "Shell", query: str, *, everywhere: bool) -> None:
        self._shell = app
        self._wanted = query
        self._rows: dict[str, SessionRow] = {}
        self._damaged: dict[str, DamagedFile] = {}
        self._reading = 0
        self._progress = ""
        self._everywhere = everywhere
        self._order: Order = "newest"
        self._named_only = False
        self._paths = False
        self._is_moved = False
        super().__init__(app.looks.palette, PanelText("Sessions", "type to search"), self._matching)
        self._facts = self._gather_facts()
        self.query_text = query

    def on_mount(self) -> None:
        """Shows the empty list and fills it."""
        super().on_mount()
        self._load()

    # -- keys

    def action_everywhere(self) -> None:
        """Between the sessions of this folder and those of all folders."""
        self._everywhere = not self._everywhere
        self._load()

    def action_sort(self) -> None:
        """The next order."""
        orders = tuple(ORDERS)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._show_anew()

    def action_named(self) -> None:
        """Only sessions that somebody named, or all again."""
        self._named_only = not self._named_only
        self._entitle()
        self._refill()

    def action_paths(self) -> None:
        """The files instead of the facts."""
        self._paths = not self._paths
        self._show_anew()

    def action_rename(self) -> None:
        """Asks for another name of the marked session."""
        info = self._marked()
        if info is not None:
            ask_name(self._shell, self, info)

    def action_delete(self) -> None:
        """Asks whether the marked session may go to the trash."""
        info = self._marked()
        if info is not None:
            ask_deletion(self._shell, self, info)

    def accept(self, item: Item) -> None:
        """Opens a session; of a file that is none, tells why."""
        file = self._damaged.get(item.key or "")
        if file is None:
            super().accept(item)
        else:
            explain_damage(self._shell, file)

    # -- what changes of sessions mean for the list

    def info_of(self, path: str) -> "SessionInfo | None":
        """What is known of a session that was shown."""
        row = self._rows.get(path)
        return None if row is None else row.info

    def say(self, text: str) -> None:
        """Tells something at the foot, until the list changes."""
        self.text = replace(self.text, hint=text)
        self.view.refresh()

    def forget(self, path: str) -> None:
        """A session is gone; the one below is marked."""
        index = self.index
        if self._rows.pop(path, None) is not None and self.is_attached:
            self.search(self.query_text)
            self._go(index, 1)

    def rename(self, path: str, name: str | None) -> None:
        """A session is called something else now."""
        row = self._rows.get(path)
        if row is not None and self.is_attached:
            title = name or row.info.first_message
            self._rows[path] = row_of(replace(row.info, title=title, is_named=bool(title)), self._facts)
            self._refill()

    def _marked(self) -> "SessionInfo | None":
        return None if self.chosen is None else self.info_of(self.chosen.key or "")

    # -- filling

    def _gather_facts(self) -> Facts:
        app = self._shell
        here = Path(app.bridge.status.cwd or app.runtime.options.cwd)
        return Facts(
            now_ms=app.clock.now_ms(),
            home=app.environ.get("HOME", ""),
            open_file=app.runtime.view().file,
            belongs_here=cache(partial(_is_of, here)),
            everywhere=self._everywhere,
            order=self._order,
            paths=self._paths,
        )

    def _load(self) -> None:
        self._reading += 1
        self._rows, self._damaged = {}, {}
        self.empty_text = "reading the sessions…"
        self._facts = self._gather_facts()
        self._progress = ""
        self._entitle()
        self.search(self.query_text)
        self.run_worker(self._list(), exclusive=True, exit_on_error=False)

    def _show_anew(self) -> None:
        """The same sessions, told otherwise."""
        facts = self._facts = self._gather_facts()
        self._rows = {path: replace(row, item=item_of(row.info, facts)) for path, row in self._rows.items()}
        self._entitle()
        self._refill()

    def _entitle(self) -> None:
        named = "named" if self._named_only else ""
        everywhere = "all folders" if self._everywhere else ""
        parts = ("Sessions", everywhere, named, ORDERS[self._order], self._progress)
        hint = HINT.format("this folder" if self._everywhere else "all folders")
        self.text = PanelText(" · ".join(filter(None, parts)), "type to search", hint)

    async def _list(self) -> None:
        take = partial(self._take, self._reading)
        try:
            rows = await self._shell.runtime.list_sessions(everywhere=self._everywhere, progress=take)
            before = self._rows
            self._rows = {str(info.path): self._row(info, before) for info in rows}
            self.empty_text = "no session fits" if rows else "no stored session yet"
        except (MusepiError, OSError) as error:
            self.empty_text = f"the sessions cannot be listed: {error}"
        self._progress = ""
        self._entitle()
        self._refill()
        self._choose_wanted()

    def _take(self, reading: int, batch: "Batch") -> None:
        """Shows a part of the list, unless another list was asked for meanwhile."""
        if reading != self._reading or not self.is_attached:
            return
        self._rows.update((str(info.path), self._row(info, self._rows)) for info in batch.rows)
        self._damaged.update((f"{DAMAGED}{file.path}", file) for file in batch.damaged)
        for notice in batch.notices:
            self._shell.tell("warning", notice)
        is_read = batch.done == batch.total
        self._progress = "" if is_read else f"{group_digits(batch.done)} of {group_digits(batch.total)} read"
        self._entitle()
        if batch.rows or batch.damaged or is_read:
            self._refill()

    def _row(self, info: "SessionInfo", before: dict[str, SessionRow]) -> SessionRow:
        known = before.get(str(info.path))
        return known if known is not None and known.info is info else row_of(info, self._facts)

    def search(self, query: str) -> None:
        """Shows the rows for a search; the best one is marked until the person marks another."""
        self._is_moved = self._is_moved and query == self.query_text
        super().search(query)

    def _go(self, index: int, step: int) -> None:
        self._is_moved = True
        super()._go(index, step)

    def _refill(self) -> None:
        """Shows what is there now; the marked row stays marked where it stood, unless a better one is
        searched for."""
        kept, row = self.chosen, self.index - self.top
        self.search(self.query_text)
        if kept is None or (self.query_text and not self._is_moved):
            return
        at = next((index for index, item in enumerate(self.items) if item.key == kept.key), None)
        if at is not None:
            self.index, self.top = at, max(0, at - row)
            self._keep_visible()
            self.view.refresh()

    def _matching(self, query: str) -> list[Item]:
        rows = [row for row in self._rows.values() if not self._named_only or row.has_own_name]
        rows.sort(key=sort_key(self._order), reverse=True)
        if query:
            found = best_first(query, rows, lambda row: row.texts)
            rows = (
                found if self._order == "newest" else sorted(found, key=sort_key(self._order), reverse=True)
            )
        items = [row.item for row in rows]
        damaged = [describe_damaged(file) for file in self._damaged.values()]
        damaged = [item for item in damaged if not query or _fits(query, item)]
        return [*items, Item(None, UNREADABLE), *damaged] if damaged else items

    def _choose_wanted(self) -> None:
        """Takes the one session that an argument of the command names, if nothing was typed since."""
        wanted = self._wanted.lower()
        if not wanted or self.query_text != self._wanted:
            return
        found = [key for key, row in self._rows.items() if row.info.id.lower().startswith(wanted)]
        found = found or [key for key, row in self._rows.items() if row.info.title.lower() == wanted]
        if len(found) == 1:
            self.dismiss(found[0])


def open_sessions(app: "Shell", argument: str) -> None:
    """Shows the stored sessions and opens the chosen one.

    An argument is searched for; a path, or the id or whole title of one session, is opened. ``--all`` begins
    with the sessions of all folders.
    """
    words = argument.split()
    wanted = " ".join(word for word in words if word != ALL)
    if "/" in wanted or wanted.endswith(".jsonl"):
        path = app.runtime.options.cwd / Path(wanted).expanduser()
        app.run_worker(open_file(app, path), name="session", exit_on_error=False)
        return
    panel = SessionPanel(app, wanted, everywhere=ALL in words)

    def chosen(path: str | None) -> None:
        info = None if path is None else panel.info_of(path)
        if info is not None:
            open_stored(app, info)

    app.push_screen(panel, chosen)


def _is_of(folder: Path, cwd: str) -> bool:
    return same_folder(cwd, folder)


def _fits(query: str, item: Item) -> bool:
    return Search(query).hit(texts_of(item.label, item.detail, "", "")) is not None
