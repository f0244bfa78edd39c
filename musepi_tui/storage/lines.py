"""Lines of a session file ready to be written, and the title slot (session-format 2.2, 9)."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.codec import dump_json, encode_entry
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.storage.index import role_of

EXTERNAL_CHARS = 64 * 1024
"""Images with more base64 than this go out of the line where ``session.externalizeImages`` is on."""

SLOT_BYTES = 256
"""The length of a title slot, LF included: other tools overwrite exactly these bytes."""

_TYPES_WITH_ROLE = frozenset({"message", "custom"})

PutBlob = Callable[[bytes], str]
"""Stores the bytes of an image and returns the reference that stands for them; raises ``OSError``."""


class Line(NamedTuple):
    """A line of an entry ready to be written, LF included. It has no place in a file yet."""

    id: str
    parent_id: str | None
    type: str
    timestamp: str
    role: str | None
    data: bytes

    def head_at(self, offset: int) -> EntryHead:
        """The head of the entry when its line begins at ``offset``."""
        length = len(self.data) - 1
        return EntryHead(self.id, self.parent_id, self.type, self.timestamp, offset, length, self.role)


@dataclass(frozen=True, slots=True)
class Title:
    """A session's title as slot and header hold it. ``source`` is ``user`` or ``auto``; empty: no title."""

    text: str
    source: str
    updated_at: str


def line_of(entry: Entry, put_blob: PutBlob | None = None) -> Line:
    """The line of an entry. ``put_blob`` takes its large images; what it raises goes through."""
    obj = encode_entry(entry)
    role = role_of(obj)
    if put_blob is not None:
        obj = _without_large_images(obj, put_blob)
    data = dump_json(obj) + b"\n"
    return Line(entry.id, entry.parent_id, entry.type, entry.timestamp, role, data)


def line_at(head: EntryHead, data: bytes) -> Line:
    """The line of a known entry with these bytes, LF not counted."""
    return Line(head.id, head.parent_id, head.type, head.timestamp, head.role, data + b"\n")


def unplaced_head(entry: Entry) -> EntryHead:
    """The head of an entry that is in no file."""
    role = role_of(encode_entry(entry)) if entry.type in _TYPES_WITH_ROLE else None
    return EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp, role=role)


def place(lines: Sequence[Line], start: int, end: int) -> list[EntryHead]:
    """The heads of the lines that lie whole before ``end`` when the first one begins at ``start``.

    A line that lacks only its LF counts: the next append brings it, writing the line again would double it.
    """
    placed: list[EntryHead] = []
    for line in lines:
        if start + len(line.data) - 1 > end:
            break
        placed.append(line.head_at(start))
        start += len(line.data)
    return placed


def encode_slot(title: Title, length: int = SLOT_BYTES) -> bytes | None:
    """A slot of exactly ``length`` bytes, its LF included; None when not even an empty title fits.

    A title that is too long is cut between characters.
    """
    text = title.text
    while True:
        fields = {"type": "title", "v": 1, "title": text, "source": title.source}
        bare = dump_json(fields | {"updatedAt": title.updated_at, "pad": ""})
        missing = length - 1 - len(bare)
        if missing >= 0:
            return bare[:-2] + b" " * missing + b'"}\n'
        if not text:
            return None
        text = text[: max(0, min(len(text) - 1, len(text) + missing))]


def _without_large_images(obj: dict[str, Any], put_blob: PutBlob) -> dict[str, Any]:
    """The object of an entry with references in place of its large images; small ones stay."""
    message = as_object(obj.get("message"))
    if message is not None:
        content = _referring(as_list(message.get("content")), put_blob)
        return obj if content is None else obj | {"message": message | {"content": content}}
    content = _referring(as_list(obj.get("content")), put_blob)
    return obj if content is None else obj | {"content": content}


def _referring(blocks: Sequence[Any] | None, put_blob: PutBlob) -> list[Any] | None:
    """The blocks with references; None when nothing changes."""
    out = [_referring_block(block, put_blob) for block in blocks or ()]
    return out if any(new is not old for new, old in zip(out, blocks or (), strict=True)) else None


def _referring_block(block: object, put_blob: PutBlob) -> object:
    fields: Mapping[str, Any] = as_object(block) or {}
    data = as_text(fields.get("data"))
    if fields.get("type") != "image" or data is None or len(data) <= EXTERNAL_CHARS:
        return block
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return block
    # Only what decodes and encodes to the very same text may be replaced: nothing is to be changed by this.
    if base64.b64encode(raw).decode("ascii") != data:
        return block
    return {**fields, "data": put_blob(raw)}
