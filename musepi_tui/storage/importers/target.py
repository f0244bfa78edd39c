"""The new session an import writes: header, entries in order, and last where it all came from."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.ids import new_entry_id
from musepi_tui.session.codec import dump_json, dump_line, encode_header
from musepi_tui.session.entries import Entry, SessionHeader, StateEntry
from musepi_tui.storage.new_file import write_all
from musepi_tui.storage.paths import Paths, encode_cwd
from musepi_tui.storage.titles import clean_title

IMPORT_TYPE = "musepi.import"
"""``customType`` of the entry that tells where an imported session came from."""

_BUFFER_BYTES = 1024 * 1024

_USABLE_CWD = re.compile(r"(?:/|[A-Za-z]:[/\\]|\\\\)[^\x00-\x1f\x7f\ud800-\udfff]{0,4095}")
"""What a folder named by a stranger must look like (SAF-142): absolute, and nothing a name cannot hold."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What a source says about its session. ``title_source`` is ``auto`` or ``user``; ``extra`` are header
    fields to keep."""

    session_id: str
    cwd: str
    title: str | None = None
    title_source: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


def make_header(facts: SourceFacts, source: Path, session_id: str, timestamp: str) -> SessionHeader:
    """The header of the new session: id and time its own, the rest from the source.

    A ``cwd`` that cannot be a folder becomes the one the program runs in.
    """
    title = clean_title(facts.title or "") or None
    return SessionHeader(
        id=session_id,
        timestamp=timestamp,
        cwd=facts.cwd if is_usable_cwd(facts.cwd) else str(Path.cwd()),
        parent_session=str(source),
        title=title,
        title_source=facts.title_source if title is not None else None,
        extra=facts.extra,
    )


def is_usable_cwd(cwd: str) -> bool:
    """Whether a stored working folder may be taken over."""
    return _USABLE_CWD.fullmatch(cwd) is not None


def folder_for(paths: Paths, cwd: str, override: Path | None) -> Path:
    """The folder for sessions of a stored ``cwd``. The name is made of its text alone: nothing is looked up
    at a place that a stranger's file names."""
    return override if override is not None else paths.sessions / encode_cwd(Path(cwd))


class SessionWriter:
    """Writes the lines of a new session through a descriptor. ``leaf_id`` is the last entry written."""

    def __init__(self, descriptor: int, header: SessionHeader) -> None:
        self._descriptor = descriptor
        self._taken: set[str] = set()
        self._waiting = bytearray()
        self.leaf_id: str | None = None
        self._put(dump_json(encode_header(header)))

    def add(self, entry: Entry, parent_id: str | None) -> str:
        """Writes an entry under ``parent_id`` with a new id, which comes back. Raises ``OSError``."""
        entry_id = new_entry_id(self._taken)
        self.add_line(entry_id, dump_line(replace(entry, id=entry_id, parent_id=parent_id)))
        return entry_id

    def follow(self, entry: Entry) -> str:
        """Writes an entry under the last one. Raises ``OSError``."""
        return self.add(entry, self.leaf_id)

    def add_line(self, entry_id: str, line: bytes) -> None:
        """Writes the line of an entry as it is, LF not included. Raises ``OSError``."""
        self._taken.add(entry_id)
        self._put(line)
        self.leaf_id = entry_id

    def finish(self, origin: Mapping[str, Any], timestamp: str, parent_id: str | None) -> None:
        """Writes the last entry, which says where the session came from. Raises ``OSError``."""
        fields = {"customType": IMPORT_TYPE, "data": dict(origin)}
        self.add(StateEntry("", None, timestamp, "custom", fields), parent_id)
        self._flush()

    def _put(self, line: bytes) -> None:
        self._waiting += line
        self._waiting += b"\n"
        if len(self._waiting) >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        write_all(self._descriptor, bytes(self._waiting))
        self._waiting.clear()
