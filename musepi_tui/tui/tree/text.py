"""The text of a row of the tree (tui 5.7), and the words a search finds it by (tui 5.6)."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from musepi_tui.base.safe_text import Safe, display_safe
from musepi_tui.base.text import cut, short_number
from musepi_tui.session.calls import main_argument
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.fields import as_text
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    Content,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    Message,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
    blocks_of,
)
from musepi_tui.session.passes import branch_text, handoff_text
from musepi_tui.session.transcript import HANDOFF_TYPE

ROW_CHARS = 200
"""As much of a text as a row shows and a search looks at."""

READ_CHARS = 2 * ROW_CHARS
"""As much of it is read: runs of blanks become one."""

ERROR_CHARS = 80

CallOf: TypeAlias = Callable[[str], ToolCallBlock | None]
"""The tool call with an id, None when it is not known."""


class Form(StrEnum):
    """How tag and text of a row are put together."""

    SPOKEN = "{tag}: {text}"
    TAGGED = "[{tag}]: {text}"
    BOXED = "[{tag}: {text}]"


class RowText(NamedTuple):
    """What a row says. ``tag`` is who or what speaks; ``more`` is searched but not shown."""

    form: Form
    tag: str
    text: str = ""
    more: str = ""


def describe(entry: Entry, call_of: CallOf) -> Safe:
    """What a row says of an entry: one line, safe to show, never empty."""
    form, tag, text, _ = text_of_row(entry, call_of)
    tag, text = one_line(tag), one_line(text)
    if not text and form is not Form.SPOKEN:
        return display_safe(f"[{tag or 'entry'}]")
    return display_safe(form.format(tag=tag, text=text[:ROW_CHARS]).rstrip())


def searched_text(row: RowText) -> str:
    """What a search for an entry looks at, labels not included."""
    return " ".join(one_line(part)[:ROW_CHARS] for part in row[1:] if part)


def text_of_row(entry: Entry, call_of: CallOf) -> RowText:
    """What a row says of an entry, not yet on one line."""
    match entry:
        case MessageEntry():
            return _text_of_message(entry.message, call_of)
        case CompactionEntry():
            tokens = f"{short_number(entry.tokens_before)} tokens"
            return RowText(Form.BOXED, "compaction", tokens, entry.summary[:READ_CHARS])
        case BranchSummaryEntry():
            return RowText(Form.TAGGED, "branch summary", branch_text(entry.summary)[:READ_CHARS])
        case CustomMessageEntry():
            text = _text_of_insert(entry.custom_type, entry.content)
            return RowText(Form.TAGGED, entry.custom_type or "custom", text, "custom")
        case ContextEditEntry():
            return RowText(Form.BOXED, entry.type)
        case StateEntry():
            return _text_of_state(entry)


def text_of_prompt(text: str) -> RowText:
    """The row of a prompt."""
    return RowText(Form.SPOKEN, "user", text)


def text_of_answer(text: str) -> RowText:
    """The row of an answer."""
    return RowText(Form.SPOKEN, "assistant", text)


def text_of_result(call: ToolCallBlock | None, tool_name: str, output: str) -> RowText:
    """The row of a tool result: the call it answers, or the tool where that is not known."""
    more = f"toolResult {output}"
    if call is None:
        return RowText(Form.BOXED, tool_name or "tool", more=more)
    return RowText(Form.BOXED, call.name or "tool", _about(call.name, call.arguments), more)


def beginning(content: Content) -> str:
    """The first characters of a content's text, blanks in front left out."""
    found = ""
    for block in blocks_of(content):
        if isinstance(block, TextBlock):
            found = (found + (block.text if found else block.text.lstrip())[:READ_CHARS])[:READ_CHARS]
        if len(found) >= READ_CHARS:
            break
    return found


def is_calls_only(message: AssistantMessage) -> bool:
    """Whether an answer is made only of tool calls and ended as such an answer does (tui 5.3)."""
    if message.stop_reason not in (StopReason.STOP, StopReason.TOOL_USE):
        return False
    if any(isinstance(block, TextBlock) and block.text.strip() for block in message.content):
        return False
    return any(isinstance(block, ToolCallBlock) for block in message.content)


def one_line(text: str) -> str:
    """The text with every run of blanks, line breaks among them, as one blank."""
    return " ".join(text.split())


def _text_of_message(message: Message, call_of: CallOf) -> RowText:
    match message:
        case UserMessage():
            return text_of_prompt(beginning(message.content))
        case AssistantMessage():
            return text_of_answer(words_of_answer(message))
        case ToolResultMessage():
            output = beginning(message.content)
            return text_of_result(call_of(message.tool_call_id), message.tool_name, output)
        case _:
            return _text_of_other(message)


def _text_of_other(message: Message) -> RowText:
    match message:
        case BashExecution():
            return RowText(Form.TAGGED, message.kind, message.command.lstrip()[:READ_CHARS])
        case CustomMessage():
            text = _text_of_insert(message.custom_type, message.content)
            return RowText(Form.TAGGED, message.custom_type or "custom", text, "custom")
        case DeveloperMessage():
            return RowText(Form.TAGGED, "developer", beginning(message.content))
        case FileMention():
            paths = (as_text(file.get("path")) or "?" for file in message.files)
            return RowText(Form.TAGGED, "files", ", ".join(paths)[:READ_CHARS])
        case _:
            return RowText(Form.BOXED, message.role if isinstance(message, UnknownMessage) else "message")


def _text_of_insert(custom_type: str, content: Content) -> str:
    """The first characters of what was put into the conversation: of a handoff document itself."""
    return handoff_text(content)[:READ_CHARS] if custom_type == HANDOFF_TYPE else beginning(content)


def words_of_answer(message: AssistantMessage) -> str:
    """What an answer says, or in its place how it ended."""
    text = beginning(message.content)
    if text:
        return text
    if message.stop_reason is StopReason.ABORTED:
        return "(aborted)"
    return cut(one_line((message.error_message or "")[:READ_CHARS]), ERROR_CHARS) or "(no content)"


def _text_of_state(entry: StateEntry) -> RowText:
    fields = entry.fields
    match entry.type:
        case "model_change":
            return RowText(Form.BOXED, "model", _model_id(fields))
        case "thinking_level_change":
            return RowText(Form.BOXED, "thinking", as_text(fields.get("thinkingLevel")) or "?")
        case "custom":
            return RowText(Form.BOXED, "custom", as_text(fields.get("customType")) or "?")
        case "label":
            return RowText(Form.BOXED, "label", _given(fields, "label") or "(cleared)")
        case "session_info":
            return RowText(Form.BOXED, "title", _given(fields, "name") or "(none)")
        case _:
            return RowText(Form.BOXED, entry.type)


def _given(fields: Mapping[str, Any], key: str) -> str:
    return (as_text(fields.get(key)) or "").strip()[:READ_CHARS]


def _model_id(fields: Mapping[str, Any]) -> str:
    model = as_text(fields.get("model")) or ""
    return as_text(fields.get("modelId")) or model.partition("/")[2] or model or "?"


def _about(name: str, arguments: Mapping[str, Any]) -> str:
    """What a tool call is about, with the lines of one that reads and the place of one that searches."""
    main = main_argument(arguments)[:READ_CHARS]
    pattern = one_line((as_text(arguments.get("pattern")) or "")[:READ_CHARS])
    if pattern and main != pattern:
        return f"{pattern} in {main}"
    return f"{main}{_lines_of(arguments)}" if main and name.lower() == "read" else main


def _lines_of(arguments: Mapping[str, Any]) -> str:
    """The lines a call that reads is about: ``:1-40``, or ``:120-`` to the end."""
    offset, limit = arguments.get("offset"), arguments.get("limit")
    start = offset if type(offset) is int else 1
    if type(limit) is int:
        return f":{start}-{start + limit - 1}"
    return f":{start}-" if type(offset) is int else ""
