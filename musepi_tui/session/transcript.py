"""The display transcript of a path as rows (compaction 1.5, contract 3)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from musepi_tui.session.dangling import find_dangling
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    Message,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    text_of,
)
from musepi_tui.session.rebuild import effective_compaction, is_retired, kept_range

SILENT_ABORTS = frozenset({"__veyyon.silent_abort__", "__omp.silent_abort__"})
"""Error texts that mark an abort nobody needs to see (session-format 4)."""

HANDOFF_TYPE = "handoff"
WARNING_TYPE = "compaction.warning"


class RowKind(StrEnum):
    """What a row shows, spelled as scripts see it."""

    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL_CALL = "toolCall"
    TOOL_RESULT = "toolResult"
    BASH = "bash"
    COMPACTION = "compaction"
    BRANCH_SUMMARY = "branchSummary"
    HANDOFF = "handoff"
    CUSTOM = "custom"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    """One row. ``warning`` is that of a compaction; ``is_error`` that of a tool result."""

    kind: RowKind
    entry_id: str
    text: str
    tool_name: str | None = None
    tool_call_id: str | None = None
    is_error: bool = False
    warning: str | None = None


def build_transcript(path: Sequence[Entry], *, collapse: bool = False) -> tuple[TranscriptRow, ...]:
    """The rows of a path, root first. With ``collapse`` only what is left after the last compaction is shown.

    Every compaction is a divider where it fired. Tool calls without a result are counted in one notice.
    """
    warnings = _late_warnings(path)
    shown = [path[index] for index in _shown_indexes(path, collapse=collapse)]
    messages = [entry.message for entry in shown if isinstance(entry, MessageEntry)]
    calls, _ = find_dangling(messages)
    rows: list[TranscriptRow] = []
    message_index = 0
    for entry in shown:
        dangling: set[int] = set()
        if isinstance(entry, MessageEntry):
            dangling = {place for index, place in calls if index == message_index} if calls else dangling
            message_index += 1
        rows.extend(_rows_of(entry, dangling, warnings))
    return tuple(rows)


def _shown_indexes(path: Sequence[Entry], *, collapse: bool) -> Sequence[int]:
    if not collapse:
        return range(len(path))
    resets = [index for index, entry in enumerate(path) if entry.type == "reset_boundary"]
    start = resets[-1] + 1 if resets else 0
    compaction = effective_compaction(path)
    kept: range | None = None
    if compaction is not None:
        kept = kept_range(path, compaction)
    else:
        compaction = _newest_unretired(path)
    if compaction is None or compaction < start:
        return range(start, len(path))
    return [*(range(compaction) if kept is None else kept), *range(compaction, len(path))]


def _newest_unretired(path: Sequence[Entry]) -> int | None:
    for index in range(len(path) - 1, -1, -1):
        entry = path[index]
        if isinstance(entry, CompactionEntry) and not is_retired(entry):
            return index
    return None


def _late_warnings(path: Sequence[Entry]) -> Mapping[str, str]:
    """Warnings stored after their compaction was written, by its id."""
    found: dict[str, str] = {}
    for entry in path:
        if isinstance(entry, StateEntry) and entry.fields.get("customType") == WARNING_TYPE:
            data = as_object(entry.fields.get("data")) or {}
            target_id, warning = as_text(data.get("targetId")), as_text(data.get("warning"))
            if target_id and warning:
                found[target_id] = warning
    return found


def _rows_of(entry: Entry, dangling: set[int], warnings: Mapping[str, str]) -> Iterator[TranscriptRow]:
    match entry:
        case MessageEntry():
            yield from _message_rows(entry.id, entry.message, dangling)
        case CompactionEntry():
            warning = warnings.get(entry.id) or entry.warning
            yield TranscriptRow(RowKind.COMPACTION, entry.id, entry.summary, warning=warning)
        case BranchSummaryEntry():
            if entry.summary:
                yield TranscriptRow(RowKind.BRANCH_SUMMARY, entry.id, entry.summary)
        case CustomMessageEntry():
            if entry.display:
                kind = RowKind.HANDOFF if entry.custom_type == HANDOFF_TYPE else RowKind.CUSTOM
                yield TranscriptRow(kind, entry.id, text_of(entry.content))
        case ContextEditEntry() | StateEntry():
            return
        case _:
            assert_never(entry)


def _message_rows(entry_id: str, message: Message, dangling: set[int]) -> Iterator[TranscriptRow]:
    match message:
        case UserMessage():
            yield TranscriptRow(RowKind.USER, entry_id, text_of(message.content))
        case AssistantMessage():
            yield from _answer_rows(entry_id, message, dangling)
        case ToolResultMessage():
            yield TranscriptRow(
                RowKind.TOOL_RESULT,
                entry_id,
                text_of(message.content),
                tool_name=message.tool_name,
                tool_call_id=message.tool_call_id,
                is_error=message.is_error,
            )
        case BashExecution():
            text = f"$ {message.command}\n{message.output}".rstrip("\n")
            is_error = message.exit_code not in (0, None)
            yield TranscriptRow(RowKind.BASH, entry_id, text, is_error=is_error)
        case _:
            yield from _other_rows(entry_id, message)


def _other_rows(
    entry_id: str,
    message: DeveloperMessage
    | CustomMessage
    | FileMention
    | BranchSummary
    | CompactionSummary
    | UnknownMessage,
) -> Iterator[TranscriptRow]:
    match message:
        case DeveloperMessage():
            yield TranscriptRow(RowKind.CUSTOM, entry_id, text_of(message.content))
        case CustomMessage():
            if message.display:
                yield TranscriptRow(RowKind.CUSTOM, entry_id, text_of(message.content))
        case FileMention():
            paths = ", ".join(as_text(file.get("path")) or "?" for file in message.files)
            yield TranscriptRow(RowKind.CUSTOM, entry_id, paths)
        case BranchSummary() | CompactionSummary():
            yield TranscriptRow(RowKind.CUSTOM, entry_id, message.summary)
        case UnknownMessage():
            yield TranscriptRow(RowKind.NOTICE, entry_id, f"A message of the unknown kind {message.role!r}.")
        case _:
            assert_never(message)


def _answer_rows(entry_id: str, message: AssistantMessage, dangling: set[int]) -> Iterator[TranscriptRow]:
    for place, block in enumerate(message.content):
        if isinstance(block, TextBlock) and block.text.strip():
            yield TranscriptRow(RowKind.ASSISTANT, entry_id, block.text)
        elif isinstance(block, ThinkingBlock) and block.thinking.strip():
            yield TranscriptRow(RowKind.THINKING, entry_id, block.thinking)
        elif isinstance(block, ToolCallBlock) and place not in dangling:
            arguments = json.dumps(dict(block.arguments), ensure_ascii=False)
            text = f"{block.name} {arguments}"
            yield TranscriptRow(
                RowKind.TOOL_CALL, entry_id, text, tool_name=block.name, tool_call_id=block.id
            )
    if dangling:
        count = len(dangling)
        what = "1 tool call" if count == 1 else f"{count} tool calls"
        yield TranscriptRow(RowKind.NOTICE, entry_id, f"{what} without a result")
    if message.stop_reason in (StopReason.ERROR, StopReason.ABORTED):
        reason = message.error_message or message.stop_reason.value
        if reason not in SILENT_ABORTS:
            yield TranscriptRow(RowKind.NOTICE, entry_id, reason, is_error=True)
