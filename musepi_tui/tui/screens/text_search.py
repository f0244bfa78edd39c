"""Searching everything that was said in the sessions of the list, file after file in a thread (TUI-4.82)."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from musepi_tui.storage.fulltext import TextHunt
from musepi_tui.tui.screens.search import INSIDE

LEAST_CHARS = 2
"""A shorter text stands in nearly every file."""

TYPING_PAUSE_S = 0.15
"""How long nothing is typed before a search begins."""


class TextSearch:
    """One search for one text. ``hits`` hold what stands around the first place in a file, by its path."""

    def __init__(self, wanted: str = "") -> None:
        self.wanted = wanted
        self.hits: dict[str, str] = {}
        self.is_running = False
        self._searched: set[str] = set()

    @property
    def done(self) -> int:
        """How many files were searched."""
        return len(self._searched)

    def is_due(self, files: Iterable[str]) -> bool:
        """Whether it should go on with some of these files."""
        is_wanted = len(self.wanted) >= LEAST_CHARS and not self.is_running
        return is_wanted and not self._searched.issuperset(files)

    async def run(self, files: Iterable[str], told: Callable[[], None]) -> None:
        """Searches the files that were not searched yet; ``told`` is called after each. Can be cancelled."""
        self.is_running = True
        over = threading.Event()
        loop = asyncio.get_running_loop()
        hunt = TextHunt(self.wanted)
        waiting = [file for file in files if file not in self._searched]

        def take(file: str, hit: str | None) -> None:
            self._searched.add(file)
            if hit is not None:
                self.hits[file] = hit
            told()

        def read() -> None:
            for file in waiting:
                hit = hunt.find_in(Path(file), over.is_set)
                if over.is_set():
                    return
                loop.call_soon_threadsafe(take, file, hit)

        try:
            await asyncio.sleep(TYPING_PAUSE_S)
            await asyncio.to_thread(read)
        finally:
            over.set()
            self.is_running = False


def text_wanted(query: str) -> str:
    """The text that is to be found inside the sessions; empty for another kind of search."""
    return query.removeprefix(INSIDE).strip() if query.startswith(INSIDE) else ""
