"""Rows of Claude Code and Codex sessions, from the ends of their files (session-format 17). Only reads."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.glance import PREFIX_BYTES, TAIL_BYTES, WHOLE_BYTES, SessionInfo, modified_text
from musepi_tui.storage.titles import clean_title, title_of_prompt, untitled

IMPORTED_TOOLS = frozenset({"claude", "codex"})
"""Tools whose files belong to another family: they are opened as a copy (session-format 17)."""

_CLAUDE_TITLES = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))
"""Record types that name a session and their field, the one that counts most first."""

_CLAUDE_NOISE = ("<command-", "<local-command-", "Caveat: ")
_CODEX_PREAMBLES = ("<environment_context", "<user_instructions", "<permissions", "# AGENTS.md")
_CODEX_STATUS = {
    "task_started": "pending",
    "user_message": "pending",
    "agent_message": "complete",
    "task_complete": "complete",
    "turn_aborted": "aborted",
    "error": "error",
}
_CODEX_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})
_CODEX_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_CLAUDE_STOPS = {"end_turn": "complete", "stop_sequence": "complete"}


def needs_import(info: SessionInfo) -> bool:
    """Whether opening the session means copying it into a new one."""
    return info.tool in IMPORTED_TOOLS


@dataclass(slots=True)
class _Facts:
    """What the records so far say. ``rank`` is the place of ``title`` in the order of titles."""

    tool: str = ""
    id: str = ""
    cwd: str = ""
    created: str = ""
    title: str = ""
    rank: int = len(_CLAUDE_TITLES)
    prompt: str = ""
    messages: int = 0
    status: str = "unknown"


def read_foreign(path: Path) -> SessionInfo:
    """The row of a file of Claude Code or Codex.

    Raises ``NotASessionFileError`` when it is none or there is no conversation in it, ``SessionError`` when
    it cannot be read.
    """
    try:
        descriptor = open_regular(path)
        try:
            status = os.fstat(descriptor)
            facts, is_whole = _look(descriptor, status.st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error
    if not facts.tool or not facts.messages:
        raise NotASessionFileError(f"{path}: no conversation of Claude Code or Codex")
    modified = modified_text(status.st_mtime_ns)
    first_message = title_of_prompt(facts.prompt)
    title = clean_title(facts.title) or first_message
    return SessionInfo(
        path=path,
        id=facts.id or path.stem,
        cwd=facts.cwd,
        title=title or untitled(facts.created),
        created=facts.created or modified,
        modified=modified,
        messages=facts.messages,
        size=status.st_size,
        tool=facts.tool,
        status=facts.status,
        messages_exact=is_whole,
        is_named=bool(title),
        first_message=first_message,
        is_own=False,
    )


def _look(descriptor: int, size: int) -> tuple[_Facts, bool]:
    """What both ends of the file say, and whether that is all of it."""
    facts, length = _Facts(), 0
    for length in (size,) if size <= WHOLE_BYTES else PREFIX_BYTES:
        facts = _Facts()
        for fields in _records(os.pread(descriptor, length, 0)):
            _take_in(facts, fields)
        if facts.prompt or length >= size:
            break
    if length < size:
        tail_at = max(length, size - TAIL_BYTES)
        tail = os.pread(descriptor, size - tail_at, tail_at)
        facts.status = "unknown"
        for fields in _records(tail[tail.find(b"\n") + 1 :]):
            _take_in(facts, fields)
    return facts, length >= size


def _records(data: bytes) -> Iterator[Mapping[str, Any]]:
    for line in data.split(b"\n"):
        record = parse_record(line) if line else None
        if isinstance(record, Record):
            yield record.fields


def _take_in(facts: _Facts, fields: Mapping[str, Any]) -> None:
    facts.tool = facts.tool or _tool_of(fields)
    facts.created = facts.created or as_text(fields.get("timestamp")) or ""
    if facts.tool == "claude":
        _take_in_claude(facts, fields)
    elif facts.tool == "codex":
        payload = as_object(fields.get("payload"))
        _take_in_codex(facts, as_text(fields.get("type")) or "", payload or fields)


def _tool_of(fields: Mapping[str, Any]) -> str:
    """Who writes such records; empty when this one does not tell."""
    kind = as_text(fields.get("type"))
    if kind in _CODEX_KINDS and as_object(fields.get("payload")) is not None:
        return "codex"
    if "type" not in fields and isinstance(fields.get("id"), str) and "instructions" in fields:
        return "codex"  # the first record of an older version
    if isinstance(fields.get("sessionId"), str) or kind in ("file-history-snapshot", "summary"):
        return "claude"
    return ""


def _take_in_claude(facts: _Facts, fields: Mapping[str, Any]) -> None:
    kind = fields.get("type")
    if fields.get("isSidechain") is True:
        return
    facts.id = facts.id or as_text(fields.get("sessionId")) or ""
    facts.cwd = facts.cwd or as_text(fields.get("cwd")) or ""
    for rank, (name, key) in enumerate(_CLAUDE_TITLES):
        if kind == name and rank <= facts.rank:
            facts.title, facts.rank = as_text(fields.get(key)) or facts.title, rank
    if kind in ("user", "assistant") and fields.get("isMeta") is not True:
        facts.messages += 1
        message = as_object(fields.get("message")) or {}
        text = _text_of(message.get("content"))
        facts.status = _claude_status(message, text)
        is_prompt = kind == "user" and not text.startswith(_CLAUDE_NOISE)
        if is_prompt and not facts.prompt and fields.get("isCompactSummary") is not True:
            facts.prompt = text


def _claude_status(message: Mapping[str, Any], text: str) -> str:
    if message.get("role") == "user":
        return "pending" if text else "interrupted"  # a tool result has no text of its own
    return _CLAUDE_STOPS.get(as_text(message.get("stop_reason")) or "end_turn", "interrupted")


def _take_in_codex(facts: _Facts, kind: str, item: Mapping[str, Any]) -> None:
    part = as_text(item.get("type")) or ""
    if kind in ("session_meta", ""):
        facts.id = facts.id or as_text(item.get("id")) or ""
        facts.cwd = facts.cwd or as_text(item.get("cwd")) or ""
        return
    if kind == "event_msg":
        facts.status = _CODEX_STATUS.get(part, facts.status)
        if part == "user_message" and not facts.prompt:
            facts.prompt = as_text(item.get("message")) or ""
    elif part in _CODEX_CALLS:
        facts.status = "interrupted"
    elif part == "message" and item.get("role") in ("user", "assistant"):
        text = _text_of(item.get("content"))
        if text.startswith(_CODEX_PREAMBLES):
            return
        facts.messages += 1
        if item.get("role") == "user":
            facts.prompt = facts.prompt or text


def _text_of(content: object) -> str:
    """The text of a message: itself, or that of its first text block."""
    if isinstance(content, str):
        return content
    blocks = [as_object(block) or {} for block in as_list(content) or ()]
    texts = (as_text(block.get("text")) for block in blocks if block.get("type") in ("text", "input_text"))
    return next((text for text in texts if text), "")
