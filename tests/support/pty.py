"""A program in a pseudo-terminal: what it writes, what it is sent, which modes it leaves behind."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.zygote import IS_POSSIBLE, Child, shared_zygote

_MODE = re.compile(rb"\x1b\[\?(\d+)([hl])")

WAIT_S = 60.0
"""How long anything is waited for: long enough on a busy machine, and nothing when it comes at once."""


DRAIN_S = 2.0
"""How long what a program wrote last may take to get here once it has ended."""


class Terminal:
    """Runs ``python -m …`` in a terminal of its own. Close it with ``end``.

    With ``forked`` it is a child of a process that has imported the screen, where the system can do that:
    nothing that belongs to the start of an interpreter is shown then, see ``tests.support.zygote``.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        size: tuple[int, int] = (80, 24),
        forked: bool = False,
    ) -> None:
        self.output = bytearray()
        self._child: Child | None = None
        if forked and IS_POSSIBLE:
            self._child, self._fd = _fork_in_terminal(argv, environ)
            self._pid = self._child.pid
        else:
            self._pid, self._fd = pty.fork()
            if self._pid == 0:
                os.execve(sys.executable, [sys.executable, *argv], dict(environ))
        self.resize(*size)
        self.modes_before = termios.tcgetattr(self._fd)
        self.status: int | None = None
        self._reading = threading.Event()
        self._reading.set()
        self._closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._closed:
            self._reading.wait()
            if not select.select([self._fd], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data

    def resize(self, columns: int, rows: int) -> None:
        """Gives the terminal another size."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, data: bytes) -> None:
        """Types."""
        os.write(self._fd, data)

    def kill(self, number: signal.Signals) -> None:
        """Sends a signal."""
        os.kill(self._pid, number)

    def pause(self) -> None:
        """Takes nothing any more: what the program writes fills up its terminal."""
        self._reading.clear()

    def hang_up(self) -> None:
        """The window is closed: the program gets no signal that counts, only the end of its input."""
        self._close()

    def _close(self) -> None:
        self._closed = True
        self._reading.set()
        self._reader.join()  # a read under way would keep the terminal open
        os.close(self._fd)

    def is_stopped(self, within_s: float = WAIT_S) -> bool:
        """Whether the program was stopped by then."""
        return self._until(lambda: self._state() == "T", within_s)

    def _state(self) -> str:
        return Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]

    def wait_for(self, text: str | bytes, within_s: float = WAIT_S) -> bool:
        """Whether the bytes were written by then."""
        wanted = text.encode() if isinstance(text, str) else text
        return self._until(lambda: wanted in self.output, within_s)

    def wait_quiet(self, quiet_s: float = 0.3, within_s: float = WAIT_S) -> None:
        """Waits until nothing was written for a while."""
        deadline = time.monotonic() + within_s
        size, since = -1, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - since < quiet_s:
            if len(self.output) != size:
                size, since = len(self.output), time.monotonic()
            time.sleep(0.02)

    def exit_code(self, within_s: float = WAIT_S) -> int | None:
        """The exit code (negative: the signal), None while it runs. By then all it wrote has been
        read, unless the terminal was paused."""
        if self._until(self._is_over, within_s) and self._reading.is_set():
            self._reader.join(DRAIN_S)  # it ends with the last byte, when no child has the terminal either
        return self.status

    def _is_over(self) -> bool:
        if self._child is not None:
            self.status = self._child.poll()
        elif self.status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def last_modes(self) -> dict[int, bool]:
        """The last state of every private mode that was switched: on or off."""
        return {int(mode): state == b"h" for mode, state in _MODE.findall(bytes(self.output))}

    def modes_now(self) -> list[object]:
        """The termios modes of the terminal."""
        return termios.tcgetattr(self._fd)

    def end(self) -> None:
        """Ends the program if it still runs."""
        if self.exit_code(0) is None:
            self.kill(signal.SIGKILL)
            self.exit_code()
        if not self._closed:
            self._close()

    @staticmethod
    def _until(condition: Callable[[], bool], within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.02)
        return condition()


def _fork_in_terminal(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[Child, int]:
    """What ``python -m …`` runs, in a new terminal; our end of it."""
    option, module, *arguments = argv
    assert option == "-m"
    ours, theirs = pty.openpty()
    try:
        return shared_zygote(screen=True).start_in_terminal(theirs, module, *arguments, env=environ), ours
    finally:
        os.close(theirs)
