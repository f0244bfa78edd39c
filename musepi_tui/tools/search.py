"""Searching: the command of the engine at hand (ripgrep, else our own worker), and its events read."""

import base64
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import musepi_tui
from musepi_tui.base.process import find_program
from musepi_tui.tools.limits import HIT_CHARS
from musepi_tui.tools.search_worker import SearchJob

_EVENT_BYTES = 8 * 1024 * 1024
"""A longer event (one line of a huge minified file) is dropped."""

_BEFORE_HIT_CHARS = 150
"""Part of a cut line shown before the hit, so that the hit is always in the shown part."""

_START_WORKER = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from musepi_tui.tools.search_worker import main; sys.exit(main(sys.argv[1:]))"
)


def search_command(job: SearchJob) -> tuple[tuple[str, ...], Path]:
    """Argument vector and working folder: a ripgrep from outside the project, else Python, isolated."""
    start = Path(job.start)
    folder = start if start.is_dir() else start.parent
    ripgrep = find_program("rg", Path(job.top))
    if ripgrep is not None:
        return (ripgrep, *_ripgrep_options(job), "--", "./" if start.is_dir() else f"./{start.name}"), folder
    home = str(Path(next(iter(musepi_tui.__path__))).parent)
    return (sys.executable, "-I", "-c", _START_WORKER, home, json.dumps(asdict(job))), folder


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of a file: a match, or a line near one."""

    path: str
    line: int
    text: str
    is_match: bool


@dataclass(slots=True)
class SearchEvents:
    """Collects the hits of a running search; ``take`` says when there are enough.

    ``is_hidden`` tells of a path (relative to the searched folder) whether its lines may not be shown; such
    files are only named in ``hidden``. ``errors`` is what the engine said that was no event.
    """

    limit: int
    is_hidden: Callable[[str], bool]
    hits: list[Hit] = field(default_factory=list[Hit])
    hidden: set[str] = field(default_factory=set[str])
    errors: list[str] = field(default_factory=list[str])
    matches: int = 0
    is_full: bool = False
    _rest: bytes = b""

    def take(self, block: bytes) -> bool:
        """Reads the next block of output. False once a match beyond the limit came."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        if len(self._rest) > _EVENT_BYTES:
            self._rest = b" "
        for line in lines:
            if not self.is_full:
                self._take_line(line)
        return not self.is_full

    def _take_line(self, line: bytes) -> None:
        try:
            event: Any = json.loads(line)
        except (ValueError, RecursionError):
            text = line.decode("utf-8", "replace").strip()
            if text and not text.startswith("{") and len(self.errors) < 20:
                self.errors.append(text)
            return
        fields: dict[str, Any] = cast("dict[str, Any]", event) if isinstance(event, dict) else {}
        if fields.get("type") not in ("match", "context"):
            return
        is_match = fields["type"] == "match"
        data: Mapping[str, Any] = fields["data"]
        path = _text(data["path"]).removeprefix("./")
        if self.is_hidden(path):
            self.hidden.add(path)
            return
        self.is_full = is_match and self.matches >= self.limit
        if not self.is_full:
            self.matches += is_match
            text = _text(data["lines"]).rstrip("\r\n").removeprefix("\ufeff")
            self.hits.append(Hit(path, data["line_number"], _window(text, data), is_match))


def layout(hits: list[Hit], shown: Callable[[str], str], *, with_context: bool) -> str:
    """``path:line: text`` for matches, ``path-line- text`` around them, ``--`` where lines are left out."""
    lines: list[str] = []
    previous: Hit | None = None
    for hit in hits:
        if with_context and previous and (hit.path, hit.line) != (previous.path, previous.line + 1):
            lines.append("--")
        sign = ":" if hit.is_match else "-"
        lines.append(f"{shown(hit.path)}{sign}{hit.line}{sign} {hit.text}")
        previous = hit
    return "\n".join(lines)


def _ripgrep_options(job: SearchJob) -> list[str]:
    options = ["--no-config", "--no-follow", "--json", "--hidden", "--sort=path", "--no-require-git"]
    options += ["--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", f"--context={job.context}"]
    if job.ignore_case:
        options.append("--ignore-case")
    if job.literal:
        options.append("--fixed-strings")
    if job.glob:
        options.append(f"--glob={job.glob}")
    return [*options, "--glob=!.git", f"--regexp={job.pattern}"]


def _text(value: Mapping[str, str]) -> str:
    """A text field of an event; what is no UTF-8 comes as base64."""
    if "text" in value:
        return value["text"]
    return (
        os.fsdecode(base64.b64decode(value["bytes"]))
        .encode("utf-8", "surrogateescape")
        .decode("utf-8", "replace")
    )


def _window(text: str, data: Mapping[str, Any]) -> str:
    """The line, or of a long one the part around its first hit."""
    if len(text) <= HIT_CHARS:
        return text
    offsets = [int(found["start"]) for found in data.get("submatches", ())]
    at = len(text.encode("utf-8", "replace")[: offsets[0]].decode("utf-8", "ignore")) if offsets else 0
    first = max(0, min(at - _BEFORE_HIT_CHARS, len(text) - HIT_CHARS)) if at > HIT_CHARS // 2 else 0
    end = "…" if first + HIT_CHARS < len(text) else ""
    return f"{'…' if first else ''}{text[first : first + HIT_CHARS]}{end}"
