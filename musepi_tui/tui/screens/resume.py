"""Choosing a session (tui 4.5)."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on
from textual.worker import Worker

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.text import group_digits
from musepi_tui.storage.paths import same_folder
from musepi_tui.tui.keys import bindings
from musepi_tui.tui.screens.elsewhere import folder_of, open_stored
from musepi_tui.tui.screens.panel import Item, Panel, PanelText
from musepi_tui.tui.screens.search import EXPRESSION, INSIDE
from musepi_tui.tui.screens.session_catalogue import Catalogue
from musepi_tui.tui.screens.session_changes import ask_deletion, ask_name, explain_damage
from musepi_tui.tui.screens.session_preview import Preview
from musepi_tui.tui.screens.session_previews import Previews
from musepi_tui.tui.screens.session_rows import ORDERS, Facts, Order
from musepi_tui.tui.screens.session_view import SessionsView
from musepi_tui.tui.screens.text_search import TextSearch, text_wanted

if TYPE_CHECKING:
    from musepi_tui.storage.listing import Batch, SessionInfo
    from musepi_tui.tui.shell import Shell

HINT = "enter open · ctrl+a {} · ctrl+r rename · ctrl+d delete · ctrl+s sort"
PLACEHOLDER = f"type to search · {EXPRESSION}expression · {INSIDE}text inside"
SEARCHING = "searching what was said…"
SHOW_EVERY_S = 0.1
"""Between two sights of a list that grows by many small parts."""

FIRST_FRAME_S = 0.05
"""How long the list waits to be drawn for the first time: the newest of the last listing are there by then.
Longer, and a list that is read anew would seem to hang."""

ALL = "--all"
"""The word of the command that begins with the sessions of all folders."""


class SessionPanel(Panel, inherit_bindings=False):
    """The stored sessions, newest first, or the best first while something is searched for. A thread reads
    them; the list fills as their rows arrive."""

    BINDINGS = bindings("sessions")

    def __init__(self, app: "Shell", query: str, *, everywhere: bool) -> None:
        self._shell = app
        self._reading = 0
        self._has_rows = asyncio.Event()
        self._progress = ""
        self._said = ""
        self._inside = TextSearch()
        self._looking: Worker[None] | None = None
        self._waits = False
        self._previews = Previews()
        self.preview: Preview | None = None
        self._everywhere = everywhere
        self._order: Order = "best"
        self._paths = False
        self._is_moved = False
        self._windows: dict[str, int | None] = {}
        self._catalogue = Catalogue(self._gather_facts())
        super().__init__(app.looks.palette, PanelText("Sessions", PLACEHOLDER), self._matching)
        self.view = SessionsView(self, self, app.looks.palette)
        self.query_text = query

    @on(events.Mount)
    async def fill_first(self) -> None:
        """Fills the list. It is drawn with rows if they come soon: an empty one before them would cost the
        time of a frame."""
        self._load()
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_FRAME_S):
                await self._has_rows.wait()

    def on_resize(self) -> None:
        """A wider screen has room for a preview."""
        self.marked()

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
        self._catalogue.named_only = not self._catalogue.named_only
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
        file = self._catalogue.damage_of(item.key or "")
        if file is None:
            super().accept(item)
        else:
            explain_damage(self._shell, file)

    # -- what changes of sessions mean for the list

    def info_of(self, path: str) -> "SessionInfo | None":
        """What is known of a session that was shown."""
        return self._catalogue.info_of(path)

    def say(self, text: str) -> None:
        """Tells something at the foot, until the list changes."""
        self.text = replace(self.text, hint=text)
        self.view.refresh()

    def forget(self, path: str) -> None:
        """A session is gone; the one below is marked."""
        index = self.index
        if self._catalogue.forget(path) and self.is_attached:
            self.search(self.query_text)
            self._go(index, 1)

    def rename(self, path: str, name: str | None) -> None:
        """A session is called something else now."""
        if self.is_attached:
            self._catalogue.rename(path, name)
            self._refill()

    def _marked(self) -> "SessionInfo | None":
        return None if self.chosen is None else self.info_of(self.chosen.key or "")

    # -- what is told of a session besides its row

    @property
    def facts(self) -> Facts:
        """What the rows depend on besides their sessions."""
        return self._catalogue.facts

    def details(self, item: Item) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """What the row of a session says, and what is known of the session besides."""
        return self._catalogue.details(item)

    def marked(self) -> None:
        """Shows the end of the row that is marked now, as soon as it is read."""
        if not self.is_attached or not self.view.has_preview:
            return
        info = self._marked()
        known = None if info is None else self._previews.find(info)
        self.preview = None
        if info is not None and known is not None:
            hit = self._inside.hits.get(str(info.path), "")
            self.preview = replace(known, info=info, hit=hit, family=self._catalogue.family_of(info))
        elif info is not None:
            self.run_worker(self._read_end(info), group="preview", exclusive=True, exit_on_error=False)

    async def _read_end(self, info: "SessionInfo") -> None:
        await self._previews.read(info)
        self.marked()
        self.view.refresh()

    # -- filling

    def _gather_facts(self) -> Facts:
        app = self._shell
        here = folder_of(app)
        return Facts(
            now_ms=app.clock.now_ms(),
            home=app.environ.get("HOME", ""),
            open_file=app.runtime.view().file,
            belongs_here=cache(partial(_is_of, here)),
            window_of=self._window_of,
            everywhere=self._everywhere,
            order=self._order,
            paths=self._paths,
        )

    def _window_of(self, model_key: str) -> int | None:
        """Tokens of a model's window. No model is known while the session is loaded, so it asks again."""
        if not self._windows:
            self._windows = {model.key: model.context_window for model in self._shell.runtime.models()}
        return self._windows.get(model_key)

    def _load(self) -> None:
        self._reading += 1
        self._said = "reading the sessions…"
        self._catalogue.restart(self._gather_facts())
        self._inside = TextSearch()
        self._progress = ""
        self._entitle()
        self.search(self.query_text)
        self.run_worker(self._list(), exclusive=True, exit_on_error=False)

    def _show_anew(self) -> None:
        """The same sessions, told otherwise."""
        self._catalogue.tell(self._gather_facts())
        self._entitle()
        self._refill()

    def _entitle(self) -> None:
        named = "named" if self._catalogue.named_only else ""
        everywhere = "all folders" if self._everywhere else ""
        searched = ""
        if self._inside.is_running:
            searched = f"{group_digits(self._inside.done)} of {group_digits(len(self._catalogue))} searched"
        parts = ("Sessions", everywhere, named, ORDERS[self._order], self._progress, searched)
        hint = HINT.format("this folder" if self._everywhere else "all folders")
        self.text = PanelText(" · ".join(filter(None, parts)), PLACEHOLDER, hint)

    async def _list(self) -> None:
        take = partial(self._take, self._reading)
        try:
            rows = await self._shell.runtime.list_sessions(everywhere=self._everywhere, progress=take)
            self._catalogue.settle(rows)
            self._said = "no session fits" if rows else "no stored session yet"
        except (MusepiError, OSError) as error:
            self._said = f"the sessions cannot be listed: {error}"
        self._progress = ""
        self._has_rows.set()
        self._entitle()
        self._refill()

    def _take(self, reading: int, batch: "Batch") -> None:
        """Shows a part of the list, unless another list was asked for meanwhile."""
        if reading != self._reading or not self.is_attached:
            return
        self._catalogue.take(batch)
        for notice in batch.notices:
            self._shell.tell("warning", notice)
        before = self._progress
        is_read = batch.done == batch.total
        self._progress = "" if is_read else f"{group_digits(batch.done)} of {group_digits(batch.total)} read"
        if batch.rows or batch.damaged:
            self._has_rows.set()
        if batch.rows or batch.damaged or self._progress != before:
            self._entitle()
            self._refill()

    def search(self, query: str) -> None:
        """Shows the rows for a search; the best one is marked until the person marks another."""
        self._is_moved = self._is_moved and query == self.query_text
        wanted = text_wanted(query)
        if wanted != self._inside.wanted:
            if self._looking is not None:
                self._looking.cancel()
            self._inside = TextSearch(wanted)
        super().search(query)
        self._search_inside()

    def _search_inside(self) -> None:
        """Begins, or goes on, looking through what was said in the sessions that are listed."""
        search = self._inside
        if self.is_attached and search.is_due(self._catalogue.paths):
            search.is_running = True
            self._looking = self.run_worker(self._look(search), group="inside", exit_on_error=False)
            self._entitle()
            self.empty_text = SEARCHING

    async def _look(self, search: TextSearch) -> None:
        await search.run(tuple(self._catalogue.paths), partial(self._show_soon, search))
        if search is self._inside:
            self._show_found()

    def _show_soon(self, search: TextSearch) -> None:
        """Shows what was found in a moment, together with what is found until then."""
        if search is self._inside and not self._waits and self.is_attached:
            self._waits = True
            self.set_timer(SHOW_EVERY_S, self._show_found)

    def _show_found(self) -> None:
        self._waits = False
        self._entitle()
        self._refill()

    def _go(self, index: int, step: int) -> None:
        self._is_moved = True
        super()._go(index, step)

    def _refill(self) -> None:
        """Shows what is there now. A row that the person marked stays marked, and where it stood unless the
        head of the list was in sight; until then the mark is at the head, whatever comes in above."""
        kept, row, was_at_head = self.chosen, self.index - self.top, self.top == 0
        self.search(self.query_text)
        if kept is None or not self._is_moved:
            return
        at = next((index for index, item in enumerate(self.items) if item.key == kept.key), None)
        if at is not None:
            self.index, self.top = at, 0 if was_at_head else max(0, at - row)
            self._keep_visible()
            self.view.refresh()

    def _matching(self, query: str) -> list[Item]:
        """The rows a search finds; says why there are none."""
        is_searching = query.startswith(INSIDE) and self._inside.is_running
        self.empty_text = SEARCHING if is_searching else self._said
        try:
            return self._catalogue.find(query, self._inside.hits)
        except ValueError as error:
            self.empty_text = str(error)
            return []


def open_sessions(app: "Shell", query: str = "", *, everywhere: bool = False) -> None:
    """Shows the stored sessions a query finds, of this folder or of all, and opens the chosen one."""
    panel = SessionPanel(app, query, everywhere=everywhere)

    def chosen(path: str | None) -> None:
        info = None if path is None else panel.info_of(path)
        if info is not None:
            open_stored(app, info)

    app.push_screen(panel, chosen)


def _is_of(folder: Path, cwd: str) -> bool:
    return same_folder(cwd, folder)
