"""From the text a model wrote to a file: one resolver for all tools, freshness, locks (SAF-70 to 76).

Everything here looks at the disk; nothing changes it.
"""

import errno
import hashlib
import os
import re
import stat
import unicodedata
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote, urlsplit

from musepi_tui.base.errors import ToolError
from musepi_tui.base.text import plural
from musepi_tui.tools import guarded
from musepi_tui.tools.walker import Walk

if TYPE_CHECKING:
    import asyncio

_DEVICE_PLACES = ("/proc", "/sys", "/dev", "/run")
"""Outside even when a root is ``/``: what looks like a file there is a kernel interface."""

_OWN_SECRETS = frozenset({"auth.json", "models.json", "secrets.json"})

_GUESS_TIME_S = 0.25
_GUESS_ENTRIES = 20_000
"""A wrong path is looked for among this many entries: a courtesy, not a search."""

_EXPLAINED = {
    errno.ENOENT: "does not exist",
    errno.EACCES: "cannot be accessed: permission denied",
    errno.EPERM: "cannot be accessed: permission denied",
    errno.EISDIR: "is a folder",
    errno.ENOTDIR: "lies below a file that is no folder",
    errno.ELOOP: "is a link that leads in circles or was just swapped",
    errno.ENXIO: "is no regular file (a pipe, socket or device)",
}

_BLANKS = re.compile("[\u00a0\u2002-\u200a\u202f\u205f\u3000]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_BYTE_ESCAPE = re.compile(rb"\\x([89a-f][0-9a-f])")


class Freshness(StrEnum):
    """What the model knows of a file's content."""

    UNREAD = "unread"
    FRESH = "fresh"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A real path, no link left in it. ``shown`` is relative to the cwd below it, else absolute.

    ``relative`` is the part below the root it is inside of (``/`` between names), None outside.
    ``other_names`` counts further hard links of an existing regular file.
    """

    path: Path
    shown: str
    relative: str | None = None
    other_names: int = 0

    @property
    def inside(self) -> bool:
        """Whether it lies in a root."""
        return self.relative is not None


@dataclass(frozen=True, slots=True)
class _Mark:
    modified_ns: int
    size: int
    digest: bytes


class Workspace:
    """Where tools work: ``cwd`` and the ``roots`` (the cwd is always one of them).

    ``own_folders`` are the program's config, data and state folders: nobody but the program writes there.
    """

    def __init__(
        self,
        cwd: Path,
        roots: Sequence[Path] = (),
        *,
        own_folders: Sequence[Path] = (),
        home: Path | None = None,
    ) -> None:
        self.cwd = Path(os.path.realpath(cwd))
        self.roots = tuple(dict.fromkeys((self.cwd, *(Path(os.path.realpath(root)) for root in roots))))
        self.home = Path(os.path.realpath(home or Path.home()))
        self._own_folders = tuple(Path(os.path.realpath(folder)) for folder in own_folders)
        self._marks: dict[Path, _Mark] = {}
        self._locks: weakref.WeakValueDictionary[Path, asyncio.Lock] = weakref.WeakValueDictionary()

    def resolve(self, text: str) -> ResolvedPath:
        """The real path behind a text; nothing needs to exist there. Raises ``ToolError`` for no path."""
        return self._resolve_literal(self._clean(text))

    def existing(self, text: str) -> ResolvedPath:
        """What the text names. Raises ``ToolError`` with suggestions when nothing is there."""
        resolved = self.resolve(text)
        if os.path.lexists(resolved.path):
            return resolved
        found, _ = self.find(text)
        raise ToolError(f"{text} does not exist. Did you mean {found.shown}?")

    def find(self, text: str) -> tuple[ResolvedPath, str | None]:
        """The existing file behind a text, and a note when it is not the one that was written.

        Look-alike blanks and quotes are retried; then the one project file that ends in the text is taken,
        unless it may hold secrets. Raises ``ToolError`` with suggestions. Walks part of the project when
        nothing is there: up to ``_GUESS_TIME_S``.
        """
        cleaned = self._clean(text)
        resolved = self._resolve_literal(cleaned)
        if os.path.lexists(resolved.path):
            return resolved, None
        alike = self._look_alike(resolved.path)
        candidates = (alike,) if alike is not None else self._ending_in(cleaned)
        candidates = tuple(path for path in candidates if not guarded.secret_reason(path, self.home))
        if len(candidates) == 1:
            found = self._resolve_literal(str(candidates[0]))
            if found.inside or alike is not None:
                return found, f"{text} does not exist; this is {found.shown}."
        raise ToolError(self._not_found(text, candidates))

    def is_own(self, resolved: ResolvedPath) -> bool:
        """Whether the path belongs to the program itself. A project that lies in such a folder does not."""
        path = resolved.path
        return any(
            path.is_relative_to(folder)
            and not any(path.is_relative_to(root) for root in self.roots if root.is_relative_to(folder))
            for folder in self._own_folders
        )

    def is_own_secret(self, resolved: ResolvedPath) -> bool:
        """Whether it is a file of the program that holds keys: never read for a model."""
        return self.is_own(resolved) and resolved.path.name.casefold() in _OWN_SECRETS

    def hides(self, path: Path, start: Path) -> bool:
        """Whether a search from ``start`` may not show lines of a file, because it may hold secrets.

        A ``start`` that is or lies in such a place was approved by name.
        """
        if guarded.secret_reason(start, self.home) is not None:
            return False
        resolved = ResolvedPath(path, str(path))
        return guarded.secret_reason(path, self.home) is not None or self.is_own_secret(resolved)

    def protected_reason(self, resolved: ResolvedPath) -> str | None:
        """Why writing there asks in every mode but yolo."""
        parts = resolved.path.parts if resolved.relative is None else resolved.relative.split("/")
        return guarded.protected_reason(parts, resolved.path, self.home)

    def secret_reason(self, resolved: ResolvedPath) -> str | None:
        """Why reading that asks in every mode but yolo."""
        return guarded.secret_reason(resolved.path, self.home)

    def shown(self, path: Path) -> str:
        """A path as models and people see it: relative to the cwd below it."""
        if path == self.cwd:
            return "."
        return printable_name(str(path.relative_to(self.cwd) if path.is_relative_to(self.cwd) else path))

    def note_read(self, path: Path, digest: bytes) -> None:
        """Keeps in mind that the model knows this content (its SHA-256); also after our own writes."""
        status = path.stat()
        self._marks[path] = _Mark(status.st_mtime_ns, status.st_size, digest)

    def was_read(self, path: Path) -> bool:
        """Whether the model has seen the file or written it."""
        return path in self._marks

    def freshness(self, path: Path) -> Freshness:
        """Compares the file with what the model saw: time and size first, then the content. Blocking."""
        mark = self._marks.get(path)
        if mark is None:
            return Freshness.UNREAD
        try:
            status = path.stat()
            if (status.st_mtime_ns, status.st_size) == (mark.modified_ns, mark.size):
                return Freshness.FRESH
            same = status.st_size == mark.size and digest_of(path.read_bytes()) == mark.digest
        except OSError:
            return Freshness.CHANGED
        return Freshness.FRESH if same else Freshness.CHANGED

    def lock_for(self, path: Path) -> "asyncio.Lock":
        """The lock of writers of one file. It lives as long as somebody holds or waits for it."""
        import asyncio  # deferred: reading tools do not need it

        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock

    def _clean(self, text: str) -> str:
        """The path in a text: without quotes of other notations, ``~`` expanded."""
        if not text.strip():
            raise ToolError("The path is empty.")
        if _CONTROL.search(text):
            raise ToolError(f"{text!r} is no usable path: it contains a control character.")
        if text.startswith("file://"):
            parts = urlsplit(text)
            if parts.netloc not in ("", "localhost"):
                raise ToolError(f"{text} names a file of another machine.")
            text = unquote(parts.path)
            if _CONTROL.search(text):
                raise ToolError(f"{text!r} is no usable path: it contains a control character.")
        if text.startswith("@") and not os.path.lexists(self.cwd / text.split("/", 1)[0]):
            text = text[1:] or "."
        if text == "~" or text.startswith("~/"):
            text = str(self.home) + text[1:]
        return text

    def _resolve_literal(self, text: str) -> ResolvedPath:
        try:
            path = self._real(text)
            status = path.lstat() if os.path.lexists(path) else None
        except (OSError, ValueError) as error:
            raise ToolError(f"{text} is no usable path: {error}") from error
        more_names = status.st_nlink - 1 if status is not None and stat.S_ISREG(status.st_mode) else 0
        return ResolvedPath(path, self.shown(path), self._relative(path), more_names)

    def _real(self, text: str) -> Path:
        joined = self.cwd / text
        if "\\x" in text and not os.path.lexists(joined):
            data = _BYTE_ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), os.fsencode(joined))
            if os.path.lexists(data):
                joined = Path(os.fsdecode(data))
        return Path(os.path.realpath(joined))

    def _relative(self, path: Path) -> str | None:
        """The part below the first root that holds the path, component by component."""
        for root in self.roots:
            place = next((place for place in _DEVICE_PLACES if path.is_relative_to(place)), None)
            if place is not None and not root.is_relative_to(place):
                continue
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
            below = _below_by_identity(path, root)
            if below is not None:
                return below
        return None

    def _look_alike(self, path: Path) -> Path | None:
        """The one sibling whose name differs only in look-alike characters."""
        wanted = _plain_name(path.name)
        try:
            names = [name for name in os.listdir(path.parent) if _plain_name(name) == wanted]  # noqa: PTH208
        except OSError:
            return None
        return path.parent / names[0] if len(names) == 1 else None

    def _ending_in(self, text: str) -> tuple[Path, ...]:
        """Project files whose path ends in the text, else those with its last name; at most 5."""
        ending = f"/{text.removeprefix('./').lstrip('/')}"
        name = ending.rsplit("/", 1)[1]
        walk = Walk(str(self.cwd), str(self.cwd), _GUESS_TIME_S, _GUESS_ENTRIES)
        same_name = [
            entry for entry in walk.entries() if not entry.is_folder and _same_name(entry.path, name)
        ]
        exact = [entry for entry in same_name if f"/{entry.relative}".endswith(ending)]
        if walk.incomplete and len(exact) == 1:
            exact = []  # another one may lie in what was not looked at
        return tuple(Path(entry.path) for entry in (exact or same_name)[:5] if exact or len(same_name) > 1)

    def _not_found(self, text: str, candidates: Sequence[Path]) -> str:
        if not candidates:
            return f"{text} does not exist (the working folder is {self.cwd})."
        names = ", ".join(self.shown(path) for path in candidates)
        return f"{text} does not exist. Did you mean: {names}?"


def open_regular(resolved: ResolvedPath) -> BinaryIO:
    """The file opened for reading: a regular file only, never through a link, never waiting (SAF-42, 72).

    Raises ``ToolError`` for everything else.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(resolved.path, flags)
    except OSError as error:
        raise ToolError(f"{resolved.shown} {explain(error)}.") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "is a folder" if stat.S_ISDIR(mode) else "is no regular file (a pipe, socket or device)"
        raise ToolError(f"{resolved.shown} {kind}.")
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def explain(error: OSError) -> str:
    """What an operating-system error means, as the end of a sentence that starts with the path."""
    return _EXPLAINED.get(error.errno or 0) or f"cannot be used: {error.strerror or error}"


def printable_name(name: str) -> str:
    """A file-system name as valid text: bytes that are no UTF-8 as ``\\xe9``; ``resolve`` takes them back."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def digest_of(data: bytes) -> bytes:
    """The SHA-256 of a content, as ``note_read`` wants it."""
    return hashlib.sha256(data).digest()


def names_note(resolved: ResolvedPath) -> str | None:
    """What is said about further hard links (SAF-74)."""
    if not resolved.other_names:
        return None
    return f"the file has {plural(resolved.other_names + 1, 'name')}; writing detaches this one"


def _below_by_identity(path: Path, root: Path) -> str | None:
    """As ``is_relative_to``, by device and inode: file systems that ignore case, folders mounted twice."""
    try:
        wanted = root.stat()
    except OSError:
        return None
    for ancestor in path.parents:
        try:
            status = ancestor.stat()
        except OSError:
            continue
        if (status.st_dev, status.st_ino) == (wanted.st_dev, wanted.st_ino):
            return path.relative_to(ancestor).as_posix()
    return None


def _plain_name(name: str) -> str:
    name = unicodedata.normalize("NFC", name).translate(_QUOTES)
    return _BLANKS.sub(" ", name)


def _same_name(path: str, name: str) -> bool:
    return path.endswith(name) and path[-len(name) - 1 : -len(name)] in ("/", "")
