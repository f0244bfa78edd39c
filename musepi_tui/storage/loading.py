"""The one door through which session files are read."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from musepi_tui.base.collector import collector_paused
from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.base.files import open_regular
from musepi_tui.session.codec import decode_entry, decode_header
from musepi_tui.session.columns import of_types
from musepi_tui.session.damage import Repair, mend_tree
from musepi_tui.session.entries import Entry, EntryHead, LoadIssue, SessionHeader, StateEntry
from musepi_tui.session.fields import as_text
from musepi_tui.session.migrate import VERSION, migrate_records
from musepi_tui.session.records import Unreadable, parse_record, shape_problem
from musepi_tui.session.times import unix_ms
from musepi_tui.session.totals import Totals
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.counting import count_totals
from musepi_tui.storage.index import (
    JOINED_LINE_BYTES,
    MAX_FILE_BYTES,
    MAX_LINES,
    Care,
    Index,
    build_index,
    head_of,
)
from musepi_tui.storage.names import Name, current_name
from musepi_tui.storage.titles import clean_title

SPELLED_OUT = 5
"""How many issues a notice spells out (session-format 7)."""


class LoadedSession:
    """A session file as it was read. ``heads`` are in file order, entries with a repeated id included;
    ``lines`` are their 1-based line numbers.

    ``version_on_disk`` is 1 to 3, or above for a file that can only be read. ``orphans`` counts entries whose
    parent is not in the file. ``size_bytes`` is how much of the file was seen, ``is_cut`` that it goes on
    beyond the limits; ``ends_with_lf`` says whether something may be appended right away. ``migrated`` are
    the records of a file of version 1 or 2 by the offset of their line.
    """

    def __init__(self, path: Path, header: SessionHeader, tree: SessionTree, bodies: Bodies) -> None:
        self.path = path
        self.header = header
        self.tree = tree
        self.bodies = bodies
        self.heads: Sequence[EntryHead] = ()
        self.lines: Sequence[int] = ()
        self.issues: tuple[LoadIssue, ...] = ()
        self.version_on_disk = VERSION
        self.orphans = 0
        self.size_bytes = 0
        self.ends_with_lf = True
        self.slot: dict[str, Any] | None = None
        self.migrated: dict[int, dict[str, Any]] = {}
        self.file_id: tuple[int, int] | None = None
        self.is_cut = False

    @property
    def read_only_reason(self) -> str | None:
        """Why nothing may be appended; None when something may."""
        if self.is_cut:
            return (
                f"the file is larger than musepi reads ({MAX_LINES:,} lines, {MAX_FILE_BYTES // 2**30} GiB)"
            )
        if self.version_on_disk <= VERSION:
            return None
        return (
            f"session file version {self.version_on_disk} is newer than this musepi understands ({VERSION})"
        )

    def line_of(self, entry_id: str) -> int:
        """The 1-based number of an entry's line; the last one of a repeated id. Raises ``KeyError``."""
        return self._line_numbers[entry_id]

    @cached_property
    def _line_numbers(self) -> dict[str, int]:
        return {head.id: line for head, line in zip(self.heads, self.lines, strict=True)}

    @cached_property
    def name(self) -> str | None:
        """The title: the newest of the session's names and the title of slot or header; None without one."""
        given: Name | None = None
        for head in of_types(self.heads, ("session_info",)):
            entry = self.bodies.get(head)
            named_ms = unix_ms(head.timestamp) or 0
            if isinstance(entry, StateEntry) and (given is None or named_ms >= given.time_ms):
                given = Name(named_ms, as_text(entry.fields.get("name")) or "")
        title, source = self._stored_title()
        found = current_name(given, title, is_auto=source == "auto")
        return None if found is None else clean_title(found.text) or None

    @cached_property
    def totals(self) -> Totals:
        """Usage and cost of all entries. Reads most of the file at the first use: not on the event loop."""
        with collector_paused():
            return count_totals(self.heads, self.bodies)

    def read_path(self, entry_id: str | None = None) -> tuple[Entry, ...]:
        """The entries from the root to ``entry_id`` (or the leaf). Raises ``EntryNotFoundError``."""
        return self.bodies.read_all(self.tree.path(entry_id))

    def _stored_title(self) -> tuple[Name | None, str | None]:
        """The title of slot or header, and who made it."""
        if self.slot is not None:
            title = Name(unix_ms(self.slot["updatedAt"]) or 0, self.slot["title"])
            return title, as_text(self.slot.get("source"))
        if self.header.title is None:
            return None, None
        title = Name(unix_ms(self.header.timestamp) or 0, self.header.title)
        return title, self.header.title_source


def load_session(path: Path, *, strict: bool = False, thorough: bool = False) -> LoadedSession:
    """The session in a file. Takes no lock and changes nothing.

    With ``strict`` entries without their parent stay roots. ``thorough`` parses every line, which finds
    damage inside lines whose head is intact; without it such an entry is found unreadable when it is needed.
    Blocks for about 0.3 s per 50,000 entries: not on the event loop.

    Raises ``NotASessionFileError`` naming the line, ``SessionError`` when the file cannot be read.
    """
    try:
        descriptor = open_regular(path)
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror}") from error
    try:
        with collector_paused():
            return _load(path, descriptor, strict=strict, thorough=thorough)
    except OSError as error:
        os.close(descriptor)
        raise SessionError(f"{path}: {error.strerror}") from error
    except SessionError:
        os.close(descriptor)
        raise


def describe_issues(issues: Sequence[LoadIssue]) -> str | None:
    """One sentence about what is wrong with a file, for a notice; None when nothing is."""
    if not issues:
        return None
    aside = sum(issue.kind in _UNREADABLE for issue in issues)
    mended = len(issues) - aside
    counts = [
        f"{count} {word if count == 1 else word + 's'} {outcome}"
        for count, word, outcome in (
            (aside, "unreadable line", "kept aside"),
            (mended, "fault", "mended in memory"),
        )
        if count
    ]
    places = [f"line {issue.line}, byte {issue.offset}: {issue.detail}" for issue in issues[:SPELLED_OUT]]
    more = "; …" if len(issues) > SPELLED_OUT else ""
    return f"session: {', '.join(counts)} ({'; '.join(places)}{more})"


_UNREADABLE = frozenset(
    {"bad_json", "torn_tail", "not_object", "too_long", "too_deep", "extra_header", "bad_shape"}
)


def _load(path: Path, descriptor: int, *, strict: bool, thorough: bool) -> LoadedSession:
    status = os.fstat(descriptor)
    index = build_index(descriptor, Care.WHOLE if thorough else Care.HEADS)
    header = header_of(path, index)
    bodies = Bodies(path, descriptor)
    migrated = _migrate(header, index, bodies)
    tree = SessionTree.from_columns(index.columns)
    if not thorough and index.version >= VERSION and _is_suspect(descriptor, index, tree):
        index = build_index(descriptor, Care.GLUED)
        tree = SessionTree.from_columns(index.columns)
    repair = (
        Repair(tree, index.heads, (), 0) if tree.is_plain else mend_tree(tuple(index.heads), strict=strict)
    )
    loaded = LoadedSession(path, header, repair.tree, bodies)
    found = [
        LoadIssue(index.lines[at], index.heads[at].offset, kind, detail)
        for at, kind, detail in repair.problems
    ]
    loaded.heads = repair.heads
    loaded.lines = index.lines
    loaded.issues = tuple(sorted([*index.issues, *found], key=_line_of))
    loaded.version_on_disk = index.version
    loaded.orphans = repair.orphans
    loaded.size_bytes = index.size_bytes
    loaded.ends_with_lf = index.ends_with_lf
    loaded.slot = index.slot
    loaded.is_cut = index.is_cut
    loaded.migrated = migrated
    loaded.file_id = (status.st_dev, status.st_ino)
    return loaded


def _is_suspect(descriptor: int, index: Index, tree: SessionTree) -> bool:
    """Whether a line may be glued to a torn one. Then the children of its entry have no parent; as the last
    line it has none, so that one is parsed."""
    if index.issues or not tree.is_plain:
        return True
    if not len(tree):
        return False
    last = index.heads[-1]
    if last.length > JOINED_LINE_BYTES:
        return False
    return isinstance(parse_record(os.pread(descriptor, last.length, last.offset)), Unreadable)


def header_of(path: Path, index: Index) -> SessionHeader:
    """The header an index found, with the title of the slot. Raises ``NotASessionFileError``."""
    if index.header is None:
        line = 2 if index.slot is not None else 1
        raise NotASessionFileError(
            f"{path}: line {line}: first record is not a session header"
            + (f" ({index.first_problem})" if index.first_problem else "")
        )
    return decode_header(index.header)


def _migrate(header: SessionHeader, index: Index, bodies: Bodies) -> dict[int, dict[str, Any]]:
    """Fill in the heads of an old file from its migrated records, which stay in memory; by line offset."""
    records = migrate_records(header.id, index.version, [record.fields for record in index.old_records])
    migrated: dict[int, dict[str, Any]] = {}
    for old, fields in zip(index.old_records, records, strict=True):
        problem = shape_problem(fields)
        if problem is not None:
            index.issues.append(LoadIssue(old.line, old.offset, "bad_shape", problem))
        head = head_of(fields, old.offset, old.length)
        if head is None:
            continue
        index.columns.add(head)
        index.lines.append(old.line)
        bodies.remember(decode_entry(fields), pinned=True)
        migrated[old.offset] = fields
    index.old_records.clear()
    return migrated


def _line_of(issue: LoadIssue) -> tuple[int, str]:
    return issue.line, issue.kind
