import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.cutpoint import KeepFacts, Span, adapt_keep_recent, find_cut_point, is_valid_cut
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.threshold import parse_threshold, resolve_threshold
from musepi_tui.context.window import path_items
from musepi_tui.session.messages import ToolResultMessage
from tests.support.builders import compaction, path, stub_count, u, words
from tests.support.sketch import parts, sketch

LONG = "u100 a200 t4000 a300 u50 a6000 t3000 a100"


def cut_of(entries, keep, start=0):
    items = path_items(entries)
    return find_cut_point(items, Span(start, len(items), start), keep, Estimator(stub_count))


@pytest.mark.parametrize(
    ("text", "keep", "index", "turn_start"),
    [
        (LONG, 20_000, 0, None),
        (LONG, 9_500, 3, 0),
        (LONG, 5_000, 5, 4),
        (LONG, 2_500, 7, 4),
        ("u10 a10 u10 a10 t9000", 5_000, 2, None),
        ("u10 a10 t9000", 5_000, 1, 0),
        ("u900 a900 m m u600 a600", 1_000, 2, None),
        ("t9000", 5_000, 1, None),
        ("u5 a5 c800 m a5", 3, 3, 2),
        ("u5 a5 c800 a5", 6, 2, None),
    ],
)
def test_cut_point(text, keep, index, turn_start):
    cut = cut_of(sketch(text), keep)
    assert (cut.index, cut.turn_start) == (index, turn_start)


def test_cut_is_not_pulled_back_over_a_compaction():
    entries = path(u(words(50)), compaction(), *parts("m u600 a600"))
    assert cut_of(entries, 1_000).index == 2


@pytest.mark.parametrize("text", ["u10 d5000", "u10 a10 d5000"])
def test_cut_never_lands_on_a_developer_message(text):
    cut = cut_of(sketch(text), 100)
    items = path_items(sketch(text))
    assert cut.index == len(items) or is_valid_cut(items[cut.index])


@pytest.mark.parametrize(
    ("window", "other", "prompt", "estimated", "expected"),
    [
        (200_000, 12_000, 60_000, 32_000, 6_666),
        (200_000, 12_000, 30_000, 32_000, 10_000),
        (8_192, 3_000, None, 0, 1_752),
        (12_000, 3_000, None, 0, 3_960),
        (8_192, 6_000, None, 0, 482),
        (200_000, None, 60_000, 32_000, 10_000),
        (None, 3_000, None, 0, 10_000),
        (200_000, 12_000, 5_000, 32_000, 10_000),
        (200_000, 12_000, 60_000, 0, 10_000),
    ],
)
def test_keep_recent_adapts_to_window_and_bill(window, other, prompt, estimated, expected):
    threshold = None if window is None else resolve_threshold(parse_threshold("auto"), window, None)
    facts = KeepFacts(window, threshold, other, prompt, estimated)
    assert adapt_keep_recent(10_000, facts) == expected


def test_keep_recent_is_not_capped_under_a_threshold_somebody_set():
    threshold = resolve_threshold(parse_threshold("50%"), 8_192, None)
    assert adapt_keep_recent(10_000, KeepFacts(8_192, threshold, 3_000)) == 10_000


tokens = st.integers(3, 400)
pieces = st.one_of(
    st.tuples(st.sampled_from("uaxcbd"), tokens),
    st.tuples(st.just("m"), st.just(0)),
    st.tuples(st.sampled_from("te"), tokens),
)


@st.composite
def conversations(draw):
    """Any order of entries, tool results also where no answer called for them."""
    chosen = draw(st.lists(pieces, min_size=1, max_size=25))
    return sketch(" ".join(f"{letter}{max(size, 60) if letter == 'a' else size}" for letter, size in chosen))


@given(conversations(), st.integers(1, 3_000))
def test_cut_is_inside_and_the_kept_tail_starts_at_no_tool_result(entries, keep):
    items = path_items(entries)
    cut = cut_of(entries, keep)
    assert 0 <= cut.index <= len(items)
    first = next((item for item in items[cut.index :] if item.message is not None), None)
    if cut.index > 0 and first is not None:
        assert not isinstance(first.message, ToolResultMessage)
    if cut.turn_start is not None:
        assert 0 <= cut.turn_start < cut.index


@given(conversations(), st.integers(1, 3_000), st.integers(0, 2_000))
def test_larger_keep_never_cuts_later(entries, keep, more):
    small, large = cut_of(entries, keep), cut_of(entries, keep + more)
    items = path_items(entries)
    valid = [index for index, item in enumerate(items) if is_valid_cut(item)]
    guarded = large.index == len(items) or not valid or large.index <= valid[min(1, len(valid) - 1)]
    count = Estimator(stub_count)
    behind = sum(
        count(item.message) for item in items[max(valid, default=0) + 1 :] if item.message is not None
    )
    fell_back = behind >= keep  # no valid point among what is kept: the cut goes back to the turn's start
    assert large.index <= small.index or guarded or fell_back
