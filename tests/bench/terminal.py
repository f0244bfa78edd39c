"""A program in a pseudo-terminal, with every byte it writes stamped by time.

Keys are characters that appear nowhere else (U+0100 and on), so an echo is found by its bytes alone.
"""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FIRST_KEY = 0x0100
ALTERNATE_SCREEN = b"\x1b[?1049h"
POLL_S = 0.0005
KEY_EVERY_S = 0.025
"""Between the first keys: as fast as a person strikes them, so that they are no load of their own."""
NO_CHANGE_S = 0.5
"""A key that has not changed the screen by then does not."""
FRAME_GAP_S = 0.05
"""Silence after a frame, longer than any pause inside one."""


class TerminalProgram:
    """Runs ``argv`` at 120 x 40. ``started`` is the monotonic second at which it was spawned."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._main, child = pty.openpty()
        _prepare(child)
        self._chunks: list[tuple[float, bytes]] = []
        self._output = bytearray()
        self._next_key = FIRST_KEY
        self._sent = 0.0
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            argv, stdin=child, stdout=child, stderr=child, env=dict(env), cwd=cwd, start_new_session=True
        )
        os.close(child)
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, data: bytes, *, start: int = 0, timeout_s: float = 30.0) -> float:
        """The monotonic second at which ``data`` was first seen at or after output byte ``start``."""
        return self._wait(lambda: self._output.find(data, start), timeout_s, data)

    def press(self) -> tuple[int, bytes, float]:
        """Sends a key never used before: the output length then, its bytes and the second it was sent."""
        data = chr(self._next_key).encode()
        self._next_key += 1
        before = len(self._output)
        sent = time.monotonic()
        os.write(self._main, data)
        return before, data, sent

    def echo_ms(self) -> float:
        """Milliseconds from a new key to its echo."""
        before, data, sent = self.press()
        return (self.wait_for(data, start=before) - sent) * 1000

    def type(self, text: str) -> None:
        """Sends text as it is."""
        os.write(self._main, text.encode())

    def first_key_s(self) -> float:
        """Seconds from the start until a key was echoed.

        Keys are sent from the first sign of life on; those that come before the program listens wait for it.
        """
        self.wait_for(ALTERNATE_SCREEN)
        sent: list[bytes] = []
        while True:
            sent.append(self.press()[1])
            time.sleep(KEY_EVERY_S)
            seen = [self._output.find(data) for data in sent]
            hits = [position for position in seen if position >= 0]
            if hits:
                return self._time_of(min(hits)) - self.started
            if time.monotonic() - self.started > 30:
                raise TimeoutError("no key was accepted within 30 s")

    def wait_until_quiet(self, quiet_s: float, *, timeout_s: float = 20.0) -> None:
        """Waits until nothing was written for so long."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            last_s = self._chunks[-1][0] if self._chunks else self.started
            rest_s = last_s + quiet_s - time.monotonic()
            if rest_s <= 0:
                return
            time.sleep(rest_s)
        raise TimeoutError(f"the program was never quiet for {quiet_s} s")

    def frame_ms(self, text: str) -> float:
        """Milliseconds from typing ``text`` to the last byte it causes. Only for a program at rest."""
        chunks = len(self._chunks)
        sent = time.monotonic()
        self.type(text)
        self._wait(lambda: len(self._chunks) - chunks - 1, 5.0, text.encode())
        self.wait_until_quiet(FRAME_GAP_S)
        return (self._chunks[-1][0] - sent) * 1000

    def paint_ms(self, text: str) -> float:
        """Milliseconds from typing ``text`` to the first byte it causes, 0 when it changes nothing on the
        screen; then waits for rest. Only for a program at rest, or one that works without drawing."""
        chunks = len(self._chunks)
        self._sent = time.monotonic()
        self.type(text)
        deadline = self._sent + NO_CHANGE_S
        while len(self._chunks) == chunks and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.wait_until_quiet(FRAME_GAP_S)
        return (self._chunks[chunks][0] - self._sent) * 1000 if len(self._chunks) > chunks else 0.0

    def last_frame_ms(self) -> float:
        """Milliseconds from the key of the last ``paint_ms`` to the last byte so far."""
        return (self._chunks[-1][0] - self._sent) * 1000

    def bytes_written(self) -> int:
        """Bytes written to the terminal so far."""
        return len(self._output)

    def cpu_s(self) -> float:
        """CPU seconds of the process so far, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def close(self) -> None:
        """Ends the program, whatever it does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(6)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._main)

    def _wait(self, find: Callable[[], int], timeout_s: float, what: bytes) -> float:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            position = find()
            if position >= 0:
                return self._time_of(position)
            if self.process.poll() is not None:
                break
            time.sleep(POLL_S)
        tail = bytes(self._output[-400:])
        raise TimeoutError(f"{what!r} was not written in time; last bytes: {tail!r}")

    def _time_of(self, position: int) -> float:
        end = 0
        for moment, chunk in self._chunks:
            end += len(chunk)
            if position < end:
                return moment
        return time.monotonic()

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._main, 65536)
            except OSError:
                return
            if not chunk:
                return
            self._chunks.append((time.monotonic(), chunk))
            self._output += chunk


def _prepare(descriptor: int) -> None:
    # No echo by the terminal itself: only what the program writes may count as an echo.
    attributes = termios.tcgetattr(descriptor)
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
