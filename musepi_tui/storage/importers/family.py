"""Sessions of pi, MusePi, oh-my-pi, veyyon and musepi itself: entries byte for byte (session-format 15)."""

from collections.abc import Iterable, Iterator

from musepi_tui.base.errors import SessionChangedOnDiskError
from musepi_tui.session.codec import dump_json
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.fields import as_text
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.payload import digest_of, holds_reference
from musepi_tui.session.records import Record, parse_record
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.blobs import BlobStore
from musepi_tui.storage.branching import linked_to
from musepi_tui.storage.importers.source import Place, SourceFile
from musepi_tui.storage.importers.tally import Tally
from musepi_tui.storage.importers.target import SessionWriter, SourceFacts
from musepi_tui.storage.index import HEAD
from musepi_tui.storage.loading import LoadedSession, describe_issues, load_session
from musepi_tui.storage.titles import clean_title

_OWN_FIELDS = frozenset(
    {"branchedFrom", "previousSessionFiles", "providerPromptCacheKey", "additionalDirectories"}
)
"""Header fields that stay behind: they speak of the source file, or would widen what the new session may
reach (SAF-147)."""

_UNREADABLE = frozenset({"bad_json", "torn_tail", "not_object", "too_long", "too_deep"})


class FamilyReading:
    """A session file of the family; heads in memory, bodies read as they are written."""

    def __init__(self, source: SourceFile, blobs: BlobStore, tally: Tally) -> None:
        self._loaded = load_session(source.path, thorough=True)
        self._copy = EntryCopy(source, blobs, tally)
        self._tally = tally
        if self._loaded.file_id != source.file_id:
            raise SessionChangedOnDiskError(f"{source.path} was replaced while it was read; try again")
        self.facts = _facts(self._loaded)
        self._tell_damage()

    def write(self, writer: SessionWriter) -> str | None:
        """Writes all entries; the id of the leaf. Raises ``SessionError``, ``OSError``."""
        loaded = self._loaded
        tree = loaded.tree
        for head in parents_first(tree):
            migrated = loaded.migrated.get(head.offset)
            line = None if migrated is None else dump_json(migrated)
            self._copy.write(writer, head, tree.parent(head.id), line)
        loaded.bodies.close()
        return tree.leaf_id

    def _tell_damage(self) -> None:
        loaded, tally = self._loaded, self._tally
        for issue in loaded.issues:
            if issue.kind in _UNREADABLE:
                tally.skip("unreadable line")
            elif issue.kind == "extra_header":
                tally.skip("extra header")
        repeated = len(loaded.heads) - len(loaded.tree)
        if repeated:
            tally.skipped["repeated id"] += repeated
        told = describe_issues(loaded.issues)
        if told is not None:
            tally.warnings.append(told)
        if loaded.version_on_disk > VERSION:
            tally.warnings.append(
                f"the file has version {loaded.version_on_disk}; it was read as version {VERSION}, "
                "the newest this musepi understands"
            )


class EntryCopy:
    """Copies lines of entries from a source into a new session."""

    def __init__(self, source: SourceFile, blobs: BlobStore, tally: Tally) -> None:
        self._source = source
        self._blobs = blobs
        self._tally = tally

    def write(
        self, writer: SessionWriter, head: EntryHead, parent_id: str | None, line: bytes | None = None
    ) -> None:
        """Writes the entry of a head under a parent: its bytes, changed only for the parent and for blobs.

        ``line`` stands for the bytes of the file where the entry was migrated.
        """
        if line is None:
            line = self._source.read(Place(head.offset, head.length))
        if _stored_parent(line) != parent_id:
            line = linked_to(line, parent_id)
        if holds_reference(line):
            line = self._with_payloads(line)
        writer.add_line(head.id, line)
        self._tally.carry(head.role or head.type)

    def _with_payloads(self, line: bytes) -> bytes:
        """The line with the blobs it names in place of the names; the line itself when none was found."""
        record = parse_record(line)
        if not isinstance(record, Record):
            return line
        resolved = self._blobs.resolve(record.fields)
        missing = _references(resolved)
        self._tally.carried["blob"] += _references(record.fields) - missing
        if missing:
            self._tally.skipped["missing blob"] += missing
        return line if resolved == record.fields else dump_json(resolved)


def parents_first(tree: SessionTree) -> Iterator[EntryHead]:
    """The heads of a tree in file order, except that a parent that comes later goes before its child."""
    done: set[str] = set()
    for entry_id in tree.order:
        climb: list[str] = []
        at: str | None = entry_id
        while at is not None and at not in done:
            done.add(at)
            climb.append(at)
            at = tree.parent(at)
        yield from (tree.head(each) for each in reversed(climb))


def _facts(loaded: LoadedSession) -> SourceFacts:
    header = loaded.header
    name = loaded.name
    made, source = header.title, header.title_source
    if loaded.slot is not None:
        made, source = as_text(loaded.slot.get("title")), as_text(loaded.slot.get("source"))
    is_made_up = source == "auto" and clean_title(made or "") == name
    return SourceFacts(
        header.id,
        header.cwd,
        name,
        "auto" if is_made_up else "user",
        {key: value for key, value in header.extra.items() if key not in _OWN_FIELDS},
    )


def _stored_parent(line: bytes) -> str | None:
    """The parent as the line has it; None for none and for what is no text."""
    match = HEAD.match(line)
    if match is not None:
        return None if match[3] is None else match[3].decode("ascii")
    record = parse_record(line)
    return as_text(record.fields.get("parentId")) if isinstance(record, Record) else None


def _references(value: object) -> int:
    """How many references to blobs a JSON value holds; does not recurse."""
    found = 0
    level: list[object] = [value]
    while level:
        item = level.pop()
        if isinstance(item, str):
            found += digest_of(item) is not None
        else:
            level.extend(_children(item))
    return found


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # JSON
    return value if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType]  # JSON
