"""Whether a text stands anywhere in a session file, and where (TUI-4.82). Only reads."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from musepi_tui.base.files import open_regular
from musepi_tui.session.records import Record, parse_record

STEP_BYTES = 1024 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line holds pictures or output nobody looks for by its words."""

AROUND_CHARS = 60
"""What is shown on each side of a hit."""

_WORD = re.compile(r"[a-z0-9]+")
_TEXT_KEYS = frozenset({"text", "thinking", "content", "summary", "name", "label", "output", "command"})
"""Fields of entries, messages and blocks in which somebody says something; other tools use the same ones."""

_NEST_KEYS = frozenset({"message", "payload", "content", "summary"})
_CALL_KEYS = frozenset({"arguments", "input"})
"""Fields of a call, every text of which counts."""


class TextHunt:
    """One search. Letters count in any case, blanks and line breaks alike."""

    def __init__(self, wanted: str) -> None:
        self._wanted = _plain(wanted).lower()
        # An escaped line holds ASCII words as they are, so most of a file is passed over by looking for one.
        self._word = max(_WORD.findall(self._wanted), key=len, default="").encode()

    def find_in(self, path: Path, is_over: Callable[[], bool]) -> str | None:
        """The first place in a file with some text around it; None when there is none, the file cannot be
        read, or ``is_over`` says that nobody wants to know any more. Blocks."""
        if not self._wanted:
            return None
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                for line in self._likely_lines(iter(lambda: file.read(STEP_BYTES), b""), is_over):
                    found = self._find_in_line(line)
                    if found is not None:
                        return found
        except OSError:
            return None
        return None

    def _likely_lines(self, blocks: Iterator[bytes], is_over: Callable[[], bool]) -> Iterator[bytes]:
        rest = b""
        for block in blocks:
            if is_over():
                return
            *lines, rest = (rest + block).split(b"\n")
            if self._word in b"\n".join(lines).lower():
                yield from (line for line in lines if self._word in line.lower())
            if len(rest) > MAX_LINE_BYTES:
                rest = b""
        if self._word in rest.lower():
            yield rest

    def _find_in_line(self, line: bytes) -> str | None:
        record = parse_record(line)
        if not isinstance(record, Record):
            return None
        for text in _texts(record.fields):
            plain = _plain(text)
            at = plain.lower().find(self._wanted)
            if at >= 0:
                return _around(plain, at, len(self._wanted))
        return None


def _texts(value: object) -> Iterator[str]:
    """Everything somebody says in a record, in order."""
    waiting: list[tuple[object, bool]] = [(value, False)]
    while waiting:
        part, is_call = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            waiting += [(each, is_call) for each in reversed(cast("list[object]", part))]
        elif isinstance(part, Mapping):
            waiting += reversed(list(_parts(cast("Mapping[str, Any]", part), is_call=is_call)))


def _parts(fields: Mapping[str, Any], *, is_call: bool) -> Iterator[tuple[object, bool]]:
    for key, value in fields.items():
        if is_call or key in _CALL_KEYS:
            yield value, True
        elif key in _NEST_KEYS or (key in _TEXT_KEYS and isinstance(value, str)):
            yield value, False


def _around(text: str, at: int, length: int) -> str:
    """The hit with what stands around it."""
    start, end = max(0, at - AROUND_CHARS), at + length + AROUND_CHARS
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _plain(text: str) -> str:
    return " ".join(text.split())
