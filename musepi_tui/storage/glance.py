"""What a listing shows of a session file: read from its first and last bytes only (session-format 14)."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.session.block_codec import decode_content
from musepi_tui.session.entries import SessionHeader
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.session.message_codec import decode_message
from musepi_tui.session.messages import UserMessage, text_of
from musepi_tui.session.rebuild import changed_model
from musepi_tui.session.records import Record, parse_record
from musepi_tui.session.times import iso_text, unix_ms
from musepi_tui.session.transcript import HANDOFF_TYPE
from musepi_tui.session.tree import LEAF_MARK
from musepi_tui.storage.index import HEAD, Index, read_header
from musepi_tui.storage.loading import header_of
from musepi_tui.storage.names import Name, current_name, find_name
from musepi_tui.storage.tally import Tally, count_lines, is_handoff
from musepi_tui.storage.titles import clean_title, title_of_handoff, title_of_prompt, untitled

PREFIX_BYTES = (4 * 1024, 64 * 1024, 1024 * 1024)
"""How much of the start is read, step by step, until it holds a user message."""

TAIL_BYTES = 32 * 1024
WHOLE_BYTES = 64 * 1024
"""Files up to this are read whole, so that their messages are counted exactly: no more than the two ends of a
bigger one usually take."""

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: what a date can hold. Files may say anything."""

MAX_TOKENS = 10**12
"""More than any model reads: a bigger number in a file is damage."""

_PROMPT_TEXT = re.compile(r'"(?:text|content)":"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)')
"""Up to the end of the window; an escape that is cut there is left out."""

_STATUS_ROLES = frozenset({b"user", b"assistant", b"toolResult"})
_PARSED_TYPES = frozenset({b"session_info", b"compaction", b"model_change"})


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A row of a listing. ``created`` and ``modified`` are ISO 8601.

    ``messages`` is a lower bound when ``messages_exact`` is false. ``status`` is ``complete error aborted
    interrupted pending`` or ``unknown``. ``is_named`` is false when the title only stands for a missing one.
    ``parent`` is what the header calls the origin, a path or an id. ``is_own`` is false for a file of
    another tool, named by ``tool``; ``imported`` says that such a file was copied into our own root.

    ``model`` is ``provider/id``, empty when neither end of the file names it. ``context_tokens`` is what the
    last answer was billed for, None after a compaction. ``compactions`` and ``branches`` are None as long as
    the whole file was not looked through.
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
    model: str = ""
    context_tokens: int | None = None
    compactions: int | None = None
    branches: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What was read of a session file and what reading on would need.

    ``name`` is the newest ``session_info`` that was seen, ``leaves`` the entries nothing hangs under;
    ``is_searched`` is false while the middle of the file was not looked through for them.
    """

    info: SessionInfo
    name: Name | None = None
    is_searched: bool = True
    leaves: tuple[str, ...] = ()


def modified_text(mtime_ns: int) -> str:
    """The time of a file as ISO 8601; a time that no calendar has becomes the nearest one."""
    return iso_text(min(max(mtime_ns // 1_000_000, 0), LAST_MS))


def glance_at(path: Path) -> SessionInfo:
    """The row of a session file, its lines not counted. Raises ``NotASessionFileError``, ``SessionError``."""
    return read_row(path, search="name").info


Search: TypeAlias = Literal["ends", "name", "all"]
"""How much of a long file is read: its ends, all of it for a name, all of it to count its lines as well."""


def read_row(path: Path, *, search: Search, known: Row | None = None) -> Row:
    """The row of a session file of the pi family. Of a file that has only grown since ``known`` what is new
    is looked through. Raises ``NotASessionFileError``, ``SessionError``.
    """
    try:
        descriptor = open_regular(path)
        try:
            return _read_row(path, descriptor, search=search, known=known)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error


def _read_row(path: Path, descriptor: int, *, search: Search, known: Row | None) -> Row:
    index = read_header(descriptor)
    header = header_of(path, index)
    status = os.fstat(descriptor)
    look = _look(descriptor, status.st_size, is_chain=index.version < 2)
    if known is not None and (known.info.id != header.id or known.info.size > status.st_size):
        known = None
    if search != "ends" and not look.is_whole and not look.has_late_name:
        look.name = _search_name(descriptor, status.st_size, known) or look.name
    tally: Tally | None = look.tally
    if not look.is_whole:
        tally = _count(descriptor, index.size_bytes, status.st_size, known) if search == "all" else None
    talk = _talk_of(look)
    title = _title(header, index, look)
    info = SessionInfo(
        path=path,
        id=header.id,
        cwd=header.cwd,
        title=title or untitled(header.timestamp),
        created=header.timestamp,
        modified=modified_text(status.st_mtime_ns),
        messages=look.messages if tally is None else tally.messages,
        size=status.st_size,
        tool="musepi" if index.slot is None else "omp",
        status=talk.status,
        messages_exact=tally is not None,
        is_named=bool(title),
        parent=header.parent_session,
        first_message=title_of_prompt(look.first_prompt),
        model=talk.model,
        context_tokens=talk.context_tokens,
        compactions=None if tally is None else tally.compactions,
        branches=None if tally is None else tally.branches,
    )
    leaves = () if tally is None or tally.branches is None else tuple(tally.leaves)
    return Row(info, look.name, look.is_whole or search == "all", leaves)


def _search_name(descriptor: int, size: int, known: Row | None) -> Name | None:
    """The newest name inside a file; what was known of it before saves looking at its older part again."""
    if known is None or not known.is_searched:
        return find_name(descriptor, 0, size)
    return find_name(descriptor, max(0, known.info.size - TAIL_BYTES), size) or known.name


def _count(descriptor: int, start: int, size: int, known: Row | None) -> Tally | None:
    """The tally of a file; what was counted before is gone on from, where a line began then."""
    if known is not None and known.info.branches is not None and known.info.compactions is not None:
        before = known.info.size
        if os.pread(descriptor, 1, before - 1) == b"\n":
            leaves = dict.fromkeys(known.leaves)
            tally = Tally(known.info.messages, known.info.compactions, leaves)
            return count_lines(descriptor, before, size, tally)
    return count_lines(descriptor, start, size)


@dataclass(slots=True)
class _Look:
    """What the bytes that were read say. ``has_late_name``: a name stands in the tail, so none is newer.
    ``is_chain``: a file of version 1, whose entries have no ids and hang under the one before.

    ``recent`` are lines of messages, ``compacted_at`` and ``model_at`` how many stood before the last
    compaction and change of the model.
    """

    is_whole: bool = False
    is_chain: bool = False
    messages: int = 0
    tally: Tally = field(default_factory=Tally)
    first_prompt: str = ""
    name: Name | None = None
    has_late_name: bool = False
    short_summary: str = ""
    recent: list[bytes] = field(default_factory=list[bytes])
    compacted_at: int = 0
    model_at: int = 0
    model: str = ""


def _look(descriptor: int, size: int, *, is_chain: bool) -> _Look:
    """What both ends of the file say; of a small file, what all of it says."""
    start = _Look()
    length = 0
    for length in (size,) if size <= WHOLE_BYTES else PREFIX_BYTES:
        start = _Look(is_whole=length >= size, is_chain=is_chain)
        _take_in(start, os.pread(descriptor, length, 0))
        if start.first_prompt or start.is_whole:
            break
    if start.is_whole:
        return start
    tail_at = max(length, size - TAIL_BYTES)
    tail = _Look(first_prompt="-")
    _take_in(tail, _behind_fragment(os.pread(descriptor, size - tail_at, tail_at)))
    return replace(
        tail,
        messages=start.messages + tail.messages,
        first_prompt=start.first_prompt,
        name=tail.name or start.name,
        has_late_name=tail.name is not None,
        short_summary=tail.short_summary or start.short_summary,
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
                _count_record(look, record.fields)
                _take_in_record(look, record.fields, line)
            continue
        look.tally.add_match(match)
        if match[5] is not None:
            look.messages += 1
            if match[5] in _STATUS_ROLES:
                look.recent.append(line)
            if match[5] == b"user" and not look.first_prompt:
                look.first_prompt = _prompt_of(line)
        elif is_handoff(match):
            look.messages += 1
            look.first_prompt = look.first_prompt or _goal_of(line)
        elif match[1] in _PARSED_TYPES:
            record = parse_record(line)
            if isinstance(record, Record):
                _take_in_record(look, record.fields, line)


def _count_record(look: _Look, fields: Mapping[str, Any]) -> None:
    entry_id, parent_id = as_text(fields.get("id")), as_text(fields.get("parentId"))
    if look.is_chain:
        entry_id, parent_id = "", None  # one branch, whatever its length
    if entry_id is not None and fields.get("type") != "session":
        is_mark = fields.get("customType") == LEAF_MARK
        kind = "message" if _is_handoff(fields) else str(fields.get("type"))
        look.tally.add(kind, entry_id, parent_id, is_mark=is_mark)


def _is_handoff(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "custom_message" and fields.get("customType") == HANDOFF_TYPE


def _take_in_record(look: _Look, fields: Mapping[str, Any], line: bytes) -> None:
    kind = fields.get("type")
    if kind == "session_info":
        look.name = Name(
            unix_ms(as_text(fields.get("timestamp")) or "") or 0, as_text(fields.get("name")) or ""
        )
    elif kind == "compaction":
        look.short_summary = as_text(fields.get("shortSummary")) or look.short_summary
        look.compacted_at = len(look.recent)
    elif kind == "model_change":
        model = changed_model(fields)
        if model is not None:
            look.model, look.model_at = "/".join(model), len(look.recent)
    elif kind == "message":
        message = as_object(fields.get("message")) or {}
        look.messages += 1
        look.recent.append(line)
        if not look.first_prompt:
            look.first_prompt = _prompt_in(message)
    elif _is_handoff(fields):
        look.messages += 1
        look.first_prompt = look.first_prompt or title_of_handoff(decode_content(fields.get("content")))


def _prompt_of(line: bytes) -> str:
    """The text of a user message; of a line that the window cut, its first text."""
    record = parse_record(line)
    if not isinstance(record, Record):
        return text_of_fragment(line)
    return _prompt_in(as_object(record.fields.get("message")) or {})


def _goal_of(line: bytes) -> str:
    """What a handoff document calls its session, also when the window cut its line."""
    record = parse_record(line)
    content = decode_content(record.fields.get("content")) if isinstance(record, Record) else ""
    return title_of_handoff(content or text_of_fragment(line))


def _prompt_in(message: Mapping[str, Any]) -> str:
    decoded = decode_message(message)
    return text_of(decoded.content) if isinstance(decoded, UserMessage) else ""


@dataclass(slots=True)
class _Talk:
    """What the last messages say: how it stands, who answered, and how full the context was then."""

    status: str = ""
    model: str = ""
    context_tokens: int | None = None


def _talk_of(look: _Look) -> _Talk:
    """The talk by the last messages that tell something; only those are parsed."""
    talk = _Talk()
    for index in range(len(look.recent) - 1, -1, -1):
        line = look.recent[index]
        if index < look.model_at:
            talk.model = talk.model or look.model
        record = parse_record(line)
        if isinstance(record, Record):
            message = as_object(record.fields.get("message")) or {}
            talk.status = talk.status or _status_after(message)
            if message.get("role") == "assistant":
                _take_answer(talk, message, is_counted=index >= look.compacted_at)
        elif b'"role":"user"' in line[:512]:
            talk.status = talk.status or "pending"
        is_counted = talk.context_tokens is not None or index <= look.compacted_at
        if talk.status and talk.model and is_counted:
            break
    talk.model = talk.model or look.model
    talk.status = talk.status or "unknown"
    return talk


def _take_answer(talk: _Talk, message: Mapping[str, Any], *, is_counted: bool) -> None:
    """Takes in an answer; one that failed was billed for nothing."""
    provider, model = as_text(message.get("provider")), as_text(message.get("model"))
    if not talk.model and provider and model:
        talk.model = f"{provider}/{model}"
    if is_counted and talk.context_tokens is None:
        usage = as_object(message.get("usage")) or {}
        counts = [_whole(usage.get(key)) for key in ("input", "output", "cacheRead", "cacheWrite")]
        talk.context_tokens = _whole(usage.get("totalTokens")) or sum(counts) or None


def _whole(value: object) -> int:
    """A number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and 0 < value < MAX_TOKENS else 0


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
