import pytest

from musepi_tui.tui.output import shorten_rows

GREEN, RESET = "\x1b[38;2;1;2;3m", "\x1b[0m"


def _padded(text, columns=40, cells=None):
    return text + " " * (columns - (len(text) if cells is None else cells))


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        pytest.param(f"\x1b[1;1H{_padded('abc')}", "\x1b[1;1Habc\x1b[K", id="one row"),
        pytest.param(
            f"\x1b[1;1H{_padded('a')}\n\x1b[2;1H{_padded('')}\n\x1b[3;1H{_padded('c')}\x1b[9;3H",
            "\x1b[1;1Ha\x1b[K\n\x1b[2;1H\x1b[K\n\x1b[3;1Hc\x1b[K\x1b[9;3H",
            id="several rows",
        ),
        pytest.param(
            f"\x1b[7;1H  {GREEN}• {RESET}text{' ' * 32}",
            f"\x1b[7;1H  {GREEN}• {RESET}text\x1b[K",
            id="colours",
        ),
        pytest.param(f"\x1b[1;1H日本{' ' * 36}", "\x1b[1;1H日本\x1b[K", id="wide characters"),
        pytest.param(f"\x1b[1;1Ha{' ' * 20}b{' ' * 18}", f"\x1b[1;1Ha{' ' * 20}b\x1b[K", id="blanks inside"),
    ],
)
def test_blanks_at_the_end_of_a_full_row_are_erased(frame, expected):
    assert shorten_rows(frame, 40) == expected


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(f"\x1b[1;1H{_padded('abc', 39)}", id="row is shorter than the screen"),
        pytest.param(f"\x1b[1;1H{_padded('abc', 41)}", id="row is longer than the screen"),
        pytest.param(f"\x1b[1;3H{_padded('abc', 40)}", id="row begins elsewhere"),
        pytest.param(f"\x1b[1;1H{GREEN}{_padded('abc')}", id="blanks have a style"),
        pytest.param(f"\x1b[1;1H{_padded('abc')[:-1]}x", id="row ends in text"),
        pytest.param(f"\x1b[1;1H\x1b]8;;http://a\x1b\\{_padded('abc')}", id="row has a link"),
        pytest.param("\x1b[1;1H" + "a" * 35 + " " * 5, id="few blanks"),
    ],
)
def test_everything_else_is_left_as_it_is(frame):
    assert shorten_rows(frame, 40) == frame
