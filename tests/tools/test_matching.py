import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.matching import Replacement, apply_replacements, normalise


def edited(text: str, *pairs: tuple[str, str], everywhere: bool = False) -> str:
    wanted = [Replacement(old, new, everywhere) for old, new in pairs]
    return apply_replacements(text, wanted, "f.py").text


def error_of(text: str, *pairs: tuple[str, str]) -> str:
    with pytest.raises(ToolError) as caught:
        edited(text, *pairs)
    return str(caught.value)


def test_text_is_replaced_where_it_stands():
    assert edited("a\nb\nc\n", ("b", "B")) == "a\nB\nc\n"


def test_all_edits_are_matched_against_the_original():
    assert edited("one two", ("one", "two"), ("two", "one")) == "two one"


def test_every_occurrence_is_replaced_when_asked():
    assert edited("x x\nx", ("x", "y"), everywhere=True) == "y y\ny"


def test_crlf_file_keeps_its_line_ends_and_new_lines_get_them():
    assert edited("a\r\nb\r\nc\r\n", ("b\nc", "b\nnew\nc")) == "a\r\nb\r\nnew\r\nc\r\n"


def test_lines_of_a_mixed_file_that_were_not_touched_keep_their_ends():
    assert edited("a\r\nb\nc\r\nd\n", ("b", "B")) == "a\r\nB\nc\r\nd\n"


def test_byte_order_mark_stays():
    assert edited("\ufeffa\nb", ("a", "x")) == "\ufeffx\nb"


def test_deleting_a_line_leaves_its_neighbours():
    assert edited("a\r\nb\r\nc\r\n", ("b\n", "")) == "a\r\nc\r\n"


def test_look_alikes_are_matched_and_untouched_lines_keep_their_bytes():
    text = "say \u201chi\u201d \n  keep\u00a0me \u2019\nend"
    assert edited(text, ('say "hi"', "say bye")) == "say bye\n  keep\u00a0me \u2019\nend"


def test_normalised_retry_concerns_the_whole_call():
    result = apply_replacements(
        "it\u2019s\nplain\n", [Replacement("it's", "is"), Replacement("plain", "p")], "f"
    )
    assert (result.text, result.normalised) == ("is\np\n", True)


def test_text_that_is_unique_only_exactly_is_not_ambiguous():
    assert edited("a-b\na\u2010b\n", ("a-b", "x")) == "x\na\u2010b\n"


def test_uniqueness_counts_in_the_normalised_view_too():
    assert "occurs 2 times" in error_of("a\u2010b c\na\u2011b c\n", ("a-b c", "x"))


def test_several_matches_name_their_lines():
    message = error_of("x\ny\nx\n", ("x", "z"))
    assert "occurs 2 times (lines 1, 3)" in message
    assert "replaceAll" in message


def test_overlapping_matches_count_as_several():
    assert "occurs 2 times" in error_of("aaa", ("aa", "b"))


def test_overlapping_edits_name_both():
    message = error_of("abcdef", ("abc", "x"), ("cde", "y"))
    assert "edits[0] and edits[1] overlap" in message


def test_missing_text_shows_the_closest_region():
    message = error_of("def f():\n    return 1\n\nother\n", ("def f():\n    return 2", "x"))
    assert "lines 1-2" in message
    assert "-    return 2" in message
    assert "+    return 1" in message


def test_missing_text_without_anything_alike_says_so():
    assert "Nothing like it" in error_of("aaaa\n", ("zzzzzzzzzz", "x"))


def test_message_names_path_and_index_of_several_edits():
    assert error_of("a b", ("a", "x"), ("nope nope", "y")).startswith("f.py: edits[1].oldText was not found")


def test_edit_that_changes_nothing_is_refused():
    assert error_of("a", ("a", "a")).startswith("No changes made")


@pytest.mark.parametrize("pairs", [[], [("", "x")]])
def test_empty_edits_are_refused(pairs):
    assert error_of("a", *pairs)


def test_normalise_keeps_the_number_of_lines():
    assert normalise("a \u2014 b  \n\n\u00a0x\t\n") == "a - b\n\n x\n"


BODY = st.text(st.sampled_from("ab\u2019' \t"), max_size=6)


@given(st.lists(st.tuples(BODY, st.sampled_from(["\n", "\r\n"])), max_size=8), st.data())
def test_lines_outside_the_match_keep_their_bytes(lines, data):
    text = "".join(body + end for body, end in [*lines[:4], ("<MARK>", "\n"), *lines[4:]])
    new = data.draw(st.sampled_from(["new", "two\nlines", ""]))
    before, after = text.split("<MARK>")
    ending = "\r\n" if "\r\n" in text and text.index("\n") == text.index("\r\n") + 1 else "\n"
    assert edited(text, ("<MARK>", new)) == before + new.replace("\n", ending) + after
