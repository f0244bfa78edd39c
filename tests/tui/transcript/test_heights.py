import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tui.transcript.heights import HeightTable

HEIGHTS = st.lists(st.integers(0, 9), max_size=40)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["set", "append", "insert"]), st.integers(0, 60), st.integers(0, 9))
)


@given(HEIGHTS, CHANGES)
def test_table_agrees_with_a_list_after_any_changes(heights, changes):
    table, plain = HeightTable(heights), list(heights)
    for change, place, height in changes:
        match change:
            case "append":
                table.append(height)
                plain.append(height)
            case "insert":
                index = place % (len(plain) + 1)
                table.insert(index, height)
                plain.insert(index, height)
            case _ if plain:
                index = place % len(plain)
                assert table.set(index, height) == height - plain[index]
                plain[index] = height
    assert [table[index] for index in range(len(table))] == plain
    starts = [0, *itertools.accumulate(plain)]
    assert [table.start_of(index) for index in range(len(plain) + 1)] == starts
    assert table.total == sum(plain)
    rows = [(index, row) for index, height in enumerate(plain) for row in range(height)]
    assert [table.find(row) for row in range(len(rows))] == rows


def test_find_clamps_rows_outside():
    table = HeightTable([0, 2, 0, 1, 0])
    assert table.find(-5) == (1, 0)
    assert table.find(99) == (3, 0)


def test_find_raises_when_there_are_no_rows():
    with pytest.raises(IndexError):
        HeightTable([0, 0]).find(0)
