"""Pasted text: cleaning, and the markers that stand for long ones (TUI-3.10, 3.11). Pure."""

import re

from musepi_tui.base.safe_text import display_safe

MAX_LINES = 10
MAX_CHARS = 1000
"""Above either of the two a paste is shown as a marker: a long line makes each key slow."""

_MARKER = re.compile(r"\[paste #(\d+) (?:\+\d+ lines|\d+ chars)\]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def clean_paste(text: str) -> str:
    """The text with LF line ends, without escape sequences and controls; bidi overrides are spelled out."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    visible = _BIDI.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", plain)
    return "\t".join(display_safe(part) for part in visible.split("\t"))


class Pastes:
    """The texts behind the markers of one editor."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def shorten(self, text: str) -> str:
        """The text itself when it is short, else a marker for it: ``[paste #1 +123 lines]``."""
        lines = text.count("\n") + 1
        if lines <= MAX_LINES and len(text) <= MAX_CHARS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        return (
            f"[paste #{number} +{lines} lines]"
            if lines > MAX_LINES
            else f"[paste #{number} {len(text)} chars]"
        )

    def expand(self, text: str) -> str:
        """The text with every marker replaced by what it stands for; unknown markers stay."""
        return _MARKER.sub(lambda match: self._texts.get(int(match[1]), match[0]), text)

    def spans(self, line: str) -> tuple[tuple[int, int], ...]:
        """Where known markers stand in a line: start and end column of each."""
        if "[paste #" not in line:
            return ()
        return tuple(match.span() for match in _MARKER.finditer(line) if int(match[1]) in self._texts)
