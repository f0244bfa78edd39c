"""Whether a source was imported before (session-format 15)."""

import os
from pathlib import Path
from typing import Any

from musepi_tui.base.errors import SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.importers.target import IMPORT_TYPE
from musepi_tui.storage.index import read_header
from musepi_tui.storage.loading import header_of

_STEP_BYTES = 1024 * 1024
_MAX_LINE_BYTES = 16 * 1024
"""The entry holds two paths and some numbers; a longer line with the mark in it is another one."""

_MARK = f'"customType":"{IMPORT_TYPE}"'.encode()


def find_earlier(folder: Path, source: Path, source_id: str, digest: str) -> Path | None:
    """The newest session in ``folder`` that was imported from this source; None without one.

    It is the same source when it has the same path, the same session id, or the same bytes. Of files whose
    header names no origin nothing but the header is read.
    """
    try:
        files = sorted((path for path in folder.iterdir() if path.suffix == ".jsonl"), reverse=True)
    except OSError:
        return None
    for path in files:
        origin = _origin(path)
        if origin is None:
            continue
        is_same = origin.get("source") == str(source) or origin.get("sha256") == digest
        if is_same or (source_id and origin.get("sourceId") == source_id):
            return path
    return None


def _origin(path: Path) -> dict[str, Any] | None:
    """What the import entry of a session says; None for a session that was not imported itself."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return None
    try:
        parent = header_of(path, read_header(descriptor)).parent_session
        line = None if parent is None else _last_mark(descriptor)
    except (OSError, SessionError):
        return None
    finally:
        os.close(descriptor)
    record = None if line is None else parse_record(line)
    if not isinstance(record, Record) or record.fields.get("customType") != IMPORT_TYPE:
        return None
    origin = as_object(record.fields.get("data"))
    # A fork of an imported session holds the entry too, but has another origin.
    is_own = origin is not None and as_text(origin.get("source")) == parent
    return origin if is_own else None


def _last_mark(descriptor: int) -> bytes | None:
    """The last line that holds the mark, looked for from the end. Raises ``OSError``."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _STEP_BYTES)
        data = os.pread(descriptor, end - start + len(_MARK) - 1, start)
        at = data.rfind(_MARK)
        if at >= 0:
            around = os.pread(descriptor, 2 * _MAX_LINE_BYTES, max(0, start + at - _MAX_LINE_BYTES))
            middle = min(start + at, _MAX_LINE_BYTES)
            return around[around.rfind(b"\n", 0, middle) + 1 :].partition(b"\n")[0]
        end = start
    return None
