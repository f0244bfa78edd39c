"""What the list of sessions says about each, and in which order (TUI-4.80, 4.82). Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from musepi_tui.base.cells import cell_width
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import plural, short_number
from musepi_tui.tui.screens.panel import Item
from musepi_tui.tui.screens.search import Texts, texts_of
from musepi_tui.tui.widgets.drawing import one_line

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

Order: TypeAlias = Literal["best", "newest", "created", "size"]

ORDERS: Mapping[Order, str] = {
    "best": "",
    "newest": "newest first",
    "created": "by creation",
    "size": "by size",
}
"""Orders in the order the key goes through them, and what the title says. The best are those that fit a
search best; without one, the newest."""

TITLE_SHARE = 0.4
"""What a title keeps of the row it stands in, whatever else is known of its session."""

ESSENTIAL_CELLS = 20
"""Cells of what every row says: messages and time."""

MORE_CELLS = {"size": 8, "context": 6, "branches": 14, "model": 24, "compactions": 17}
"""What rows say besides when they are wide enough, the first ones first, and the cells most of them take."""

LEFT_OUT = ("messages", "tool", "folder")
"""What a row that is too narrow does without, the first one first."""

LABEL_CELLS = 16
"""What is left of a title before anything else is left out."""

MODEL_CHARS = 20


@dataclass(frozen=True, slots=True)
class Facts:
    """What a row depends on besides the session. ``belongs_here`` tells by a folder whether a session is one
    of the working folder, ``open_file`` is the file of the open one, ``window_of`` gives the tokens a model
    can hold, as far as it is known."""

    now_ms: int
    home: str
    open_file: Path | None
    belongs_here: Callable[[str], bool]
    window_of: Callable[[str], int | None]
    everywhere: bool = False
    order: Order = "best"
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
    texts = texts_of_info(info, facts.home)
    return SessionRow(info, item_of(info, facts), texts, facts.belongs_here(info.cwd))


def texts_of_info(info: "SessionInfo", home: str) -> Texts:
    """What is searched in a session: besides title, first message and id its folder, and a tool not ours."""
    besides = f"{short_folder(info.cwd, home)} {'' if info.is_own else tool_name(info)}"
    return texts_of(info.title, info.first_message, info.id, besides)


def item_of(info: "SessionInfo", facts: Facts) -> Item:
    """What is shown of a session; one of another tool names it, and says when it was copied already."""
    title = one_line(info.title or "(no prompt yet)")
    current = is_same_file(info.path, facts.open_file)
    return Item(str(info.path), title, " · ".join(details_of(info, facts).values()), current)


def sort_key(order: Order) -> Callable[[SessionRow], tuple[bool, str] | int | str]:
    """What the rows of an order are sorted by, largest first; of the newest those of this folder come first.

    Equal ones keep the order they are listed in.
    """
    match order:
        case "best" | "newest":
            return lambda row: (row.is_here, row.info.modified)
        case "created":
            return lambda row: row.info.created
        case "size":
            return lambda row: row.info.size


def shown_besides(width_cells: int) -> tuple[str, ...]:
    """Which of ``MORE_CELLS`` the rows of that width have room for."""
    room = width_cells - ESSENTIAL_CELLS - int(width_cells * TITLE_SHARE)
    names: list[str] = []
    for name, cells in MORE_CELLS.items():
        if cells <= room:
            names.append(name)
            room -= cells
    return tuple(names)


def fitting_details(details: Mapping[str, str], room_cells: int) -> list[str]:
    """As much of what a row says as fits."""
    known = dict(details)
    for name in LEFT_OUT:
        if sum(cell_width(text) + 3 for text in known.values()) - 3 <= room_cells:
            break
        known.pop(name, None)
    return list(known.values())


def facts_besides(info: "SessionInfo", facts: Facts) -> dict[str, str]:
    """What is known of a session besides what its row says anyway, by the names of ``MORE_CELLS``.

    One branch, no compaction and what nobody knows are left out.
    """
    branches, compactions = info.branches or 0, info.compactions or 0
    share = context_share(info, facts)
    known = {
        "branches": plural(branches, "branch", "branches") if branches > 1 else "",
        "size": f"{short_number(info.size)}B" if facts.order != "size" else "",
        "context": "" if share is None else f"{share}%",
        "model": _end_of(one_line(info.model.partition("/")[2]), MODEL_CHARS),
        "compactions": plural(compactions, "compaction") if compactions else "",
    }
    return {name: text for name, text in known.items() if text}


def context_share(info: "SessionInfo", facts: Facts) -> int | None:
    """Percent of its window that the context of a session takes; None when one of both is not known."""
    window = facts.window_of(info.model)
    return None if not window or info.context_tokens is None else info.context_tokens * 100 // window


def describe_damaged(file: "DamagedFile") -> Item:
    """The row of a file that cannot be opened, and why."""
    return Item(f"{DAMAGED}{file.path}", one_line(file.path.name), one_line(file.reason))


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


def details_of(info: "SessionInfo", facts: Facts) -> dict[str, str]:
    """What the row of a session says besides its title."""
    if facts.paths:
        return {"path": _end_of(one_line(short_folder(str(info.path), facts.home)), PATH_CHARS)}
    parts = {} if info.is_own else {"tool": tool_name(info) + (", imported" if info.imported else "")}
    if facts.everywhere and info.cwd:
        parts["folder"] = _end_of(one_line(short_folder(info.cwd, facts.home)), FOLDER_CHARS)
    count = plural(info.messages, "message")
    parts["messages"] = count if info.messages_exact else count.replace(" ", "+ ", 1)
    match facts.order:
        case "best" | "newest":
            parts["order"] = age(info.modified, facts.now_ms)
        case "created":
            parts["order"] = f"made {age(info.created, facts.now_ms)}"
        case "size":
            parts["order"] = f"{short_number(info.size)}B"
    return parts


def _end_of(text: str, chars: int) -> str:
    """The last ``chars`` characters, after an ellipsis when something was left out."""
    return text if len(text) <= chars else f"…{text[len(text) - chars + 1 :]}"
