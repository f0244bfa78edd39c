"""Tool views for calls that bring none: while arguments stream, and in sessions of other programs."""

from collections.abc import Mapping
from typing import Any, cast, get_args

from musepi_tui.session.calls import command_title, main_argument
from musepi_tui.tools.types import ToolView, ViewKind

_KINDS = frozenset(get_args(ViewKind))

_TAIL_TOOLS = frozenset({"bash", "shell", "exec", "python"})
"""Tools whose end matters most, as the other programs of the family call them."""


def view_of_call(name: str, arguments: Mapping[str, Any]) -> ToolView:
    """How a call is drawn that nobody made a view for. Arguments may be incomplete or of any type."""
    match name:
        case "bash":
            return ToolView("tail", command_title(_text(arguments.get("command"))))
        case "read":
            return ToolView("none", f"read {_path(arguments)}{_line_range(arguments)}")
        case "write":
            content = arguments.get("content")
            body = content if isinstance(content, str) else ""
            return ToolView("code", f"write {_path(arguments)}", body, language_of(_path(arguments)))
        case "edit" | "ls":
            return ToolView("text" if name == "edit" else "list", f"{name} {_path(arguments)}".strip())
        case "grep" | "find":
            return ToolView("list", _search_title(name, arguments))
        case _:
            kind: ViewKind = "tail" if name.lower() in _TAIL_TOOLS else "text"
            return ToolView(kind, f"{name} {main_argument(arguments)}".strip())


def view_of_details(details: object) -> ToolView | None:
    """The view a result was stored with (``details.view``), None when there is none that can be read."""
    stored = cast("Mapping[str, Any]", details).get("view") if isinstance(details, Mapping) else None
    if not isinstance(stored, Mapping):
        return None
    fields = cast("Mapping[str, Any]", stored)
    kind, title = fields.get("kind"), fields.get("title")
    if kind not in _KINDS or not isinstance(title, str):
        return None
    return ToolView(
        cast("ViewKind", kind),
        title,
        _optional(fields, "body"),
        _optional(fields, "language"),
        _optional(fields, "note"),
    )


def language_of(path: str) -> str | None:
    """The file name's suffix, which serves as the name of a language; None without one."""
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return suffix.lower() if dot and stem and suffix else None


def _search_title(name: str, arguments: Mapping[str, Any]) -> str:
    pattern = _text(arguments.get("pattern"))
    shown = f"/{pattern}/" if name == "grep" else pattern
    where = _path(arguments)
    return f"{name} {shown}" + (f" in {where}" if where and where != "." else "")


def _line_range(arguments: Mapping[str, Any]) -> str:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if not isinstance(offset, int) and not isinstance(limit, int):
        return ""
    first = offset if isinstance(offset, int) else 1
    return f":{first}-{first + limit - 1}" if isinstance(limit, int) else f":{first}"


def _path(arguments: Mapping[str, Any]) -> str:
    return _text(arguments.get("path") or arguments.get("file_path"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _optional(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return value if isinstance(value, str) else None
