"""The rescue file: what a session could not store, where it can be found again (SAF-11)."""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from musepi_tui.base.files import replacing
from musepi_tui.session.codec import dump_json, encode_header
from musepi_tui.session.migrate import VERSION
from musepi_tui.storage.file_state import FileObject, FileState, identity_of
from musepi_tui.storage.lines import Line
from musepi_tui.storage.loading import LoadedSession
from musepi_tui.storage.migration import migrated_lines
from musepi_tui.storage.recovery import recall_lines
from musepi_tui.storage.rewrite import with_title

_BLOCK_BYTES = 1024 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
MAX_ID_CHARS = 100
"""So much of an id goes into the name: it comes from a file, and a name has its limits."""


def remaining_bytes(state: FileState, old: LoadedSession | None, unsaved: Sequence[Line]) -> Iterator[bytes]:
    """A session file, in pieces, with everything that the file at the session's path lacks.

    That is ``unsaved``; and all lines before them where that file was deleted, replaced or written over, or
    where it has an older format (``old``) that cannot take them. Raises ``OSError``.
    """
    file = state.object
    if file is not None and old is not None:
        yield from migrated_lines(os.pread(file.descriptor, file.end, 0), old)[0]
    elif file is not None and not _has_name(state, file):
        yield from _copied(file)
        # A sync that failed may have cost what was written last: then it stands there twice.
        unsaved = [line for line in unsaved if state.is_suspect or line.id not in state.known]
    else:
        header = replace(with_title(state.header, state.title), version=VERSION)
        yield dump_json(encode_header(header)) + b"\n"
        if file is not None and _is_overwritten(state, file):
            ids = {line.id for line in unsaved}
            heads = [head for head in state.known.values() if head.id not in ids]
            yield from (line.data for line in recall_lines(state.bodies, heads, is_same=True))
    yield from (line.data for line in unsaved)


def write_rescue(session_id: str, pieces: Callable[[], Iterable[bytes]]) -> Path | None:
    """Writes a rescue file to the folder for temporary files or else to the home folder; where it is.

    An earlier one is never replaced: the next is called ``-2``. None when neither folder takes it. Blocks.
    """
    stem = f"musepi-rescue-{_UNSAFE.sub('_', session_id)[:MAX_ID_CHARS]}"
    for folder in _folders():
        try:
            return _write(folder, stem, pieces)
        except OSError:
            continue
    return None


def _write(folder: Path, stem: str, pieces: Callable[[], Iterable[bytes]]) -> Path:
    path, number = folder / f"{stem}.jsonl", 1
    while True:
        try:
            if not os.path.lexists(path):
                with replacing(path, mode=0o600, only_new=True) as file:
                    file.writelines(pieces())
                return path
        except FileExistsError:
            pass  # somebody was faster
        number += 1
        path = folder / f"{stem}-{number}.jsonl"


def _folders() -> list[Path]:
    """Where a rescue file may go. A full disk has no folder for temporary files either, and a home folder
    only users have that the system knows."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        found.append(Path(tempfile.gettempdir()))
    with contextlib.suppress(RuntimeError):
        found.append(Path.home())
    return found


def _has_name(state: FileState, file: FileObject) -> bool:
    try:
        return identity_of(state.target.stat()) == file.identity
    except OSError:
        return False


def _is_overwritten(state: FileState, file: FileObject) -> bool:
    return os.fstat(file.descriptor).st_size < file.end or file.is_overwritten()


def _copied(file: FileObject) -> Iterator[bytes]:
    """All bytes that are known of a file object, with a line feed at the end."""
    for start in range(0, file.end, _BLOCK_BYTES):
        yield os.pread(file.descriptor, min(_BLOCK_BYTES, file.end - start), start)
    if file.line_start != file.end:
        yield b"\n"
