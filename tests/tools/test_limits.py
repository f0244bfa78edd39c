import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tools.limits import clip_lines, cut_head, cut_tail, first_bytes, last_bytes

LINES = st.lists(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20), max_size=30
)


def test_text_within_both_limits_stays_whole():
    assert cut_head("a\nb\n") == cut_tail("a\nb\n").__class__("a\nb", 1, 2, 2)
    assert not cut_tail("a\nb").is_cut


def test_head_keeps_the_first_lines_and_tail_the_last():
    text = "\n".join(str(number) for number in range(1, 11))
    head, tail = cut_head(text, max_lines=3), cut_tail(text, max_lines=3)
    assert (head.text, head.first, head.last, head.total) == ("1\n2\n3", 1, 3, 10)
    assert (tail.text, tail.first, tail.last, tail.total) == ("8\n9\n10", 8, 10, 10)


def test_byte_limit_counts_bytes_and_cuts_at_whole_lines():
    text = "ää\nää\nää"
    assert cut_head(text, max_bytes=9).text == "ää\nää"
    assert cut_tail(text, max_bytes=9).text == "ää\nää"


def test_single_line_over_the_limit_gives_nothing_in_head_mode_and_its_end_in_tail_mode():
    assert cut_head("x" * 100, max_bytes=10).text == ""
    tail = cut_tail("a" * 100 + "end", max_bytes=10)
    assert (tail.text, tail.is_partial_line, tail.is_cut) == ("aaaaaaaend", True, True)


@pytest.mark.parametrize(("cut", "expected"), [(first_bytes, "ää"), (last_bytes, "ää")])
def test_byte_cut_falls_on_a_character_boundary(cut, expected):
    assert cut("ääää", 5) == expected


def test_long_lines_are_clipped_and_counted():
    assert clip_lines("short\n" + "x" * 20, 10) == ("short\n" + "x" * 10 + "…", 1)
    assert clip_lines("x" * 20, 0) == ("x" * 20, 0)


@given(LINES, st.integers(1, 12), st.integers(1, 60))
def test_cuts_are_whole_lines_within_both_limits(lines, max_lines, max_bytes):
    text = "\n".join(lines)
    for part in (cut_head(text, max_lines, max_bytes), cut_tail(text, max_lines, max_bytes)):
        assert len(part.text.encode()) <= max_bytes
        if not part.is_partial_line:
            kept = text.split("\n")[part.first - 1 : part.last]
            assert part.text == "\n".join(kept)
            assert len(kept) <= max_lines
