"""Titles of sessions (session-format 14)."""

import re

from musepi_tui.session.times import unix_ms

TITLE_CHARS = 200
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_WRAPPER = re.compile(r"<[^>\n]*>")


def clean_title(text: str) -> str:
    """The text on one line without control characters, cut to ``TITLE_CHARS``; may be empty."""
    return _SPACES.sub(" ", text).strip()[:TITLE_CHARS].rstrip()


def title_of_prompt(prompt: str) -> str:
    """A title from the first user message: its first line, a leading wrapper line skipped; may be empty."""
    lines = [line.strip() for line in prompt.splitlines() if line.strip()]
    if len(lines) > 1 and _WRAPPER.match(lines[0]):
        lines = lines[1:]
    return clean_title(lines[0]) if lines else ""


def untitled(timestamp: str) -> str:
    """What a session without a title is called: the hour and minute, UTC, of its header."""
    time_ms = unix_ms(timestamp)
    if time_ms is None:
        return "Untitled"
    minutes = time_ms // 60_000 % (24 * 60)
    return f"Untitled · {minutes // 60:02d}:{minutes % 60:02d}"
