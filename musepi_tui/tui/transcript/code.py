"""Code with the colours of the theme."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rich.style import Style

from musepi_tui.tui.themes import Palette
from musepi_tui.tui.transcript.engines import engines_loaded, lexer_for
from musepi_tui.tui.transcript.lines import Span

_HIGHLIGHTED_CHARS = 60_000
"""Longer code is drawn plain: highlighting it would hold up the screen for over a tenth of a second."""

_HIGHLIGHTED_LINE_CHARS = 2_000
"""A longer line is data, not code, and some lexers need quadratic time for it."""

_TOKENS: Sequence[tuple[str, str]] = (
    ("Comment", "syntaxComment"),
    ("Keyword.Type", "syntaxType"),
    ("Keyword", "syntaxKeyword"),
    ("Name.Function", "syntaxFunction"),
    ("Name.Decorator", "syntaxFunction"),
    ("Name.Class", "syntaxType"),
    ("Name.Exception", "syntaxType"),
    ("Name.Builtin.Pseudo", "syntaxKeyword"),
    ("Name.Builtin", "syntaxType"),
    ("Name.Tag", "syntaxKeyword"),
    ("Name.Attribute", "syntaxVariable"),
    ("Name.Variable", "syntaxVariable"),
    ("Name", "syntaxVariable"),
    ("Literal.String", "syntaxString"),
    ("Literal.Number", "syntaxNumber"),
    ("Operator.Word", "syntaxKeyword"),
    ("Operator", "syntaxOperator"),
    ("Punctuation", "syntaxPunctuation"),
    ("Generic.Inserted", "toolDiffAdded"),
    ("Generic.Deleted", "toolDiffRemoved"),
    ("Generic.Heading", "syntaxKeyword"),
    ("Generic.Subheading", "syntaxComment"),
)
"""Token types of Pygments, the narrower first, and the theme's token for each."""


def highlight(code: str, language: str | None, palette: Palette, base: Style) -> list[list[Span]]:
    """The lines of a safe code text as spans. Plain while the highlighter is not loaded, for unknown
    languages and for what is too long to be worth the wait."""
    if not language or not engines_loaded() or _is_too_long(code):
        return plain_lines(code, base)
    tokens = lexer_for(language)
    if tokens is None:
        return plain_lines(code, base)
    lines: list[list[Span]] = [[]]
    for token_type, text in tokens(code):
        token = _theme_token(token_type)
        style = base + palette.style(token) if token else base
        first, *others = text.split("\n")
        if first:
            lines[-1].append((first, style))
        for part in others:
            lines.append([(part, style)] if part else [])
    wanted = code.count("\n") + 1
    return (lines + [[] for _ in range(wanted - len(lines))])[:wanted]


def plain_lines(code: str, base: Style) -> list[list[Span]]:
    """The lines of a text in one style."""
    return [[(line, base)] for line in code.split("\n")]


@lru_cache(maxsize=256)
def _theme_token(token_type: Any) -> str | None:  # noqa: ANN401  the type of Pygments has no name here
    dotted = str(token_type).removeprefix("Token.")
    return next((ours for prefix, ours in _TOKENS if dotted.startswith(prefix)), None)


def _is_too_long(code: str) -> bool:
    if len(code) > _HIGHLIGHTED_CHARS:
        return True
    return len(code) > _HIGHLIGHTED_LINE_CHARS and max(map(len, code.split("\n"))) > _HIGHLIGHTED_LINE_CHARS
