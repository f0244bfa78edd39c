import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.providers.think_tags import ThinkTags


def split(text: str, cuts=(), *, opened: bool = False) -> tuple[str, str]:
    borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    tags = ThinkTags(opened=opened)
    pieces = [
        piece
        for start, end in zip(borders, borders[1:], strict=False)
        for piece in tags.feed(text[start:end])
    ]
    pieces += tags.finish()
    thinking = "".join(text for is_thinking, text in pieces if is_thinking)
    return thinking, "".join(text for is_thinking, text in pieces if not is_thinking)


@pytest.mark.parametrize(
    ("text", "opened", "expected"),
    [
        ("Hello <think>x</think>", False, ("", "Hello <think>x</think>")),
        ("<think>why</think>\n\nBecause", False, ("why", "Because")),
        ("\n <think>why</think>Because", False, ("why", "Because")),
        ("<think>never closed", False, ("never closed", "")),
        ("why</think>Because", True, ("why", "Because")),
        ("<thi", False, ("", "<thi")),
        ("<b>bold</b>", False, ("", "<b>bold</b>")),
        ("", False, ("", "")),
    ],
)
def test_tags_are_split_off(text, opened, expected):
    assert split(text, opened=opened) == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=10))
def test_split_is_the_same_for_any_deltas(cuts):
    assert split("<think>a < b </thin </think>Yes </think>", cuts) == ("a < b </thin ", "Yes </think>")
