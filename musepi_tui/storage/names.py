"""The newest name in the middle of a session file, found without reading its lines (session-format 14)."""

import os
from typing import NamedTuple

from musepi_tui.session.fields import as_text
from musepi_tui.session.records import Record, parse_record
from musepi_tui.session.times import unix_ms

STEP_BYTES = 2 * 1024 * 1024
"""How much is looked through at once, from the end: about a millisecond in which nothing else can run."""

MAX_SEARCH_BYTES = 8 * 1024 * 1024 * 1024
"""Bigger files are not looked through (SAF-141)."""

MAX_NAME_LINE_BYTES = 64 * 1024
"""A longer line names nothing that a row could show."""

_MARK = b'"type":"session_info"'


class Name(NamedTuple):
    """A ``session_info``: when it was given and what; an empty text takes the name away."""

    time_ms: int
    text: str


def current_name(given: Name | None, title: Name | None, *, is_auto: bool) -> Name | None:
    """What a session is called: the newer of the last name somebody gave it and the title of slot or header.

    A title that was made by itself (``is_auto``) takes the place of no name.
    """
    if given is None or title is None:
        return title if given is None else given
    if is_auto and given.text:
        return given
    return title if title.time_ms > given.time_ms else given


def find_name(descriptor: int, start: int, end: int) -> Name | None:
    """The last ``session_info`` whose mark lies between the bytes ``start`` and ``end`` of an open file.

    Reads blocks instead of mapping the file: another program that cuts a mapped file ends this one. Raises
    ``OSError``.
    """
    if end - start > MAX_SEARCH_BYTES:
        return None
    upper = end
    while upper > start:
        lower = max(start, upper - STEP_BYTES)
        data = os.pread(descriptor, upper - lower + len(_MARK) - 1, lower)
        at = data.rfind(_MARK)
        while at >= 0:
            name = _name_at(descriptor, lower + at)
            if name is not None:
                return name
            at = data.rfind(_MARK, 0, at)
        upper = lower
    return None


def _name_at(descriptor: int, offset: int) -> Name | None:
    """The name in the line around a byte; None when that is another kind of line."""
    before = os.pread(descriptor, min(offset, MAX_NAME_LINE_BYTES), max(0, offset - MAX_NAME_LINE_BYTES))
    behind = os.pread(descriptor, MAX_NAME_LINE_BYTES, offset)
    line = before[before.rfind(b"\n") + 1 :] + behind.partition(b"\n")[0]
    record = parse_record(line)
    if not isinstance(record, Record) or record.fields.get("type") != "session_info":
        return None
    given = as_text(record.fields.get("timestamp")) or ""
    return Name(unix_ms(given) or 0, as_text(record.fields.get("name")) or "")
