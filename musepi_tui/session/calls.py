"""Tool calls in one line."""

from collections.abc import Mapping
from typing import Any

from musepi_tui.base.text import plural

_MAIN_ARGUMENTS = (
    "path",
    "file_path",
    "filePath",
    "command",
    "cmd",
    "pattern",
    "query",
    "url",
    "name",
    "description",
    "prompt",
    "task",
)
"""Argument names that say most about a call, best first."""


def command_title(command: str) -> str:
    """``$ first line``, with the number of further lines behind it."""
    first, *others = command.strip("\n").split("\n")
    return f"$ {first}" + (f"  +{plural(len(others), 'line')}" if others else "")


def main_argument(arguments: Mapping[str, Any]) -> str:
    """One line for the argument that says most, empty without arguments."""
    for name in (*_MAIN_ARGUMENTS, *arguments):
        value = arguments.get(name)
        if isinstance(value, str | int | float) and str(value).strip():
            return " ".join(str(value).split())
    return ""
