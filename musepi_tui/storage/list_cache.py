"""Rows of listings that need not be read again, in one file of the state folder (session-format 14).

The first line names the format, every other line is the row of one session file as a JSON list, that of the
file written last first. A row counts while size and time of its file are the same to the nanosecond. The file
may be lost at any time.
"""

import contextlib
import errno
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from musepi_tui.base.files import atomic_write, locked, make_private_folder, read_regular
from musepi_tui.session.fields import as_object
from musepi_tui.storage.glance import Row, SessionInfo
from musepi_tui.storage.names import Name
from musepi_tui.storage.paths import Paths
from musepi_tui.storage.state import set_aside

FILE_NAME = "session-list.jsonl"
VERSION = 3
MAX_BYTES = 64 * 1024 * 1024
"""A bigger file is not one of ours: 64 MiB are the rows of 100,000 sessions."""

_UNKNOWN = -1
"""In place of a number nobody counted."""

_PLAIN = r"[ !#-\[\]-~]*"
_TEXT = rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-f]{{4}}){_PLAIN})*"'
_WHOLE = r"(?:0|-?[1-9][0-9]{0,18})"
_BOOL = "(?:true|false)"
_HEAD_FIELDS = (f"({_TEXT})", _WHOLE, _WHOLE, _TEXT)
_NAME_FIELDS = (_WHOLE, _TEXT, _BOOL)
_COUNT_FIELDS = (_TEXT, _WHOLE, _WHOLE, _WHOLE, _TEXT)
_INFO_FIELDS = (*[_TEXT] * 5, _WHOLE, _BOOL, _TEXT, _BOOL, _TEXT, _TEXT, _TEXT, _BOOL)
_ROW_FIELDS = (*_INFO_FIELDS, *_NAME_FIELDS, *_COUNT_FIELDS)
_LINE = re.compile(rf"\[{','.join(_HEAD_FIELDS)}(?:,{','.join(_ROW_FIELDS)})?\]")
"""A line as ``_line_of`` makes it. Lines are checked by this and parsed when they are asked for: thousands of
parsed ones at once would set off a collection of garbage in which nothing else can run."""


_TIME = re.compile(rf"\[{_TEXT},{_WHOLE},({_WHOLE}),")


@dataclass(frozen=True, slots=True)
class CachedFile:
    """What is known of a file of that size and time: its row, or why it has none.

    ``is_lasting`` is false for a reason that may pass without a change of the file.
    """

    size: int
    mtime_ns: int
    row: Row | None
    problem: str = ""
    is_lasting: bool = True


class _BrokenCacheError(Exception):
    """The file cannot be used."""


class ListCache:
    """The rows by path. Loaded once, changed in memory, merged into the file by ``save``."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.state / FILE_NAME
        self._lines: dict[str, str] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._changed: dict[str, str] = {}
        self._gone: set[str] = set()
        self.notices: tuple[str, ...] = ()

    def load(self) -> None:
        """Reads the file. What cannot be used is set aside, with a sentence in ``notices``."""
        try:
            self._lines = self._read()
        except _BrokenCacheError as error:
            aside = set_aside(self._path)
            where = "" if aside is None else f"; it is kept as {aside.name}"
            self.notices = (
                f"{self._path}: the list of sessions was broken ({error}) and is made anew{where}",
            )

    def find(self, path: str) -> CachedFile | None:
        """What the file at ``path`` was when it was last read; the caller compares size and time."""
        line = self._lines.get(path)
        return None if line is None else _cached_of(line)

    def newest(self, folders: Collection[str]) -> Iterator[tuple[str, CachedFile]]:
        """What was last stored about the files in some folders, the last written first. Nothing needs to be
        loaded for it, and no more is checked than is asked for; there is nothing where the file is broken."""
        with contextlib.suppress(OSError):
            yield from _newest_in(read_regular(self._path, MAX_BYTES), folders)

    def remember(self, path: str, file: CachedFile) -> None:
        """Keeps what was read of a file."""
        self._lines[path] = self._changed[path] = _line_of(path, file)
        self._gone.discard(path)

    def forget_missing(self, folders: Collection[str], present: Collection[str]) -> None:
        """Drops the rows of files that are no longer in a folder that was listed."""
        known = set(present)
        missing = [path for path in self._lines if path not in known and path.rpartition("/")[0] in folders]
        for path in missing:
            self.forget(path)

    def forget(self, path: str) -> None:
        """Drops the row of a file."""
        self._gone.add(path)
        self._lines.pop(path, None)
        self._changed.pop(path, None)

    def save(self) -> None:
        """Stores what changed, together with what other processes stored meanwhile.

        Does nothing when nothing changed or the file cannot be written: the rows are read again next time.
        """
        if not self._changed and not self._gone:
            return
        with contextlib.suppress(OSError):
            make_private_folder(self._path.parent)
            with locked(self._path):
                self._merge()
                lines = sorted(self._lines.values(), key=_time_of, reverse=True)
                text = "\n".join([json.dumps({"version": VERSION}), *lines, ""])
                atomic_write(self._path, text.encode("ascii"), mode=0o600)
                self._stamp = self._stamp_now()
            self._changed.clear()
            self._gone.clear()

    def _merge(self) -> None:
        if self._stamp == self._stamp_now():
            return
        try:
            stored = self._read()
        except _BrokenCacheError:
            set_aside(self._path)
            return
        self._lines = {path: line for path, line in stored.items() if path not in self._gone} | self._changed

    def _read(self) -> dict[str, str]:
        self._stamp = self._stamp_now()
        try:
            data = read_regular(self._path, MAX_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            if error.errno in (errno.EFBIG, errno.EINVAL, errno.EISDIR):
                raise _BrokenCacheError(error.strerror or "") from error
            return {}
        return _parse(data)

    def _stamp_now(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


def drop_row(paths: Paths, path: Path) -> None:
    """Takes a session that was deleted or moved out of the stored list."""
    cache = ListCache(paths)
    cache.load()
    cache.forget(str(path))
    cache.save()


def _newest_in(data: bytes, folders: Collection[str]) -> Iterator[tuple[str, CachedFile]]:
    first, _, rows = data.partition(b"\n")
    try:
        version = _version_of(first.decode("ascii"))
    except (UnicodeDecodeError, _BrokenCacheError):
        return
    # As they stand in the file: most lines are of other folders, and are not parsed to find that out.
    wanted = {json.dumps(folder)[1:-1].encode("ascii") for folder in folders}
    start = 0
    while version == VERSION and (end := rows.find(b"\n", start)) >= 0:
        line = rows[start:end]
        if line[2 : line.find(b'",')].rpartition(b"/")[0] in wanted:
            text = line.decode("ascii", "replace")
            match = _LINE.fullmatch(text)
            if match is not None:
                yield _path_of(match), _cached_of(text)
        start = end + 1


def _version_of(first_line: str) -> int:
    try:
        version = (as_object(json.loads(first_line)) or {}).get("version")
    except (ValueError, RecursionError) as error:
        raise _BrokenCacheError("it is no JSON") from error
    if type(version) is not int:
        raise _BrokenCacheError("its first line names no version")
    return version


def _path_of(match: "re.Match[str]") -> str:
    return match[1][1:-1] if "\\" not in match[1] else json.loads(match[1])


def _time_of(line: str) -> int:
    match = _TIME.match(line)
    return 0 if match is None else int(match[1])


def _parse(data: bytes) -> dict[str, str]:
    """The lines by path; a file of another version has none."""
    try:
        first, *rows = data.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise _BrokenCacheError("it is no JSON") from error
    version = _version_of(first)
    found: dict[str, str] = {}
    for number, line in enumerate(rows if version == VERSION else (), 2):
        match = _LINE.fullmatch(line)
        if match is not None:
            found[_path_of(match)] = line
        elif line or number <= len(rows):
            raise _BrokenCacheError(f"line {number} is no row")
    return found


def _line_of(path: str, file: CachedFile) -> str:
    """The line of a file: path, size, time, the reason why it has no row; then the row, if it has one."""
    fields = [path, file.size, file.mtime_ns, file.problem]
    if file.row is not None:
        fields += _fields_of(file.row)
    return json.dumps(fields, separators=(",", ":"))


def _fields_of(row: Row) -> list[str | int]:
    info, name = row.info, row.name
    return [
        info.id,
        info.cwd,
        info.title,
        info.created,
        info.modified,
        info.messages,
        info.messages_exact,
        info.status,
        info.is_named,
        info.parent or "",
        info.first_message,
        info.tool,
        info.is_own,
        -1 if name is None else name.time_ms,
        "" if name is None else name.text,
        row.is_searched,
        info.model,
        _UNKNOWN if info.context_tokens is None else info.context_tokens,
        _UNKNOWN if info.compactions is None else info.compactions,
        _UNKNOWN if info.branches is None else info.branches,
        "\n".join(row.leaves),
    ]


def _cached_of(line: str) -> CachedFile:
    path, size, mtime_ns, problem, *fields = json.loads(line)
    if not fields:
        return CachedFile(size, mtime_ns, None, problem)
    info = SessionInfo(
        path=Path(path),
        id=fields[0],
        cwd=fields[1],
        title=fields[2],
        created=fields[3],
        modified=fields[4],
        messages=fields[5],
        size=size,
        tool=fields[11],
        status=fields[7],
        messages_exact=fields[6],
        is_named=fields[8],
        parent=fields[9] or None,
        first_message=fields[10],
        is_own=fields[12],
        model=fields[16],
        context_tokens=_known(fields[17]),
        compactions=_known(fields[18]),
        branches=_known(fields[19]),
    )
    name = None if fields[13] < 0 else Name(fields[13], fields[14])
    leaves = tuple(fields[20].split("\n")) if fields[20] else ()
    return CachedFile(size, mtime_ns, Row(info, name, fields[15], leaves))


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number
