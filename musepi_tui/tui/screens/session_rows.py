"""What the list of sessions says about each, and in which order (TUI-4.80, 4.82). Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import plural, short_number
from musepi_tui.tui.screens.panel import Item
from musepi_tui.tui.screens.search import Texts, texts_of

if TYPE_CHECKING:
    from musepi_tui.storage.listing import DamagedFile, SessionInfo

TOOLS = {"musepi": "MusePi", "claude": "Claude Code", "codex": "Codex"}
"""What tools are called that do not go by the name of their command."""

FOLDER_CHARS = 24
"""What is shown of a folder, its end: enough for two names, and the title keeps half of a narrow screen."""

PATH_CHARS = 56
"""The same of a file: a name with its time and id, and some of its folder."""

DAMAGED = "damaged:"
"""What the key of a file that is no session begins with."""

Order: TypeAlias = Literal["newest", "created", "size"]

ORDERS: Mapping[Order, str] = {"newest": "", "created": "by creation", "size": "by size"}
"""Orders in the order the key goes through them, and what the title says. While a search runs the best comes
first instead of the newest."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a row depends on besides the session. ``belongs_here`` tells by a folder whether a session is one
    of the working folder, ``open_file`` is the file of the open one."""

    now_ms: int
    home: str
    open_file: Path | None
    belongs_here: Callable[[str], bool]
    everywhere: bool = False
    order: Order = "newest"
    paths: bool = False


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session, its row and what a search looks at."""

    info: "SessionInfo"
    item: Item
    texts: Texts
    is_here: bool

    @property
    def has_own_name(self) -> bool:
        """Whether somebody gave it its title, and not its first message."""
        return self.info.is_named and self.info.title != self.info.first_message


def row_of(info: "SessionInfo", facts: Facts) -> SessionRow:
    """The row of a session and what is searched in it."""
    besides = f"{short_folder(info.cwd, facts.home)} {'' if info.is_own else tool_name(info)}"
    texts = texts_of(info.title, info.first_message, info.id, besides)
    return SessionRow(info, item_of(info, facts), texts, facts.belongs_here(info.cwd))


def item_of(info: "SessionInfo", facts: Facts) -> Item:
    """What is shown of a session; one of another tool names it, and says when it was copied already."""
    title = _one_line(info.title or "(no prompt yet)")
    current = is_same_file(info.path, facts.open_file)
    return Item(str(info.path), title, " · ".join(_details(info, facts)), current)


def sort_key(order: Order) -> Callable[[SessionRow], tuple[object, ...]]:
    """What the rows of an order are sorted by, largest first; the newest come in the order they are listed,
    those of this folder first."""
    match order:
        case "newest":
            return lambda row: (row.is_here,)
        case "created":
            return lambda row: (row.info.created,)
        case "size":
            return lambda row: (row.info.size,)


def describe_damaged(file: "DamagedFile") -> Item:
    """The row of a file that cannot be opened, and why."""
    return Item(f"{DAMAGED}{file.path}", _one_line(file.path.name), _one_line(file.reason))


def age(time: str, now_ms: int) -> str:
    """How long ago a time of a session file was: ``now``, ``5m``, ``3h``, ``2d``; empty when it is none."""
    try:
        then_ms = datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:
        return ""
    minutes = int(max(0.0, now_ms - then_ms)) // 60_000
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes}m"
    return f"{minutes // 60}h" if minutes < 48 * 60 else f"{minutes // 1440}d"


def is_same_file(path: Path, other: Path | None) -> bool:
    """Whether both are one file; links are followed only where the names agree."""
    if other is None or path.name != other.name:
        return False
    return path == other or path.resolve() == other.resolve()


def short_folder(folder: str, home: str) -> str:
    """A folder, with ``~`` for the home folder."""
    is_below = home not in ("", "/") and (folder == home or folder.startswith(f"{home}/"))
    return f"~{folder[len(home) :]}" if is_below else folder


def tool_name(info: "SessionInfo") -> str:
    """What the tool is called that wrote a session."""
    return TOOLS.get(info.tool, info.tool)


def _details(info: "SessionInfo", facts: Facts) -> list[str]:
    if facts.paths:
        return [_end_of(_one_line(short_folder(str(info.path), facts.home)), PATH_CHARS)]
    parts = [] if info.is_own else [tool_name(info) + (", imported" if info.imported else "")]
    if facts.everywhere and info.cwd:
        parts.append(_end_of(_one_line(short_folder(info.cwd, facts.home)), FOLDER_CHARS))
    count = plural(info.messages, "message")
    parts.append(count if info.messages_exact else count.replace(" ", "+ ", 1))
    match facts.order:
        case "newest":
            parts.append(age(info.modified, facts.now_ms))
        case "created":
            parts.append(f"made {age(info.created, facts.now_ms)}")
        case "size":
            parts.append(f"{short_number(info.size)}B")
    return parts


def _one_line(text: str) -> str:
    return " ".join(display_safe(text).split())


def _end_of(text: str, chars: int) -> str:
    """The last ``chars`` characters, after an ellipsis when something was left out."""
    return text if len(text) <= chars else f"…{text[len(text) - chars + 1 :]}"
