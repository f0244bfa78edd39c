"""The places of the transcript, one per entry of the path plus what exists on the screen only. Pure.

A slot is cheap: the bodies of its entry are read when it is drawn. Only then is known which items it holds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.columns import HeadList
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    EntryHead,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from musepi_tui.tui.transcript.blocks import HeaderBlock, NoticeBlock
from musepi_tui.tui.transcript.items import HIDDEN_TYPES
from musepi_tui.tui.transcript.live import LiveAnswer

_RECORD_BYTES: Mapping[str | None, int] = {"user": 180, "assistant": 520}
_OTHER_BYTES = 300
"""Bytes of a stored message that are not its text (ids, times, usage); only estimates depend on it."""

_ROWS_BY_TYPE = {
    "compaction": 2,
    "branch_summary": 2,
    "model_change": 2,
    "thinking_level_change": 2,
    "custom_message": 3,
}

_MIN_WIDTH = 20
"""Estimates for narrower screens would be absurdly tall, and are corrected anyway."""


@dataclass(slots=True)
class LocalSlot:
    """A slot no entry stands behind: the header, a notice, an answer being received.

    ``after`` is the entry it follows, None when it stands at the top; ``hidden`` slots take no rows.
    """

    id: str
    content: HeaderBlock | NoticeBlock | LiveAnswer
    after: str | None = None
    revision: int = 0
    hidden: bool = False


Slot: TypeAlias = EntryHead | LocalSlot


@dataclass(slots=True)
class Changes:
    """What happened to the slots since the last look.

    ``reset``: everything may differ. Else ``inserted`` are indexes in the order of insertion, and ``dirty``
    the indexes, valid after them, of slots whose items differ.
    """

    reset: bool = False
    inserted: list[int] = field(default_factory=list[int])
    dirty: set[int] = field(default_factory=set[int])

    def insert(self, index: int) -> None:
        """A slot was inserted before slot ``index``."""
        if index in self.dirty or any(known >= index for known in self.dirty):
            self.dirty = {known + 1 if known >= index else known for known in self.dirty}
        self.inserted.append(index)


def estimate_rows(slots: Iterable[Slot], width_cells: int) -> list[int]:
    """Rows each slot will take, guessed from the length of its line."""
    width = max(_MIN_WIDTH, width_cells)
    return [
        _estimate_local(slot)
        if isinstance(slot, LocalSlot)
        else _rows_of(_estimate_kind(slot.type, slot.role), slot.length, width)
        for slot in slots
    ]


def estimate_heads(heads: HeadList, width_cells: int) -> list[int]:
    """As ``estimate_rows``, for a stored path. 50,000 entries take about 15 ms."""
    width = max(_MIN_WIDTH, width_cells)
    columns = heads.columns
    kinds = [_estimate_kind(*pair) for pair in columns.kinds]
    codes, lengths = columns.codes, columns.lengths
    return [_rows_of(kinds[codes[place]], lengths[place], width) for place in heads.positions]


def _estimate_kind(kind: str, role: str | None) -> tuple[int, int, int]:
    """For a type and role: rows in any case, bytes of a line that make no rows (-1: none do), most rows."""
    if kind != "message":
        return _ROWS_BY_TYPE.get(kind, 0), -1, 0
    if role == "toolResult":
        return 0, -1, 0  # drawn with its call
    return 2, _RECORD_BYTES.get(role, _OTHER_BYTES), 42 if role == "user" else 2**31


def _rows_of(estimate: tuple[int, int, int], length: int, width: int) -> int:
    rows, other_bytes, most = estimate
    if other_bytes < 0 or length <= other_bytes:
        return rows
    return min(rows + (length - other_bytes) // width, most)


def head_of(entry: Entry) -> EntryHead:
    """A head for an entry that is not in the file yet; ``length`` is a guess for ``estimate_rows``."""
    role = message_role(entry.message) if isinstance(entry, MessageEntry) else None
    text_bytes = _text_chars(entry.message) if isinstance(entry, MessageEntry) else 0
    length = text_bytes + _RECORD_BYTES.get(role, _OTHER_BYTES)
    return EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp, 0, length, role)


def message_role(message: Message) -> str | None:
    """The roles the transcript tells apart; None for all others."""
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolResultMessage():
            return "toolResult"
        case _:
            return None


def is_hidden(entry: Entry) -> bool:
    """Whether an entry makes no item of its own whatever it holds."""
    match entry:
        case ContextEditEntry():
            return True
        case StateEntry():
            return entry.type in HIDDEN_TYPES
        case MessageEntry() | CompactionEntry() | BranchSummaryEntry() | CustomMessageEntry():
            return False


def _estimate_local(slot: LocalSlot) -> int:
    if slot.hidden:
        return 0
    match slot.content:
        case HeaderBlock():
            return len(slot.content.lines) + 1
        case NoticeBlock() | LiveAnswer():
            return 2


def _text_chars(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage():
            return sum(_block_chars(block) for block in blocks_of(message.content))
        case _:
            return 0


def _block_chars(block: Block) -> int:
    match block:
        case TextBlock():
            return len(block.text)
        case ThinkingBlock():
            return len(block.thinking)
        case _:
            return 40
