"""File versions 1 to 3, in memory (session-format 8)."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from musepi_tui.session.entries import KEEP_NOTHING
from musepi_tui.session.fields import as_object

VERSION = 3
"""The version musepi writes and the newest it understands."""


def derived_id(session_id: str, record_number: int, taken: Container[str]) -> str:
    """The id of a version 1 record: hex digits of a hash, so that two loads of a file agree.

    ``record_number`` counts parsed records, the header being number 0.
    """
    import hashlib  # deferred: only for old files

    digest = hashlib.sha256(f"{session_id}:{record_number}".encode("utf-8", "surrogatepass")).hexdigest()
    for start in range(0, len(digest) - 7, 8):
        if digest[start : start + 8] not in taken:
            return digest[start : start + 8]
    return digest


def migrate_records(
    session_id: str, version: int, records: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The records of a file of an older version as version 3 would hold them, header not included.

    ``records`` are all parsed records after the header, in file order. Those of version 3 or later come back
    as they are. Nothing passed in is changed.
    """
    migrated = [dict(record) for record in records]
    if version < 2:
        _add_ids(session_id, migrated)
    if version < VERSION:
        for record in migrated:
            _rename_hook_role(record)
    return migrated


def _add_ids(session_id: str, records: list[dict[str, Any]]) -> None:
    """Give every record an id and the record before it as parent; a linear chain."""
    taken: set[str] = set()
    ids: list[str] = []
    for number, record in enumerate(records, 1):
        entry_id = derived_id(session_id, number, taken)
        taken.add(entry_id)
        ids.append(entry_id)
        body = {key: value for key, value in record.items() if key not in ("type", "id", "parentId")}
        parent_id = ids[-2] if number > 1 else None
        head = {"type": record.get("type"), "id": entry_id, "parentId": parent_id}
        record.clear()
        record.update(head | body)
    for record in records:
        _name_first_kept(record, ids)


def _name_first_kept(record: dict[str, Any], ids: Sequence[str]) -> None:
    """Turn the index of the first kept record, counted with the header as 0, into its id."""
    index = record.get("firstKeptEntryIndex")
    if record.get("type") != "compaction" or isinstance(index, bool) or not isinstance(index, int | float):
        return
    del record["firstKeptEntryIndex"]
    inside = 1 <= index <= len(ids) and index == int(index)
    record["firstKeptEntryId"] = ids[int(index) - 1] if inside else KEEP_NOTHING


def _rename_hook_role(record: dict[str, Any]) -> None:
    message = as_object(record.get("message"))
    if record.get("type") == "message" and message is not None and message.get("role") == "hookMessage":
        record["message"] = message | {"role": "custom"}
