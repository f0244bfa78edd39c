"""Walks a folder as tools see a project (SAF-77): no links followed, no ``.git``, ``.gitignore`` obeyed.

Imports nothing heavy: the search worker runs it in a child of its own. ``pathspec`` is loaded with the first
``.gitignore`` that is met.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_DEPTH = 40
MAX_ENTRIES = 500_000

_IGNORE_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """An entry: ``path`` in the file system, ``relative`` to the start with ``/``."""

    path: str
    relative: str
    is_folder: bool
    is_link: bool


@dataclass(slots=True)
class Walk:
    """A walk and why it stopped early: ``incomplete`` is None, ``time`` or ``entries`` once it is over.

    ``top`` is the outermost folder whose ``.gitignore`` counts (the project).
    """

    start: str
    top: str
    time_limit_s: float
    max_entries: int = MAX_ENTRIES
    max_depth: int = MAX_DEPTH
    incomplete: str | None = None

    def entries(self) -> Iterator[Found]:
        """Everything below the start, folders before what is in them, names in order."""
        deadline = time.monotonic() + self.time_limit_s
        seen = 0
        rules = _Rules.above(self.start, self.top)
        waiting: list[tuple[str, str, int, _Rules]] = [(self.start, "", 0, rules)]
        while waiting:
            folder, prefix, depth, rules = waiting.pop()
            rules = rules.inside(folder)
            below: list[tuple[str, str, int, _Rules]] = []
            for entry in _scan(folder):
                seen += 1
                if seen > self.max_entries or time.monotonic() > deadline:
                    self.incomplete = "entries" if seen > self.max_entries else "time"
                    return
                found = _judge(entry, prefix, rules)
                if found is None:
                    continue
                yield found
                if found.is_folder and depth + 1 < self.max_depth:
                    below.append((found.path, f"{found.relative}/", depth + 1, rules))
            waiting.extend(reversed(below))


def matcher(pattern: str, *, anywhere: bool = True) -> Callable[[str], bool]:
    """Tells whether a relative path matches a glob: ``**`` any folders, ``*`` ``?`` ``[…]`` within a name.

    A pattern without ``/`` matches the name at any depth, or with ``anywhere`` false only at the top. Each
    part is tried once per position, so no pattern takes exponential time.
    """
    import fnmatch  # deferred: the walker alone does not need it
    import re

    alternatives = [
        [
            None if part == "**" else re.compile(fnmatch.translate(part))
            for part in _parts(option, anywhere=anywhere)
        ]
        for option in expand_braces(pattern)
    ]

    def matches(relative: str) -> bool:
        names = relative.split("/")
        return any(_parts_match(parts, names) for parts in alternatives)

    return matches


def expand_braces(pattern: str, limit: int = 64) -> list[str]:
    """``{a,b}`` written out, innermost first; past ``limit`` results the rest stays as it is."""
    import re  # deferred, as above

    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop(0)
        group = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if group is None or len(done) + len(waiting) > limit:
            done.append(text)
        else:
            waiting += [
                text[: group.start()] + choice + text[group.end() :] for choice in group[1].split(",")
            ]
    return list(dict.fromkeys(done))


def _parts(pattern: str, *, anywhere: bool) -> list[str]:
    pattern = pattern.removeprefix("./")
    parts = [part for part in pattern.strip("/").split("/") if part]
    if anywhere and "/" not in pattern.rstrip("/"):
        return ["**", *parts]
    return parts


def _parts_match(parts: list[Any], names: list[str]) -> bool:
    """Whether the parts (compiled, None for ``**``) match all names; one row of states per part."""
    states = {0}
    for part in parts:
        if part is None:
            states = set(range(min(states), len(names) + 1))
        else:
            states = {at + 1 for at in states if at < len(names) and part.match(names[at])}
        if not states:
            return False
    return len(names) in states


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _judge(entry: os.DirEntry[str], prefix: str, rules: "_Rules") -> Found | None:
    try:
        is_folder = entry.is_dir(follow_symlinks=False)
    except OSError:
        is_folder = False
    if entry.name == ".git" or rules.ignores(entry.path, is_folder=is_folder):
        return None
    return Found(entry.path, prefix + entry.name, is_folder, entry.is_symlink())


class _Rules:
    """The ``.gitignore`` files in force in a folder, outermost first."""

    def __init__(self, specs: tuple[tuple[str, Any], ...] = ()) -> None:
        self._specs = specs

    @classmethod
    def above(cls, start: str, top: str) -> "_Rules":
        """The rules of the folders from ``top`` down to the parent of ``start``."""
        rules = cls()
        if not Path(start).is_relative_to(top):
            return rules
        for folder in reversed(Path(start).parents):
            if folder.is_relative_to(top):
                rules = rules.inside(str(folder))
        return rules

    def inside(self, folder: str) -> "_Rules":
        """These rules and those of ``folder`` itself."""
        spec = _read_ignore_file(f"{folder}/.gitignore")
        return self if spec is None else _Rules((*self._specs, (folder, spec)))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the innermost file that says something about the path excludes it."""
        for folder, spec in reversed(self._specs):
            relative = path[len(folder) + 1 :] + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return bool(verdict)
        return False


def _read_ignore_file(path: str) -> Any:  # noqa: ANN401 - pathspec is imported late, its types too
    try:
        if not os.path.isfile(path):  # noqa: PTH113 - called for every folder
            return None
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            lines = file.read(_IGNORE_FILE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec  # deferred: 24 ms, and most folders have no such file

    return GitIgnoreSpec.from_lines(lines)
