"""How much of an output a model gets: cuts at whole lines, on character boundaries (TUI-7.2 to 7.5)."""

from dataclasses import dataclass

MAX_LINES = 2_000
"""Lines of one result. More would let a single call fill a small context window."""

MAX_BYTES = 51_200
"""UTF-8 bytes of one result (50 KiB), whichever limit comes first."""

HIT_CHARS = 500
"""Longest line of a search result; minified files would else cost the whole result."""

COMMAND_LINE_BYTES = 768
"""Longest line of command output shown to the model."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a text. Lines are counted from 1; ``last`` is 0 when no whole line fits.

    ``is_partial_line``: one line alone is over the limit and only its end is here (tail cuts).
    """

    text: str
    first: int
    last: int
    total: int
    is_partial_line: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether something was left out."""
        return self.is_partial_line or self.last - self.first + 1 < self.total


def split_lines(text: str) -> list[str]:
    """The lines of a text without their ends; a final line break makes no extra line."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def cut_head(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Cut:
    """The first whole lines within both limits (files and searches)."""
    lines = split_lines(text)
    count = _lines_that_fit(lines[:max_lines], max_bytes)
    if count == len(lines):
        return Cut(text.removesuffix("\n"), 1, count, count)
    return Cut("\n".join(lines[:count]), 1, count, len(lines))


def cut_tail(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Cut:
    """The last whole lines within both limits (command output); of a single longer line its last bytes."""
    lines = split_lines(text)
    total = len(lines)
    count = _lines_that_fit(lines[-max_lines:][::-1], max_bytes)
    if count == 0 and lines:
        return Cut(last_bytes(lines[-1], max_bytes), total, total, total, is_partial_line=True)
    return Cut("\n".join(lines[total - count :]), total - count + 1, total, total)


def clip_lines(text: str, max_bytes: int = COMMAND_LINE_BYTES) -> tuple[str, int]:
    """The text with longer lines cut to ``max_bytes`` and an ellipsis, and how many were (0 = no limit)."""
    if max_bytes <= 0:
        return text, 0
    lines = text.split("\n")
    clipped = 0
    for index, line in enumerate(lines):
        if len(line) * 4 > max_bytes and len(line.encode("utf-8", "replace")) > max_bytes:
            lines[index] = f"{first_bytes(line, max_bytes)}…"
            clipped += 1
    return "\n".join(lines), clipped


def first_bytes(text: str, max_bytes: int) -> str:
    """The longest beginning of at most ``max_bytes`` UTF-8 bytes."""
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def last_bytes(text: str, max_bytes: int) -> str:
    """The longest end of at most ``max_bytes`` UTF-8 bytes."""
    data = text.encode("utf-8", "replace")
    return data[max(0, len(data) - max_bytes) :].decode("utf-8", "ignore")


def _lines_that_fit(lines: list[str], max_bytes: int) -> int:
    used = 0
    for count, line in enumerate(lines):
        used += len(line.encode("utf-8", "replace")) + (1 if count else 0)
        if used > max_bytes:
            return count
    return len(lines)
