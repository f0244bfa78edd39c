"""From the entries of a path to the items of an export, as a stream."""

import json
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Literal, assert_never

from musepi_tui.base.errors import SessionError
from musepi_tui.session.calls import command_title, main_argument
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
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    Content,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    ImageBlock,
    Message,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    blocks_of,
    text_of,
)
from musepi_tui.session.passes import NO_SUMMARY, handoff_text, pass_facts, split_files, token_line
from musepi_tui.session.transcript import HANDOFF_TYPE, SILENT_ABORTS, WARNING_TYPE
from musepi_tui.storage.exporters.items import (
    AnswerItem,
    CustomItem,
    DividerItem,
    ExportSource,
    Item,
    ModelItem,
    NoteItem,
    ShellItem,
    ThinkingItem,
    ToolItem,
    UsageItem,
    UserItem,
    diff_of,
    stored_view,
)

_SHELLS = frozenset({"bash", "shell", "exec", "python"})
_PRUNE_REASONS = frozenset({"superseded", "useless", "threshold", "dedup", "shake", "images", "tail", None})
"""Edits that only save tokens: an export shows what was there. Any other (``redact``) is what the person
wants to be seen instead."""

_NO_LONGER_SENT = "The model is no longer shown this."


def read_items(source: ExportSource) -> Iterator[Item]:
    """The items of the path of a session, root first. An entry that cannot be read is a note in its place."""
    return _Reader(source).items()


class _Reader:
    """One walk along the path."""

    def __init__(self, source: ExportSource) -> None:
        self._bodies = source.bodies
        self._heads: Sequence[EntryHead] = source.heads()
        self._next = 0
        self._ahead: deque[tuple[int, Entry | NoteItem]] = deque()
        self._answered: set[str] = set()
        self._model = ""
        self._edits: dict[str, tuple[int, ContextEditEntry]] = {}
        self._warnings: dict[str, str] = {}
        self._look_through()

    def items(self) -> Iterator[Item]:
        """The items, in order."""
        while True:
            known = self._ahead.popleft() if self._ahead else self._read_next()
            if known is None:
                return
            index, entry = known
            if isinstance(entry, NoteItem):
                yield entry
            elif entry.id in self._answered:
                self._answered.discard(entry.id)
            else:
                yield from self._items_of(index, entry)

    def _look_through(self) -> None:
        """What later entries say about earlier ones: edits, and warnings of compactions."""
        for index, head in enumerate(self._heads):
            if head.type not in ("context_edit", "custom"):
                continue
            entry = self._read(head)
            if isinstance(entry, ContextEditEntry):
                self._edits[entry.target_id] = (index, entry)
            elif isinstance(entry, StateEntry) and entry.fields.get("customType") == WARNING_TYPE:
                data = as_object(entry.fields.get("data")) or {}
                target_id, warning = as_text(data.get("targetId")), as_text(data.get("warning"))
                if target_id and warning:
                    self._warnings[target_id] = warning

    def _read_next(self) -> tuple[int, Entry | NoteItem] | None:
        if self._next >= len(self._heads):
            return None
        index = self._next
        self._next += 1
        return index, self._read(self._heads[index])

    def _read(self, head: EntryHead) -> Entry | NoteItem:
        try:
            return self._bodies.read_all((head,))[0]
        except SessionError as error:
            return NoteItem(head.id, head.timestamp, str(error), "warning")

    def _results_ahead(self, wanted: set[str]) -> dict[str, tuple[int, MessageEntry]]:
        """Results of the calls ``wanted``: they lie before the next answer or prompt."""
        found: dict[str, tuple[int, MessageEntry]] = {}
        place = 0
        while wanted - found.keys():
            if place == len(self._ahead):
                known = self._read_next()
                if known is None:
                    break
                self._ahead.append(known)
            index, entry = self._ahead[place]
            place += 1
            if not isinstance(entry, MessageEntry):
                continue
            message = entry.message
            if isinstance(message, AssistantMessage | UserMessage):
                break
            if isinstance(message, ToolResultMessage) and message.tool_call_id in wanted:
                found.setdefault(message.tool_call_id, (index, entry))
        return found

    def _items_of(self, index: int, entry: Entry) -> Iterator[Item]:
        match entry:
            case MessageEntry():
                yield from self._message_items(index, entry)
            case CompactionEntry():
                yield _compaction_item(entry, self._warnings.get(entry.id) or entry.warning)
                if entry.usage is not None:
                    yield UsageItem(entry.id, entry.timestamp, entry.usage)
            case BranchSummaryEntry():
                if entry.summary.strip():
                    yield _branch_item(entry)
            case CustomMessageEntry():
                if entry.display:
                    yield _custom_item(entry, entry.custom_type, entry.content)
            case StateEntry():
                yield from self._state_items(entry)
            case ContextEditEntry():
                return
            case _:
                assert_never(entry)

    def _message_items(self, index: int, entry: MessageEntry) -> Iterator[Item]:
        message = self._seen(index, entry)
        match message:
            case None:
                yield NoteItem(entry.id, entry.timestamp, "A message was taken out here.")
            case UserMessage():
                yield UserItem(
                    entry.id, entry.timestamp, text_of(message.content), images_of(message.content)
                )
            case AssistantMessage():
                yield from self._answer_items(entry, message)
            case ToolResultMessage():
                yield self._tool_item(entry, None, (index, entry))
            case BashExecution():
                yield _shell_item(entry, message)
            case _:
                yield from _other_items(entry, message)

    def _seen(self, index: int, entry: MessageEntry) -> Message | None:
        """The message as the person wants it to be seen: None when it was taken out."""
        at, edit = self._edits.get(entry.id, (-1, None))
        if edit is None or at < index or edit.reason in _PRUNE_REASONS:
            return entry.message
        if edit.replacement is None:
            return None
        return _with_content(entry.message, edit.replacement)

    def _answer_items(self, entry: MessageEntry, message: AssistantMessage) -> Iterator[Item]:
        model = f"{message.provider}/{message.model}".strip("/")
        if model and model != self._model:
            self._model = model
            yield ModelItem(entry.id, entry.timestamp, model)
        calls = {block.id for block in message.content if isinstance(block, ToolCallBlock)}
        results = self._results_ahead(calls) if calls else {}
        self._answered.update(result.id for _, result in results.values())
        for block in message.content:
            match block:
                case TextBlock():
                    if block.text.strip():
                        yield AnswerItem(entry.id, entry.timestamp, block.text)
                case ThinkingBlock():
                    if block.redacted or block.thinking.strip():
                        yield ThinkingItem(entry.id, entry.timestamp, block.thinking)
                case ToolCallBlock():
                    yield self._tool_item(entry, block, results.get(block.id))
                case ImageBlock():
                    yield CustomItem(entry.id, entry.timestamp, "picture", "", (block,))
                case OpaqueBlock():
                    kind = block.raw.get("type", "?")
                    yield NoteItem(entry.id, entry.timestamp, f"A block of the unknown kind {kind!r}.")
                case _:
                    assert_never(block)
        yield from _end_items(entry, message)

    def _tool_item(
        self, entry: MessageEntry, call: ToolCallBlock | None, result: tuple[int, MessageEntry] | None
    ) -> ToolItem:
        """The call joined with its result; either may be missing."""
        arguments: dict[str, Any] = dict(call.arguments) if call is not None else {}
        name = call.name if call is not None else ""
        title = call_title(name, arguments)
        if result is None:
            text = _pretty(arguments, title)
            return ToolItem(entry.id, entry.timestamp, name, title, text, "cancelled")
        index, answer = result
        message = self._seen(index, answer)
        if not isinstance(message, ToolResultMessage):
            message = ToolResultMessage("", name, (TextBlock("The result was taken out."),))
        view = stored_view(message.details)
        at, edit = self._edits.get(answer.id, (-1, None))
        state: Literal["ok", "failed"] = "failed" if message.is_error else "ok"
        return ToolItem(
            entry.id,
            entry.timestamp,
            name or message.tool_name,
            as_text(view.get("title")) or call_title(name or message.tool_name, arguments),
            _pretty(arguments, title),
            state,
            text_of(message.content),
            None if message.is_error else diff_of(message.details),
            as_text(view.get("note")) or "",
            images_of(message.content),
            _placeholder(edit) if edit is not None and at > index else None,
        )

    def _state_items(self, entry: StateEntry) -> Iterator[Item]:
        """Only what a reader needs to follow: where a `/clear` forgot everything."""
        if entry.type == "reset_boundary":
            yield NoteItem(entry.id, entry.timestamp, "The context was cleared here.")


def images_of(content: Content) -> tuple[ImageBlock, ...]:
    """The pictures of a message."""
    return tuple(block for block in blocks_of(content) if isinstance(block, ImageBlock))


def call_title(name: str, arguments: dict[str, Any]) -> str:
    """A call in one line."""
    if name.lower() in _SHELLS:
        command = as_text(arguments.get("command")) or as_text(arguments.get("cmd"))
        if command:
            return command_title(command)
    return f"{name} {main_argument(arguments)}".strip() or "tool"


def _pretty(arguments: dict[str, Any], title: str) -> str:
    """Arguments as people read them: a single text as it is, nothing when the title says it all."""
    values: list[object] = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return "" if values[0].strip() in title else values[0]
    return json.dumps(arguments, ensure_ascii=False, indent=2) if arguments else ""


def _placeholder(edit: ContextEditEntry) -> str | None:
    """What the model reads instead; None for an edit that is shown as it is."""
    if edit.reason not in _PRUNE_REASONS:
        return None
    text = "" if edit.replacement is None else " ".join(text_of(edit.replacement).split())
    return text or _NO_LONGER_SENT


def _with_content(message: Message, content: Content) -> Message:
    from dataclasses import replace  # deferred: rare

    if isinstance(message, UserMessage | CustomMessage | DeveloperMessage):
        return replace(message, content=content)
    if isinstance(message, AssistantMessage | ToolResultMessage):
        return replace(message, content=blocks_of(content))
    return message


def _compaction_item(entry: CompactionEntry, warning: str | None) -> DividerItem:
    summary, files = split_files(entry.summary)
    mark = " !" if warning else ""
    return DividerItem(
        entry.id,
        entry.timestamp,
        "compaction",
        f"── 📷 compacted{mark} · ctrl+o ──",
        token_line(entry.tokens_before, entry.tokens_after),
        summary or NO_SUMMARY,
        pass_facts(entry),
        warning,
        files,
    )


def _branch_item(entry: BranchSummaryEntry) -> DividerItem:
    summary, files = split_files(entry.summary)
    line = "── ⎇ branch · ctrl+o ──"
    return DividerItem(entry.id, entry.timestamp, "branch", line, "Branch summary", summary, files=files)


def _custom_item(entry: Entry, custom_type: str, content: Content) -> Item:
    if custom_type == HANDOFF_TYPE:
        line = "── ⇥ handed off · ctrl+o ──"
        return DividerItem(entry.id, entry.timestamp, "handoff", line, "Handoff", handoff_text(content))
    return CustomItem(entry.id, entry.timestamp, custom_type, text_of(content), images_of(content))


def _shell_item(entry: MessageEntry, message: BashExecution) -> ShellItem:
    outcome = ""
    if message.cancelled:
        outcome = "cancelled"
    elif message.exit_code not in (0, None):
        outcome = f"exit code {message.exit_code}"
    return ShellItem(
        entry.id, entry.timestamp, message.command, message.output, outcome, is_private=message.excluded
    )


def _other_items(
    entry: MessageEntry,
    message: DeveloperMessage
    | CustomMessage
    | FileMention
    | BranchSummary
    | CompactionSummary
    | UnknownMessage,
) -> Iterator[Item]:
    match message:
        case DeveloperMessage():
            yield CustomItem(entry.id, entry.timestamp, "developer", text_of(message.content))
        case CustomMessage():
            if message.display:
                yield _custom_item(entry, message.custom_type, message.content)
        case FileMention():
            paths = "\n".join(as_text(file.get("path")) or "?" for file in message.files)
            yield CustomItem(entry.id, entry.timestamp, "files", paths)
        case BranchSummary() | CompactionSummary():
            return  # rebuilt for the model only, never stored
        case UnknownMessage():
            text = f"A message of the unknown kind {message.role!r}."
            yield NoteItem(entry.id, entry.timestamp, text, "warning")
        case _:
            assert_never(message)


def _end_items(entry: MessageEntry, message: AssistantMessage) -> Iterator[Item]:
    if message.usage is not None:
        yield UsageItem(entry.id, entry.timestamp, message.usage)
    reason = message.error_message or ""
    match message.stop_reason:
        case StopReason.ABORTED:
            yield NoteItem(entry.id, entry.timestamp, "Interrupted")
        case StopReason.ERROR:
            if reason not in SILENT_ABORTS:
                yield NoteItem(entry.id, entry.timestamp, reason or "The request failed.", "error")
        case StopReason.LENGTH:
            text = f"The answer was cut off at the output limit of {message.model}."
            yield NoteItem(entry.id, entry.timestamp, text, "warning")
        case StopReason.STOP | StopReason.TOOL_USE:
            return
        case _:
            assert_never(message.stop_reason)
