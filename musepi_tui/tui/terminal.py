"""The terminal around the app: title, signals, giving it back, the external editor."""

import asyncio
import os
import shlex
import signal
import socket
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from musepi_tui.base.cells import cut_cells
from musepi_tui.base.safe_text import display_safe

RESTORE: Final = (
    "\x1b[?2026l\x1b[<u\x1b[>4;0m\x1b[?2004l\x1b[?1004l\x1b[?1016l\x1b[?1006l\x1b[?1015l\x1b[?1003l\x1b[?1002l"
    "\x1b[?1000l\x1b[?2048l\x1b[?7h\x1b[0m\x1b[?1049l\x1b[?25h\x1b[23;2t"
)
"""Undoes every mode the program sets, for an end that cannot go through the driver."""

WATCHDOG_S: Final = 3.0
MAX_TITLE_CELLS: Final = 80


def title_sequence(text: str) -> str:
    """The sequence that sets the window title: printable characters only, at most 80 cells."""
    line = " ".join(display_safe(text).split())
    return f"\x1b]2;{cut_cells(line, MAX_TITLE_CELLS)}\x07"


@contextmanager
def signals_end(stop: Callable[[int], None], undo: Callable[[], str]) -> Generator[None]:
    """While this is open, SIGTERM and SIGHUP call ``stop(exit_code)`` in the event loop's thread.

    ``stop`` must be safe to call from a signal handler (``loop.call_soon_threadsafe``). A watchdog ends the
    process hard, terminal restored, when it is still there three seconds later: a blocked loop never runs it.
    ``undo`` says what is to be written then besides ``RESTORE``.
    """
    saved = _terminal_modes()

    def on_signal(number: int, frame: FrameType | None) -> None:
        code = 128 + number
        watchdog = threading.Timer(WATCHDOG_S, _end_hard, (code, saved, undo))
        watchdog.daemon = True
        watchdog.start()
        stop(code)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.signal(number, on_signal)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def signals_wake(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """While this is open, a signal ends the waiting of the event loop, whichever thread it met.

    Python runs its handlers in the main thread and does not wake it for them: a SIGCONT that the kernel gave
    to another thread would be taken with the next key, and after ctrl+z no key comes.
    """
    reading, writing = socket.socketpair()
    reading.setblocking(False)  # noqa: FBT003  takes it by position only
    writing.setblocking(False)  # noqa: FBT003  takes it by position only
    loop.add_reader(reading, reading.recv, 4096)
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        loop.remove_reader(reading)
        reading.close()
        writing.close()


def _terminal_modes() -> "list[Any] | None":
    try:
        return termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ is not None else None
    except (termios.error, ValueError):
        return None


def _end_hard(code: int, saved: "list[Any] | None", undo: Callable[[], str]) -> None:
    with suppress(OSError):
        os.set_blocking(2, False)
        os.write(2, f"{undo()}{RESTORE}".encode())
    if saved is not None:
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, saved)
    os._exit(code)


def find_editor(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command of the person's editor: ``$VISUAL``, ``$EDITOR``, else nano."""
    return tuple(shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "nano"))


@contextmanager
def draft_file(text: str) -> Generator[Path]:
    """A temporary Markdown file with the text, readable for its owner only, gone afterwards."""
    handle, name = tempfile.mkstemp(prefix="musepi-", suffix=".md")
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield path
    finally:
        path.unlink(missing_ok=True)
