"""Small files of the state folder: the history of prompts (TUI-3.4), and what becomes of broken ones."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from musepi_tui.base.files import atomic_write, make_private_folder, read_regular, refuse_irregular
from musepi_tui.session.codec import dump_json
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.storage.new_file import write_all
from musepi_tui.storage.paths import Paths

KEPT_PROMPTS = 100
"""Prompts one project recalls."""

COMPACT_AT_BYTES = 1024 * 1024
"""A history file that grew past this is cut to the last prompts of every project."""

MAX_BYTES = 256 * 1024 * 1024
"""A bigger file is not one of ours: it is cut at ``COMPACT_AT_BYTES``, behind a prompt of any length."""

MAX_BAD_FILES = 9
"""Broken files of one name that are kept; after that the last one is replaced."""


class PromptHistory:
    """What was typed in a project, in one file for all projects. An unreadable line is passed over."""

    def __init__(self, paths: Paths, cwd: Path) -> None:
        self._path = paths.state / "history.jsonl"
        self._project = str(cwd)
        self._last: str | None = None

    def load(self) -> list[str]:
        """The last prompts of the project, oldest first. Raises ``OSError``."""
        prompts = [text for project, text in self._records() if project == self._project][-KEPT_PROMPTS:]
        self._last = prompts[-1] if prompts else None
        return prompts

    def append(self, text: str) -> None:
        """Adds a prompt unless it is empty or the same as the one before. Raises ``OSError``."""
        if not text.strip() or text == self._last:
            return
        self._last = text
        line = dump_json({"project": self._project, "text": text}) + b"\n"
        make_private_folder(self._path.parent)
        # Without O_NONBLOCK a pipe of that name would wait for a reader.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            refuse_irregular(os.fstat(descriptor), self._path)
            write_all(descriptor, line)
            is_big = os.fstat(descriptor).st_size > COMPACT_AT_BYTES
        finally:
            os.close(descriptor)
        if is_big:
            self._compact()

    def _compact(self) -> None:
        by_project: dict[str, list[str]] = {}
        for project, text in self._records():
            by_project.setdefault(project, []).append(text)
        lines = [
            dump_json({"project": project, "text": text}) + b"\n"
            for project, prompts in by_project.items()
            for text in prompts[-KEPT_PROMPTS:]
        ]
        atomic_write(self._path, b"".join(lines), mode=0o600)

    def _records(self) -> Iterator[tuple[str, str]]:
        try:
            data = read_regular(self._path, MAX_BYTES)
        except FileNotFoundError:
            return
        for line in data.split(b"\n"):
            try:
                record = as_object(json.loads(line)) or {}
            except (ValueError, RecursionError):
                continue
            project, text = as_text(record.get("project")), as_text(record.get("text"))
            if project is not None and text is not None:
                yield project, text


def set_aside(path: Path) -> Path | None:
    """Renames a state file that cannot be used to ``NAME.bad-<n>``; None when that failed (SAF-15)."""
    for number in range(1, MAX_BAD_FILES + 1):
        aside = path.with_name(f"{path.name}.bad-{number}")
        if not os.path.lexists(aside) or number == MAX_BAD_FILES:
            try:
                path.replace(aside)
            except OSError:
                return None
            return aside
    return None
