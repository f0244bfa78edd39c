"""Searches files for a pattern; runs as a child process, because nothing else can be stopped in the middle
of a regular expression (SAF-43).

Prints the events of ``rg --json`` as far as ``tools.search`` reads them. Imports nothing but the walker.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from musepi_tui.tools.walker import Walk, matcher

_MAX_FILE_BYTES = 50 * 1024 * 1024
_HEAD_BYTES = 8_192


@dataclass(frozen=True, slots=True)
class SearchJob:
    """What to search. ``start`` is a file or a folder, ``top`` the folder whose ``.gitignore`` counts."""

    pattern: str
    start: str
    top: str
    glob: str | None = None
    ignore_case: bool = False
    literal: bool = False
    context: int = 0


def main(arguments: list[str]) -> int:
    """Runs the job in the first argument (JSON of a ``SearchJob``)."""
    job = SearchJob(**json.loads(arguments[0]))
    source = re.escape(job.pattern) if job.literal else job.pattern
    try:
        wanted = re.compile(source, re.IGNORECASE if job.ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.write(f"regex parse error: {error}\n")
        return 2
    for path, shown in _files(job):
        for event in _search_file(path, shown, wanted, job.context):
            sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
    return 0


def _files(job: SearchJob) -> Iterator[tuple[str, str]]:
    if not os.path.isdir(job.start):  # noqa: PTH112 - plain strings as the walker gives them
        yield job.start, f"./{os.path.basename(job.start)}"  # noqa: PTH119 - as above
        return
    is_wanted = matcher(job.glob) if job.glob else None
    for entry in Walk(job.start, job.top, time_limit_s=3600).entries():
        is_file = not entry.is_folder and not entry.is_link
        if is_file and (is_wanted is None or is_wanted(entry.relative)):
            yield entry.path, f"./{entry.relative}"


def _search_file(path: str, shown: str, wanted: re.Pattern[str], context: int) -> Iterator[dict[str, object]]:
    """Match and context events of a file in line order."""
    lines = _read_lines(path)
    hits = [number for number, line in enumerate(lines) if wanted.search(line)]
    if not hits:
        return
    is_hit = set(hits)
    near = chain.from_iterable(
        range(max(0, hit - context), min(len(lines), hit + context + 1)) for hit in hits
    )
    for number in sorted(set(near)):
        found = wanted.search(lines[number]) if number in is_hit else None
        yield {
            "type": "context" if found is None else "match",
            "data": {
                "path": {"text": os.fsencode(shown).decode("utf-8", "backslashreplace")},
                "line_number": number + 1,
                "lines": {"text": lines[number]},
                "submatches": []
                if found is None
                else [{"start": len(lines[number][: found.start()].encode())}],
            },
        }


def _read_lines(path: str) -> list[str]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_size > _MAX_FILE_BYTES:
                return []
            data = file.read(_MAX_FILE_BYTES)
    except OSError:
        return []
    if b"\0" in data[:_HEAD_BYTES]:
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
