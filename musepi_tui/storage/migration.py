"""Writing a file of an older version anew, once, before the first append (session-format 8)."""

import io
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from musepi_tui.base.errors import SessionChangedOnDiskError
from musepi_tui.base.files import atomic_write, replacing
from musepi_tui.session.codec import dump_json, encode_header, is_header
from musepi_tui.session.entries import EntryHead, SessionHeader
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.file_state import identity_of
from musepi_tui.storage.index import head_of
from musepi_tui.storage.loading import LoadedSession
from musepi_tui.storage.rewrite import refuse_changed, refuse_hard_links


def rewrite_migrated(path: Path, loaded: LoadedSession) -> dict[str, EntryHead]:
    """Replaces the file by one of the current version; the original stays as ``<name>.v<old>.bak``.

    Returns the new heads of all entries by id. Lines that were not understood are carried over byte for byte.
    ``loaded`` is told the new file. Raises ``OSError`` with the old file intact,
    ``SessionChangedOnDiskError`` when it is not the file loaded, ``SessionError`` when it has several names.
    """
    data = path.read_bytes()
    known = identity_of(path.stat())
    if loaded.file_id != known or len(data) != loaded.size_bytes:
        raise SessionChangedOnDiskError(f"{path} was changed by another program; open it again")
    refuse_hard_links(path)
    backup = path.with_name(f"{path.name}.v{loaded.version_on_disk}.bak")
    if not backup.exists():
        atomic_write(backup, data, mode=0o600)
    lines, heads = migrated_lines(data, loaded)
    with replacing(path, last_look=partial(refuse_changed, path, (known, len(data)))) as file:
        file.writelines(lines)
        file.flush()
        new = os.fstat(file.fileno())
    loaded.file_id = identity_of(new)
    loaded.version_on_disk = VERSION
    loaded.size_bytes = new.st_size
    return heads


def migrated_lines(data: bytes, loaded: LoadedSession) -> tuple[list[bytes], dict[str, EntryHead]]:
    """The lines of the new file, and where each entry lies in it; parents as they are in memory."""
    lines: list[bytes] = []
    heads: dict[str, EntryHead] = {}
    offset = written = 0
    has_header = False
    for line in io.BytesIO(data):
        record = None if has_header else parse_record(line.rstrip(b"\n"))
        fields = loaded.migrated.get(offset)
        if isinstance(record, Record) and is_header(record.fields):
            has_header = True
            lines.append(dump_json(encode_header(_new_header(loaded))) + b"\n")
        elif fields is not None:
            lines.append(dump_json(fields) + b"\n")
            head = head_of(fields, written, len(lines[-1]) - 1)
            if head is not None:
                heads[head.id] = head
        else:
            lines.append(line)
        offset += len(line)
        written += len(lines[-1])
    known = loaded.tree.heads
    return lines, {key: head._replace(parent_id=known[key].parent_id) for key, head in heads.items()}


def _new_header(loaded: LoadedSession) -> SessionHeader:
    """The header of the current version, with the session's name as its title: other tools look there."""
    header = replace(loaded.header, version=VERSION)
    if loaded.name is None or loaded.name == header.title:
        return header
    return replace(header, title=loaded.name, title_source="user")
