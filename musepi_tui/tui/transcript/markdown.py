"""Markdown of a model as lines: an own walk over markdown-it's tokens. HTML stays literal, line breaks stay.

The text must be safe (``display_safe``) before it comes here.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.style import Style

from musepi_tui.base.dataclass import dataclass
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.code import highlight
from musepi_tui.tui.transcript.engines import engines_loaded, parse_markdown
from musepi_tui.tui.transcript.inline import Inline
from musepi_tui.tui.transcript.lines import BLANK, BOLD, Line, Span, hanging, with_margin, wrap
from musepi_tui.tui.transcript.table import Table

if TYPE_CHECKING:
    from markdown_it.token import Token

_DEEPEST = 12
"""Levels of nesting that are still indented; deeper ones would leave no room for text."""

_BAR_WIDTH = 4
"""Cells below which bars and bullets are left out: a wide character needs two."""

_TOO_DEEP = re.compile(r"^[ \t]{180,}\S|^[ \t]*(?:[>*+-][ \t]*){90,}[^\s>*+-]", re.MULTILINE)
"""Nesting the parser would swallow (it stops at 100 levels): such a text is shown as it is."""


@dataclass(frozen=True, slots=True)
class Markdown:
    """What Markdown is drawn with. ``base`` is the style of plain text."""

    palette: Palette
    base: Style

    def lines(self, text: str, width_cells: int) -> list[Line]:
        """The whole text in lines of at most ``width_cells``, blocks apart by a blank line."""
        return spaced(self.blocks(text, width_cells))

    def blocks(self, text: str, width_cells: int) -> Iterator[list[Line]]:
        """The lines of each top-level block."""
        if is_plain(text):
            return iter([wrap([(text.strip("\n"), self.base)], width_cells)])
        return self.token_blocks(parse_markdown(text), width_cells)

    def token_blocks(self, tokens: "list[Token]", width_cells: int) -> Iterator[list[Line]]:
        """The lines of each top-level block of a parsed text."""
        walk = _Walk(self, tokens)
        while walk.index < len(tokens):
            lines = walk.block(width_cells, 0)
            if lines:
                yield lines

    def code(self, code: str, language: str | None, width_cells: int) -> list[Line]:
        """A code block: a bar at its side, long lines wrapped."""
        base = self.base + self.palette.style("mdCodeBlock")
        return self.barred(highlight(code, language, self.palette, base), width_cells)

    def barred(self, code: list[list[Span]], width_cells: int) -> list[Line]:
        """Highlighted code lines behind the bar of a code block."""
        if width_cells < _BAR_WIDTH:
            return [line for spans in code for line in wrap(spans, width_cells)]
        bar = (f"{self.palette.symbol('bar')} ", self.base + self.palette.style("mdCodeBlockBorder"))
        return [line for spans in code for line in with_margin(wrap(spans, width_cells - 2), bar, bar)]


def spaced(blocks: Iterable[list[Line]]) -> list[Line]:
    """Blocks with a blank line between them."""
    lines: list[Line] = []
    for block in blocks:
        if lines:
            lines.append(BLANK)
        lines += block
    return lines


def is_plain(text: str) -> bool:
    """Whether a text is shown as it is: the parser is not there yet, or would swallow some of it."""
    return not engines_loaded() or _TOO_DEEP.search(text) is not None


class _Walk:
    """One pass over the tokens of a text."""

    def __init__(self, markdown: Markdown, tokens: "list[Token]") -> None:
        self.markdown = markdown
        self.tokens = tokens
        self.index = 0
        self._palette = markdown.palette
        self._base = markdown.base

    def block(self, width: int, depth: int) -> list[Line]:
        """The lines of the block at the current token; moves behind it."""
        token = self.tokens[self.index]
        self.index += 1
        match token.type:
            case "paragraph_open" | "heading_open":
                return self._inline_block(token, width)
            case "fence" | "code_block":
                language = token.info.split()[0] if token.info.strip() else None
                return self.markdown.code(token.content.removesuffix("\n"), language, width)
            case "bullet_list_open" | "ordered_list_open":
                return self._list(token, width, depth)
            case "blockquote_open":
                return self._quote(width, depth)
            case "table_open":
                return self._table(width)
            case _:
                return self._leaf(token, width)

    def _leaf(self, token: "Token", width: int) -> list[Line]:
        if token.type == "hr":
            rule = self._palette.symbol("rule") * max(1, min(width, 40))
            return [Line(((rule, self._base + self._palette.style("mdHr")),), len(rule), is_text=False)]
        text = token.content.strip("\n")
        return wrap([(text, self._base)], width) if text else []

    def _inline_block(self, token: "Token", width: int) -> list[Line]:
        inline = self.tokens[self.index]
        self.index += 2
        style = self._base
        if token.type == "heading_open":
            style += self._palette.style("mdHeading") + BOLD
            if token.tag == "h1":
                style += Style(underline=True)
        spans = Inline(self._palette, style).spans(inline)
        return wrap(spans, width) if spans else []

    def _children(self, end: str, width: int, depth: int, *, tight: bool = False) -> list[Line]:
        """The blocks up to the token that ends their parent, which is left behind."""
        lines: list[Line] = []
        level = self.tokens[self.index - 1].level
        while self.index < len(self.tokens):
            token = self.tokens[self.index]
            if token.type == end and token.level == level:
                self.index += 1
                break
            follows_code = bool(lines) and not (tight and token.type in _TIGHT)
            block = self.block(width, depth)
            if block:
                lines += [BLANK, *block] if follows_code else block
        return lines

    def _list(self, token: "Token", width: int, depth: int) -> list[Line]:
        end = token.type.replace("_open", "_close")
        ordered = token.type == "ordered_list_open"
        number = int(token.attrs.get("start", 1) or 0) if ordered else 0
        last = number + self._count_items(token) - 1
        room = len(str(max(last, 0)))
        tight = self._is_tight(token)
        lines: list[Line] = []
        while self.index < len(self.tokens):
            item = self.tokens[self.index]
            self.index += 1
            if item.type == end and item.level == token.level:
                break
            bullet = f"{number:>{room}}. " if ordered else f"{self._palette.symbol('bullet')} "
            if lines and not tight:
                lines.append(BLANK)
            lines += self._item(bullet, width, depth)
            number += 1
        return lines

    def _item(self, bullet: str, width: int, depth: int) -> list[Line]:
        style = self._base + self._palette.style("mdListBullet")
        bullet, style = self._task_box(bullet, style)
        if depth >= _DEEPEST or width - len(bullet) < 2:
            bullet = ""
        content = self._children("list_item_close", max(1, width - len(bullet)), depth + 1, tight=True)
        return hanging(content or [BLANK], (bullet, style)) if bullet else content

    def _task_box(self, bullet: str, style: Style) -> tuple[str, Style]:
        """``[ ]`` and ``[x]`` at the start of an item stand in the place of its bullet."""
        inline = self.tokens[self.index + 1] if self.index + 1 < len(self.tokens) else None
        if inline is None or inline.type != "inline" or not inline.children:
            return bullet, style
        first = inline.children[0]
        if first.type != "text" or first.content[:4] not in ("[ ] ", "[x] ", "[X] "):
            return bullet, style
        box, first.content = first.content[:4], first.content[4:]
        if box == "[ ] ":
            return box, self._base + self._palette.style("muted")
        return "[x] ", self._base + self._palette.style("success")

    def _quote(self, width: int, depth: int) -> list[Line]:
        bar = (f"{self._palette.symbol('bar')} ", self._base + self._palette.style("mdQuoteBorder"))
        outer = self._base
        self._base = outer + self._palette.style("mdQuote")
        shown = depth < _DEEPEST and width >= _BAR_WIDTH
        lines = self._children("blockquote_close", width - 2 if shown else width, depth + 1)
        self._base = outer
        return with_margin(lines or [BLANK], bar, bar) if shown else lines

    def _table(self, width: int) -> list[Line]:
        rows: list[list[list[Span]]] = []
        alignments: list[str] = []
        inline = Inline(self._palette, self._base)
        while self.index < len(self.tokens):
            token = self.tokens[self.index]
            self.index += 1
            match token.type:
                case "tr_open":
                    rows.append([])
                case "th_open":
                    alignments.append(str(token.attrs.get("style") or "").rpartition(":")[2] or "left")
                case "inline":
                    rows[-1].append(inline.spans(token))
                case "table_close":
                    break
                case _:
                    continue
        border = self._base + self._palette.style("border")
        symbol = self._palette.symbol
        return Table(rows, alignments, border, symbol("rule"), symbol("bar")).lines(width)

    def _is_tight(self, token: "Token") -> bool:
        """Whether no paragraph directly in an item of this list stands apart from its neighbours."""
        for later in self.tokens[self.index :]:
            if later.level <= token.level:
                break
            if later.type == "paragraph_open" and later.level == token.level + 2 and not later.hidden:
                return False
        return True

    def _count_items(self, token: "Token") -> int:
        count = 0
        for later in self.tokens[self.index :]:
            if later.level <= token.level:
                break
            count += later.type == "list_item_open" and later.level == token.level + 1
        return count


_TIGHT = frozenset({"paragraph_open", "bullet_list_open", "ordered_list_open"})
"""Blocks that follow each other without a blank line inside a list item."""
