"""Titles of sessions (session-format 14)."""

import re

from musepi_tui.session.messages import Content
from musepi_tui.session.passes import EMPTY_HANDOFF, handoff_text
from musepi_tui.session.times import unix_ms

TITLE_CHARS = 200
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_WRAPPER = re.compile(r"<[^>\n]*>")
_BULLET = re.compile(r"(?:[-*+]|\d+[.)])\s+")
_GOAL = "goal"
"""How the heading begins under which a handoff document says what is wanted."""


def clean_title(text: str) -> str:
    """The text on one line without control characters, cut to ``TITLE_CHARS``; may be empty."""
    return _SPACES.sub(" ", text).strip()[:TITLE_CHARS].rstrip()


def title_of_prompt(prompt: str) -> str:
    """A title from the first user message: its first line, a leading wrapper line skipped; may be empty."""
    lines = [line.strip() for line in prompt.splitlines() if line.strip()]
    if len(lines) > 1 and _WRAPPER.match(lines[0]):
        lines = lines[1:]
    return clean_title(lines[0]) if lines else ""


def title_of_handoff(content: Content) -> str:
    """The first line of a handoff document's goal, else of its text, else its first heading; may be empty."""
    text = handoff_text(content)
    lines = [line.strip() for line in text.splitlines() if line.strip() and text != EMPTY_HANDOFF]
    headings = [at for at, line in enumerate(lines) if line.startswith("#")]
    goals = (at + 1 for at in headings if _words(lines[at]).lower().startswith(_GOAL))
    plain = (at for at in range(len(lines)) if at not in headings)
    for at in (*goals, *plain):
        if at < len(lines) and at not in headings and (title := clean_title(_words(lines[at]))):
            return title
    return clean_title(_words(lines[0])) if lines else ""


def _words(line: str) -> str:
    """A line of Markdown without what makes it a heading, an item of a list or bold."""
    return _BULLET.sub("", line.lstrip("# "), count=1).replace("**", "")


def untitled(timestamp: str) -> str:
    """What a session without a title is called: the hour and minute, UTC, of its header."""
    time_ms = unix_ms(timestamp)
    if time_ms is None:
        return "Untitled"
    minutes = time_ms // 60_000 % (24 * 60)
    return f"Untitled · {minutes // 60:02d}:{minutes % 60:02d}"
