"""Foreign text inside Markdown: fences nothing can close early, and HTML that stays text (SAF-56)."""

import re

_RUN = re.compile(r"`+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


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


def without_html(markdown: str) -> str:
    """The Markdown with every raw tag made plain text; as code where that cannot be done.

    Tags inside code are code and stay. Raw HTML is found by parsing, since where code ends is for the parser
    to say.
    """
    if _TAG.search(markdown) is None:
        return markdown
    from musepi_tui.storage.exporters.markup import is_hostile  # deferred: most texts have no tags

    if is_hostile(markdown):
        return fenced(markdown)
    lines = markdown.split("\n")
    for start, end in _html_ranges(markdown):
        for index in range(start, min(end, len(lines))):
            lines[index] = _TAG.sub(r"\\<", lines[index])
    escaped = "\n".join(lines)
    return fenced(markdown) if _html_ranges(escaped) else escaped


def _html_ranges(markdown: str) -> list[tuple[int, int]]:
    """Lines, first and behind the last, of the blocks with raw HTML in them."""
    from markdown_it import MarkdownIt  # deferred: slow to load

    found: list[tuple[int, int]] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown):
        inside = [child.type for child in token.children or ()]
        if (token.type == "html_block" or "html_inline" in inside) and token.map is not None:
            found.append((token.map[0], token.map[1]))
    return found
