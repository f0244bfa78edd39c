"""An answer while it grows: only its last unfinished Markdown block is drawn again.

What is finished is frozen; links defined later and lists that turn out loose may look different in the final
drawing, which replaces this one when the message is complete.
"""

import re
from dataclasses import field

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.transcript.brush import Brush
from musepi_tui.tui.transcript.code import highlight
from musepi_tui.tui.transcript.engines import engines_loaded, parse_markdown
from musepi_tui.tui.transcript.lines import BLANK, Line, Row, to_rows, wrap
from musepi_tui.tui.transcript.markdown import Markdown, is_plain, spaced

_LONG_BLOCK_CHARS = 2_000
"""A paragraph or list beyond this is cut where a line ends, else each flush would cost more than the last."""

_EXACT_FENCE_LINES = 300
"""Longer code keeps its line-wise colours when it closes: drawing it again would take over 20 ms."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)")
_ITEM = re.compile(r"^ {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]", re.MULTILINE)


@dataclass(slots=True)
class _Fence:
    """An open code block: its lines so far and their drawing, which begins with the gap above."""

    marker: str
    indent: int
    language: str | None
    code: list[str] = field(default_factory=list[str])
    rows: list[Row] = field(default_factory=list[Row])

    def is_closed_by(self, line: str) -> bool:
        text = line.strip(" ")
        return (
            len(text) >= len(self.marker)
            and not text.strip(self.marker[0])
            and len(line) - len(line.lstrip(" ")) <= 3
        )


class StreamedText:
    """Rows of a Markdown text that grows at its end. ``heading`` stands above it."""

    def __init__(self, markdown: Markdown, brush: Brush, heading: Line | None = None) -> None:
        self._markdown = markdown
        self._brush = brush
        self._width = brush.text_width
        self._heading = [heading] if heading is not None else []
        self._restart()

    def _restart(self) -> None:
        self._taken_chars = 0
        self._open_raw = ""
        self._tail = ""
        self._fence: _Fence | None = None
        self._frozen: list[Row] = self._to_rows(self._heading)
        self._unfinished: list[Line] = []
        self._joins_next = self._has_block = False

    def update(self, raw: str) -> list[Row]:
        """The rows of ``raw``, which begins with the text of the last call; a blank row comes last."""
        if len(raw) < self._taken_chars:
            self._restart()
        if not engines_loaded():
            text = display_safe(raw).strip("\n")
            lines = wrap([(text, self._markdown.base)], self._width)
            return self._brush.rows(self._brush.indented([*self._heading, *lines]))
        self._take(raw)
        while self._step():
            pass
        lines = self._unfinished
        if self._fence is not None:
            return [*self._frozen, *self._fence.rows, *self._brush.rows(self._brush.indented(lines))]
        lines = [*self._gap(), *lines] if lines else []
        return [*self._frozen, *self._brush.rows(self._brush.indented(lines))]

    def _take(self, raw: str) -> None:
        """Makes the new text safe, line by line: a sequence may be cut anywhere while it comes."""
        chunk = self._open_raw + raw[self._taken_chars :]
        self._taken_chars = len(raw)
        whole, newline, self._open_raw = chunk.rpartition("\n")
        self._tail += display_safe(whole + newline)

    def _step(self) -> bool:
        """Freezes what is finished and draws the rest; true when there may be more to do."""
        if self._fence is not None:
            return self._step_fence(self._fence)
        text = self._tail + display_safe(self._open_raw)
        if is_plain(text):
            self._unfinished = self._markdown.lines(text, self._width)
            return False
        tokens = parse_markdown(text)
        tops = [index for index, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
        if not tops:
            self._unfinished = []
            return False
        last = tokens[tops[-1]]
        start = _line_start(text, last.map[0] if last.map else 0)
        for block in self._markdown.token_blocks(tokens[: tops[-1]], self._width):
            self._freeze_block(block)
        self._tail = self._tail[start:]
        if last.type == "fence" and self._open_fence():
            return True
        is_list = last.type in ("bullet_list_open", "ordered_list_open")
        is_long = len(text) - start > _LONG_BLOCK_CHARS and last.type != "table_open"
        if is_long and self._cut_block(text[start:], is_list=is_list):
            return True
        self._unfinished = spaced(self._markdown.token_blocks(tokens[tops[-1] :], self._width))
        return False

    def _open_fence(self) -> bool:
        """Goes over to taking code line by line, once the line that opens the fence is whole."""
        first, newline, rest = self._tail.partition("\n")
        match = _FENCE.match(first)
        if match is None or not newline:
            return False
        gap = self._to_rows(self._gap())
        self._fence = _Fence(match[1], match.start(1), match[2] or None, rows=gap)
        self._tail = rest
        return True

    def _step_fence(self, fence: _Fence) -> bool:
        """Takes the whole lines that came; true when one of them closed the fence."""
        while True:
            line, newline, rest = self._tail.partition("\n")
            if not newline:
                self._unfinished = self._open_code_line(fence)
                return False
            self._tail = rest
            if fence.is_closed_by(line):
                self._close_fence(fence)
                return True
            code = line[min(fence.indent, len(line) - len(line.lstrip(" "))) :]
            fence.code.append(code)
            fence.rows += self._to_rows(self._code_line(code, fence.language))

    def _close_fence(self, fence: _Fence) -> None:
        self._fence = None
        if len(fence.code) <= _EXACT_FENCE_LINES:
            code = "\n".join(fence.code)
            self._freeze_block(self._markdown.code(code, fence.language, self._width))
        else:
            self._frozen += fence.rows
            self._has_block, self._joins_next = True, False

    def _code_line(self, code: str, language: str | None) -> list[Line]:
        base = self._markdown.base + self._markdown.palette.style("mdCodeBlock")
        return self._markdown.barred(highlight(code, language, self._markdown.palette, base), self._width)

    def _cut_block(self, text: str, *, is_list: bool) -> bool:
        """Freezes the beginning of a block that grew long. The next part follows it without a gap."""
        whole = len(self._tail)
        place = 0
        if is_list:
            place = max((match.start() for match in _ITEM.finditer(text, 1, whole)), default=0)
        if not place and (not is_list or len(text) > 4 * _LONG_BLOCK_CHARS):
            place = text.rfind("\n", 0, whole) + 1
        if place:
            self._freeze_markdown(text[:place])
            self._tail = self._tail[place:]
        else:
            place = self._open_raw.rfind(" ", _LONG_BLOCK_CHARS // 2) + 1
            if is_list or whole or not place or display_safe(self._open_raw) != self._open_raw:
                return False
            self._freeze_markdown(self._open_raw[:place])
            self._open_raw = self._open_raw[place:]
        self._joins_next = True
        return True

    def _open_code_line(self, fence: _Fence) -> list[Line]:
        rest = self._tail + display_safe(self._open_raw)
        return self._code_line(rest, fence.language) if rest and not fence.is_closed_by(rest) else []

    def _freeze_markdown(self, text: str) -> None:
        for block in self._markdown.blocks(text, self._width):
            self._freeze_block(block)

    def _freeze_block(self, lines: list[Line]) -> None:
        if lines:
            self._frozen += self._to_rows([*self._gap(), *lines])
            self._has_block, self._joins_next = True, False

    def _gap(self) -> list[Line]:
        """The blank line before the next block."""
        return [BLANK] if self._has_block and not self._joins_next else []

    def _to_rows(self, lines: list[Line]) -> list[Row]:
        return to_rows(self._brush.indented(lines), self._brush.width)


def _line_start(text: str, line: int) -> int:
    """The index of the first character of a line, counted from 0."""
    place = 0
    for _ in range(line):
        place = text.find("\n", place) + 1
    return place
