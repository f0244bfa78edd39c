"""One foreign session file in, one new musepi session out (session-format 15, 17; contract 3)."""

import contextlib
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.base.ids import new_session_id
from musepi_tui.session.entries import SessionHeader
from musepi_tui.session.times import iso_text
from musepi_tui.storage.blobs import BlobStore
from musepi_tui.storage.importers.attachments import copy_attachments, count_left_files
from musepi_tui.storage.importers.claude import ClaudeReading
from musepi_tui.storage.importers.codex import CodexReading
from musepi_tui.storage.importers.detection import SourceKind, kind_of
from musepi_tui.storage.importers.earlier import find_earlier
from musepi_tui.storage.importers.family import FamilyReading
from musepi_tui.storage.importers.salvage import SalvageReading
from musepi_tui.storage.importers.source import MAX_LINES, SourceFile
from musepi_tui.storage.importers.tally import Tally
from musepi_tui.storage.importers.target import (
    SessionWriter,
    SourceFacts,
    folder_for,
    is_usable_cwd,
    make_header,
)
from musepi_tui.storage.new_file import new_session_file
from musepi_tui.storage.paths import Paths, artifact_folder, session_path

if TYPE_CHECKING:
    from musepi_tui.base.clock import Clock  # loads asyncio, which a command has no use for


@dataclass(frozen=True, slots=True)
class Imported:
    """A session that was made by an import.

    ``counts`` is what was carried over, by role, entry type and kind of block; ``skipped`` what was not, by
    the words of the source. ``earlier`` is a session that was imported from the same source before.
    """

    path: Path
    session_id: str
    counts: Mapping[str, int]
    skipped: Mapping[str, int]
    earlier: Path | None
    warnings: tuple[str, ...]


class _Reading(Protocol):
    """A source whose head is known and whose entries can be written."""

    @property
    def facts(self) -> SourceFacts: ...

    def write(self, writer: SessionWriter) -> str | None: ...


def import_session(
    source: Path,
    paths: Paths,
    *,
    override: Path | None = None,
    salvage: bool = False,
    clock: "Clock | None" = None,
) -> Imported:
    """Makes one new session of a file of pi, MusePi, oh-my-pi, veyyon, musepi, Claude Code or Codex.

    ``override`` is a folder that replaces the sessions root; ``salvage`` takes what is readable of a file
    whose header is torn or missing. The source is opened for reading alone and never changed. The new file
    appears whole, synced, or not at all. Blocks, for seconds with large files: not on the event loop.

    Raises ``NotASessionFileError`` for a file of another kind, ``SessionError`` when the source cannot be
    read or the session cannot be written; then nothing was made.
    """
    opened = SourceFile.open(source)
    try:
        now_ms = time.time_ns() // 1_000_000 if clock is None else clock.now_ms()
        return _Import(opened, paths, override, iso_text(now_ms)).run(is_salvage=salvage)
    except OSError as error:
        raise SessionError(f"could not import {source}: {error.strerror or error}") from error
    finally:
        opened.close()


class _Import:
    """One import: what is read, where it goes, what is counted. ``timestamp`` is that of the new session."""

    def __init__(self, source: SourceFile, paths: Paths, override: Path | None, timestamp: str) -> None:
        self._source = source
        self._paths = paths
        self._override = override
        self._timestamp = timestamp
        self._tally = Tally()

    def run(self, *, is_salvage: bool) -> Imported:
        """Reads, writes, tells. Raises ``SessionError``, ``OSError``."""
        source, tally = self._source, self._tally
        reading = self._reading(is_salvage=is_salvage)
        header = make_header(reading.facts, source.path, new_session_id(), self._timestamp)
        if not is_usable_cwd(reading.facts.cwd):
            tally.warnings.append(f"it names no folder that can be used; the session belongs to {header.cwd}")
        folder = folder_for(self._paths, header.cwd, self._override)
        digest = source.sha256()
        earlier = find_earlier(folder, source.path, reading.facts.session_id, digest)
        origin = {
            "source": str(source.path),
            "sourceId": reading.facts.session_id,
            "size": source.size,
            "mtime": source.mtime_ms,
            "sha256": digest,
        }
        target = session_path(folder, header)
        self._write(reading, header, target, origin)
        if source.is_cut:
            tally.warnings.append(
                f"only its first {MAX_LINES:,} lines were read, the rest is not in the session"
            )
        return Imported(
            target, header.id, dict(tally.carried), dict(tally.skipped), earlier, tuple(tally.warnings)
        )

    def _write(
        self, reading: _Reading, header: SessionHeader, target: Path, origin: Mapping[str, object]
    ) -> None:
        attachments = artifact_folder(target)
        try:
            with new_session_file(target) as descriptor:
                writer = SessionWriter(descriptor, header)
                leaf_id = reading.write(writer)
                writer.finish(origin, header.timestamp, leaf_id)
                # Before the session has its name: what it refers to is there when it appears (SAF-6).
                if isinstance(reading, FamilyReading | SalvageReading):
                    copy_attachments(artifact_folder(self._source.path), attachments, self._tally)
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(attachments)
            raise

    def _reading(self, *, is_salvage: bool) -> _Reading:
        source, tally = self._source, self._tally
        blobs = BlobStore(lambda: self._paths.data / "blobs", source.path)
        match kind_of(source):
            case SourceKind.CLAUDE:
                count_left_files(artifact_folder(source.path), tally)
                return ClaudeReading(source, tally)
            case SourceKind.CODEX:
                return CodexReading(source, tally)
            case SourceKind.FAMILY | None:
                try:
                    return FamilyReading(source, blobs, tally)
                except NotASessionFileError as error:
                    if is_salvage:
                        return SalvageReading(source, blobs, tally)
                    raise NotASessionFileError(
                        f"{error}; if it was one, `musepi sessions import --salvage` makes a new session of "
                        "what can be read"
                    ) from error
