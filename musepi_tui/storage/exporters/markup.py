"""Markdown of a model as HTML that cannot do anything: raw HTML stays text, links are few, pictures none."""

import html
import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARS = 400_000
"""Longer texts are shown as they are: the parser needs about a second for a million characters."""

_MAX_BRACKETS = 1_000
"""Opening brackets of one paragraph: the parser needs time with their square. A text with more of them is
shown as it is; real answers have some dozens."""

_MAX_NESTING = 60
_TOO_DEEP = re.compile(r"^[ \t]{100,}\S|^[ \t]*(?:[>*+-][ \t]*){40,}[^\s>*+-]", re.MULTILINE)
"""Nesting the parser would swallow: such a text is shown as it is."""

_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE)


def markdown_html(text: str) -> str:
    """The HTML of a cleaned Markdown text; a ``pre`` where it cannot be taken apart."""
    if is_hostile(text):
        return plain_html(text)
    return _parser().render(text)


def plain_html(text: str) -> str:
    """The text as it is, line breaks kept."""
    return f'<pre class="plain">{html.escape(text)}</pre>'


def is_hostile(text: str) -> bool:
    """Whether parsing would take too long or leave something out."""
    if len(text) > MAX_CHARS or _TOO_DEEP.search(text) is not None:
        return True
    return text.count("[") > _MAX_BRACKETS and any(
        block.count("[") > _MAX_BRACKETS for block in text.split("\n\n")
    )


def diff_html(diff: str) -> str:
    """The lines of a cleaned diff, each with the colour of its sign."""
    rows = (
        f'<span class="{_SIGNS.get(line[:1], "c")}">{html.escape(line)}\n</span>'
        for line in diff.removesuffix("\n").split("\n")
    )
    return f'<pre class="diff">{"".join(rows)}</pre>'


_SIGNS: Mapping[str, str] = {"+": "a", "-": "d", "@": "h"}


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # deferred: only pages need it, and it is slow to load

    options: dict[str, Any] = {"maxNesting": _MAX_NESTING, "html": False, "breaks": True, "xhtmlOut": False}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.validateLink = _accept_link  # what is no good address loses it below, its words stay
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("fence", _fence)
    return parser


def _accept_link(url: str) -> bool:
    return bool(url)


def _link_open(
    self: object, tokens: "Sequence[Token]", index: int, options: object, env: MutableMapping[str, Any]
) -> str:
    href = str(tokens[index].attrGet("href") or "")
    good = _ADDRESS.fullmatch(href) is not None
    env.setdefault("links", []).append("a" if good else "span")
    if good:
        return f'<a href="{html.escape(href)}" rel="noopener noreferrer">'
    return f'<span class="nolink" title="{html.escape(href)}">'


def _link_close(
    self: object, tokens: "Sequence[Token]", index: int, options: object, env: MutableMapping[str, Any]
) -> str:
    return f"</{env['links'].pop()}>"


def _image(
    self: object, tokens: "Sequence[Token]", index: int, options: object, env: MutableMapping[str, Any]
) -> str:
    """A picture in the text is somewhere else: its words and address, as text."""
    token = tokens[index]
    return f"[picture: {html.escape(token.content)} {html.escape(str(token.attrGet('src') or ''))}]"


def _fence(
    self: object, tokens: "Sequence[Token]", index: int, options: object, env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    language = token.info.split()[0] if token.info.strip() else ""
    if language in ("diff", "patch"):
        return diff_html(token.content)
    label = f' data-language="{html.escape(language)}"' if language else ""
    return f"<pre{label}><code>{html.escape(token.content)}</code></pre>\n"
