"""What the transcript shows, as plain values: items and the block each of them draws.

An item's id is the id of its entry, with ``/n`` behind it when the entry gives several. Texts are raw: they
are made safe for the terminal where they are drawn.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.tools.types import ToolView


class ItemKind(StrEnum):
    """The kinds of items (tui 2.2); those of stored entries are the words of the ``transcript`` command."""

    HEADER = "header"
    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL = "toolCall"
    BASH = "bash"
    COMPACTION = "compaction"
    BRANCH_SUMMARY = "branchSummary"
    HANDOFF = "handoff"
    CUSTOM = "custom"
    NOTICE = "notice"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    FOLD = "fold"


class ToolState(StrEnum):
    """Where a tool call stands."""

    PENDING = "pending"
    WAITING = "waiting"
    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """The welcome at the top. The first line is the name, the others are told quietly."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UserBlock:
    """What the person wrote; ``captions`` stand for images."""

    text: str
    captions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """Markdown of the model. ``live``: more may come."""

    text: str
    live: bool = False


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """Reasoning of the model. ``seconds`` None when nobody measured it; ``redacted`` has no text."""

    text: str
    live: bool = False
    redacted: bool = False
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ToolBlock:
    """A tool call and its result.

    ``text`` is the stored output (or, while it runs, its tail); ``placeholder`` is what the session shows of
    an output that was pruned. ``arguments`` may be incomplete while they stream.
    """

    name: str
    state: ToolState
    view: ToolView
    text: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    captions: tuple[str, ...] = ()
    seconds: float | None = None
    placeholder: str | None = None


@dataclass(frozen=True, slots=True)
class BashBlock:
    """A command the person ran. ``exit_code`` None: it was killed."""

    command: str
    output: str
    exit_code: int | None
    cancelled: bool = False
    truncated: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class DividerBlock:
    """A line across the screen that opens to a text.

    ``heading`` and ``facts`` stand above the Markdown ``body``; ``files`` below it.
    """

    symbol: Literal["camera", "branch", "handoff"]
    label: str
    heading: str
    body: str
    facts: tuple[str, ...] = ()
    warning: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CustomBlock:
    """A message injected by the program or an extension."""

    label: str
    text: str
    captions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoticeBlock:
    """One line for the person. ``count``: how often in a row."""

    level: Literal["info", "warning", "error"]
    text: str
    detail: str | None = None
    count: int = 1

    def says(self, level: str, text: str) -> bool:
        """Whether it is the same line."""
        return (self.level, self.text) == (level, text)


@dataclass(frozen=True, slots=True)
class ErrorBlock:
    """A failed request: cause, remedy, and the message as it came when that says more."""

    cause: str
    remedy: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class InterruptedBlock:
    """The person stopped the answer."""


@dataclass(frozen=True, slots=True)
class FoldBlock:
    """Stands for history that is folded; ``messages`` None when it was not counted."""

    messages: int | None


TalkBlock: TypeAlias = UserBlock | AnswerBlock | ThinkingBlock | ToolBlock | BashBlock
NoteBlock: TypeAlias = (
    HeaderBlock | DividerBlock | CustomBlock | NoticeBlock | ErrorBlock | InterruptedBlock | FoldBlock
)
Block: TypeAlias = TalkBlock | NoteBlock


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to draw. ``revision`` grows when its block changes, so that drawings can be kept by it."""

    id: str
    kind: ItemKind
    block: Block
    revision: int = 0

    @property
    def is_running(self) -> bool:
        """Whether its sign turns."""
        return isinstance(self.block, ToolBlock) and self.block.state is ToolState.RUNNING
