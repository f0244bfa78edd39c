"""The selected entry in full, beside the tree or below it (TUI-5.10)."""

import json
from collections.abc import Iterator
from datetime import datetime

from rich.style import Style
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.base.safe_text import display_safe, reveal
from musepi_tui.base.text import duration, plural, short_number
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    FileMention,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UnknownMessage,
    Usage,
    text_of,
)
from musepi_tui.session.passes import pass_facts, token_line
from musepi_tui.session.times import unix_ms
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.facts import image_captions
from musepi_tui.tui.transcript.lines import BLANK, BOLD, Line, Span, line_of, wrap
from musepi_tui.tui.transcript.titles import view_of_call, view_of_details
from musepi_tui.tui.widgets.drawing import Row, strip_of

MAX_CHARS = 20_000
"""Characters of one entry that are shown: wrapping a megabyte at every key would take its time."""

MARGIN_CELLS = 2

_DIFF = {"+": "toolDiffAdded", "-": "toolDiffRemoved", "@": "muted"}


class PreviewPane(Widget):
    """The text of one entry under a line of facts. ``is_beside``: a line is at its left, not above it."""

    DEFAULT_CSS = "PreviewPane { height: 1; width: 1fr; background: ansi_default; }"
    ALLOW_SELECT = False

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self.palette = palette
        self.is_beside = False
        self._entry: Entry | None = None
        self._lines: list[Line] = []
        self._fitted_cells: int = -1
        self._top = 0

    def show(self, entry: Entry | None) -> None:
        """Shows an entry from its start."""
        self._entry = entry
        self._fitted_cells = -1
        self._top = 0
        self.refresh()

    def scroll_rows(self, rows: int) -> None:
        """Shows what is further up or down."""
        last = max(0, len(self._lines) - self._room())
        self._top = max(0, min(self._top + rows, last))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The row at ``y``."""
        width, border = self.size.width, self.palette.style("borderMuted")
        if not self.is_beside and y == 0:
            return strip_of([(self.palette.symbol("rule") * width, border)], width)
        index = self._top + y - (0 if self.is_beside else 1)
        lines = self._fitted()
        text: Row = lines[index].spans if index < len(lines) else ()
        if index == self._top + self._room() - 1 and index < len(lines) - 1:
            left = plural(len(lines) - index, "more line")
            text = [(f"{self.palette.symbol('ellipsis')} {left}", self.palette.style("dim"))]
        bar: Row = [(f"{self.palette.symbol('bar')} ", border)] if self.is_beside else [("  ", Style())]
        return strip_of([*bar, *text], width)

    def _room(self) -> int:
        return max(1, self.size.height - (0 if self.is_beside else 1))

    def _fitted(self) -> list[Line]:
        width = max(1, self.size.width - MARGIN_CELLS - 1)
        if width != self._fitted_cells:
            self._fitted_cells = width
            self._lines = [] if self._entry is None else list(preview_lines(self._entry, self.palette, width))
            self._top = max(0, min(self._top, len(self._lines) - self._room()))
        return self._lines

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel scrolls the text."""
        event.stop()
        self.scroll_rows(2)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel scrolls the text."""
        event.stop()
        self.scroll_rows(-2)


def preview_lines(entry: Entry, palette: Palette, width_cells: int) -> Iterator[Line]:
    """What the entry is and when it was made, then its text, in lines of at most ``width_cells``."""
    kind, facts = _kind_of(entry), _facts_of(entry, palette)
    dot = f" {palette.symbol('dot')} "
    head: list[Span] = [(kind, palette.style("accent") + BOLD)]
    head += [(f"{dot}{fact}", palette.style("muted")) for fact in facts]
    yield from wrap(head, width_cells)
    yield BLANK
    left, before = MAX_CHARS, ""
    for text, token in _parts_of(entry):
        if left <= 0:
            break
        if before and not before == token == "toolTitle":
            yield BLANK
        yield from _part_lines(text[:left], token, palette, width_cells)
        left -= len(text)
        before = token
    if left < 0:
        yield line_of((f"{palette.symbol('ellipsis')} and more", palette.style("dim")))


def copied_text(entry: Entry) -> str:
    """What copying an entry takes: its text, of a command the command, of a summary the summary."""
    match entry:
        case MessageEntry(message=BashExecution() as execution):
            return execution.command
        case MessageEntry(message=AssistantMessage() as answer):
            return text_of(answer.content) or answer.error_message or ""
        case MessageEntry(message=message):
            return text_of(getattr(message, "content", ""))
        case CompactionEntry() | BranchSummaryEntry():
            return entry.summary
        case CustomMessageEntry():
            return text_of(entry.content)
        case _:
            return ""


def _part_lines(text: str, token: str, palette: Palette, width_cells: int) -> Iterator[Line]:
    if token != "diff":
        yield from wrap([(text, palette.style(token))], width_cells)
        return
    for line in text.split("\n"):
        yield from wrap([(line, palette.style(_DIFF.get(line[:1], "toolDiffContext")))], width_cells)


def _kind_of(entry: Entry) -> str:
    match entry:
        case MessageEntry(message=ToolResultMessage() as result):
            return f"{display_safe(result.tool_name) or 'tool'} result"
        case MessageEntry(message=UnknownMessage() as message):
            return display_safe(message.role)
        case MessageEntry(message=message):
            return _ROLES.get(type(message).__name__, "message")
        case CustomMessageEntry():
            return display_safe(entry.custom_type) or "custom message"
        case _:
            return display_safe(entry.type).replace("_", " ")


_ROLES = {
    "UserMessage": "user",
    "AssistantMessage": "assistant",
    "DeveloperMessage": "developer",
    "BashExecution": "command",
    "FileMention": "files",
    "CustomMessage": "custom message",
}


def _facts_of(entry: Entry, palette: Palette) -> Iterator[str]:
    made_ms = unix_ms(entry.timestamp)
    if made_ms is not None:
        yield f"{datetime.fromtimestamp(made_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
    match entry:
        case MessageEntry(message=AssistantMessage() as answer):
            yield display_safe(answer.model)
            yield from _usage_facts(answer.usage, palette)
            if answer.duration_ms:
                yield duration(answer.duration_ms / 1000)
        case MessageEntry(message=BashExecution(exit_code=int() as code)):
            yield f"exit code {code}"
        case MessageEntry(message=ToolResultMessage(is_error=True)):
            yield "failed"
        case CompactionEntry():
            yield from map(display_safe, pass_facts(entry))
            yield from filter(None, [token_line(entry.tokens_before, entry.tokens_after)])
        case BranchSummaryEntry():
            yield from _usage_facts(entry.usage, palette)
        case _:
            return


def _usage_facts(usage: Usage | None, palette: Palette) -> Iterator[str]:
    if usage is None:
        return
    up, down = palette.symbol("up"), palette.symbol("down")
    counts = ((up, usage.input), (down, usage.output), ("R", usage.cache_read), ("W", usage.cache_write))
    tokens = " ".join(f"{sign}{short_number(number)}" for sign, number in counts if number)
    if tokens:
        yield f"{tokens} tokens"
    if usage.cost is not None and usage.cost.total:
        yield f"${usage.cost.total:.3f}"


def _parts_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """The texts of an entry with the token each is drawn in (``diff``: by its lines)."""
    match entry:
        case MessageEntry(message=message):
            yield from _message_parts(message)
        case CompactionEntry() | BranchSummaryEntry():
            yield _shown(entry.summary), "text"
        case CustomMessageEntry():
            yield _shown(text_of(entry.content)), "text"
            yield from ((caption, "muted") for caption in image_captions(entry.content))
        case StateEntry():
            yield _json_text(entry.fields), "muted"
        case _:
            yield f"changes {display_safe(entry.target_id)}", "muted"


def _message_parts(message: Message) -> Iterator[tuple[str, str]]:
    match message:
        case AssistantMessage():
            for block in message.content:
                yield from _block_parts(block)
            if message.error_message:
                yield _shown(message.error_message), "error"
        case ToolResultMessage():
            yield from _result_parts(message)
        case BashExecution():
            yield f"$ {reveal(message.command[:MAX_CHARS])}", "toolTitle"
            yield _shown(message.output), "toolOutput"
        case FileMention():
            yield "\n".join(reveal(str(file.get("path", ""))) for file in message.files), "text"
        case UnknownMessage():
            yield _json_text(message.raw), "muted"
        case _:
            content = getattr(message, "content", "")
            yield _shown(text_of(content)), "text"
            yield from ((caption, "muted") for caption in image_captions(content))


def _block_parts(block: object) -> Iterator[tuple[str, str]]:
    match block:
        case TextBlock(text=text) if text.strip():
            yield _shown(text), "text"
        case ThinkingBlock(thinking=thinking) if thinking.strip():
            yield _shown(thinking), "thinkingText"
        case ToolCallBlock(name=name, arguments=arguments):
            yield reveal(view_of_call(name, arguments).title), "toolTitle"
        case _:
            return


def _result_parts(result: ToolResultMessage) -> Iterator[tuple[str, str]]:
    view = view_of_details(result.details)
    if view is not None:
        note = f" ({view.note})" if view.note else ""
        yield reveal(f"{view.title}{note}"), "toolTitle"
        if view.kind == "diff" and view.body:
            yield reveal(view.body[: MAX_CHARS + 1]), "diff"
            return
    yield _shown(text_of(result.content)), "error" if result.is_error else "toolOutput"
    yield from ((caption, "muted") for caption in image_captions(result.content))


def _json_text(value: object) -> str:
    return _shown(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _shown(text: str) -> str:
    """As much of a text as may be shown, and one character more, which tells that something was left out."""
    return display_safe(text[: MAX_CHARS + 1])
