from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.threshold import (
    ThresholdKind,
    budget_reserve,
    parse_threshold,
    resolve_threshold,
    should_compact,
    summary_reserve,
)


@pytest.mark.parametrize(
    ("window", "reserve", "expected_reserve", "expected_threshold"),
    [
        (200_000, None, 30_000, 170_000),
        (128_000, None, 19_200, 108_800),
        (40_000, None, 16_384, 23_616),
        (32_769, None, 16_384, 16_385),
        (32_768, None, 4_915, 27_853),
        (20_000, None, 3_000, 17_000),
        (20_000, 16_384, 16_384, 3_616),
        (8_192, None, 1_228, 6_964),
        (64_000, 20_000, 20_000, 44_000),
        (12_000, 12_000, 1_800, 10_200),
    ],
)
def test_reserve_and_automatic_threshold(window, reserve, expected_reserve, expected_threshold):
    assert budget_reserve(window, reserve) == expected_reserve
    assert resolve_threshold(parse_threshold("auto"), window, reserve).tokens == expected_threshold


@pytest.mark.parametrize(
    ("raw", "window", "tokens", "clamped", "invalid"),
    [
        ("auto", 200_000, 170_000, False, None),
        ("33%", 128_000, 42_240, False, None),
        ("0.2%", 50_000, 500, True, None),
        ("120%", 50_000, 49_500, True, None),
        ("90_000", 1_000_000, 90_000, False, None),
        ("300000", 128_000, 127_999, True, None),
        ("127999", 128_000, 127_999, False, None),
        ("lots", 200_000, 170_000, False, "lots"),
        (90_000, 200_000, 90_000, False, None),
    ],
)
def test_threshold_setting_resolves(raw, window, tokens, clamped, invalid):
    setting = parse_threshold(raw)
    threshold = resolve_threshold(setting, window, None)
    assert (threshold.tokens, threshold.clamped, setting.invalid_raw) == (tokens, clamped, invalid)


@pytest.mark.parametrize(
    "raw", ["", "  ", "auto", " Default ", "0%", "-5 %", "0", 0, -1, float("nan"), float("inf"), None]
)
def test_threshold_is_automatic_without_report_when_empty_or_not_above_zero(raw):
    setting = parse_threshold(raw)
    assert (setting.kind, setting.invalid_raw) == (ThresholdKind.AUTO, None)


@pytest.mark.parametrize("raw", ["85 tokens", "1,000", "-5", "%", "1e5", "__", "9" * 5000, True])
def test_threshold_reports_text_of_no_known_form(raw):
    setting = parse_threshold(raw)
    assert setting.kind is ThresholdKind.AUTO
    assert setting.invalid_raw is not None


@pytest.mark.parametrize("raw", ["85%", "85 %", " 85% "])
def test_threshold_reads_a_share_with_and_without_blank(raw):
    assert parse_threshold(raw).amount == Fraction(85)


def test_explicit_reserve_differs_from_the_unset_one_of_the_same_size():
    assert budget_reserve(20_000, 16_384) != budget_reserve(20_000, None)


@pytest.mark.parametrize(
    ("window", "reserve", "expected"),
    [
        (200_000, None, 16_384),
        (None, None, 16_384),
        (8_192, None, 1_228),
        (None, 20_000, 20_000),
        (20_000, 16_384, 16_384),
    ],
)
def test_summary_reserve(window, reserve, expected):
    assert summary_reserve(window, reserve) == expected


settings = st.one_of(
    st.sampled_from(["auto", "lots", "33%", "0.2%", "120%", "90_000"]),
    st.integers(-10, 10_000_000),
    st.floats(),
    st.text(max_size=8),
)
windows = st.integers(1, 3_000_000)
reserves = st.one_of(st.none(), st.integers(1, 3_000_000))


@given(settings, windows, reserves)
def test_threshold_is_always_inside_the_window(raw, window, reserve):
    assert 0 <= resolve_threshold(parse_threshold(raw), window, reserve).tokens <= window - 1


@given(settings, windows, reserves, st.integers(0, 3_000_000), st.integers(0, 3_000_000))
def test_should_compact_grows_with_the_tokens(raw, window, reserve, tokens, more):
    threshold = resolve_threshold(parse_threshold(raw), window, reserve)
    assert should_compact(tokens, threshold) <= should_compact(tokens + more, threshold)


def test_a_context_exactly_at_the_threshold_is_not_over_it():
    threshold = resolve_threshold(parse_threshold("100"), 1000, None)
    assert not should_compact(100, threshold)
    assert should_compact(101, threshold)
