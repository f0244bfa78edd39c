import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import ToolError
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.selector import LineRange, merge_ranges, split_path, split_selector


@pytest.mark.parametrize(
    ("text", "path", "ranges"),
    [
        ("a.py", "a.py", ()),
        ("a.py:40", "a.py", (LineRange(40),)),
        ("a.py:40-", "a.py", (LineRange(40),)),
        ("a.py:5-16", "a.py", (LineRange(5, 16),)),
        ("a.py:5..16", "a.py", (LineRange(5, 16),)),
        ("a.py:5+3", "a.py", (LineRange(5, 7),)),
        ("a.py:40-80,5-16", "a.py", (LineRange(5, 16), LineRange(40, 80))),
        ("a.py:5,9", "a.py", (LineRange(5, 5), LineRange(9, 9))),
        ("a.py:1-5,4-9,10-12", "a.py", (LineRange(1, 12),)),
        ("a.py:raw", "a.py", ()),
        ("a.py:2-3:raw", "a.py", (LineRange(2, 3),)),
        ("artifact://4:10-12", "artifact://4", (LineRange(10, 12),)),
        ("c:odd-name", "c:odd-name", ()),
        (":5", ":5", ()),
    ],
)
def test_selector_is_split_off(text, path, ranges):
    found, selector = split_selector(text)
    assert (found, selector.ranges) == (path, ranges)
    assert selector.raw == text.endswith(":raw")


@pytest.mark.parametrize("text", ["a.py:0", "a.py:9-5", "a.py:3+0"])
def test_impossible_range_is_refused(text):
    with pytest.raises(ToolError):
        split_selector(text)


def test_file_whose_name_ends_like_a_selector_goes_first(tmp_path):
    (tmp_path / "log:5").write_text("x")
    workspace = Workspace(tmp_path)
    assert split_path("log:5", workspace)[0] == "log:5"
    assert split_path("log:6", workspace)[0] == "log"


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 10)), max_size=8))
def test_merged_ranges_cover_the_same_lines_in_order_without_touching(pairs):
    ranges = [LineRange(first, first + more) for first, more in pairs]
    merged = merge_ranges(ranges)
    lines = {line for item in ranges for line in range(item.first, item.last + 1)}
    assert {line for item in merged for line in range(item.first, item.last + 1)} == lines
    assert all(right.first > left.last + 1 for left, right in zip(merged, merged[1:], strict=False))
