"""The Markdown parser and the highlighter, never loaded before the first frame.

Until ``load_engines`` ran (in a thread, after the first paint) texts are drawn as plain lines; the view draws
them again once it has.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_NESTING = 100
"""Levels of nested blocks that are parsed; the parser's default of 20 would swallow text of deeper ones."""

_loaded = False


def load_engines() -> None:
    """Imports both libraries; blocking, about 50 ms the first time."""
    global _loaded
    markdown_parser()
    lexer_names()
    lexer_for("python")
    _loaded = True


def engines_loaded() -> bool:
    """Whether text can be drawn in its final form."""
    return _loaded


def parse_markdown(text: str) -> "list[Token]":
    """The block tokens of a Markdown text, CommonMark with tables and strikethrough."""
    return markdown_parser().parse(text)


@cache
def markdown_parser() -> "MarkdownIt":
    """The one parser: building it costs more than parsing a paragraph."""
    from markdown_it import MarkdownIt  # the start of the program does without it

    return MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])


@cache
def lexer_names() -> dict[str, str]:
    """Alias or file suffix → name of a lexer. Plugins are left out: finding them is slow."""
    from pygments.lexers import get_all_lexers  # the start of the program does without it

    names: dict[str, str] = {}
    for name, aliases, patterns, _ in get_all_lexers(plugins=False):
        for pattern in patterns:
            if pattern.startswith("*.") and pattern[2:].isalnum():
                names.setdefault(pattern[2:].lower(), name)
        for alias in aliases:
            names[alias.lower()] = name
    return names


@lru_cache(maxsize=32)
def lexer_for(language: str) -> "Callable[[str], Iterator[tuple[Any, str]]] | None":
    """A function from code to (token type, text) pairs; None for a language nobody knows."""
    name = lexer_names().get(language.lower())
    if name is None or name == "Text only":
        return None
    from pygments.lexers import find_lexer_class  # the start of the program does without it

    lexer_class = find_lexer_class(name)
    if lexer_class is None:
        return None
    return lexer_class(stripnl=False, ensurenl=False).get_tokens
