import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from musepi_tui.tui import driver
from musepi_tui.tui.driver import GroundTold, SafeDecoder, SafeParser, patch_toolkit

patch_toolkit()


class Time:
    """The parser's clock."""

    now = 100.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(driver, "get_time", lambda: time.now)
    monkeypatch.setattr("textual._parser.get_time", lambda: time.now)
    return time


def keys(parser: SafeParser, *chunks: str) -> list[str]:
    found = [event for chunk in chunks for event in parser.feed(chunk)]
    found = [event for event in found if not isinstance(event, GroundTold)]
    return [event.key if isinstance(event, events.Key) else type(event).__name__ for event in found]


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ("a", "a"),
        ("\r", "enter"),
        ("\n", "ctrl+j"),
        ("\x1b\r", "alt+enter"),
        ("\x1b-", "alt+minus"),
        ("\x1b\x7f", "alt+backspace"),
        ("\x1bm", "alt+m"),
        ("\x1b[13;2u", "shift+enter"),
        ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[13;5u", "ctrl+enter"),
        ("\x1b[5~", "pageup"),
        ("\x1b[1;2A", "shift+up"),
        ("\x1bOP", "f1"),
        ("\x1b[Z", "shift+tab"),
        ("\x1f", "ctrl+underscore"),
    ],
)
def test_keys_arrive_under_their_names(clock, sent, key):
    assert keys(SafeParser(), sent) == [key]


@pytest.mark.parametrize(
    ("answer", "is_light"),
    [
        ("\x1b]11;rgb:1e1e/1e1e/1e1e\x07", False),
        ("\x1b]11;rgb:ffff/ffff/ffff\x1b\\", True),
        ("\x1b]11;rgb:fd/f6/e3\x07", True),
        ("\x1b]11;rgba:00/2b/36/ff\x07", False),
    ],
)
def test_background_answer_tells_the_ground(clock, answer, is_light):
    parser = SafeParser()
    found = list(parser.feed(answer[:9]))
    clock.now += 0.5
    found += list(parser.tick())
    found += list(parser.feed(answer[9:]))
    assert [event.is_light for event in found if isinstance(event, GroundTold)] == [is_light]
    assert len(found) == 1


@pytest.mark.parametrize(
    "noise",
    [
        "\x1b[97;1:3u",
        "\x1b[<32;NaN;NaNM",
        "\x1b[<;;M",
        "\x1b[?62;22c",
        "\x1b[>1;10;0c",
        "\x1b[?0u",
        "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
        "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
        "\x1bP>|tmux 3.3a\x1b\\",
        "\x1b_Gi=1;OK\x1b\\",
        "\x1b[1114112;2u",
    ],
)
@pytest.mark.parametrize("split", [False, True])
def test_noise_of_terminals_is_no_key(clock, noise, split):
    parser = SafeParser()
    chunks = list(noise) if split else [noise]
    assert keys(parser, *chunks, "x") == ["x"]


def test_good_mouse_reports_and_focus_pass(clock):
    assert keys(SafeParser(), "\x1b[<0;3;4M", "\x1b[<0;3;4m", "\x1b[I", "\x1b[O") == [
        "MouseDown",
        "MouseUp",
        "AppFocus",
        "AppBlur",
    ]


def test_paste_is_one_event_however_it_is_cut(clock):
    text = "one\x1b[31mtwo\nthree\x00"
    whole = f"a\x1b[200~{text}\x1b[201~b"
    for size in range(1, len(whole)):
        parser = SafeParser()
        chunks = [whole[start : start + size] for start in range(0, len(whole), size)]
        found = [event for chunk in chunks for event in parser.feed(chunk)]
        found += list(parser.tick())
        pastes = [event.text for event in found if isinstance(event, events.Paste)]
        assert pastes == ["one\x1b[31mtwo\nthree"], size
        assert [event.key for event in found if isinstance(event, events.Key)] == ["a", "b"]


def test_lone_escape_is_a_key_after_the_delay(clock):
    parser = SafeParser()
    assert keys(parser, "\x1b") == []
    assert parser.next_deadline() == pytest.approx(100.0 + driver.ESCAPE_DELAY_S)
    clock.now += 0.05
    assert [event.key for event in parser.tick()] == ["escape"]
    assert parser.next_deadline() is None


def test_two_escapes_are_two_keys(clock):
    parser = SafeParser()
    assert keys(parser, "\x1b\x1b") == []
    clock.now += 0.05
    assert [event.key for event in parser.tick()] == ["escape", "escape"]


def test_text_held_back_is_given_up_so_that_the_next_key_is_unharmed(clock):
    parser = SafeParser()
    assert keys(parser, "\x1bP") == []
    assert parser.next_deadline() is not None
    clock.now += 0.05
    list(parser.tick())
    clock.now += 0.05
    list(parser.tick())
    assert keys(parser, "x") == ["x"]


@given(st.lists(st.text(alphabet="\x1b[<>?]P_G0123456789;:uM~cmR\x07\\ab", max_size=12), max_size=6))
def test_no_input_raises(chunks):
    parser = SafeParser()
    for chunk in chunks:
        if chunk:
            list(parser.feed(chunk))


def test_bad_bytes_become_replacement_characters():
    decoder = SafeDecoder()
    assert decoder.decode(b"a\xffb\xc3") == "a\ufffdb"
    assert decoder.decode(b"\xa9") == "é"


def test_end_of_input_hangs_the_program_up_once(monkeypatch):
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append(number))
    monkeypatch.setattr(driver.time, "sleep", lambda seconds: None)
    decoder = SafeDecoder()
    decoder.decode(b"")
    decoder.decode(b"")
    assert sent == [signal.SIGHUP]
