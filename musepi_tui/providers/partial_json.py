"""Argument JSON that is still arriving, or that a proxy damaged (providers 11).

``parse_partial`` reads as much as is there; ``parse_complete`` is the strict end with one repair.
"""

import json
import re
from typing import Any, cast

from musepi_tui.base.types import JsonValue

_TOKEN = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'  # a string, closed or still open
    r"|[{}\[\],:]"
    r"|[^\s{}\[\],:\"]+",  # a number or a word
    re.DOTALL,
)
_ESCAPE_PAIR = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|[\x00-\x1f]|\\\Z", re.DOTALL)
_HALF_ESCAPE = r"\\(?:u[0-9a-fA-F]{0,3})?\Z"
_HALF_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_OPEN_ESCAPE = re.compile(rf"(?:{_HALF_PAIR})?{_HALF_ESCAPE}|{_HALF_PAIR}\Z")
_VALID_ESCAPES = frozenset('"\\/bfnrt')
MAX_DEPTH = 200
"""Deeper JSON is refused (contract 4.1), whatever the interpreter could do."""


class ArgumentsError(ValueError):
    """Tool arguments that cannot be read; the text says why, for the model."""


def load_json(text: str) -> JsonValue:
    """The value of ``text``; on failure once more after a repair of control characters and bad escapes.

    Raises ValueError when that fails too, or when it is nested over 200 deep.
    """
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ValueError(f"it is nested over {MAX_DEPTH} deep")
    try:
        return json.loads(text)
    except ValueError:
        repaired = repair(text)
        if repaired == text:
            raise
        return json.loads(repaired)


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _TOKEN.finditer(text):
        if match.group() in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
        elif match.group() in ("}", "]"):
            depth -= 1
    return deepest


def repair(text: str) -> str:
    """``text`` with control characters inside strings escaped and a backslash before no escape doubled."""
    pieces: list[str] = []
    position = 0
    for match in _TOKEN.finditer(text):
        pieces.append(text[position : match.start()])
        token = match.group()
        pieces.append(_ESCAPE_PAIR.sub(_repair_pair, token) if token.startswith('"') else token)
        position = match.end()
    pieces.append(text[position:])
    return "".join(pieces)


def _repair_pair(match: re.Match[str]) -> str:
    pair = match.group()
    if pair[0] != "\\":
        return f"\\u{ord(pair):04x}"
    if len(pair) == 2 and pair[1] in _VALID_ESCAPES or len(pair) == 6:
        return pair
    rest = pair[1:]
    return "\\\\" + (f"\\u{ord(rest):04x}" if rest and rest < " " else rest)


def parse_complete(text: str) -> dict[str, Any]:
    """The arguments of a finished tool call; empty text means none. Raises ArgumentsError."""
    if not text.strip():
        return {}
    try:
        value = load_json(text)
    except ValueError as error:
        raise ArgumentsError(f"The arguments are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ArgumentsError(f"The arguments must be a JSON object, not {_kind_name(value)}.")
    return cast("dict[str, Any]", value)


def _kind_name(value: object) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a string"
        case bool():
            return "a boolean"
        case None:
            return "null"
        case _:
            return "a number"


def parse_partial(text: str) -> dict[str, Any]:
    """What can already be read of arguments that are still arriving; ``{}`` when nothing can."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # checked for depth while closing
        value = _load_closed(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _load_closed(text: str) -> object:
    closed = close_open_ends(text)
    try:
        return json.loads(repair(closed)) if closed else None
    except (ValueError, RecursionError):
        return None


def close_open_ends(text: str) -> str:
    """``text`` cut back to its last whole value, with every open string, list and object closed."""
    walk = _Walk()
    for match in _TOKEN.finditer(text):
        if not walk.take(match, is_last=match.end() == len(text)):
            return ""
    return walk.close(text)


class _Walk:
    """Reads tokens and remembers the last position at which closing everything gives valid JSON."""

    __slots__ = ("_expects_key", "_good_end", "_good_stack", "_stack", "_tail")

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._expects_key = False
        self._good_end = 0
        self._good_stack = ""
        self._tail = ""

    def take(self, match: re.Match[str], *, is_last: bool) -> bool:
        """Reads one token; False when the text is nested too deep."""
        token = match.group()
        match token[0]:
            case "{" | "[":
                self._stack.append("}" if token == "{" else "]")
                self._expects_key = token == "{"
                self._mark(match.end())
                return len(self._stack) <= MAX_DEPTH
            case "}" | "]":
                if self._stack:
                    self._stack.pop()
                self._expects_key = False
                self._mark(match.end())
            case ",":
                self._expects_key = bool(self._stack) and self._stack[-1] == "}"
            case ":":
                self._expects_key = False
            case '"':
                self._take_string(match, token)
            case _:
                self._take_word(match, token, is_last=is_last)
        return True

    def _take_string(self, match: re.Match[str], token: str) -> None:
        if self._expects_key:
            return
        closed = len(token) > 1 and _is_closed(token)
        self._mark(match.end(), "" if closed else token)

    def _take_word(self, match: re.Match[str], token: str, *, is_last: bool) -> None:
        if self._expects_key:
            return
        if token in ("true", "false", "null") or not is_last:
            self._mark(match.end())
            return
        number = re.match(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", token)
        if number:
            self._mark(match.start() + number.end())

    def _mark(self, end: int, open_string: str = "") -> None:
        self._good_end = end
        self._good_stack = "".join(reversed(self._stack))
        self._tail = open_string

    def close(self, text: str) -> str:
        head = text[: self._good_end]
        if self._tail:
            head = _OPEN_ESCAPE.sub("", head) if _has_open_escape(self._tail) else head
            head += '"'
        return head + self._good_stack


def _is_closed(token: str) -> bool:
    if not token.endswith('"'):
        return False
    return not _has_open_escape(token[:-1])


def _has_open_escape(token: str) -> bool:
    """Whether the string ends inside an escape: odd backslash, ``\\uXX`` without its digits, half a pair."""
    tail = _OPEN_ESCAPE.search(token, max(0, len(token) - 12))
    if tail is None:
        return False
    head = token[: tail.start()]
    return (len(head) - len(head.rstrip("\\"))) % 2 == 0
