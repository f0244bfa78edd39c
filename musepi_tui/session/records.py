"""One physical line of a session file as a JSON object, or why it is none (session-format 7)."""

import json
from collections.abc import Mapping
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.fields import as_object

MAX_DEPTH = 200
"""How deep the JSON of a line may be nested (contract 4.1). Deeper lines exhaust the stack of readers."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Record:
    """A parsed line. ``is_repaired``: some bytes were no UTF-8 and were replaced."""

    fields: dict[str, Any]
    is_repaired: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no record: ``kind`` as in ``LoadIssue``, ``detail`` a few words."""

    kind: str
    detail: str


def parse_record(line: bytes) -> Record | Unreadable:
    """The record of a line without its LF; a BOM in front and a CR at the end are ignored."""
    text_bytes = line.removeprefix(_BOM).rstrip(b"\r")
    is_repaired = False
    try:
        text = text_bytes.decode("utf-8")
    except UnicodeDecodeError:
        text = text_bytes.decode("utf-8", "replace")
        is_repaired = True
    try:
        value: object = json.loads(text)
    except RecursionError:
        return Unreadable("too_deep", f"nested more than {MAX_DEPTH} deep")
    except json.JSONDecodeError as error:
        return Unreadable("bad_json", f"not JSON: {error.msg} at character {error.pos + 1}")
    except ValueError as error:  # a number with more digits than Python converts
        return Unreadable("bad_json", f"not JSON: {str(error)[:80]}")
    fields = as_object(value)
    if fields is None:
        return Unreadable("not_object", "JSON, but not an object")
    if text.count("[") + text.count("{") > MAX_DEPTH and is_too_deep(fields):
        return Unreadable("too_deep", f"nested more than {MAX_DEPTH} deep")
    return Record(fields, is_repaired)


def is_too_deep(value: object) -> bool:
    """Whether a parsed value is nested more than ``MAX_DEPTH`` deep; does not recurse."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def shape_problem(fields: Mapping[str, Any]) -> str | None:
    """What is wrong with the shape of an entry record, None when nothing is."""
    if not isinstance(fields.get("type"), str):
        return "no type"
    if not isinstance(fields.get("id"), str) or not fields["id"]:
        return "no id"
    if not isinstance(fields.get("parentId"), str | None):
        return "a parent id that is no text"
    if fields["type"] == "message" and not isinstance(
        (as_object(fields.get("message")) or {}).get("role"), str
    ):
        return "a message without a role"
    return None


def is_title_slot(fields: Mapping[str, Any]) -> bool:
    """Whether a record is the title slot of other tools (session-format 2.2)."""
    texts = all(isinstance(fields.get(key), str) for key in ("title", "updatedAt", "pad"))
    known_source = fields.get("source") in (None, "auto", "user")
    return fields.get("type") == "title" and fields.get("v") == 1 and texts and known_source


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # JSON
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # JSON
