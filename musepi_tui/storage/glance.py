"""What a listing shows of a session file: read from its first and last bytes only (session-format 14)."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from musepi_tui.storage.titles import clean_title, title_of_prompt, untitled

PREFIX_BYTES = (4 * 1024, 64 * 1024, 1024 * 1024)
"""How much of the start is read, step by step, until it holds a user message."""

TAIL_BYTES = 32 * 1024
WHOLE_BYTES = 256 * 1024
"""Files up to this are read whole, so that their messages are counted exactly."""

_PROMPT_TEXT = re.compile(r'"(?:text|content)":"((?:[^"\\]|\\.)*)')


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A row of a listing. ``created`` and ``modified`` are ISO 8601.

    ``messages`` is a lower bound when ``messages_exact`` is false. ``status`` is ``complete error aborted
    interrupted pending`` or ``unknown``. ``is_named`` is false when the title only stands for a missing one.
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


def glance_at(path: Path) -> SessionInfo:
    """The row of a session file. Raises ``NotASessionFileError``, ``SessionError``."""
    try:
        descriptor = open_regular(path)
        try:
            index = read_header(descriptor)
            header = header_of(path, index)
            status = os.fstat(descriptor)
            look = _look(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error
    title = _title(header, index, look)
    return SessionInfo(
        path=path,
        id=header.id,
        cwd=header.cwd,
        title=title or untitled(header.timestamp),
        created=header.timestamp,
        modified=iso_text(status.st_mtime_ns // 1_000_000),
        messages=look.messages,
        size=status.st_size,
        tool="musepi" if index.slot is None else "omp",
        status=look.status,
        messages_exact=look.is_whole,
        is_named=bool(title),
    )


@dataclass(slots=True)
class _Look:
    """What the bytes that were read say."""

    is_whole: bool = False
    messages: int = 0
    first_prompt: str = ""
    name: tuple[int, str] | None = None
    short_summary: str = ""
    status: str = "unknown"


def _look(descriptor: int, size: int) -> _Look:
    if size <= WHOLE_BYTES:
        look = _Look(is_whole=True)
        _take_in(look, os.pread(descriptor, size, 0), has_start=True)
        return look
    start = _Look()
    for length in PREFIX_BYTES:
        start = _Look()
        _take_in(start, os.pread(descriptor, length, 0), has_start=True)
        if start.first_prompt:
            break
    look = _Look(first_prompt=start.first_prompt, messages=start.messages)
    _take_in(look, os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES)), has_start=False)
    look.name = look.name or start.name
    look.short_summary = look.short_summary or start.short_summary
    return look


def _take_in(look: _Look, data: bytes, *, has_start: bool) -> None:
    """Read the lines of a window; without ``has_start`` its first line is a fragment."""
    for line in data.split(b"\n")[0 if has_start else 1 :]:
        match = HEAD.match(line)
        role = None if match is None else match[5]
        look.messages += 0 if role is None else 1
        if role == b"user" and look.first_prompt:
            look.status = "pending"
            continue
        record = parse_record(line)
        if isinstance(record, Record):
            _take_in_record(look, record.fields, counted=role is not None)
        elif role == b"user":
            look.first_prompt = _text_of_fragment(line)


def _take_in_record(look: _Look, fields: Mapping[str, Any], *, counted: bool) -> None:
    kind = fields.get("type")
    if kind == "session_info":
        look.name = (unix_ms(as_text(fields.get("timestamp")) or "") or 0, as_text(fields.get("name")) or "")
    elif kind == "compaction":
        look.short_summary = as_text(fields.get("shortSummary")) or look.short_summary
    elif kind == "message":
        message = as_object(fields.get("message")) or {}
        look.messages += 0 if counted else 1
        look.status = _status_after(message, look.status)
        if not look.first_prompt:
            decoded = decode_message(message)
            look.first_prompt = text_of(decoded.content) if isinstance(decoded, UserMessage) else ""


def _status_after(message: Mapping[str, Any], before: str) -> str:
    """What state a session is in when this is its last message."""
    role, reason = message.get("role"), message.get("stopReason")
    if role == "user":
        return "pending"
    if role == "toolResult":
        return "interrupted"
    if role != "assistant":
        return before
    if reason in ("error", "aborted"):
        return reason
    calls = any(
        (as_object(block) or {}).get("type") == "toolCall" for block in as_list(message.get("content")) or ()
    )
    return "interrupted" if calls or reason == "length" else "complete"


def _title(header: SessionHeader, index: Index, look: _Look) -> str:
    """The title by the order of session-format 14; empty when only a stand-in is left."""
    found = look.name
    if index.slot is not None:
        found = _newer(found, (unix_ms(index.slot["updatedAt"]) or 0, index.slot["title"]))
    elif header.title is not None:
        found = _newer(found, (unix_ms(header.timestamp) or 0, header.title))
    named = clean_title(found[1]) if found is not None else ""
    return named or clean_title(look.short_summary) or title_of_prompt(look.first_prompt)


def _newer(first: tuple[int, str] | None, second: tuple[int, str]) -> tuple[int, str]:
    return second if first is None or second[0] > first[0] else first


def _text_of_fragment(line: bytes) -> str:
    """The first text of a user message whose line was cut by the end of the window."""
    match = _PROMPT_TEXT.search(line.decode("utf-8", "ignore"))
    if match is None:
        return ""
    try:
        return str(json.loads(f'"{match[1]}"'))
    except ValueError:
        return match[1]
