"""A session as a session file: every line, byte for byte where nothing had to be masked or brought in."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from musepi_tui.base.files import open_regular
from musepi_tui.base.known_secrets import KnownSecrets
from musepi_tui.session.codec import dump_json, encode_header
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.payload import holds_reference
from musepi_tui.session.records import Record, is_title_slot, parse_record
from musepi_tui.storage.blobs import BlobStore
from musepi_tui.storage.exporters.items import ExportSource
from musepi_tui.storage.index import MAX_LINE_BYTES

SLOT_BYTES = 256
"""The length of the title slot of other tools, its LF included: they rewrite it in place."""

_BOM = b"\xef\xbb\xbf"


class LineExport:
    """The lines of a session. ``missing`` counts those that still name a blob nobody has."""

    def __init__(self, source: ExportSource, secrets: KnownSecrets | None, blobs: BlobStore | None) -> None:
        """``secrets`` None masks nothing, ``blobs`` None leaves references as they are."""
        self.missing = 0
        self._source = source
        self._secrets = secrets
        self._blobs = blobs

    def pieces(self) -> Iterator[bytes]:
        """What the file holds now, then the entries that could not be written to it yet.

        Raises ``OSError``, ``SessionError``.
        """
        source = self._source
        waiting = self._waiting()
        complete = True
        if source.file is None:
            yield self._changed(dump_json(encode_header(source.header))) + b"\n"
        else:
            for line in _lines_of(source.file):
                complete = line.endswith(b"\n")
                _drop_written(waiting, line)
                yield self._changed(line.removesuffix(b"\n")) + (b"\n" if complete else b"")
        for head in waiting.values():
            yield (b"" if complete else b"\n") + self._changed(source.bodies.raw_line(head)) + b"\n"
            complete = True

    def _waiting(self) -> dict[bytes, EntryHead]:
        """Entries that are in memory only, by the bytes that would show them in a line."""
        source = self._source
        heads = (source.tree.head(entry_id) for entry_id in source.tree.order)
        return {
            b'"id":' + dump_json(head.id): head for head in heads if head.length == 0 or source.file is None
        }

    def _changed(self, line: bytes) -> bytes:
        """The line as it leaves."""
        wants_blobs = self._blobs is not None and holds_reference(line)
        wants_mask = self._secrets is not None and self._secrets.may_occur_in(line)
        if not wants_mask and not wants_blobs:
            return line
        record = parse_record(line) if len(line) <= MAX_LINE_BYTES else None
        if not isinstance(record, Record):
            return self._masked_bytes(line)
        fields: dict[str, Any] = record.fields
        if self._blobs is not None and wants_blobs:
            fields = self._blobs.resolve(fields)
            self.missing += holds_reference(dump_json(fields))
        if self._secrets is not None:
            fields = cast("dict[str, Any]", self._secrets.mask_json(fields, is_entry=True))
        if fields is record.fields:
            return line
        if is_title_slot(fields):
            fields = _refit(fields)
        before = _BOM if line.startswith(_BOM) else b""
        return before + dump_json(fields) + (b"\r" if line.endswith(b"\r") else b"")

    def _masked_bytes(self, line: bytes) -> bytes:
        """A line nobody can read, masked as the text it may be."""
        if self._secrets is None:
            return line
        text = line.decode("utf-8", "surrogateescape")
        masked = self._secrets.mask(text)
        return line if masked == text else masked.encode("utf-8", "surrogateescape")


def _lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, LF included, up to where it ends at the first look; the last may be without one.

    A line beyond what any reader takes comes in pieces, so that it costs no more memory than that.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0:
            line = file.readline(min(MAX_LINE_BYTES + 1, left))
            if not line:
                return
            left -= len(line)
            yield line


def _drop_written(waiting: dict[bytes, EntryHead], line: bytes) -> None:
    """Forgets the entries a line shows to be in the file by now."""
    for mark in [mark for mark in waiting if mark in line]:
        del waiting[mark]


def _refit(slot: dict[str, Any]) -> dict[str, Any]:
    """A title slot whose line has its fixed length again."""
    empty = {**slot, "pad": ""}
    excess = len(dump_json(empty)) - (SLOT_BYTES - 1)
    while excess > 0 and empty["title"]:
        empty = {**empty, "title": empty["title"][:-1]}
        excess = len(dump_json(empty)) - (SLOT_BYTES - 1)
    return {**empty, "pad": " " * max(0, -excess)}
