import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tools.limits import MAX_BYTES, MAX_LINES
from musepi_tui.tools.output import KEPT_BYTES, CommandOutput
from tests.support.tools import FakeArtifacts


@pytest.fixture
def artifacts(tmp_path):
    return FakeArtifacts(tmp_path / "artifacts")


def finished(artifacts, *blocks: bytes):
    output = CommandOutput(artifacts, "bash")
    for block in blocks:
        output.add(block)
    return output.finish()


def test_short_output_needs_no_artifact(artifacts):
    shown = finished(artifacts, b"a\n", b"b")
    assert (shown.text, shown.notes, shown.artifact_id, artifacts.count) == ("a\nb", (), None, 0)


def test_character_cut_between_blocks_is_whole(artifacts):
    data = "ä€𝄞".encode()
    assert finished(artifacts, data[:3], data[3:6], data[6:]).text == "ä€𝄞"


def test_huge_output_in_many_blocks_keeps_little_in_memory(artifacts):
    output = CommandOutput(artifacts, "bash")
    for number in range(300):
        output.add(b"%05d " % number * 1000 + b"\n")
        assert len(output._kept) <= 2 * KEPT_BYTES
    shown = output.finish()
    assert shown.text.split("\n")[-1].startswith("00299 ")
    assert artifacts.find(shown.artifact_id).stat().st_size == 300 * 6001


def test_one_endless_line_shows_its_end(artifacts):
    shown = finished(artifacts, *[b"x" * 65_536] * 10, b"end")
    assert shown.text.startswith("…")
    assert "lines 1-1 of 1" in shown.notes[0]


def test_disk_that_fails_is_said_and_the_end_is_shown(artifacts, monkeypatch):
    def full(tool):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifacts, "create", full)
    shown = finished(artifacts, b"row\n" * 30_000)
    assert shown.artifact_id is None
    assert shown.notes[-1] == "[the full output could not be kept: No space left on device]"


def test_control_characters_go_and_tabs_stay(artifacts):
    assert finished(artifacts, b"a\tb\x00\x07\x1b[2Jc\x1b[?25l").text == "a\tbc"


def test_unusual_input_takes_linear_time(artifacts):
    started = time.monotonic()
    finished(artifacts, b"\x1b]" * 50_000, b"x" * 100_000)
    finished(artifacts, b"\r".join([b"y" * 10] * 10_000))
    assert time.monotonic() - started < 1


@given(st.lists(st.binary(max_size=3000), max_size=40))
def test_shown_part_is_within_the_limits_whatever_came(tmp_path_factory, blocks):
    shown = finished(FakeArtifacts(tmp_path_factory.mktemp("a")), *blocks, *[b"\n" * 100] * 3)
    assert len(shown.text.encode()) <= MAX_BYTES
    assert len(shown.text.split("\n")) <= MAX_LINES
    assert "\x1b" not in shown.text
