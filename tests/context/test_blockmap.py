import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from musepi_tui.context.blockmap import divide_blocks, map_blocks

SIZES = st.lists(st.one_of(st.integers(0, 20), st.integers(-500, 2_000_000)), max_size=130)


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([], ()),
        ([0, -5], (0, 0)),
        ([7], (100,)),
        ([1, 1, 1], (34, 33, 33)),
        ([3_100, 5_600, 53_700, 137_600], (1, 3, 27, 69)),
        ([1, 0, 199_999], (1, 0, 99)),
        ([200_000, 1, 1, 1], (97, 1, 1, 1)),
    ],
)
def test_hundred_blocks_are_divided_by_size(sizes, counts):
    assert divide_blocks(sizes) == counts


@given(SIZES, st.integers(1, 100))
@example([1, 1, 1, 10], 4)
def test_blocks_add_up_and_everything_above_zero_is_seen_where_it_can_be(sizes, blocks):
    counts = divide_blocks(sizes, blocks)
    present = [size for size in sizes if size > 0]
    assert len(counts) == len(sizes)
    assert sum(counts) == (blocks if present else 0)
    assert all(count == 0 for count, size in zip(counts, sizes, strict=True) if size <= 0)
    if len(present) <= blocks:
        assert all(count >= 1 for count, size in zip(counts, sizes, strict=True) if size > 0)


@given(SIZES, st.integers(1, 100))
def test_larger_size_never_gets_fewer_blocks(sizes, blocks):
    ordered = sorted(zip(sizes, divide_blocks(sizes, blocks), strict=True))
    for (small, few), (large, many) in zip(ordered, ordered[1:], strict=False):
        assert small == large or few <= many


@given(SIZES.filter(lambda sizes: any(size > 0 for size in sizes)))
def test_without_sizes_below_one_block_each_is_within_a_block_of_its_share(sizes):
    whole = sum(size for size in sizes if size > 0)
    if all(100 * size >= whole for size in sizes if size > 0):
        for size, count in zip(sizes, divide_blocks(sizes), strict=True):
            assert abs(100 * max(0, size) / whole - count) < 1


def test_map_lists_the_part_of_each_block_in_order():
    blocks = map_blocks([("tools", 30_000), ("summary", 0), ("user", 5), ("free", 170_000)])
    assert blocks == ("tools",) * 15 + ("user",) + ("free",) * 84
