import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.cells import cell_width, cut_cells


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("hello", 5, "hello"),
        ("hello", 4, "hel…"),
        ("漢字漢字", 8, "漢字漢字"),
        ("漢字漢字", 6, "漢字…"),
        ("漢字漢字", 2, "…"),
        ("hello", 0, ""),
    ],
)
def test_cut_cells(text, width, expected):
    assert cut_cells(text, width) == expected


def test_cut_cells_leaves_nothing_when_the_ellipsis_does_not_fit():
    assert cut_cells("hello", 2, ellipsis="...") == ""


@given(st.text(alphabet=st.sampled_from("a b漢é👍\u0301"), max_size=40), st.integers(0, 30))
def test_cut_cells_never_exceeds_its_width(text, width):
    assert cell_width(cut_cells(text, width)) <= width


def test_cut_cells_of_a_very_long_line_looks_only_at_its_start():
    assert cut_cells("x" * 5_000_000, 10) == "x" * 9 + "…"
