"""Entries of a session: what one line holds (compaction 1.1, session-format 3).

``raw`` is the parsed object of a line that was read; writing such an entry again starts from it, so fields
this version does not know keep their place. Entries made by the program have ``raw`` None.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.messages import Content, Message, Usage

KEEP_NOTHING = "compaction:keep-nothing"
"""``first_kept_entry_id`` of a compaction that kept no earlier entry. No entry may have that id."""


class EntryHead(NamedTuple):
    """The small part of an entry; ``offset`` and ``length`` are the bytes of its line, LF not counted.

    ``length`` 0 means that the line is not in the file yet. ``role`` is the message role when the head scan
    saw it, else None. A named tuple, because a big session makes a hundred thousand of them while it opens.
    """

    id: str
    parent_id: str | None
    type: str
    timestamp: str
    offset: int = 0
    length: int = 0
    role: str | None = None


@dataclass(frozen=True, slots=True)
class EntryBase:
    """Fields of every entry. ``timestamp`` is ISO 8601 as stored."""

    id: str
    parent_id: str | None
    timestamp: str


@dataclass(frozen=True, slots=True)
class MessageEntry(EntryBase):
    """A stored message."""

    message: Message
    raw: Mapping[str, Any] | None = None
    type: str = "message"


@dataclass(frozen=True, slots=True)
class CompactionEntry(EntryBase):
    """The divider: ``summary`` stands for everything before ``first_kept_entry_id``.

    ``reason`` is ``manual`` or a word of compaction 12.1; ``model`` is ``provider/id``; tokens are context
    tokens before and after the pass. ``first_kept_entry_id`` None re-expands from the first entry.
    """

    summary: str
    first_kept_entry_id: str | None
    tokens_before: int = 0
    tokens_after: int | None = None
    short_summary: str | None = None
    details: Any = None
    preserve_data: Mapping[str, Any] | None = None
    from_extension: bool = False
    warning: str | None = None
    method: str | None = None
    reason: str | None = None
    mid_turn: bool = False
    model: str | None = None
    duration_ms: int | None = None
    usage: Usage | None = None
    retained_tail: tuple[Message, ...] | None = None
    raw: Mapping[str, Any] | None = None
    type: str = "compaction"


@dataclass(frozen=True, slots=True)
class BranchSummaryEntry(EntryBase):
    """What was left behind when the leaf moved; child of the navigation target."""

    from_id: str | None
    summary: str
    details: Any = None
    from_extension: bool = False
    usage: Usage | None = None
    raw: Mapping[str, Any] | None = None
    type: str = "branch_summary"


@dataclass(frozen=True, slots=True)
class CustomMessageEntry(EntryBase):
    """A message injected by the program or an extension."""

    custom_type: str
    content: Content
    display: bool = True
    details: Any = None
    attribution: str | None = None
    raw: Mapping[str, Any] | None = None
    type: str = "custom_message"


@dataclass(frozen=True, slots=True)
class ContextEditEntry(EntryBase):
    """Changes what the model sees of ``target_id``: None drops it, else the new content (compaction 1.6)."""

    target_id: str
    replacement: Content | None
    reason: str | None = None
    pruned_at_ms: int | None = None
    raw: Mapping[str, Any] | None = None
    type: str = "context_edit"


@dataclass(frozen=True, slots=True)
class StateEntry(EntryBase):
    """Every other entry: model and level changes, labels, names, unknown types. ``fields`` are all fields
    beyond the base ones, in stored order, as JSON values."""

    type: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    raw: Mapping[str, Any] | None = None


Entry: TypeAlias = (
    MessageEntry | CompactionEntry | BranchSummaryEntry | CustomMessageEntry | ContextEditEntry | StateEntry
)


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The first record of a file. ``extra`` holds every other field, in order."""

    id: str
    timestamp: str
    cwd: str
    version: int = 3
    parent_session: str | None = None
    title: str | None = None
    title_source: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class LoadIssue:
    """Something wrong in a file. ``line`` is the 1-based physical line, ``offset`` its first byte.

    ``kind`` is a word of session-format 7: ``torn_tail bad_json bad_utf8 not_object bad_shape dup_id cycle
    orphan_relinked late_parent extra_header too_long too_deep``.
    """

    line: int
    offset: int
    kind: str
    detail: str
