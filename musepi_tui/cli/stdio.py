"""Lines in from stdin and out to stdout without ever holding up the event loop.

Reading and writing happen in daemon threads: a host that stops reading, or never writes, costs the program
nothing. Order is kept.
"""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable

READ_BLOCK_BYTES = 64 * 1024
LINE_LIMIT_BYTES = 64 * 1024 * 1024
"""Longest line of a host (contract 3.2). Beyond it the line is skipped and told; memory stays bounded."""

DRAIN_S = 2.0
"""How long closing waits for a slow reader of stdout. More would hold up the exit after a signal (SAF-12)."""


class LineWriter:
    """Writes byte lines to a descriptor in order. ``broken`` is true once the reader has gone."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self.broken = False
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stdout", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queues a line that ends in LF."""
        self._lines.put(line)

    def close(self) -> None:
        """Waits, at most ``DRAIN_S`` seconds, until everything queued was taken."""
        self._lines.put(None)
        self._thread.join(DRAIN_S)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            if self.broken:
                continue
            try:
                _write_all(self._descriptor, line)
            except OSError:
                self.broken = True
                self._on_broken()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class LineReader:
    """Reads lines from stdin in a thread and hands each to the event loop.

    ``on_line(bytes)`` gets a line without its LF and a CR before it, ``on_too_long()`` is called for one over
    ``LINE_LIMIT_BYTES``, ``on_end()`` once at the end of input. All are called on the loop.
    """

    def __init__(
        self,
        on_line: Callable[[bytes], None],
        on_too_long: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._on_line = on_line
        self._on_too_long = on_too_long
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def _run(self) -> None:
        splitter = LineSplitter(LINE_LIMIT_BYTES)
        descriptor = sys.stdin.fileno()
        try:
            while block := _read(descriptor):
                for line in splitter.feed(block):
                    self._deliver(line)
            for line in splitter.finish():
                self._deliver(line)
            self._loop.call_soon_threadsafe(self._on_end)
        except RuntimeError:
            return  # the loop was closed while this thread waited for input

    def _deliver(self, line: bytes | None) -> None:
        if line is None:
            self._loop.call_soon_threadsafe(self._on_too_long)
        else:
            self._loop.call_soon_threadsafe(self._on_line, line)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, READ_BLOCK_BYTES)
    except OSError:
        return b""  # a closed or vanished stdin is an end of input


class LineSplitter:
    """Cuts a byte stream into lines at LF only; U+2028 and lone CR are data (tui 9.4).

    Gives None in place of a line longer than ``limit_bytes``, whose bytes are dropped as they come.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False

    def feed(self, block: bytes) -> list[bytes | None]:
        """The lines that this block completes."""
        *complete, rest = block.split(b"\n")
        lines: list[bytes | None] = []
        for piece in complete:
            self._hold(piece)
            lines.append(self._take())
        self._hold(rest)
        return lines

    def finish(self) -> list[bytes | None]:
        """The last line, when the stream did not end in LF."""
        return [self._take()] if self._held_bytes or self._skipping else []

    def _hold(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._limit_bytes:
            self._skipping = True
            self._held.clear()
        elif piece:
            self._held.append(piece)

    def _take(self) -> bytes | None:
        line = None if self._skipping else b"".join(self._held).removesuffix(b"\r")
        self._held.clear()
        self._held_bytes = 0
        self._skipping = False
        return line
