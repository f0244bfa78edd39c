from pathlib import Path

import pytest

from musepi_tui.storage.fulltext import STEP_BYTES, TextHunt
from tests.support.lines import answer_record, chain, header_line, record, user_record, write_lines

CALL = answer_record(
    "a", "u", "I look.", content=[{"type": "toolCall", "name": "bash", "arguments": {"cmd": "make snap"}}]
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = [
        user_record("u", None, 'Why does "parse\tthe\nDates" hang, café?'),
        CALL,
        record("compaction", "c", "a", summary="The reader was mended."),
    ]
    return write_lines(tmp_path / "s.jsonl", header_line(), *lines)


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("parse the dates", 'Why does "parse the Dates" hang, café?'),
        ('"PARSE', 'Why does "parse the Dates" hang, café?'),
        ("CAFÉ", 'Why does "parse the Dates" hang, café?'),
        ("é?", 'Why does "parse the Dates" hang, café?'),
        ("make snap", "make snap"),
        ("was mended", "The reader was mended."),
        ("nowhere", None),
        ("parentId", None),
        ("toolCall", None),
        ("2026", None),
        ("  ", None),
    ],
)
def test_what_was_said_is_found_as_it_was_written(file, wanted, found):
    assert TextHunt(wanted).find_in(file, never) == found


def test_a_hit_is_shown_with_what_stands_around_it(tmp_path):
    text = f"{'a ' * 100}needle{' b' * 100}"
    found = TextHunt("needle").find_in(write_lines(tmp_path / "s.jsonl", header_line(), *chain(text)), never)
    assert found is not None
    assert found.startswith("…a ")
    assert found.endswith(" b…")
    assert " needle " in found


def test_hits_at_the_edges_of_what_is_read_at_once_are_found(tmp_path):
    lines = chain("x" * (STEP_BYTES - 300), "the needle", "y" * STEP_BYTES, "the last one")
    file = write_lines(tmp_path / "s.jsonl", header_line(), *lines)
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    assert TextHunt("needle").find_in(file, never) == "the needle"
    assert TextHunt("last one").find_in(file, never) == "the last one"


def test_a_search_nobody_wants_ends(file):
    assert TextHunt("parse").find_in(file, lambda: True) is None


def test_what_cannot_be_read_holds_nothing(tmp_path):
    assert TextHunt("x").find_in(tmp_path / "gone.jsonl", never) is None
    (tmp_path / "junk.jsonl").write_bytes(b"x\nxx" + bytes(100))
    assert TextHunt("x").find_in(tmp_path / "junk.jsonl", never) is None
