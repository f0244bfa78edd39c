"""The readable entries of a session file whose header is torn or gone (session-format 7)."""

import re

from musepi_tui.base.errors import NotASessionFileError
from musepi_tui.session.codec import dump_json, is_header
from musepi_tui.session.damage import repair_tree
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.fields import as_text
from musepi_tui.session.migrate import migrate_records
from musepi_tui.session.records import Record, Unreadable, is_title_slot, parse_record, shape_problem
from musepi_tui.storage.blobs import BlobStore
from musepi_tui.storage.importers.family import EntryCopy, parents_first
from musepi_tui.storage.importers.source import Place, SourceFile, is_too_long
from musepi_tui.storage.importers.tally import Tally
from musepi_tui.storage.importers.target import SessionWriter, SourceFacts
from musepi_tui.storage.index import head_of

_TORN_HEADER = re.compile(rb'\{"type":"session"')
_CWD = re.compile(rb'"cwd":"([^"\\\x00-\x1f]*)"')
_ID = re.compile(rb'"id":"([^"\\\x00-\x1f]+)"')

_KNOWN_OLD = frozenset({"message", "compaction", "model_change", "thinking_level_change"})
"""Types of records a file of version 1 holds; those have no ids."""


class SalvageReading:
    """What can be read of a file without a header. Raises ``NotASessionFileError`` when that is nothing."""

    def __init__(self, source: SourceFile, blobs: BlobStore, tally: Tally) -> None:
        self._copy = EntryCopy(source, blobs, tally)
        self._lines: dict[int, bytes] = {}
        self._heads: list[EntryHead] = []
        self._tally = tally
        self.facts = SourceFacts("", "")
        old_places: list[Place] = []
        for place in source.places():
            line = b"" if is_too_long(place) else source.read(place)
            record = parse_record(line)
            if isinstance(record, Unreadable):
                self._tally.skip("unreadable line")
                self._look_for_header(line)
                continue
            head = self._head(record, place)
            if head is not None:
                self._heads.append(head)
            elif as_text(record.fields.get("type")) in _KNOWN_OLD and "id" not in record.fields:
                old_places.append(place)
            elif not is_title_slot(record.fields):
                self._tally.skip("record of another kind")
        if not self._heads and old_places:
            self._migrate(source, old_places)
        elif old_places:
            self._tally.skipped["record without an id"] += len(old_places)
        if not self._heads:
            raise NotASessionFileError(f"{source.path}: no line of it is an entry of a session")

    def write(self, writer: SessionWriter) -> str | None:
        """Writes all entries; the id of the leaf. Raises ``SessionError``, ``OSError``."""
        tree = repair_tree(self._heads).tree
        repeated = len(self._heads) - len(tree)
        if repeated:
            self._tally.skipped["repeated id"] += repeated
        for head in parents_first(tree):
            self._copy.write(writer, head, tree.parent(head.id), self._lines.get(head.offset))
        return tree.leaf_id

    def _head(self, record: Record, place: Place) -> EntryHead | None:
        """The head of a line that is an entry; a header that turns up says where the session was."""
        if is_header(record.fields):
            self._look_for_header(dump_json(record.fields))
            return None
        is_entry = "parentId" in record.fields and shape_problem(record.fields) is None
        return head_of(record.fields, place.offset, place.length) if is_entry else None

    def _look_for_header(self, line: bytes) -> None:
        """Takes folder and id out of what is left of a header."""
        if self.facts.cwd or _TORN_HEADER.match(line) is None:
            return
        cwd, session_id = _CWD.search(line), _ID.search(line)
        self.facts = SourceFacts(
            "" if session_id is None else session_id[1].decode("utf-8", "replace"),
            "" if cwd is None else cwd[1].decode("utf-8", "replace"),
        )

    def _migrate(self, source: SourceFile, places: list[Place]) -> None:
        """Takes in the records of a file of version 1: a chain, with ids made for them."""
        parsed = [(place, parse_record(source.read(place))) for place in places]
        kept = [(place, record.fields) for place, record in parsed if isinstance(record, Record)]
        name = self.facts.session_id or source.path.stem
        migrated = migrate_records(name, 1, [fields for _, fields in kept])
        for (place, _), fields in zip(kept, migrated, strict=True):
            head = head_of(fields, place.offset, place.length)
            if head is not None:
                self._heads.append(head)
                self._lines[place.offset] = dump_json(fields)
