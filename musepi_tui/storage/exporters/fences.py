"""Foreign text inside Markdown: fences nothing can close early, HTML that stays text, no pictures from
elsewhere (SAF-56)."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_RUN = re.compile(r"`+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MARK = "!["
_PICTURE = re.compile(r"(?<!\\)((?:\\\\)*)!(?=\[)")
"""The mark of a picture, unless a backslash made it plain already."""

_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_FENCE = re.compile(r"^ {0,3}(?:`{3}|~{3})", re.MULTILINE)


def fenced(text: str, language: str = "") -> str:
    """The text in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in _RUN.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def code_span(text: str) -> str:
    """One line as code."""
    flat = " ".join(text.split()) or "?"
    longest = max((len(run) for run in _RUN.findall(flat)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def quoted(text: str) -> str:
    """Lines as a quote; line breaks stay what they are."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").split("\n"))


def inert(markdown: str) -> str:
    """The Markdown with every raw tag made plain text and every picture a link, which nothing loads by
    itself; as code where that cannot be done.

    What stands inside code is code and stays. It is found by parsing, since where code ends is for the parser
    to say. So that the document around it changes nothing of that, a fence left open is closed, and a text
    does not begin indented, where it would belong to a list before it.
    """
    apart = _taken_apart(_without_indent(markdown))
    return apart if _FENCE.search(apart) is None else _with_closed_fence(apart)


def _taken_apart(markdown: str) -> str:
    if _TAG.search(markdown) is None and _PICTURE.search(markdown) is None:
        return markdown
    from musepi_tui.storage.exporters.markup import is_hostile  # deferred: most texts have neither

    if is_hostile(markdown):
        return fenced(markdown)
    escaped = _escaped(markdown)
    # A tag that is a word by now may have hidden where code begins.
    return escaped if _escaped(escaped) == escaped else fenced(markdown)


def _escaped(markdown: str) -> str:
    """Backslashes before the tags and the marks of pictures outside code."""
    lines = markdown.split("\n")
    for (start, end), tokens in _blocks(markdown).items():
        block = lines[start:end]
        has_html = any(_holds_html(token) for token in tokens)
        if has_html or "\n".join(block).count(_MARK) > sum(_marks_in_code(token) for token in tokens):
            # Every mark of a picture: another text of the document may say where it lies.
            block = [_PICTURE.sub(r"\1\\!", line) for line in block]
        lines[start:end] = [_TAG.sub(r"\\<", line) for line in block] if has_html else block
    return "\n".join(lines)


def _without_indent(markdown: str) -> str:
    body = _BLANK_LINES.sub("", markdown)
    if not body.startswith((" ", "\t")) or not body.strip():
        return markdown
    first = _parser(blocks_only=True).parse(body)[0]
    if first.type == "code_block" and first.map is not None:
        return "\n".join([fenced(first.content), *body.split("\n")[first.map[1] :]])
    indent = len(body) - len(body.lstrip(" "))
    return re.sub(rf"^ {{1,{indent}}}", "", body, flags=re.MULTILINE)


def _with_closed_fence(markdown: str) -> str:
    last = _parser(blocks_only=True).parse(f"{markdown}\n\nwhat follows")[-1]
    return f"{markdown}\n{last.markup}" if last.type == "fence" else markdown


def _blocks(markdown: str) -> "dict[tuple[int, int], list[Token]]":
    """The blocks of a text that are no code, by their lines, first and behind the last. The cells of a row of
    a table have the same."""
    found: dict[tuple[int, int], list[Token]] = {}
    for token in _parser().parse(markdown):
        if token.type in ("inline", "html_block") and token.map is not None:
            found.setdefault((token.map[0], token.map[1]), []).append(token)
    return found


def _marks_in_code(token: "Token") -> int:
    """How many marks of pictures are code, such as the macro in `` `vec![0]` ``."""
    return sum(child.content.count(_MARK) for child in token.children or () if child.type == "code_inline")


def _holds_html(token: "Token") -> bool:
    return token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())


@cache
def _parser(*, blocks_only: bool = False) -> "MarkdownIt":
    from markdown_it import MarkdownIt  # deferred: slow to load

    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    if blocks_only:
        parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
