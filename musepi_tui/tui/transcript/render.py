"""An item becomes rows. Everything that comes from outside is made safe here (safety 6)."""

from collections.abc import Sequence
from typing import assert_never

from rich.style import Style

from musepi_tui.base.cells import cut_cells
from musepi_tui.base.safe_text import display_safe
from musepi_tui.base.text import duration, plural
from musepi_tui.tui.transcript.blocks import (
    AnswerBlock,
    BashBlock,
    Block,
    CustomBlock,
    DividerBlock,
    ErrorBlock,
    FoldBlock,
    HeaderBlock,
    InterruptedBlock,
    Item,
    NoteBlock,
    NoticeBlock,
    ThinkingBlock,
    ToolBlock,
    ToolState,
    UserBlock,
)
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.divider import Divider
from musepi_tui.tui.transcript.lines import BLANK, BOLD, ITALIC, Line, Row, Span, line_of, wrap
from musepi_tui.tui.transcript.markdown import Markdown
from musepi_tui.tui.transcript.preview import Preview, hidden_line
from musepi_tui.tui.transcript.toolitem import output_lines, tool_lines

_USER_ROWS = 40
_BASH_ROWS = 20
_DETAIL_CHARS = 2_000
"""Most of a server's own words that is shown (SAF-57)."""

_LEVELS = {"info": ("dot", "dim"), "warning": ("warn", "warning"), "error": ("err", "error")}
"""Sign and colour of a notice."""

_TOOL_FILLS = {
    ToolState.OK: "toolSuccessBg",
    ToolState.ERROR: "toolErrorBg",
    ToolState.CANCELLED: "toolErrorBg",
}


def render_item(item: Item, brush: Brush) -> list[Row]:
    """The rows of an item, a blank one last. Each is exactly ``brush.width`` cells wide."""
    return brush.rows(_lines_of(item.block, brush), _fill_of(item.block, brush))


def _fill_of(block: Block, brush: Brush) -> Style | None:
    match block:
        case UserBlock():
            return brush.style("userMessageBg")
        case CustomBlock():
            return brush.style("customMessageBg")
        case ToolBlock():
            return brush.style(_TOOL_FILLS.get(block.state, "toolPendingBg"))
        case _:
            return None


def _lines_of(block: Block, brush: Brush) -> list[Line]:
    match block:
        case UserBlock():
            return _user(block, brush)
        case AnswerBlock():
            lines = answer_markdown(brush).lines(display_safe(block.text), brush.text_width)
            return brush.indented(lines)
        case ThinkingBlock():
            return _thinking(block, brush)
        case ToolBlock():
            return tool_lines(block, brush)
        case _:
            return _other_lines(block, brush)


def _other_lines(block: BashBlock | NoteBlock, brush: Brush) -> list[Line]:
    drawn: list[Line]
    match block:
        case BashBlock():
            drawn = _bash(block, brush)
        case HeaderBlock():
            drawn = _header(block, brush)
        case DividerBlock():
            drawn = _divider(block, brush)
        case CustomBlock():
            drawn = _custom(block, brush)
        case NoticeBlock():
            drawn = _notice(block, brush)
        case ErrorBlock():
            drawn = _error(block, brush)
        case InterruptedBlock():
            drawn = brush.indented([line_of(("Interrupted", brush.style("muted")))])
        case FoldBlock():
            drawn = brush.indented([_fold(block, brush)])
        case _:
            assert_never(block)
    return drawn


def answer_markdown(brush: Brush) -> Markdown:
    """The Markdown renderer for answers."""
    return Markdown(brush.palette, brush.style("text"))


def thinking_markdown(brush: Brush) -> Markdown:
    """The Markdown renderer for reasoning."""
    return Markdown(brush.palette, brush.style("thinkingText") + ITALIC)


def thinking_heading(brush: Brush) -> Line:
    """The line above reasoning that is shown."""
    return line_of(("Thinking", brush.style("thinkingText") + BOLD))


def _header(block: HeaderBlock, brush: Brush) -> list[Line]:
    lines: list[Line] = []
    for number, text in enumerate(block.lines):
        style = brush.style("accent") + BOLD if number == 0 else brush.style("muted")
        lines += wrap([(display_safe(text), style)], brush.text_width)
    return brush.indented(lines)


def _user(block: UserBlock, brush: Brush) -> list[Line]:
    style = brush.style("userMessageText")
    sources = display_safe(block.text).strip("\n").split("\n") if block.text.strip() else []
    limit = None if brush.expanded else brush.width * _USER_ROWS

    def draw(text: str) -> list[Line]:
        return wrap([(text[:limit], style)], brush.text_width)

    lines, hidden = Preview(sources, draw, None if brush.expanded else _USER_ROWS).head()
    if hidden:
        lines.append(hidden_line(hidden, "more", brush.palette, style, brush.hint))
    lines += [line_of((display_safe(caption), style + brush.style("muted"))) for caption in block.captions]
    return brush.indented(lines or [BLANK], (brush.symbol("cursor"), brush.style("accent") + BOLD), style)


def _thinking(block: ThinkingBlock, brush: Brush) -> list[Line]:
    quiet = brush.style("thinkingText") + ITALIC
    if block.redacted:
        return brush.indented([line_of(("Thinking (hidden by provider)", quiet))])
    if not brush.expanded or not block.text.strip():
        text = f"Thinking{brush.symbol('ellipsis')}"
        if not block.live:
            text = "Thought" if block.seconds is None else f"Thought for {duration(block.seconds)}"
        return brush.indented([line_of((text, quiet))])
    text = display_safe(block.text.strip())
    return brush.indented([thinking_heading(brush), *thinking_markdown(brush).lines(text, brush.text_width)])


def _bash(block: BashBlock, brush: Brush) -> list[Line]:
    mode = brush.style("dim") if block.excluded else brush.style("bashMode")
    text = brush.style("dim") if block.excluded else brush.style("toolOutput")
    command: list[Span] = [(display_safe(block.command), mode + BOLD)]
    if block.excluded:
        command.append((f" {brush.symbol('dot')} not sent to model", brush.style("dim")))
    lines = brush.indented(wrap(command, brush.text_width), ("$", mode + BOLD))
    lines += output_lines(block.output, brush, text, None if brush.expanded else _BASH_ROWS, bar=mode)
    if block.cancelled:
        lines += brush.indented([line_of((f"{brush.symbol('err')} cancelled", brush.style("error")))])
    elif block.exit_code:
        lines += brush.indented([line_of((f"exit code {block.exit_code}", brush.style("error")))])
    if block.truncated:
        lines += brush.indented(
            [line_of(("The output was longer than what is kept.", brush.style("warning")))]
        )
    return lines


def _divider(block: DividerBlock, brush: Brush) -> list[Line]:
    divider = Divider(block.symbol, block.label, brush.hint, warned=block.warning is not None)
    lines = [divider.line(brush.palette, brush.width)]
    if not brush.expanded:
        return lines
    width = brush.text_width
    inside: list[Line] = []
    if block.heading:
        inside += wrap([(display_safe(block.heading), BOLD)], width)
    if block.facts:
        facts = f" {brush.symbol('dot')} ".join(display_safe(fact) for fact in block.facts)
        inside += wrap([(facts, brush.style("muted"))], width)
    if block.warning is not None:
        warning = f"{brush.symbol('warn')} {display_safe(block.warning)}"
        inside += wrap([(warning, brush.style("warning"))], width)
    body = answer_markdown(brush).lines(display_safe(block.body), width)
    inside += [BLANK, *body] if inside and body else body
    if block.files:
        inside += [BLANK, line_of(("Files", brush.style("muted") + BOLD))]
        inside += [
            line for file in block.files for line in wrap([(display_safe(file), brush.style("muted"))], width)
        ]
    return [*lines, BLANK, *brush.indented(inside)]


def _custom(block: CustomBlock, brush: Brush) -> list[Line]:
    style = brush.style("customMessageText")
    lines: list[Line] = []
    if block.label:
        label = f"[{display_safe(block.label)}]"
        lines += wrap([(label, brush.style("customMessageLabel") + BOLD)], brush.text_width)
    if block.text.strip():
        lines += wrap([(display_safe(block.text).strip("\n"), style)], brush.text_width)
    lines += [line_of((display_safe(caption), style)) for caption in block.captions]
    return brush.indented(lines or [BLANK])


def _notice(block: NoticeBlock, brush: Brush) -> list[Line]:
    sign, token = _LEVELS[block.level]
    style = brush.style(token)
    spans: list[Span] = [(display_safe(block.text), style)]
    if block.count > 1:
        spans.append((f" ×{block.count}", brush.style("muted")))
    lines = wrap(spans, brush.text_width)
    if block.detail and brush.expanded:
        lines += _detail(block.detail, brush)
    return brush.indented(lines, (brush.symbol(sign), style))


def _error(block: ErrorBlock, brush: Brush) -> list[Line]:
    style = brush.style("error")
    lines = wrap([(display_safe(block.cause), style)], brush.text_width)
    if block.remedy:
        lines += wrap([(block.remedy, brush.style("muted"))], brush.text_width)
    if block.raw and brush.expanded:
        lines += _detail(block.raw, brush)
    return brush.indented(lines, (brush.symbol("err"), style))


def _fold(block: FoldBlock, brush: Brush) -> Line:
    count = plural(block.messages, "earlier message") if block.messages else "earlier messages"
    text = f"{brush.symbol('ellipsis')} {count} {brush.symbol('dot')} enter to show"
    return line_of((cut_cells(text, brush.text_width, brush.symbol("ellipsis")), brush.style("dim")))


def _detail(text: str, brush: Brush) -> Sequence[Line]:
    style: Style = brush.style("dim")
    return wrap([(display_safe(text[:_DETAIL_CHARS]), style)], brush.text_width)
