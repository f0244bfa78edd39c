"""Line selectors at the end of paths, and which read makes which superfluous (compaction 5.2)."""

import re

from musepi_tui.session.messages import ToolCallBlock

_CHUNK = r"L?\d+(?:(?:-|\+|\.\.)L?\d+|-|\.\.)?"
_LIST = rf"{_CHUNK}(?:,{_CHUNK})*"
_SELECTOR = re.compile(rf"(?:{_LIST}|raw|conflicts|raw:{_LIST}|{_LIST}:raw)", re.IGNORECASE | re.ASCII)

READ_TOOL = "read"


def split_selector(path: str) -> tuple[str, str | None]:
    """The path a ``read`` call names, without its line selector, and the selector."""
    for colon in (_last_but_one_colon(path), path.rfind(":")):
        if colon > 0 and _SELECTOR.fullmatch(path, colon + 1):
            return path[:colon], path[colon + 1 :]
    return path, None


def supersede_key(call: ToolCallBlock) -> str | None:
    """What a ``read`` call has read: the path, and behind a NUL its selector; None for everything else.

    A later read with the same key, or with the key of the whole file, makes the result superfluous. The
    arguments ``offset`` and ``limit`` choose lines as a selector does.
    """
    path: object = call.arguments.get("path")
    if call.name != READ_TOOL or not isinstance(path, str) or not path or "://" in path:
        return None
    base, selector = split_selector(path)
    lines = [call.arguments.get(name) for name in ("offset", "limit")]
    if any(number is not None for number in lines):
        selector = f"{selector or ''}@{lines[0]}+{lines[1]}"
    return base if selector is None else f"{base}\0{selector}"


def base_of_key(key: str) -> str:
    """The key of the whole file that a key is about."""
    return key.partition("\0")[0]


def _last_but_one_colon(path: str) -> int:
    last = path.rfind(":")
    return path.rfind(":", 0, last) if last > 0 else -1
