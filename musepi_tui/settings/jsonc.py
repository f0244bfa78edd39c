"""JSON with ``//`` comments, and objects addressed by dotted keys."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.types import JsonValue

MAX_BYTES = 4_000_000
"""Largest settings file that is read; a real one has a few kilobytes."""

MAX_DEPTH = 200
"""Deepest nesting, whatever the Python version (contract 4.1)."""

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')


@dataclass(frozen=True, slots=True)
class BrokenJson(Exception):
    """The text is no JSON object. ``line`` and ``column`` are 1-based."""

    line: int
    column: int
    reason: str


def parse_object(data: bytes) -> tuple[dict[str, JsonValue], bool]:
    """The object in ``data``, and whether comments were left out. Raises ``BrokenJson``.

    An empty file is an empty object. Comments become blanks first, so positions stay right.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8", "replace"))
        raise BrokenJson(line, column, "the file is not UTF-8") from error
    plain = _STRING_OR_COMMENT.sub(_blank_comment, text)
    if not plain.strip():
        return {}, plain != text
    try:
        value = cast("JsonValue", json.loads(plain))
    except json.JSONDecodeError as error:
        raise BrokenJson(error.lineno, error.colno, error.msg.lower()) from error
    except ValueError as error:  # a number of more digits than Python turns into one
        raise BrokenJson(1, 1, str(error).split(";")[0].lower()) from error
    except RecursionError as error:
        raise BrokenJson(1, 1, f"nested deeper than {MAX_DEPTH}") from error
    if not isinstance(value, dict):
        raise BrokenJson(1, 1, "the file holds no object: it should begin with {")
    if not _is_shallow(value):
        raise BrokenJson(1, 1, f"nested deeper than {MAX_DEPTH}")
    return value, plain != text


def dump_object(value: Mapping[str, JsonValue]) -> bytes:
    """The object as the program writes it: two blanks of indent, text readable, one line break at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")


def set_path(tree: dict[str, JsonValue], key: str, value: JsonValue) -> None:
    """Stores ``value`` under the dotted ``key``; whatever stands in its way is replaced by an object."""
    *parents, last = key.split(".")
    for name in parents:
        below = tree.get(name)
        if not isinstance(below, dict):
            below = tree[name] = {}
        tree = below
    tree[last] = value


def remove_path(tree: dict[str, JsonValue], key: str) -> bool:
    """Removes the dotted ``key`` and objects left empty by that. False when it was not there."""
    name, _, rest = key.partition(".")
    if name not in tree:
        return False
    if not rest:
        del tree[name]
        return True
    below = tree[name]
    if not isinstance(below, dict) or not remove_path(below, rest):
        return False
    if not below:
        del tree[name]
    return True


def merge(base: dict[str, JsonValue], over: Mapping[str, JsonValue]) -> None:
    """Lays ``over`` on ``base``: objects merge by key, everything else replaces."""
    for name, value in over.items():
        below = base.get(name)
        if isinstance(value, dict):
            target = below if isinstance(below, dict) else {}
            base[name] = target
            merge(target, value)
        else:
            base[name] = value


def leaves(tree: Mapping[str, JsonValue], prefix: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Every dotted key with its value, in order. Empty objects have none."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def find_line(data: bytes, key: str) -> int | None:
    """The 1-based line where the last name of ``key`` stands behind its parents' names; None if not found."""
    position = 0
    text = data.decode("utf-8-sig", "replace")
    for name in key.split("."):
        found = re.compile(rf"{re.escape(json.dumps(name))}\s*:").search(text, position)
        if found is None:
            return None
        position = found.start()
    return text.count("\n", 0, position) + 1


def _blank_comment(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else " " * len(match[0])


def _position(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _is_shallow(value: JsonValue) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH):
        below: list[JsonValue] = []
        for node in level:
            if isinstance(node, dict):
                below += node.values()
            elif isinstance(node, list):
                below += node
        level = below
        if not level:
            return True
    return False
