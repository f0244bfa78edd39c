"""musepi in a real terminal: a tmux server of its own for one test."""

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

WAIT_S = 30.0
POLL_S = 0.1


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

    def becomes(self, wanted: str, *, limit_s: float = WAIT_S) -> bool:
        """Whether the screen shows exactly this within the time."""
        deadline = time.monotonic() + limit_s
        while self.screen() != wanted:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def settle(self) -> str:
        """The screen once it has been the same for half a second."""
        before, same = self.screen(), 0
        while same < 5:
            time.sleep(POLL_S)
            now = self.screen()
            same = same + 1 if now == before else 0
            before = now
        return before

    def _run(self, *arguments: str) -> str:
        run = subprocess.run(
            [*self._tmux, *arguments], check=True, capture_output=True, text=True, timeout=20
        )
        return run.stdout


def _environment() -> list[str]:
    kept = ("PATH", "HOME", "MUSEPI_HOME", "LANG", "LC_ALL")
    values = {name: os.environ[name] for name in kept if name in os.environ}
    return ["-i", *(f"{name}={value}" for name, value in values.items()), "TERM=tmux-256color", "PS1=READY>"]
