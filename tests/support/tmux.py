"""musepi in a real terminal: a tmux server of its own for one test."""

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

WAIT_S = 60.0
"""How long anything is waited for: long enough on a busy machine, and nothing when it comes at once."""

POLL_S = 0.1
"""Each look at the screen is a process of its own."""

SAME_PAGE_S = 5.0
"""How long a page may take to come; after that it is the last one."""


class Terminal:
    """One pane of ``columns`` x ``rows`` cells running a shell without a prompt of its own."""

    def __init__(self, columns: int, rows: int, cwd: Path) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self._tmux = ["tmux", "-L", f"musepi-{uuid.uuid4().hex[:8]}", "-f", os.devnull]
        shell = ["env", *_environment(), "bash", "--norc", "--noprofile", "-i"]
        size = ["-x", str(columns), "-y", str(rows), "-c", str(cwd)]
        self._run("new-session", "-d", *size, shlex.join(shell))
        self._run("set", "-g", "status", "off")
        self._run("set", "-s", "escape-time", "10")

    def __enter__(self) -> "Terminal":
        self.wait("READY>")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def start(self, *arguments: str) -> None:
        """Starts musepi and waits for its footer."""
        self.type(shlex.join([sys.executable, "-m", "musepi_tui", *arguments]))
        self.press("Enter")
        self.wait("(auto)")

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Presses keys by their tmux names, one after another."""
        for key in keys:
            self._run("send-keys", key)

    def submit(self, text: str) -> None:
        """Types a prompt, waits until it stands in the editor, and sends it."""
        self.type(text)
        self.wait(text[-20:])
        self.press("Enter")

    def resize(self, columns: int, rows: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """What is visible, trailing blanks cut."""
        return self._run("capture-pane", "-p")

    def wait(self, text: str, *, gone: bool = False, limit_s: float = WAIT_S) -> str:
        """The screen once it shows ``text`` (or no longer does)."""
        deadline = time.monotonic() + limit_s
        while True:
            screen = self.screen()
            if (text in screen) is not gone:
                return screen
            if time.monotonic() > deadline:
                what = "still shows" if gone else "does not show"
                raise AssertionError(f"after {limit_s:g} s the screen {what} {text!r}:\n{screen}")
            time.sleep(POLL_S)

    def reaches(self, is_wanted: Callable[[str], bool], *, limit_s: float = WAIT_S) -> bool:
        """Whether the screen is as wanted within the time."""
        deadline = time.monotonic() + limit_s
        while not is_wanted(self.screen()):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def becomes(self, wanted: str) -> bool:
        """Whether the screen shows exactly this within the time."""
        return self.reaches(lambda screen: screen == wanted)

    def settle(self, quiet_s: float = 0.5) -> str:
        """The screen once it has been the same for so long."""
        before, since = self.screen(), time.monotonic()
        while time.monotonic() - since < quiet_s:
            time.sleep(POLL_S)
            now = self.screen()
            if now != before:
                before, since = now, time.monotonic()
        return before

    def seek(self, text: str, key: str) -> str:
        """The screen once it shows ``text``. Until then presses a key that pages, as long as pages come."""
        screen = self.settle(0.2)
        while text not in screen:
            self.press(key)
            before = screen
            deadline = time.monotonic() + SAME_PAGE_S
            while screen == before:
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f"no page as far as {key} goes shows {text!r}; the last one:\n{screen}"
                    )
                screen = self.settle(0.2)
        return screen

    def _run(self, *arguments: str) -> str:
        run = subprocess.run(
            [*self._tmux, *arguments], check=True, capture_output=True, text=True, timeout=WAIT_S
        )
        return run.stdout


def _environment() -> list[str]:
    kept = ("PATH", "HOME", "MUSEPI_HOME", "LANG", "LC_ALL")
    values = {name: os.environ[name] for name in kept if name in os.environ}
    return ["-i", *(f"{name}={value}" for name, value in values.items()), "TERM=tmux-256color", "PS1=READY>"]
