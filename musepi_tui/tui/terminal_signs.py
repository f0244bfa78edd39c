"""What the terminal shows beside its cells: the title of its window, progress in its tab or the taskbar."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from textual.timer import Timer

from musepi_tui.settings.schema import TerminalSettings
from musepi_tui.tui.screen import SafeApp
from musepi_tui.tui.status import Status
from musepi_tui.tui.terminal import title_sequence

NO_PROGRESS: Final = "\x1b]9;4;0\x1b\\"
"""Ends in ESC and a backslash, as all of these do: VTE does not take BEL for the end of them."""
BUSY: Final = "\x1b]9;4;3\x1b\\"
"""Something runs, nobody knows how long."""
WAITING: Final = "\x1b]9;4;4\x1b\\"

REPEAT_S: Final = 10.0
"""Ghostty takes a bar away that was not written for about 15 seconds; what runs longer is told again."""

_SHOWS_FROM: Final[Mapping[str, tuple[int, ...]]] = {
    "ghostty": (1, 2),
    "iTerm.app": (3, 6, 6),
    "WezTerm": (20250210,),
    "mintty": (3, 4, 2),
}
"""``TERM_PROGRAM`` and the first version that shows progress. Older ones of some show a desktop notification
instead: there OSC 9 means that."""

VTE_SHOWS_FROM: Final = 8000
"""``VTE_VERSION`` of VTE 0.80."""


def shows_progress(environ: Mapping[str, str]) -> bool:
    """Whether this is a terminal that is known to show progress (OSC 9;4)."""
    least = _SHOWS_FROM.get(environ.get("TERM_PROGRAM", ""))
    if least is not None:
        return _numbers(environ.get("TERM_PROGRAM_VERSION", "")) >= least
    vte = _numbers(environ.get("VTE_VERSION", ""))
    is_vte = bool(vte) and vte[0] >= VTE_SHOWS_FROM
    return is_vte or "WT_SESSION" in environ or environ.get("ConEmuANSI") == "ON"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version))


def progress_sequence(status: Status, *, is_asking: bool) -> str:
    """The progress of what runs; ``is_asking``: it goes on once the person has answered.

    A pass that summarises in several pieces has a percentage; everything else runs as long as it takes.
    """
    if not status.is_working:
        return NO_PROGRESS
    if is_asking:
        return WAITING
    progress = None if status.pass_running is None else status.pass_running.progress
    if progress is None or not progress.done or not progress.total:
        return BUSY
    return f"\x1b]9;4;1;{min(100, 100 * progress.done // progress.total)}\x1b\\"


def window_title(status: Status, *, is_asking: bool) -> str:
    """Who waits for whom, and where (TUI-11.8)."""
    sign = "● " if is_asking else "… " if status.is_working else ""
    return f"{sign}musepi – {status.name or Path(status.cwd).name or status.cwd}"


class TerminalSigns:
    """Writes title and progress when they change, as far as they are wanted."""

    def __init__(self, app: SafeApp, settings: TerminalSettings, environ: Mapping[str, str]) -> None:
        self._app = app
        self._has_title = settings.title
        wish = settings.progress
        self._has_progress = wish == "always" or (wish == "auto" and shows_progress(environ))
        self._title = ""
        self._progress = NO_PROGRESS
        self._repeat: Timer | None = None

    def show(self, status: Status, *, is_asking: bool) -> None:
        """What is going on now; ``is_asking``: a question waits for the person."""
        if self._has_title:
            self._show_title(window_title(status, is_asking=is_asking))
        if self._has_progress:
            self._show_progress(progress_sequence(status, is_asking=is_asking))

    def forget(self) -> None:
        """The terminal was somebody else's or has lost what was written: all of it is written again.

        Where there never was any progress, there is none to take back either.
        """
        self._title = ""
        if self._app.undo:
            self._progress = ""

    def _show_title(self, title: str) -> None:
        if title != self._title:
            self._title = title
            self._app.write_terminal(title_sequence(title))

    def _show_progress(self, progress: str) -> None:
        if progress == self._progress:
            return
        self._progress = progress
        self._app.undo = NO_PROGRESS
        self._app.write_terminal(progress)
        if progress == NO_PROGRESS:
            if self._repeat is not None:
                self._repeat.stop()
                self._repeat = None
        elif self._repeat is None:
            self._repeat = self._app.set_interval(REPEAT_S, self._write_again)

    def _write_again(self) -> None:
        self._app.write_terminal(self._progress)
