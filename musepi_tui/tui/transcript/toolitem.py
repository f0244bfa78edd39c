"""A tool call with its result: a title row, then as much of the output as its kind of view shows."""

from collections.abc import Sequence

from rich.style import Style

from musepi_tui.base.cells import cell_width, cut_cells
from musepi_tui.base.safe_text import display_safe, reveal
from musepi_tui.base.text import duration
from musepi_tui.tui.transcript.blocks import ToolBlock, ToolState
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.code import highlight
from musepi_tui.tui.transcript.diff import diff_lines, parse_diff
from musepi_tui.tui.transcript.lines import BOLD, Line, Span, line_of, with_margin, wrap
from musepi_tui.tui.transcript.preview import Preview, hidden_line, last_rewrites, spans_of_sgr

PREVIEW_ROWS = {"none": 0, "text": 8, "list": 8, "tail": 10, "code": 10, "diff": 20}
"""Rows of output a closed item shows, by kind of view (tui 2.3)."""

_ERROR_ROWS = 8
"""Rows of an error message: it is what a person wants to read first."""

_STREAMED_LINES = 50
"""Lines of a file that are highlighted while its text is still coming (tui 2.3)."""

_PREVIEW_CHARS = 20_000
"""No closed preview shows more of one line: wrapping a line of a megabyte would take its time."""

_SLOW_S = 1.0
_SLOW_RUNNING_S = 2.0
"""Durations are told above these."""


def tool_lines(block: ToolBlock, brush: Brush) -> list[Line]:
    """The whole item without its closing blank row."""
    lines = [*_title(block, brush), *_arguments(block, brush)]
    if block.placeholder is not None:
        lines += _bar(wrap([(display_safe(block.placeholder), brush.style("dim"))], _room(brush)), brush)
        if not brush.expanded or block.placeholder == block.text:
            return lines
    if block.state is ToolState.ERROR:
        lines += _error(block, brush)
        if not brush.expanded or block.view.body is None:
            return lines
    lines += _body(block, brush)
    for caption in block.captions:
        lines += brush.indented([line_of((display_safe(caption), brush.style("muted")))])
    return lines


def output_lines(text: str, brush: Brush, base: Style, rows: int | None, *, bar: Style) -> list[Line]:
    """The last rows of a command's output behind a bar, with its own colours."""
    safe = display_safe(last_rewrites(text), keep_sgr=True).strip("\n")
    if not safe:
        return []
    width = _room(brush)
    cut = _PREVIEW_CHARS if rows is not None else None

    def draw(spans: list[Span]) -> list[Line]:
        if cut is not None and len(spans) == 1 and len(spans[0][0]) > cut:
            spans = [(spans[0][0][-cut:], spans[0][1])]
        return wrap(spans, width)

    drawn, hidden = Preview(spans_of_sgr(safe, base), draw, rows).tail()
    shown = _bar(drawn, brush, bar)
    return [*_hidden(hidden, "earlier", brush), *shown]


def _title(block: ToolBlock, brush: Brush) -> list[Line]:
    glyph, style = _sign(block.state, brush)
    notes = [display_safe(note).replace("\n", " ") for note in _notes(block, brush)]
    tail = "".join(f" {brush.symbol('dot')} {note}" for note in notes)
    title = reveal(block.view.title.replace("\n", " "))
    room = brush.fill_cells - cell_width(f"{glyph} ")
    if brush.expanded:
        lines = wrap([*_title_spans(title, brush), (tail, brush.style("dim"))], room)
    else:
        shown = cut_cells(title, max(1, room - cell_width(tail)), brush.symbol("ellipsis"))
        lines = [
            line_of(
                *_title_spans(shown, brush),
                (cut_cells(tail, max(0, room - cell_width(shown))), brush.style("dim")),
            )
        ]
    return with_margin(lines, (f"{glyph} ", style), (" " * cell_width(f"{glyph} "), style))


def _title_spans(title: str, brush: Brush) -> list[Span]:
    name, blank, rest = title.partition(" ")
    style = brush.style("toolTitle")
    return [(name, style + BOLD), (blank + rest, style)]


def _sign(state: ToolState, brush: Brush) -> tuple[str, Style]:
    match state:
        case ToolState.PENDING:
            return brush.symbol("dot"), brush.style("muted")
        case ToolState.WAITING:
            return brush.symbol("cursor"), brush.style("warning")
        case ToolState.RUNNING:
            spinner = brush.palette.spinner
            return spinner[brush.frame % len(spinner)], brush.style("accent")
        case ToolState.OK:
            return brush.symbol("ok"), brush.style("success")
        case ToolState.ERROR | ToolState.CANCELLED:
            return brush.symbol("err"), brush.style("error")


def _notes(block: ToolBlock, brush: Brush) -> list[str]:
    notes = [block.view.note] if block.view.note else []
    match block.state:
        case ToolState.RUNNING:
            if brush.elapsed_s is not None and brush.elapsed_s >= _SLOW_RUNNING_S:
                notes.append(duration(brush.elapsed_s))
        case ToolState.WAITING:
            notes.append("waits for your answer")
        case ToolState.CANCELLED:
            notes.append("cancelled")
        case ToolState.PENDING | ToolState.OK | ToolState.ERROR:
            if block.seconds is not None and block.seconds > _SLOW_S:
                notes.append(_short_duration(block.seconds))
    return notes


def _short_duration(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 else duration(seconds)


def _arguments(block: ToolBlock, brush: Brush) -> list[Line]:
    """In an open item: the arguments the title does not hold. Files and edits have their own view."""
    if not brush.expanded or block.view.kind in ("code", "diff"):
        return []
    lines: list[Line] = []
    for name, value in block.arguments.items():
        text = value if isinstance(value, str) else str(value)
        if text.strip() and " ".join(text.split()) not in block.view.title:
            style = brush.style("muted")
            spans = [
                (f"{display_safe(name)}: ".replace("\n", " "), brush.style("dim")),
                (reveal(text), style),
            ]
            lines += _bar(wrap(spans, _room(brush)), brush)
    return lines


def _error(block: ToolBlock, brush: Brush) -> list[Line]:
    rows = None if brush.expanded else _ERROR_ROWS
    if block.view.kind == "tail":
        tail_rows = None if brush.expanded else PREVIEW_ROWS["tail"]
        return output_lines(
            block.text, brush, brush.style("toolOutput"), tail_rows, bar=brush.style("borderMuted")
        )
    return _head(display_safe(block.text).strip("\n"), brush, brush.style("error"), rows)


def _body(block: ToolBlock, brush: Brush) -> list[Line]:
    view = block.view
    rows = None if brush.expanded else PREVIEW_ROWS[view.kind]
    text = view.body if view.body is not None else block.text
    if rows == 0 or not text:
        return []
    output = brush.style("toolOutput")
    match view.kind:
        case "diff":
            return _diff(text, brush, rows)
        case "code":
            return _code(block, text, brush, rows)
        case "tail":
            return output_lines(text, brush, output, rows, bar=brush.style("borderMuted"))
        case "none" if view.language:
            return _code(block, text, brush, rows)
        case "none" | "text" | "list":
            return _head(display_safe(text).strip("\n"), brush, output, rows)


def _diff(text: str, brush: Brush, rows: int | None) -> list[Line]:
    width = brush.text_width

    def draw(line: Sequence[Line]) -> list[Line]:
        return list(line)

    drawn = diff_lines(parse_diff(text), brush.palette, Style(), width)
    groups: list[list[Line]] = []
    for line in drawn:
        if line.join is None or not groups:
            groups.append([line])
        else:
            groups[-1].append(line)
    shown, hidden = Preview(groups, draw, rows).head()
    return [*brush.indented(shown), *_hidden(hidden, "more", brush)]


def _code(block: ToolBlock, text: str, brush: Brush, rows: int | None) -> list[Line]:
    safe = display_safe(text).rstrip("\n")
    sources = safe.split("\n")
    limit = rows if rows is not None else len(sources)
    if block.state is ToolState.PENDING:
        limit = min(limit, _STREAMED_LINES)
    base = brush.style("toolOutput")
    colored = highlight("\n".join(sources[:limit]), block.view.language, brush.palette, base)
    plain = [[(line, base)] for line in sources[limit:]]
    return _previewed([*colored, *plain], brush, rows)


def _head(safe: str, brush: Brush, style: Style, rows: int | None) -> list[Line]:
    return _previewed([[(line, style)] for line in safe.split("\n")], brush, rows)


def _previewed(sources: Sequence[list[Span]], brush: Brush, rows: int | None) -> list[Line]:
    width = _room(brush)
    cut = _PREVIEW_CHARS if rows is not None else None

    def draw(spans: list[Span]) -> list[Line]:
        if cut is not None and len(spans) == 1 and len(spans[0][0]) > cut:
            spans = [(spans[0][0][:cut], spans[0][1])]
        return wrap(spans, width)

    shown, hidden = Preview(sources, draw, rows).head()
    return [*_bar(shown, brush), *_hidden(hidden, "more", brush)]


def _hidden(hidden: int, where: str, brush: Brush) -> list[Line]:
    if not hidden:
        return []
    return brush.indented([hidden_line(hidden, where, brush.palette, Style(), brush.hint)])


def _bar(lines: Sequence[Line], brush: Brush, style: Style | None = None) -> list[Line]:
    if not brush.gutter:
        return list(lines)
    bar = (f"  {brush.symbol('bar')} ", style or brush.style("borderMuted"))
    return with_margin(lines, bar, bar)


def _room(brush: Brush) -> int:
    return max(1, brush.text_width - (2 if brush.gutter else 0))
