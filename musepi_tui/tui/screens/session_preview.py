"""The end of a stored session beside the list of sessions (TUI-4.83)."""

from collections.abc import Iterator, Sequence

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.text import plural, short_number
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from musepi_tui.session.messages import AssistantMessage, BashExecution, UserMessage, text_of, tool_calls_of
from musepi_tui.session.passes import handoff_text
from musepi_tui.session.transcript import HANDOFF_TYPE
from musepi_tui.storage.glance import SessionInfo
from musepi_tui.tui.screens.session_rows import Facts, age, context_share
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.lines import Line, Span, wrap
from musepi_tui.tui.transcript.titles import view_of_call
from musepi_tui.tui.widgets.drawing import Row, one_line

LAST_ENTRIES = 40
"""Entries of the end that are read: more than fit beside any list."""

MESSAGE_CHARS = 600
MESSAGE_ROWS = 5
"""What is shown of one message: enough to know it again."""


@dataclass(frozen=True, slots=True)
class Family:
    """The sessions a session comes from and was gone on in, by their titles."""

    parent: str = ""
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What is shown of one session: its end, or why that cannot be shown; ``hit`` is a text found in it."""

    info: SessionInfo
    entries: Sequence[Entry] = ()
    problem: str = ""
    hit: str = ""
    family: Family = Family()


def preview_rows(preview: Preview, facts: Facts, palette: Palette, width_cells: int, rows: int) -> list[Row]:
    """The preview in exactly so many rows: facts on top, below them the last messages that fit."""
    head = [line for spans in _head(preview, facts, palette) for line in wrap(spans, width_cells)[:3]]
    head = head[: max(1, rows // 2)]
    room = rows - len(head) - 1
    body: list[Line] = []
    for spans in _talk(preview, palette):
        lines = wrap(spans, width_cells)[:MESSAGE_ROWS]
        if len(body) + len(lines) > room:
            break
        body = [*lines, *body]
    shown: list[Row] = [line.spans for line in head]
    shown += [(), *(line.spans for line in body)]
    shown += [()] * (rows - len(shown))
    return shown[:rows]


def _head(preview: Preview, facts: Facts, palette: Palette) -> Iterator[list[Span]]:
    info = preview.info
    muted, dim = palette.style("muted"), palette.style("dim")
    yield [(one_line(info.title or "(no prompt yet)"), palette.style("accent"))]
    yield [(" · ".join(_facts(info, facts)), muted)]
    if preview.hit:
        yield [("found: ", dim), (one_line(preview.hit), palette.style("text"))]
    if preview.family.parent:
        yield [("comes from: ", dim), (one_line(preview.family.parent), muted)]
    if preview.family.children:
        yield [("goes on in: ", dim), (one_line(", ".join(preview.family.children)), muted)]


def _facts(info: SessionInfo, facts: Facts) -> Iterator[str]:
    if info.model:
        yield one_line(info.model)
    if info.context_tokens is not None:
        share, window = context_share(info, facts), facts.window_of(info.model)
        yield (
            f"{short_number(info.context_tokens)} tokens"
            if share is None or window is None
            else f"{share}% of {short_number(window)}"
        )
    if info.messages_exact:
        yield plural(info.messages, "message")
    if info.branches is not None and info.branches > 1:
        yield plural(info.branches, "branch", "branches")
    if info.compactions:
        yield plural(info.compactions, "compaction")
    yield f"{short_number(info.size)}B"
    made = age(info.created, facts.now_ms)
    if made:
        yield f"made {made} ago" if made != "now" else "made now"


def _talk(preview: Preview, palette: Palette) -> Iterator[list[Span]]:
    """The messages, newest first."""
    if preview.problem:
        yield [(one_line(preview.problem), palette.style("muted"))]
    for entry in reversed(preview.entries):
        spans = _message(entry, palette)
        if spans:
            yield spans


def _message(entry: Entry, palette: Palette) -> list[Span]:
    match entry:
        case MessageEntry(message=UserMessage() as message):
            mark = (f"{palette.symbol('cursor')} ", palette.style("accent"))
            return [mark, (_start_of(text_of(message.content)), palette.style("text"))]
        case MessageEntry(message=AssistantMessage() as message):
            return _answer(message, palette)
        case CustomMessageEntry() if entry.display:
            text = (handoff_text if entry.custom_type == HANDOFF_TYPE else text_of)(entry.content)
            return [(_start_of(text), palette.style("muted"))]
        case _:
            note = _start_of(_note(entry, palette.symbol("rule") * 2))
            return [(note, palette.style("dim"))] if note else []


def _answer(message: AssistantMessage, palette: Palette) -> list[Span]:
    """What the model said, or why it could not, and what it called."""
    text = _start_of(text_of(message.content)) or _start_of(message.error_message or "")
    titles = (view_of_call(call.name, call.arguments).title for call in tool_calls_of(message))
    calls = _start_of(", ".join(titles))
    spans = [(text, palette.style("muted"))] if text else []
    return [*spans, (f"{' · ' if text else ''}{calls}", palette.style("dim"))] if calls else spans


def _note(entry: Entry, rule: str) -> str:
    match entry:
        case MessageEntry(message=BashExecution() as message):
            return f"$ {message.command}"
        case CompactionEntry():
            return f"{rule} compacted {rule}"
        case BranchSummaryEntry():
            return f"{rule} branch {rule} {entry.summary}"
        case _:
            return ""


def _start_of(text: str) -> str:
    return one_line(text[: MESSAGE_CHARS * 2])[:MESSAGE_CHARS]
