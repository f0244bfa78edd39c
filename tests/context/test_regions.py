import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.regions import find_regions


def found(text):
    return [(text[region.start : region.end], region.label) for region in find_regions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n```py\nx\n```\nb", [("```py\nx\n```", "code")]),
        ("~~~\nx\n~~~", [("~~~\nx\n~~~", "code")]),
        ("```\na\n~~~\nb\n```", [("```\na\n~~~\nb\n```", "code")]),
        ("```\nopen", []),
        (" ```\nx\n ```", []),
        ("```\na\n```\n```\nb\n```", [("```\na\n```", "code"), ("```\nb\n```", "code")]),
        ("<file>\nx\n</file>\ny", [("<file>\nx\n</file>", "file")]),
        ('<file path="a">\nx\n</file>', [('<file path="a">\nx\n</file>', "file")]),
        ("<a>\n<b>\nx\n</b>\n</a>", [("<a>\n<b>\nx\n</b>\n</a>", "a")]),
        ("<a>\n<a>\nx\n</a>\n</a>", [("<a>\n<a>\nx\n</a>\n</a>", "a")]),
        ("<a>\n<a>\nx\n</a>", [("<a>\nx\n</a>", "a")]),
        ("<a>x</a>", []),
        ("<A>\nx\n</A>", []),
        ("<a/>\nx\n</a>", []),
        ("<a>\nx", []),
        ("x\n</a>", []),
        ("<a>\n```\nx\n```\n</a>", [("<a>\n```\nx\n```\n</a>", "a")]),
        ("```\n<a>\n```\nx\n</a>", [("```\n<a>\n```", "code")]),
        ("<a_b-c>\r\nx\r\n</a_b-c>\r\n", [("<a_b-c>\r\nx\r\n</a_b-c>", "a_b-c")]),
        ("plain", []),
        ("", []),
    ],
)
def test_regions_of_a_text(text, expected):
    assert found(text) == expected


LINES = st.sampled_from(["```", "~~~", "<a>", "</a>", "<b>", "</b>", "text", ""])


@given(st.lists(LINES, max_size=30).map("\n".join))
def test_regions_are_in_order_and_do_not_overlap(text):
    regions = find_regions(text)
    places = [place for region in regions for place in (region.start, region.end)]
    assert places == sorted(places)
    assert all(0 <= region.start < region.end <= len(text) for region in regions)
    for region in regions:
        assert region.start == 0 or text[region.start - 1] == "\n"
        assert region.end == len(text) or text[region.end] == "\n"
