import pytest

from musepi_tui.base import text


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0k"),
        (9_949, "9.9k"),
        (9_999, "9.9k"),
        (10_000, "10k"),
        (62_400, "62k"),
        (999_999, "999k"),
        (1_000_000, "1.0M"),
        (1_250_000, "1.2M"),
        (9_999_999, "9.9M"),
        (12_000_000, "12M"),
        (-4_200, "-4.2k"),
    ],
)
def test_short_number(number, expected):
    assert text.short_number(number) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.4, "0s"), (12.9, "12s"), (60, "1m"), (125, "2m 5s"), (3600, "1h"), (3899, "1h 4m"), (-3, "0s")],
)
def test_duration(seconds, expected):
    assert text.duration(seconds) == expected


def test_plural_takes_the_given_word_when_an_s_is_wrong():
    assert text.plural(1, "line") == "1 line"
    assert text.plural(2_000, "line") == "2,000 lines"
    assert text.plural(0, "entry", "entries") == "0 entries"


@pytest.mark.parametrize(("chars", "expected"), [(5, "hello"), (4, "hel…"), (1, "…"), (0, "")])
def test_cut_stays_within_its_characters(chars, expected):
    assert text.cut("hello", chars) == expected


def test_group_digits():
    assert text.group_digits(231_785) == "231,785"
