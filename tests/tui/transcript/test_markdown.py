import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.transcript.lines import Line
from musepi_tui.tui.transcript.markdown import Markdown
from tests.support.transcripts import palette

MARKDOWN = Markdown(palette(), Style())


def lines_of(text: str, width: int = 60) -> list[Line]:
    return MARKDOWN.lines(display_safe(text), width)


def shown(text: str, width: int = 60) -> str:
    return "\n".join("".join(part for part, _ in line.spans).rstrip() for line in lines_of(text, width))


def styles_of(text: str, part: str) -> Style:
    return next(style for line in lines_of(text) for span, style in line.spans if part in span)


CASES = {
    "heading": ("# One\n## Two\ntext", "One\n\nTwo\n\ntext"),
    "line breaks stay": ("one\ntwo  \nthree", "one\ntwo\nthree"),
    "tight list": ("- a\n- b\n  - c\n    more", "• a\n• b\n  • c\n    more"),
    "loose list": ("- a\n\n- b", "• a\n\n• b"),
    "ordered list": ("9. nine\n10. ten", " 9. nine\n10. ten"),
    "list with code": ("- a\n  ```\n  x\n  ```", "• a\n\n  │ x"),
    "task boxes": ("- [ ] open\n- [x] done", "[ ] open\n[x] done"),
    "quote": ("> one\n> > two", "│ one\n│\n│ │ two"),
    "rule": ("a\n\n***\n\nb", "a\n\n" + "─" * 40 + "\n\nb"),
    "fence": ("```py\nif x:\n    y\n```", "│ if x:\n│     y"),
    "indented code": ("    x = 1", "│ x = 1"),
    "unclosed fence": ("```\nx", "│ x"),
    "html block": ("<div>\nhi\n</div>", "<div>\nhi\n</div>"),
    "html inline": ("a <b>bold</b> <!-- c -->", "a <b>bold</b> <!-- c -->"),
    "unknown tag": ("<thinking>\nhm", "<thinking>\nhm"),
    "markup": ("[red]x[/red] [/nope]", "[red]x[/red] [/nope]"),
    "link": ("[docs](https://a.example/x)", "docs (https://a.example/x)"),
    "bare link": ("<https://a.example>", "https://a.example"),
    "image": ("![a cat](cat.png)", "[image: a cat] (cat.png)"),
    "entity": ("&lt;a&gt; &amp;", "<a> &"),
    "escaped": (r"\*not\* \_em\_", "*not* _em_"),
    "table": ("| a | b |\n|---|--:|\n| one | 2 |", "a   │ b\n────┼──\none │ 2"),
    "empty": ("", ""),
    "blank": ("\n\n  \n", ""),
}


@pytest.mark.parametrize(("source", "picture"), CASES.values(), ids=CASES.keys())
def test_markdown_is_drawn(source, picture):
    assert shown(source) == picture


def test_wide_table_wraps_its_cells():
    table = "| Name | What it does |\n|---|---|\n| alpha | reads the whole file and counts words |"
    assert shown(table, 30) == (
        "Name  │ What it does\n"
        "──────┼───────────────────────\n"
        "alpha │ reads the whole file\n"
        "      │ and counts words"
    )


def test_table_becomes_pairs_where_columns_would_be_too_narrow():
    table = "| Name | Meaning | Where |\n|---|---|---|\n| alpha | the first | somewhere |\n| beta | x | y |"
    assert shown(table, 20) == (
        "Name: alpha\nMeaning: the first\nWhere: somewhere\n\nName: beta\nMeaning: x\nWhere: y"
    )


def test_soft_wrapped_text_breaks_at_blanks_and_wide_characters_anywhere():
    assert shown("aaa bbb ccc", 7) == "aaa bbb\nccc"
    assert shown("日本語日本語", 5) == "日本\n語日\n本語"


@pytest.mark.parametrize(
    ("source", "linked"),
    [
        ("[a](https://x.example)", True),
        ("[a](mailto:x@example.org)", True),
        ("[a](javascript:alert(1))", False),
        ("[a](file:///etc/passwd)", False),
        ("[a](<https://x.example/\u202eb>)", True),
    ],
)
def test_only_harmless_addresses_become_links(source, linked):
    link = styles_of(source, "a").link
    assert (link is not None) == linked
    assert link is None or (link.isascii() and link.isprintable() and " " not in link)


def test_code_is_coloured_by_the_theme():
    theme = palette()
    source = "```python\ndef fun(): return 'words'  # c\n```"
    assert styles_of(source, "def").color == theme.style("syntaxKeyword").color
    assert styles_of(source, "fun").color == theme.style("syntaxFunction").color
    assert styles_of(source, "words").color == theme.style("syntaxString").color
    assert styles_of(source, "# c").color == theme.style("syntaxComment").color


def test_code_of_an_unknown_language_is_plain():
    assert styles_of("```nosuch\ndef f()\n```", "def f()").color == palette().style("mdCodeBlock").color


def test_nesting_the_parser_would_swallow_is_shown_as_it_is():
    assert "deep" in shown("> " * 120 + "deep")
    assert "deep" in shown("> " * 60 + "deep")
    assert "deep" in shown("- " * 95 + "deep", 300)


@pytest.mark.parametrize(
    "source",
    ["[" * 5000, "[a](b" * 3000, "|" * 20000, "> " * 2000 + "x", "`" * 5000, "*" * 3000 + "a", "x" * 100_000],
    ids=["brackets", "links", "pipes", "quotes", "ticks", "stars", "line"],
)
def test_hostile_markdown_is_drawn(source):
    assert lines_of(source, 80)


@given(st.text(alphabet=" \n\t#*-_>`|[]()<>&!~0123abc.:\\日é👩‍👩‍👦❤️", max_size=300), st.integers(1, 90))
def test_markdown_never_exceeds_its_width(source, width):
    for line in lines_of(source, width):
        text = "".join(part for part, _ in line.spans)
        assert cell_len(text) == line.cells
        assert line.cells <= max(width, 2)


@given(
    st.lists(
        st.sampled_from(["word", "<tag>", "`code`", "**b**", "- x", "> q", "# h", "1. n", "a\\*"]),
        max_size=12,
    )
)
def test_words_are_never_lost(parts):
    text = "\n".join(f"{part} w{number}w" for number, part in enumerate(parts))
    drawn = shown(text)
    assert all(f"w{number}w" in drawn for number in range(len(parts)))
