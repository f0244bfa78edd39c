import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.safe_text import display_safe, reveal

_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x9c\x07[]P^_X\\;0123m?Jh \n\t\r\x00\x7f\u202e\u200b\u200d\ufeff\udc80aक👩"
        ),
        st.characters(),
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ~ text\nline", "plain ~ text\nline"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b[2J\x1b[?1049hb", "ab"),
        ("\x1b]52;c;aGk=\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title without end\nnext", "\nnext"),
        ("\x1bPqpixels\x1b\\x", "x"),
        ("\x1b_apc\x9cx\x1b^pm\x07y\x1bXsos\x1b\\z", "xyz"),
        ("\x9b31mx\x9d0;t\x07y", "xy"),
        ("\x1b(Bx\x1b7y\x1bMz", "xyz"),
        ("\x1b", ""),
        ("a\r\nb\rc\x00\x08d\x7f", "a\nbcd"),
        ("a\tb", "a   b"),
        ("\udc80", "\ufffd"),
        ("in\u202evisible\u200b\ufeff\u2066", "invisible"),
        ("tag\U000e0041", "tag"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("क्\u200dष", "क्\u200dष"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("pay\u200dpal", "paypal"),
    ],
)
def test_display_safe(text, expected):
    assert display_safe(text) == expected


def test_colours_stay_only_when_asked_for():
    text = "\x1b[1;38:5:9mx\x1b[0m\x1b[2J\x9b1m"
    assert display_safe(text) == "x"
    assert display_safe(text, keep_sgr=True) == "\x1b[1;38:5:9mx\x1b[0m"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("photo\u202egpj.exe", "photo⟨U+202E⟩gpj.exe"),
        ("a\u200bb\U000e0041", "a⟨U+200B⟩b⟨U+E0041⟩"),
        ("x\x1b[2J\r", "x⟨U+001B⟩[2J⟨U+000D⟩"),
        ("a\tb\n\udc80", "a   b\n\ufffd"),
        ("👩\u200d🚀", "👩⟨U+200D⟩🚀"),
    ],
)
def test_reveal_spells_out_what_is_hidden(text, expected):
    assert reveal(text) == expected


@given(_NASTY)
def test_nothing_a_terminal_obeys_is_left(text):
    assert not _CONTROLS.search(display_safe(text))
    assert not _CONTROLS.search(reveal(text))
    assert not _CONTROLS.search(_SGR.sub("", display_safe(text, keep_sgr=True)))


@given(_NASTY)
def test_making_safe_twice_changes_nothing(text):
    once = display_safe(text)
    assert display_safe(once) == once
    assert reveal(reveal(text)) == reveal(text)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_printable_ascii_is_returned_itself(text):
    assert display_safe(text) is text


@pytest.mark.parametrize("unit", ["\x1b[", "\x1b]", "\x1b[;", "\x9d", "\u200d👩", "\t", "\x1b[31m", "\r"])
def test_time_grows_with_the_length_only(unit):
    def seconds(chars):
        text = unit * (chars // len(unit))
        start = time.process_time()
        display_safe(text)
        return time.process_time() - start

    seconds(10_000)
    assert seconds(400_000) < 40 * max(seconds(40_000), 0.002)
