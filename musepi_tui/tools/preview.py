"""Pieces of tool views: titles from arguments that may be half there or of any type. Never raises."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from musepi_tui.base.text import cut, plural
from musepi_tui.tools.limits import MAX_BYTES, cut_head, split_lines
from musepi_tui.tools.validate import plain_arguments

TITLE_CHARS = 400
"""Longest title; the screen cuts it to its own width anyway."""

_LANGUAGES = {
    "py": "python",
    "pyi": "python",
    "js": "javascript",
    "mjs": "javascript",
    "ts": "typescript",
    "tsx": "tsx",
    "jsx": "jsx",
    "sh": "bash",
    "bash": "bash",
    "rb": "ruby",
    "rs": "rust",
    "go": "go",
    "java": "java",
    "kt": "kotlin",
    "c": "c",
    "h": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "hpp": "cpp",
    "cs": "csharp",
    "php": "php",
    "html": "html",
    "css": "css",
    "scss": "scss",
    "json": "json",
    "toml": "toml",
    "yaml": "yaml",
    "yml": "yaml",
    "md": "markdown",
    "sql": "sql",
    "xml": "xml",
    "ini": "ini",
    "cfg": "ini",
    "swift": "swift",
    "lua": "lua",
    "diff": "diff",
}
"""Pygments names by file name extension; others are shown as plain text."""


def argument(arguments: Mapping[str, Any], name: str, default: str = "…") -> str:
    """A text argument under our name for it; ``default`` while it is missing or no text."""
    value = plain_arguments(arguments).get(name, default)
    return value if isinstance(value, str) else default


def title(*words: str) -> str:
    """One line of the words, blanks folded, cut to ``TITLE_CHARS``."""
    return cut(re.sub(r"\s+", " ", " ".join(word for word in words if word)).strip(), TITLE_CHARS)


def command_title(command: str) -> tuple[str, str | None]:
    """The first line of a command, and ``+3 lines`` for the others."""
    lines = split_lines(command.strip()) or [""]
    more = len(lines) - 1
    return title("$", lines[0]), f"+{plural(more, 'line')}" if more else None


def language_of(path: str) -> str | None:
    """The name of the language for highlighting, by the name of the file."""
    name = PurePath(path).name.lower()
    if name in ("makefile", "dockerfile"):
        return name
    return _LANGUAGES.get(name.rsplit(".", 1)[-1]) if "." in name else None


def shown_body(text: str) -> str:
    """A text for the body of a view, within the limits of a result: views are stored with the session."""
    part = cut_head(text, max_bytes=MAX_BYTES)
    return f"{part.text}\n… {plural(part.total - part.last, 'more line')}" if part.is_cut else part.text
