"""Reads the wanted lines of a file while counting all of them, within the limits of a result (TUI-7.2)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from musepi_tui.tools.limits import MAX_BYTES, MAX_LINES
from musepi_tui.tools.selector import LineRange


@dataclass(slots=True)
class ReadLines:
    """What was read. ``numbers`` are those of ``lines``, from 1; ``total`` counts the whole file.

    ``stopped_at`` is the first wanted line that did not fit, ``too_long_bytes`` its length when it alone is
    over the limit. ``digest`` is the SHA-256 of the whole file.
    """

    lines: list[str] = field(default_factory=list[str])
    numbers: list[int] = field(default_factory=list[int])
    total: int = 0
    stopped_at: int | None = None
    too_long_bytes: int | None = None
    digest: bytes = b""

    def blocks(self) -> Iterator[tuple[int, int, str]]:
        """Runs of consecutive lines: first and last number, and their text."""
        start = 0
        for index in range(1, len(self.lines) + 1):
            if index == len(self.lines) or self.numbers[index] != self.numbers[index - 1] + 1:
                yield self.numbers[start], self.numbers[index - 1], "\n".join(self.lines[start:index])
                start = index


def read_lines(file: BinaryIO, ranges: Sequence[LineRange]) -> ReadLines:
    """The lines of ``ranges`` (merged, in order; none = all), as many as one result may hold.

    Decoded as UTF-8 with replacement marks; line ends and a byte-order mark are left out.
    """
    result = ReadLines()
    wanted = _Wanted(ranges or (LineRange(1),))
    digest = hashlib.sha256()
    used_bytes = 0
    for number, data in enumerate(file, 1):
        digest.update(data)
        result.total = number
        if result.stopped_at is not None or not wanted.has(number):
            continue
        body = data.removeprefix(b"\xef\xbb\xbf") if number == 1 else data
        text = body.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
        used_bytes += len(text.encode()) + 1
        if used_bytes > MAX_BYTES + 1 or len(result.lines) >= MAX_LINES:
            result.stopped_at = number
            if not result.lines:
                result.too_long_bytes = len(body)
            continue
        result.lines.append(text)
        result.numbers.append(number)
    result.digest = digest.digest()
    return result


@dataclass(slots=True)
class _Wanted:
    ranges: Sequence[LineRange]
    _at: int = 0

    def has(self, number: int) -> bool:
        """Whether a line is wanted; to be asked with growing numbers."""
        while self._at < len(self.ranges):
            item = self.ranges[self._at]
            if item.last is not None and number > item.last:
                self._at += 1
                continue
            return number >= item.first
        return False
