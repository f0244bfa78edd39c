"""Sessions of a folder or of all, and finding one by what a person typed (session-format 14, 15)."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.storage.candidates import Candidate, Scan, Scope, folders_in, is_unchanged, scan_files
from musepi_tui.storage.foreign import IMPORTED_TOOLS, needs_import, read_foreign
from musepi_tui.storage.glance import Row, SessionInfo, glance_at, modified_text, read_row
from musepi_tui.storage.list_cache import CachedFile, ListCache
from musepi_tui.storage.paths import Paths, expand_home, same_folder, tool_of_path

__all__ = [
    "Batch",
    "DamagedFile",
    "SessionInfo",
    "age_of",
    "find_session",
    "iter_sessions",
    "list_sessions",
    "needs_import",
    "newest_session",
]

SHOWN_MATCHES = 20
"""How many sessions a message about an ambiguous reference names."""

FIRST_BATCH = 48
"""Files of the first batch: about a screenful, so that something can be shown at once."""

NEXT_BATCH = 256
SEARCHED_BATCH = 16
"""Files that are read as a whole for one batch: every batch is sorted and drawn."""

WORKERS = 4
"""Threads that read files which are not in the cache: they mostly wait for the disk."""

POOLED = 8
"""Fewer files than this are read one after the other."""

SEARCHED_AT_ONCE = 4 * 1024 * 1024
"""A file that grew by no more than this since it was searched is searched again while its row is made."""

TRIED_KNOWN = 200
"""Rows of the last listing that are looked at for the first ones to show."""

DRAWING_S = 0.05
"""How long nothing is read after the rows that are known: another thread draws them now, and would have to
share its time with all that is parsed here."""

TRIED_FIRST = 8
"""Files that are looked at for the newest session before the cache is asked: mostly the first one is it."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file that is named like a session and is none, and why."""

    path: Path
    reason: str
    tool: str
    modified: str


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of a listing. A row of a path that came before takes its place.

    ``done`` of ``total`` files were read; batches that follow when both are equal only complete rows.
    """

    rows: tuple[SessionInfo, ...] = ()
    damaged: tuple[DamagedFile, ...] = ()
    notices: tuple[str, ...] = ()
    done: int = 0
    total: int = 0


def list_sessions(
    paths: Paths,
    cwd: Path | None,
    *,
    override: Path | None = None,
    foreign: bool = True,
    progress: Callable[[Batch], None] | None = None,
) -> tuple[SessionInfo, ...]:
    """Sessions that belong to ``cwd``, or all of them when it is None, newest first.

    ``override`` is a folder that replaces the sessions root, ``foreign`` adds the folders of other tools.
    Files that cannot be read are left out. ``progress`` is told of them, and of the rows as they come: first
    those of the last listing whose files are unchanged. Blocks.
    """
    found: dict[Path, SessionInfo] = {}
    scope = Scope(paths, cwd, override, foreign)
    with closing(_iter_scope(scope, known_first=progress is not None)) as batches:
        for batch in batches:
            found.update((row.path, row) for row in batch.rows)
            if progress is not None:
                progress(batch)
    return tuple(sorted(found.values(), key=age_of, reverse=True))


def iter_sessions(
    paths: Paths, cwd: Path | None, *, override: Path | None = None, foreign: bool = True
) -> Generator[Batch]:
    """The same in parts, newest first: what is known or quickly read, then what stands inside long files.

    What was read is remembered for the next listing, also when the rest is not wanted any more. Blocks
    between the parts.
    """
    return _iter_scope(Scope(paths, cwd, override, foreign), known_first=False)


def _iter_scope(scope: Scope, *, known_first: bool) -> Generator[Batch]:
    """As ``iter_sessions``. ``known_first`` begins with the newest of the last listing that are unchanged,
    before all files are looked at: there may be newer ones."""
    cache = ListCache(scope.paths)
    if known_first:
        known = tuple(islice(_known_rows(cache, scope), FIRST_BATCH))
        yield Batch(known, total=1)
        if known:
            time.sleep(DRAWING_S)
    cache.load()
    scan = scan_files(scope)
    listing = _Listing(cache, scan, scope.cwd)
    try:
        yield Batch(notices=(*cache.notices, *scan.notices), total=len(scan.files))
        yield from listing.read_all()
        cache.forget_missing(scan.folders, [file.path for file in scan.files])
        cache.save()
        yield from listing.search_files()
        yield listing.mark_imported()
    finally:
        cache.save()


def newest_session(paths: Paths, cwd: Path, *, override: Path | None = None) -> SessionInfo | None:
    """The own session of ``cwd`` that was written last; None when there is none.

    Sessions of other tools are not taken: nobody asked to write into them.
    """
    scan = scan_files(Scope(paths, cwd, override, foreign=False))
    for candidate in scan.files[:TRIED_FIRST]:
        file = _read_file(candidate, None)
        if file.row is not None and same_folder(file.row.info.cwd, cwd):
            return _owned(candidate, file.row.info)
    with closing(iter_sessions(paths, cwd, override=override, foreign=False)) as batches:
        return next((batch.rows[0] for batch in batches if batch.rows), None)


def find_session(
    paths: Paths, cwd: Path, reference: str, *, override: Path | None = None, foreign: bool = True
) -> SessionInfo:
    """The one session a person means: a path, the start of an id or file name, or a whole title.

    Sessions of ``cwd`` are looked at first, then all. Raises ``SessionError`` when none fits or several do.
    """
    if "/" in reference or "\\" in reference or reference.endswith(".jsonl"):
        return _info_at(paths, (cwd / expand_home(reference)).absolute())
    for scope in (cwd, None) if reference else ():
        found = _matching(iter_sessions(paths, scope, override=override, foreign=foreign), reference)
        if len(found) > 1:
            raise SessionError(_ambiguous(reference, found))
        if found:
            return found[0]
    raise SessionError(f'Session "{reference}" not found.')


def _known_rows(cache: ListCache, scope: Scope) -> Iterator[SessionInfo]:
    """Rows of the last listing whose files are as they were, newest first."""
    places: dict[str, bool] = {}
    for path, file in islice(cache.newest(folders_in(scope)), TRIED_KNOWN):
        if file.row is None or not is_unchanged(path, file.size, file.mtime_ns):
            continue
        cwd = file.row.info.cwd
        if cwd not in places:
            places[cwd] = scope.cwd is None or same_folder(cwd, scope.cwd)
        if places[cwd]:
            yield file.row.info


class _Listing:
    """One pass over the candidates of a scope."""

    def __init__(self, cache: ListCache, scan: Scan, cwd: Path | None) -> None:
        self._cache = cache
        self._files = scan.files
        self._cwd = cwd
        self._places: dict[str, bool] = {}
        self._unsearched: list[tuple[Candidate, Row]] = []
        self._foreign: dict[str, SessionInfo] = {}
        self._parents: set[str] = set()

    def read_all(self) -> Iterator[Batch]:
        """A row for every file, by what the cache knows and what the ends of the others say."""
        files = iter(self._files)
        done, size = 0, FIRST_BATCH
        while part := list(islice(files, size)):
            done, size = done + len(part), NEXT_BATCH
            rows: list[SessionInfo] = []
            damaged: list[DamagedFile] = []
            for candidate, file in self._read(part):
                if file.row is None:
                    damaged += _damaged(candidate, file.problem)
                elif self._belongs(file.row.info.cwd):
                    rows.append(self._take(candidate, file.row))
            yield Batch(tuple(rows), tuple(damaged), done=done, total=len(self._files))

    def search_files(self) -> Iterator[Batch]:
        """The rows that the middle of their file changes: a name in it, the number of its lines. Reads those
        files as a whole."""
        total = len(self._files)
        rows: list[SessionInfo] = []
        for number, (candidate, row) in enumerate(self._unsearched, 1):
            yield Batch(done=total, total=total)  # the caller may have had enough
            try:
                searched = read_row(Path(candidate.path), search="all", known=row)
            except SessionError:
                continue
            searched = replace(searched, info=_owned(candidate, searched.info))
            if searched.info.size == candidate.size:
                file = CachedFile(candidate.size, candidate.mtime_ns, searched)
                self._cache.remember(candidate.path, file)
            if candidate.path in self._foreign:
                self._foreign[candidate.path] = searched.info
            if searched.info != row.info:
                rows.append(searched.info)
            if number % SEARCHED_BATCH == 0:
                yield Batch(tuple(rows), done=total, total=total)
                rows = []
        yield Batch(tuple(rows), done=total, total=total)

    def mark_imported(self) -> Batch:
        """The rows of other tools' files of which a copy was listed."""
        total = len(self._files)
        found = (row for path, row in self._foreign.items() if path in self._parents)
        return Batch(tuple(replace(row, imported=True) for row in found), done=total, total=total)

    def _read(self, part: Sequence[Candidate]) -> Iterator[tuple[Candidate, CachedFile]]:
        """What the files say, in their order: from the cache, or read anew where they changed."""
        before = [self._cache.find(file.path) for file in part]
        fresh = [_is_fresh(file, known) for file, known in zip(part, before, strict=True)]
        unread = [
            (file, None if known is None else known.row)
            for file, known, is_fresh in zip(part, before, fresh, strict=True)
            if not is_fresh
        ]
        if len(unread) < POOLED:
            read = iter([_read_file(*each) for each in unread])
        else:
            with ThreadPoolExecutor(WORKERS, "listing") as pool:
                read = iter(list(pool.map(_read_file, *zip(*unread, strict=True))))
        for candidate, known, is_fresh in zip(part, before, fresh, strict=True):
            if is_fresh and known is not None:
                yield candidate, known
                continue
            file = next(read)
            if file.is_lasting:
                self._cache.remember(candidate.path, file)
            yield candidate, file

    def _take(self, candidate: Candidate, row: Row) -> SessionInfo:
        """The row as it is shown; what it still lacks is noted."""
        info = _owned(candidate, row.info)
        if not row.is_searched:
            self._unsearched.append((candidate, row))
        if not info.is_own:
            self._foreign[candidate.path] = info
        elif info.parent:
            self._parents.add(info.parent)
        return info

    def _belongs(self, stored_cwd: str) -> bool:
        if self._cwd is None:
            return True
        if stored_cwd not in self._places:
            self._places[stored_cwd] = same_folder(stored_cwd, self._cwd)
        return self._places[stored_cwd]


def _is_fresh(candidate: Candidate, known: CachedFile | None) -> bool:
    return known is not None and (known.size, known.mtime_ns) == (candidate.size, candidate.mtime_ns)


def _read_file(candidate: Candidate, known: Row | None) -> CachedFile:
    """What one file says. A reason that may pass without a change of the file is not for the cache."""
    size, mtime_ns = candidate.size, candidate.mtime_ns
    if candidate.problem:
        return CachedFile(size, mtime_ns, None, candidate.problem, is_lasting=False)
    path = Path(candidate.path)
    try:
        if candidate.tool in IMPORTED_TOOLS:
            return CachedFile(size, mtime_ns, Row(_owned(candidate, read_foreign(path))))
        grown = size - known.info.size if known is not None and known.is_searched else None
        is_small = grown is not None and 0 <= grown <= SEARCHED_AT_ONCE
        row = read_row(path, search="all" if is_small else "ends", known=known)
        return CachedFile(size, mtime_ns, replace(row, info=_owned(candidate, row.info)))
    except SessionError as error:
        reason = str(error).removeprefix(f"{path}: ")
        return CachedFile(size, mtime_ns, None, reason, is_lasting=isinstance(error, NotASessionFileError))


def _owned(candidate: Candidate, info: SessionInfo) -> SessionInfo:
    """The row with the tool in whose folders the file lies; a title slot among those of pi is by omp."""
    tool = info.tool if candidate.tool == "pi" and info.tool == "omp" else candidate.tool
    if (info.tool, info.is_own) == (tool, candidate.is_own):
        return info
    return replace(info, tool=tool, is_own=candidate.is_own)


def _damaged(candidate: Candidate, reason: str) -> Iterator[DamagedFile]:
    """The file as one that cannot be opened. Claude Code and Codex also keep files without a talk."""
    if candidate.tool not in IMPORTED_TOOLS:
        modified = modified_text(candidate.mtime_ns)
        yield DamagedFile(Path(candidate.path), reason, candidate.tool, modified)


def _info_at(paths: Paths, path: Path) -> SessionInfo:
    tool = tool_of_path(paths, path)
    try:
        info = glance_at(path)
    except NotASessionFileError:
        try:
            return read_foreign(path)
        except SessionError:
            pass
        raise
    return info if tool is None else replace(info, tool=tool, is_own=False)


def _matching(batches: Generator[Batch], reference: str) -> list[SessionInfo]:
    """The rows whose id or file name fits, whole ones first; without any, those of that name."""
    rows: dict[Path, SessionInfo] = {}
    is_read = False
    for batch in batches:
        rows.update((row.path, row) for row in batch.rows)
        if is_read or batch.done < batch.total:
            continue
        is_read = True  # what follows changes titles, never an id
        if found := _by_id(rows.values(), reference.lower()):
            batches.close()
            return found
    return [row for row in rows.values() if row.is_named and row.title.lower() == reference.lower()]


def _by_id(rows: Iterable[SessionInfo], wanted: str) -> list[SessionInfo]:
    names = [(row, _names_of(row)) for row in rows]
    whole = [row for row, texts in names if wanted in texts]
    return whole or [row for row, texts in names if any(text.startswith(wanted) for text in texts)]


def _names_of(row: SessionInfo) -> set[str]:
    stem = row.path.stem.lower()
    return {row.id.lower(), stem, stem.rpartition("_")[2]}


def _ambiguous(reference: str, found: Sequence[SessionInfo]) -> str:
    lines = [f"  {row.id}  {row.title}" for row in found[:SHOWN_MATCHES]]
    if len(found) > SHOWN_MATCHES:
        lines.append(f"  and {len(found) - SHOWN_MATCHES} more")
    head = f'"{reference}" fits {len(found)} sessions; give more of the id:'
    return "\n".join([head, *lines])


def age_of(row: SessionInfo) -> tuple[str, str, str]:
    """What rows are sorted by, oldest first: when the file was written, when it was made, its path."""
    return row.modified, row.created, str(row.path)
