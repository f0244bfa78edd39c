"""Sessions of Claude Code (session-format 17)."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionChangedOnDiskError
from musepi_tui.session.entries import (
    KEEP_NOTHING,
    CompactionEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.messages import ToolCallBlock
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.importers.claude_messages import (
    answer_of,
    prompt_of,
    result_of,
    summary_text,
    tokens_before,
)
from musepi_tui.storage.importers.claude_order import Arrangement, Unit, arrange
from musepi_tui.storage.importers.claude_records import ClaudeRecord, RecordKind, Sketch, sketch_record
from musepi_tui.storage.importers.content import Timestamps
from musepi_tui.storage.importers.source import Place, SourceFile, is_too_long
from musepi_tui.storage.importers.tally import Tally
from musepi_tui.storage.importers.target import SessionWriter, SourceFacts
from musepi_tui.storage.titles import clean_title

_TURNS = frozenset({RecordKind.PROMPT, RecordKind.ANSWER})


@dataclass(slots=True)
class _Notes:
    """What records outside the conversation say. Titles: the person's, the model's, older summaries by the
    uuid of the message they end at."""

    session_id: str = ""
    cwd: str = ""
    timestamp: str = ""
    user_title: str | None = None
    made_title: str | None = None
    summaries: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    active_uuid: str | None = None

    def take(self, fields: Mapping[str, Any]) -> None:
        """Take in one record."""
        self.session_id = self.session_id or as_text(fields.get("sessionId")) or ""
        self.cwd = self.cwd or as_text(fields.get("cwd")) or ""
        self.timestamp = self.timestamp or as_text(fields.get("timestamp")) or ""
        leaf = as_text(fields.get("leafUuid"))
        match fields.get("type"):
            case "custom-title":
                self.user_title = as_text(fields.get("customTitle")) or self.user_title
            case "ai-title":
                self.made_title = as_text(fields.get("aiTitle")) or self.made_title
            case "summary" if leaf is not None:
                self.summaries.append((as_text(fields.get("summary")) or "", leaf))
            case "last-prompt":
                self.active_uuid = leaf or self.active_uuid
            case _:
                pass


class ClaudeReading:
    """A file of Claude Code, read once for its order; ``write`` reads the bodies. Holds no bodies."""

    def __init__(self, source: SourceFile, tally: Tally) -> None:
        self._source = source
        self._tally = tally
        notes = _Notes()
        sketches = self._sketches(notes)
        uuids = {sketch.uuid for sketch in sketches}
        self._arrangement: Arrangement = arrange(sketches, notes.active_uuid, tally)
        self._named = clean_title(notes.user_title or "")
        title, title_source = notes.user_title, "user"
        if not title:
            made = [text for text, leaf in notes.summaries if leaf in uuids]
            title, title_source = notes.made_title or (made[-1] if made else None), "auto"
        self._timestamps = Timestamps(notes.timestamp)
        self._lately: tuple[Place, ClaudeRecord] | None = None
        self.facts = SourceFacts(notes.session_id, notes.cwd, title or None, title_source)

    def write(self, writer: SessionWriter) -> str | None:
        """Writes all entries; the id of the leaf. Raises ``SessionError``, ``OSError``."""
        first: dict[int, str] = {}
        last: dict[int, str | None] = {}
        for unit in self._arrangement.units:
            parent_id = None if unit.parent is None else last.get(id(unit.parent))
            kept_id = None
            if unit.kept_from is not None and _is_above(unit.kept_from, unit):
                kept_id = first.get(id(unit.kept_from))
            last[id(unit)] = parent_id
            for entry in self._entries(unit, kept_id):
                parent_id = last[id(unit)] = writer.add(entry, parent_id)
                first.setdefault(id(unit), parent_id)
        leaf = self._arrangement.leaf
        leaf_id = None if leaf is None else last.get(id(leaf))
        if self._named:
            timestamp = self._timestamps.read(None)[0]
            leaf_id = writer.add(
                StateEntry("", None, timestamp, "session_info", {"name": self._named}), leaf_id
            )
            self._tally.carry("title")
        return leaf_id

    def _sketches(self, notes: _Notes) -> list[Sketch]:
        """Every record; those of sub-agents count as passed unless the file holds nothing else."""
        sketches: list[Sketch] = []
        for place in self._source.places():
            fields = self._parse(place)
            if fields is None:
                self._tally.skip("unreadable line")
                continue
            notes.take(fields)
            sketches.append(sketch_record(fields, place))
        if all(sketch.is_side for sketch in sketches if sketch.kind in _TURNS):
            return sketches
        return [
            replace(sketch, kind=RecordKind.PASSED, reason="sub-agent") if sketch.is_side else sketch
            for sketch in sketches
        ]

    def _parse(self, place: Place) -> dict[str, Any] | None:
        record = None if is_too_long(place) else parse_record(self._source.read(place))
        return record.fields if isinstance(record, Record) else None

    def _entries(self, unit: Unit, kept_id: str | None) -> list[Entry]:
        """The entries of a unit, without ids."""
        if unit.kind is RecordKind.BOUNDARY:
            return [self._compaction(unit, kept_id)]
        records = [self._record(place) for place in unit.places]
        timestamp, time_ms = self._timestamps.read(records[0].fields.get("timestamp"))
        if unit.kind is RecordKind.PROMPT:
            prompt = prompt_of(records[0], time_ms, self._tally)
            return [] if prompt is None else [MessageEntry("", None, timestamp, prompt)]
        answer = answer_of(records, time_ms, self._tally)
        names = {block.id: block.name for block in answer.content if isinstance(block, ToolCallBlock)}
        entries: list[Entry] = [MessageEntry("", None, timestamp, answer)]
        for place, index in unit.results:
            record = self._record(place)
            timestamp, time_ms = self._timestamps.read(record.fields.get("timestamp"))
            result = result_of(record.blocks[index], names, time_ms, self._tally)
            entries.append(MessageEntry("", None, timestamp, result))
        return entries

    def _compaction(self, unit: Unit, kept_id: str | None) -> CompactionEntry:
        assert unit.summary is not None
        summary = self._record(unit.summary)
        start = self._record(unit.places[0]).fields if unit.places else summary.fields
        timestamp, _ = self._timestamps.read(start.get("timestamp"))
        # Nothing was said between the two: without a word for that a compaction may not follow another.
        follows = unit.parent is not None and unit.parent.kind is RecordKind.BOUNDARY
        self._tally.carry("compaction")
        return CompactionEntry(
            "",
            None,
            timestamp,
            summary=summary_text(summary),
            first_kept_entry_id=kept_id or KEEP_NOTHING,
            tokens_before=tokens_before(as_object(start.get("compactMetadata"))),
            method="port" if follows else None,
        )

    def _record(self, place: Place) -> ClaudeRecord:
        """A record; the last one is remembered, because it may hold the results of many calls."""
        if self._lately is not None and self._lately[0] == place:
            return self._lately[1]
        fields = self._parse(place)
        if fields is None:  # it could be read a moment ago
            raise SessionChangedOnDiskError(f"{self._source.path} was changed while it was read; try again")
        record = ClaudeRecord.of(fields)
        self._lately = place, record
        return record


def _is_above(unit: Unit, below: Unit) -> bool:
    """Whether ``unit`` is on the path to ``below``."""
    at = below.parent
    while at is not None and at is not unit:
        at = at.parent
    return at is not None
