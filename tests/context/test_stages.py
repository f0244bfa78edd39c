import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.stages import (
    SerialMessage,
    merge_groups,
    plan_segments,
    segment_block,
    segment_budget,
)

sizes = st.lists(st.integers(1, 9_000), max_size=40)
messages = st.lists(st.builds(SerialMessage, st.text(max_size=5), st.integers(1, 9_000), st.booleans()))


def serial(sketch):
    """``u1500 t900``: messages of that many tokens, called by their place; ``t`` is a result."""
    return [
        SerialMessage(str(index), int(part[1:]), part[0] == "t") for index, part in enumerate(sketch.split())
    ]


def runs(sketch, budget):
    return [segment.text.split("\n\n") for segment in plan_segments(serial(sketch), budget)]


@pytest.mark.parametrize(
    ("window", "budget"),
    [(200_000, 32_000), (16_000, 4_000), (6_000, 2_000), (None, 32_000), (8_192, 2_048), (128_001, 32_000)],
)
def test_segment_budget(window, budget):
    assert segment_budget(window) == budget


@pytest.mark.parametrize(
    ("sketch", "budget", "expected"),
    [
        ("u1500 a1500 t1800 u900", 4_000, [["0", "1", "2"], ["3"]]),
        ("u100 a100", 4_000, [["0", "1"]]),
        ("u2000 a2000 u1", 4_000, [["0", "1"], ["2"]]),
        ("u100 a9000 u100", 4_000, [["0"], ["1"], ["2"]]),
        ("a3000 t3000 t3000 a1000", 4_000, [["0", "1", "2"], ["3"]]),
        ("t500 u4000", 4_000, [["0"], ["1"]]),
        ("", 4_000, []),
    ],
    ids=["page", "all in one", "exactly full", "one too large", "results stay", "result first", "nothing"],
)
def test_plan_segments(sketch, budget, expected):
    assert runs(sketch, budget) == expected


@given(messages, st.integers(1, 12_000))
def test_segments_are_the_messages_in_order_and_only_what_cannot_be_parted_is_over_the_budget(found, budget):
    segments = plan_segments(found, budget)
    assert "\n\n".join(segment.text for segment in segments) == "\n\n".join(each.text for each in found)
    assert sum(segment.tokens for segment in segments) == sum(each.tokens for each in found)
    position = 0
    for segment in segments:
        members, total = [], 0
        while total < segment.tokens:
            members.append(found[position])
            total += found[position].tokens
            position += 1
        results = sum(each.tokens for each in members[1:] if each.is_result)
        assert total == segment.tokens
        assert total - results <= budget or len([each for each in members if not each.is_result]) <= 1
        assert not members[0].is_result or segment is segments[0]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([9_000] * 10, [3, 3, 3, 1]),
        ([9_000] * 4, [3, 1]),
        ([9_000] * 2, [2]),
        ([40_000] * 5, [2, 2, 1]),
        ([100], [1]),
        ([16_000, 16_000, 1], [2, 1]),
        ([], []),
    ],
    ids=["ten", "four", "two", "each too large", "one", "exactly full", "none"],
)
def test_merge_groups(sizes, expected):
    assert [len(group) for group in merge_groups(sizes, 32_000)] == expected


@given(sizes, st.integers(1, 40_000))
def test_groups_cover_everything_once_in_order_and_each_round_leaves_fewer(found, budget):
    groups = merge_groups(found, budget)
    assert [index for group in groups for index in group] == list(range(len(found)))
    assert all(len(group) >= 2 for group in groups[:-1])
    assert all(len(group) <= 2 or sum(found[index] for index in group) <= budget for group in groups)
    assert len(groups) < len(found) or len(found) <= 1


def test_segment_block_numbers_the_parts_and_none_can_close_it():
    block = segment_block(["one </segment> </segment-summaries>", "two"])
    assert block == (
        "<segment-summaries>\n"
        '<segment index="1">\none <\\/segment> <\\/segment-summaries>\n</segment>\n\n'
        '<segment index="2">\ntwo\n</segment>\n'
        "</segment-summaries>"
    )
