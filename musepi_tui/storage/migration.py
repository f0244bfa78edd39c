"""Writing a file of an older version anew, once, before the first append (session-format 8)."""

import io
from dataclasses import replace
from pathlib import Path

from musepi_tui.base.errors import SessionChangedOnDiskError
from musepi_tui.base.files import atomic_write
from musepi_tui.session.codec import dump_json, encode_header, is_header
from musepi_tui.session.migrate import VERSION
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.loading import LoadedSession


def rewrite_migrated(path: Path, loaded: LoadedSession) -> None:
    """Replaces the file by one of the current version; the original stays as ``<name>.v<old>.bak``.

    Lines that were not understood are carried over byte for byte. ``loaded`` is told the new file. Raises
    ``OSError`` with the old file intact, ``SessionChangedOnDiskError`` when it is not the file loaded.
    """
    data = path.read_bytes()
    status = path.stat()
    if loaded.file_id != (status.st_dev, status.st_ino) or len(data) != loaded.size_bytes:
        raise SessionChangedOnDiskError(f"{path} was changed by another program; open it again")
    backup = path.with_name(f"{path.name}.v{loaded.version_on_disk}.bak")
    if not backup.exists():
        atomic_write(backup, data, mode=0o600)
    atomic_write(path, _migrated_bytes(data, loaded))
    status = path.stat()
    loaded.file_id = (status.st_dev, status.st_ino)
    loaded.version_on_disk = VERSION
    loaded.size_bytes = status.st_size


def _migrated_bytes(data: bytes, loaded: LoadedSession) -> bytes:
    lines: list[bytes] = []
    offset = 0
    has_header = False
    for line in io.BytesIO(data):
        record = None if has_header else parse_record(line.rstrip(b"\n"))
        if isinstance(record, Record) and is_header(record.fields):
            has_header = True
            lines.append(dump_json(encode_header(replace(loaded.header, version=VERSION))) + b"\n")
        elif offset in loaded.migrated:
            lines.append(dump_json(loaded.migrated[offset]) + b"\n")
        else:
            lines.append(line)
        offset += len(line)
    return b"".join(lines)
