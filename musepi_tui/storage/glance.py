"""What a listing shows of a session file: read from its first and last bytes only (session-format 14)."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.session.entries import SessionHeader
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.session.message_codec import decode_message
from musepi_tui.session.messages import UserMessage, text_of
from musepi_tui.session.records import Record, parse_record
from musepi_tui.session.times import iso_text, unix_ms
from musepi_tui.storage.index import HEAD, Index, read_header
from musepi_tui.storage.loading import header_of
from musepi_tui.storage.names import Name, current_name, find_name
from musepi_tui.storage.titles import clean_title, title_of_prompt, untitled

PREFIX_BYTES = (4 * 1024, 64 * 1024, 1024 * 1024)
"""How much of the start is read, step by step, until it holds a user message."""

TAIL_BYTES = 32 * 1024
WHOLE_BYTES = 64 * 1024
"""Files up to this are read whole, so that their messages are counted exactly: no more than the two ends of a
bigger one usually take."""

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: what a date can hold. Files may say anything."""

_PROMPT_TEXT = re.compile(r'"(?:text|content)":"((?:[^"\\]|\\.)*)')
_STATUS_ROLES = frozenset({b"user", b"assistant", b"toolResult"})


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A row of a listing. ``created`` and ``modified`` are ISO 8601.

    ``messages`` is a lower bound when ``messages_exact`` is false. ``status`` is ``complete error aborted
    interrupted pending`` or ``unknown``. ``is_named`` is false when the title only stands for a missing one.
    ``parent`` is what the header calls the origin, a path or an id. ``is_own`` is false for a file of
    another tool, named by ``tool``; ``imported`` says that such a file was copied into our own root.
    """

    path: Path
    id: str
    cwd: str
    title: str
    created: str
    modified: str
    messages: int
    size: int
    tool: str
    status: str
    messages_exact: bool = True
    is_named: bool = True
    parent: str | None = None
    first_message: str = ""
    is_own: bool = True
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What was read of a session file and what reading on would need.

    ``name`` is the newest ``session_info`` that was seen; ``is_searched`` is false while the middle of the
    file was not looked through for one.
    """

    info: SessionInfo
    name: Name | None = None
    is_searched: bool = True


def modified_text(mtime_ns: int) -> str:
    """The time of a file as ISO 8601; a time that no calendar has becomes the nearest one."""
    return iso_text(min(max(mtime_ns // 1_000_000, 0), LAST_MS))


def glance_at(path: Path) -> SessionInfo:
    """The row of a session file. Raises ``NotASessionFileError``, ``SessionError``."""
    return read_row(path, search=True).info


def read_row(path: Path, *, search: bool, known: Row | None = None) -> Row:
    """The row of a session file of the pi family.

    ``search`` looks through the whole file for a name that neither end has; of a file that has only grown
    since ``known``, through what is new. Raises ``NotASessionFileError``, ``SessionError``.
    """
    try:
        descriptor = open_regular(path)
        try:
            return _read_row(path, descriptor, search=search, known=known)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error


def _read_row(path: Path, descriptor: int, *, search: bool, known: Row | None) -> Row:
    index = read_header(descriptor)
    header = header_of(path, index)
    status = os.fstat(descriptor)
    look = _look(descriptor, status.st_size)
    is_searched = look.is_whole or look.has_late_name
    if search and not is_searched:
        look.name = _search_name(descriptor, header.id, status.st_size, known) or look.name
        is_searched = True
    title = _title(header, index, look)
    info = SessionInfo(
        path=path,
        id=header.id,
        cwd=header.cwd,
        title=title or untitled(header.timestamp),
        created=header.timestamp,
        modified=modified_text(status.st_mtime_ns),
        messages=look.messages,
        size=status.st_size,
        tool="musepi" if index.slot is None else "omp",
        status=look.status,
        messages_exact=look.is_whole,
        is_named=bool(title),
        parent=header.parent_session,
        first_message=title_of_prompt(look.first_prompt),
    )
    return Row(info, look.name, is_searched)


def _search_name(descriptor: int, session_id: str, size: int, known: Row | None) -> Name | None:
    """The newest name inside a file; what was known of it before saves looking at its older part again."""
    if known is None or not known.is_searched or known.info.id != session_id or known.info.size > size:
        return find_name(descriptor, 0, size)
    return find_name(descriptor, max(0, known.info.size - TAIL_BYTES), size) or known.name


@dataclass(slots=True)
class _Look:
    """What the bytes that were read say. ``has_late_name``: a name stands in the tail, so none is newer."""

    is_whole: bool = False
    messages: int = 0
    first_prompt: str = ""
    name: Name | None = None
    has_late_name: bool = False
    short_summary: str = ""
    status: str = "unknown"
    recent: list[bytes] = field(default_factory=list[bytes])


def _look(descriptor: int, size: int) -> _Look:
    """What both ends of the file say; of a small file, what all of it says."""
    start = _Look()
    length = 0
    for length in (size,) if size <= WHOLE_BYTES else PREFIX_BYTES:
        start = _Look(is_whole=length >= size)
        _take_in(start, os.pread(descriptor, length, 0))
        if start.first_prompt or start.is_whole:
            break
    if start.is_whole:
        start.status = _status_of(start.recent)
        return start
    tail_at = max(length, size - TAIL_BYTES)
    tail = _Look(first_prompt="-")
    _take_in(tail, _behind_fragment(os.pread(descriptor, size - tail_at, tail_at)))
    return replace(
        start,
        messages=start.messages + tail.messages,
        name=tail.name or start.name,
        has_late_name=tail.name is not None,
        short_summary=tail.short_summary or start.short_summary,
        status=_status_of(tail.recent),
    )


def _behind_fragment(data: bytes) -> bytes:
    """A window of the middle of a file from its first whole line on."""
    return data[data.find(b"\n") + 1 :] if b"\n" in data else b""


def _take_in(look: _Look, data: bytes) -> None:
    """Take in the lines of a window. Only those that say something are parsed."""
    for line in data.split(b"\n"):
        match = HEAD.match(line)
        if match is None:
            record = parse_record(line) if line else None
            if isinstance(record, Record):
                _take_in_record(look, record.fields, line)
        elif match[5] is not None:
            look.messages += 1
            if match[5] in _STATUS_ROLES:
                look.recent.append(line)
            if match[5] == b"user" and not look.first_prompt:
                look.first_prompt = _prompt_of(line)
        elif match[1] in (b"session_info", b"compaction"):
            record = parse_record(line)
            if isinstance(record, Record):
                _take_in_record(look, record.fields, line)


def _take_in_record(look: _Look, fields: Mapping[str, Any], line: bytes) -> None:
    kind = fields.get("type")
    if kind == "session_info":
        look.name = Name(
            unix_ms(as_text(fields.get("timestamp")) or "") or 0, as_text(fields.get("name")) or ""
        )
    elif kind == "compaction":
        look.short_summary = as_text(fields.get("shortSummary")) or look.short_summary
    elif kind == "message":
        message = as_object(fields.get("message")) or {}
        look.messages += 1
        look.recent.append(line)
        if not look.first_prompt:
            look.first_prompt = _prompt_in(message)


def _prompt_of(line: bytes) -> str:
    """The text of a user message; of a line that the window cut, its first text."""
    record = parse_record(line)
    if not isinstance(record, Record):
        return text_of_fragment(line)
    return _prompt_in(as_object(record.fields.get("message")) or {})


def _prompt_in(message: Mapping[str, Any]) -> str:
    decoded = decode_message(message)
    return text_of(decoded.content) if isinstance(decoded, UserMessage) else ""


def _status_of(recent: list[bytes]) -> str:
    """The status by the last of these message lines that tells one."""
    return next((status for status in _statuses(recent) if status), "unknown")


def _statuses(recent: list[bytes]) -> Iterator[str]:
    for line in reversed(recent):
        record = parse_record(line)
        if isinstance(record, Record):
            yield _status_after(as_object(record.fields.get("message")) or {})
        elif b'"role":"user"' in line[:512]:
            yield "pending"


def _status_after(message: Mapping[str, Any]) -> str:
    """What state a session is in when this is its last message; empty when it does not say."""
    role, reason = message.get("role"), message.get("stopReason")
    if role == "user":
        return "pending"
    if role == "toolResult":
        return "interrupted"
    if role != "assistant":
        return ""
    if reason in ("error", "aborted"):
        return str(reason)
    calls = any(
        (as_object(block) or {}).get("type") == "toolCall" for block in as_list(message.get("content")) or ()
    )
    return "interrupted" if calls or reason == "length" else "complete"


def _title(header: SessionHeader, index: Index, look: _Look) -> str:
    """The title by the order of session-format 14; empty when only a stand-in is left."""
    title, source = None, header.title_source
    if index.slot is not None:
        title = Name(unix_ms(index.slot["updatedAt"]) or 0, index.slot["title"])
        source = index.slot.get("source")
    elif header.title is not None:
        title = Name(unix_ms(header.timestamp) or 0, header.title)
    found = current_name(look.name, title, is_auto=source == "auto")
    named = clean_title(found.text) if found is not None else ""
    return named or clean_title(look.short_summary) or title_of_prompt(look.first_prompt)


def text_of_fragment(line: bytes) -> str:
    """The first text of a message whose line was cut by the end of a window."""
    match = _PROMPT_TEXT.search(line.decode("utf-8", "ignore"))
    if match is None:
        return ""
    try:
        return str(json.loads(f'"{match[1]}"'))
    except ValueError:
        return match[1]
