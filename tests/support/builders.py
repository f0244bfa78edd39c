"""Short spellings of conversations.

``u("hi")``, ``a("text", calls=[call("read", path="x")])``, ``t("result")`` make messages; ``path(...)``
chains messages and entries into entries with the ids ``e1, e2, …``; ``compaction(...)`` and friends make
entries that ``path`` puts in place.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from musepi_tui.base.clock import iso_time
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
    DeveloperMessage,
    ImageBlock,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)

START_MS = 1_750_000_000_000
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Part: TypeAlias = Message | Entry


def words(number: int) -> str:
    """Text of exactly ``number`` tokens by the stub tokenizer (four characters each)."""
    return ("abc " * number)[: number * 4]


def u(text: str, *, images: int = 0, at_ms: int = 0) -> UserMessage:
    """A user message, with ``images`` one-pixel pictures behind the text."""
    content: tuple[Block, ...] = (TextBlock(text), *(ImageBlock(PIXEL, "image/png") for _ in range(images)))
    return UserMessage(content, timestamp_ms=at_ms)


def dev(text: str) -> DeveloperMessage:
    """A developer message."""
    return DeveloperMessage(text)


def call(tool: str, call_id: str = "", /, **arguments: Any) -> ToolCallBlock:
    """A tool call; without an id it is called after the tool."""
    return ToolCallBlock(call_id or f"call-{tool}", tool, arguments)


def a(
    text: str = "",
    calls: Sequence[ToolCallBlock] = (),
    *,
    thinking: str = "",
    stop: StopReason | None = None,
    usage: Usage | None = None,
    at_ms: int = 0,
    **fields: Any,
) -> AssistantMessage:
    """An answer of ``test/model``; the stop reason is ``toolUse`` where there are calls."""
    content: list[Block] = [ThinkingBlock(thinking)] if thinking else []
    content += [TextBlock(text)] if text else []
    content += calls
    message = AssistantMessage(
        content=tuple(content),
        api="openai-completions",
        provider="test",
        model="model",
        stop_reason=stop or (StopReason.TOOL_USE if calls else StopReason.STOP),
        usage=usage or Usage(input=100, output=10, total_tokens=110),
        timestamp_ms=at_ms,
    )
    return replace(message, **fields)


def t(
    text: str | int = "ok", call_id: str = "", tool: str = "read", *, error: bool = False, **fields: Any
) -> ToolResultMessage:
    """A tool result; a number makes that many tokens. It answers ``call(tool)`` unless told else."""
    body = words(text) if isinstance(text, int) else text
    message = ToolResultMessage(call_id or f"call-{tool}", tool, (TextBlock(body),), is_error=error)
    return replace(message, **fields)


def compaction(summary: str = "summary", first: str | None = None, **fields: Any) -> CompactionEntry:
    """A divider that keeps from the entry ``first`` on."""
    return CompactionEntry("", None, "", summary=summary, first_kept_entry_id=first, **fields)


def branch_summary(summary: str = "branch", from_id: str | None = None, **fields: Any) -> BranchSummaryEntry:
    """A summary of a branch left behind."""
    return BranchSummaryEntry("", None, "", from_id=from_id, summary=summary, **fields)


def custom(text: str, custom_type: str = "test", **fields: Any) -> CustomMessageEntry:
    """A message injected by the program."""
    return CustomMessageEntry("", None, "", custom_type=custom_type, content=text, **fields)


def edit(target_id: str, replacement: str | None = None, reason: str = "superseded") -> ContextEditEntry:
    """An edit of what the model sees of ``target_id``."""
    return ContextEditEntry("", None, "", target_id=target_id, replacement=replacement, reason=reason)


def state(entry_type: str, /, **entry_fields: Any) -> StateEntry:
    """An entry without text, such as ``state("model_change", model="test/model")``."""
    return StateEntry("", None, "", type=entry_type, fields=entry_fields)


def entry(part: Part, entry_id: str, parent_id: str | None, at_ms: int = START_MS) -> Entry:
    """The message or entry with this id at this place."""
    timestamp = iso_time(at_ms)
    if isinstance(
        part,
        MessageEntry
        | CompactionEntry
        | BranchSummaryEntry
        | CustomMessageEntry
        | ContextEditEntry
        | StateEntry,
    ):
        return replace(part, id=entry_id, parent_id=parent_id, timestamp=timestamp)
    stamped = part if part.timestamp_ms else replace(part, timestamp_ms=at_ms)
    return MessageEntry(entry_id, parent_id, timestamp, message=stamped)


def path(*parts: Part, ids: Sequence[str] = (), start_ms: int = START_MS) -> tuple[Entry, ...]:
    """A path of entries, root first, a second apart: ids ``e1, e2, …``, or the first ones from ``ids``."""
    made: list[Entry] = []
    for index, part in enumerate(parts):
        entry_id = ids[index] if index < len(ids) else f"e{index + 1}"
        made.append(entry(part, entry_id, made[-1].id if made else None, start_ms + 1000 * index))
    return tuple(made)


def heads(entries: Sequence[Entry]) -> tuple[EntryHead, ...]:
    """The heads of the entries, as if they were not in a file."""
    return tuple(EntryHead(made.id, made.parent_id, made.type, made.timestamp) for made in entries)


def stub_count(text: str) -> int:
    """The stub tokenizer of the specification: four characters a token, rounded up."""
    return (len(text) + 3) // 4
