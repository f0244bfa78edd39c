"""Which program wrote a file, by its first records (session-format 1, 17)."""

import shlex
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from musepi_tui.base.errors import SessionError
from musepi_tui.session.codec import is_header
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.records import Record, is_title_slot, parse_record
from musepi_tui.storage.importers.codex_items import is_bare_item, is_bare_meta, is_envelope
from musepi_tui.storage.importers.source import SourceFile

LOOKED_AT_LINES = 50
LOOKED_AT_BYTES = 8 * 1024 * 1024
"""Files of Claude Code may begin with many records that are no messages; these suffice to know them."""


class SourceKind(StrEnum):
    """What an import reads: ``FAMILY`` is the format of pi, MusePi, oh-my-pi, veyyon and musepi itself."""

    FAMILY = "pi"
    CLAUDE = "claude"
    CODEX = "codex"


_CLAUDE_TURNS = frozenset({"user", "assistant", "system", "progress", "attachment"})
_CLAUDE_NOTES = {
    "summary": "leafUuid",
    "file-history-snapshot": "messageId",
    "queue-operation": "sessionId",
    "last-prompt": "sessionId",
    "custom-title": "sessionId",
    "ai-title": "sessionId",
    "agent-name": "sessionId",
    "mode": "sessionId",
    "permission-mode": "sessionId",
}
"""Records of Claude Code that stand outside the conversation, and a field each of them has."""


def detect_source(path: Path) -> SourceKind | None:
    """Which format a file has; None when it is none that can be imported as it stands.

    Raises ``SessionError`` when it cannot be read.
    """
    source = SourceFile.open(path)
    try:
        return kind_of(source)
    finally:
        source.close()


def find_import_command(path: Path) -> str | None:
    """The command that makes a session of the file: one of another program, or one that has lost its header.
    None when it cannot be read."""
    try:
        is_of_others = detect_source(path) in (SourceKind.CLAUDE, SourceKind.CODEX)
    except SessionError:
        return None
    return f"musepi sessions import {'' if is_of_others else '--salvage '}{shlex.quote(str(path))}"


def kind_of(source: SourceFile) -> SourceKind | None:
    """Which format an open file has; None for none."""
    left = LOOKED_AT_BYTES
    for place in islice(source.places(), LOOKED_AT_LINES):
        left -= place.length
        if left < 0:
            break
        record = parse_record(source.read(place))
        found = _kind_of_record(record.fields) if isinstance(record, Record) else None
        if found is not None:
            return found
    return None


def _kind_of_record(fields: Mapping[str, Any]) -> SourceKind | None:
    if is_header(fields):
        return SourceKind.FAMILY
    if is_title_slot(fields):
        return None
    if is_envelope(fields) or is_bare_meta(fields) or is_bare_item(fields):
        return SourceKind.CODEX
    kind = as_text(fields.get("type")) or ""
    if kind in _CLAUDE_TURNS and as_text(fields.get("uuid")) is not None and "parentUuid" in fields:
        return SourceKind.CLAUDE
    mark = _CLAUDE_NOTES.get(kind)
    is_note = mark is not None and as_text(fields.get(mark)) is not None and "id" not in fields
    return SourceKind.CLAUDE if is_note and as_object(fields.get("message")) is None else None
