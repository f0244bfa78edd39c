import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.transcript.lines import BOLD, Row, hanging, to_rows, with_margin, wrap
from musepi_tui.tui.transcript.selection import join_rows

PLAIN = Style()


def texts(text: str, width: int) -> list[str]:
    return ["".join(part for part, _ in line.spans) for line in wrap([(text, PLAIN)], width)]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 8, ["one two", "three"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a  b", 10, ["a  b"]),
        ("    indented text", 12, ["    indented", "text"]),
        ("            x", 4, ["    ", "    ", "    ", "x"]),
        ("one\n\ntwo", 9, ["one", "", "two"]),
        ("日本語", 4, ["日本", "語"]),
        ("ab 日本語 cd", 6, ["ab 日", "本語", "cd"]),
        ("👩‍👩‍👦👩‍👩‍👦👩‍👩‍👦", 4, ["👩‍👩‍👦👩‍👩‍👦", "👩‍👩‍👦"]),
        ("naïve café", 6, ["naïve", "café"]),
    ],
)
def test_text_is_wrapped(text, width, lines):
    assert texts(text, width) == lines


@given(st.text(alphabet="ab é日本👩‍👦\n ", max_size=80), st.integers(2, 30))
def test_wrapped_lines_fit_and_join_to_the_text(text, width):
    text = display_safe(text)  # as all text that is drawn: no joiner outside a glyph
    lines = wrap([(text[:7], PLAIN), (text[7:], BOLD)], width)
    for line in lines:
        assert line.cells == cell_len("".join(part for part, _ in line.spans)) <= width
    joined = join_rows((row, row.text) for row in to_rows(lines, width))
    assert joined.split() == text.split() or "".join(joined.split()) == "".join(text.split())


def test_styles_stay_with_their_text():
    (line,) = wrap([("plain ", PLAIN), ("bold", BOLD)], 20)
    assert line.spans == (("plain ", PLAIN), ("bold", BOLD))


def test_margins_are_no_text_and_bullets_are():
    lines = hanging(wrap([("one two\nthree", PLAIN)], 4), ("• ", BOLD))
    rows = to_rows(with_margin(lines, ("> ", PLAIN)), 12)
    assert [row.strip.text for row in rows] == ["> • one     ", "    two     ", "    three   "][:2] + [
        "    thre    ",
        "    e       ",
    ]
    assert [row.text for row in rows] == ["• one", "two", "  thre", "e"]
    assert join_rows((row, row.text) for row in rows) == "• one two\n  three"


def test_rows_are_filled_up_to_the_edge_of_the_background():
    fill = Style(bgcolor="blue")
    (row,) = to_rows(wrap([("ab", PLAIN)], 5), 6, fill, 5)
    assert [(segment.text, bool(segment.style and segment.style.bgcolor)) for segment in row.strip] == [
        ("ab", True),
        ("   ", True),
        (" ", False),
    ]


def test_borders_have_no_text():
    assert Row(Strip([], 0), is_text=False).text == ""
