import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.session.tree import LEAF_MARK
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.tally import STEP_BYTES, Tally, count_lines
from tests.support.lines import chain, dump, header_line, record, user_record, write_lines

HEADER = dump(header_line())


def counted(
    file: Path, start: int = len(HEADER), known: Tally | None = None, step: int = STEP_BYTES
) -> Tally | None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return count_lines(descriptor, start, file.stat().st_size, known, step_bytes=step)
    finally:
        os.close(descriptor)


def mark(entry_id: str, parent_id: str | None) -> dict[str, object]:
    return record("custom", entry_id, parent_id, customType=LEAF_MARK, data={})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def test_kinds_and_ends_of_branches_are_counted(file):
    compaction = record("compaction", "c", "e3", summary='says "type":"compaction"')
    lines = [*chain("a", "b", "c"), compaction, user_record("x", "e1", "elsewhere")]
    found = counted(write_lines(file, header_line(), *lines))
    assert found == Tally(4, 1, dict.fromkeys(["c", "x"]))
    assert found.branches == 2


def test_handoff_document_counts_as_a_message_and_what_extensions_say_does_not(file):
    lines = [
        record("custom_message", "h", None, customType="handoff", content="## Goal", display=True),
        record("custom_message", "x", "h", customType="handoffs", content="?", display=True),
        user_record("u", "x", '"customType":"handoff"'),
    ]
    found = counted(write_lines(file, header_line(), *lines))
    assert found == Tally(2, 0, {"u": None})


@pytest.mark.parametrize(
    ("moves", "branches"),
    [
        ([mark("m", "e1")], 1),
        ([mark("m", "e3")], 1),
        ([mark("m", "e1"), user_record("x", "m", "elsewhere")], 2),
        ([mark("m", "e1"), mark("n", "e3")], 1),
        ([mark("m", "e1"), user_record("x", "m", "elsewhere"), mark("n", "e3"), mark("o", "x")], 2),
        ([mark("m", None), user_record("x", "m", "a new root")], 2),
    ],
)
def test_moving_makes_no_branch_but_going_on_does(file, moves, branches):
    found = counted(write_lines(file, header_line(), *chain("a", "b", "c"), *moves))
    assert found is not None
    assert found.branches == branches


@pytest.mark.parametrize("line", [b"junk\n", b'{"id":"x","type":"message"}\n', b'{"type":"message","id":'])
def test_lines_of_another_form_are_not_counted_over(file, line):
    assert counted(write_lines(file, header_line(), *chain("a"), line)) is None


def test_file_without_entries_has_no_branch(file):
    assert counted(write_lines(file, header_line())) == Tally()


texts = st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 30)), min_size=1, max_size=12)


@settings(deadline=None)
@given(texts, st.integers(0, 12), st.sampled_from([8192, 9000, 20_000]))
def test_counting_in_parts_is_like_counting_at_once(tmp_path_factory, sizes, cut, step):
    file = tmp_path_factory.mktemp("tally") / "s.jsonl"
    lines = [
        user_record(f"e{number}", f"e{parent % number}" if number else None, "x" * size)
        for number, (size, parent) in enumerate(sizes)
    ]
    write_lines(file, header_line(), *lines[:cut])
    first, at = counted(file), file.stat().st_size
    write_lines(file, header_line(), *lines)
    found = counted(file, at, first, step)
    assert found == counted(file)
    loaded = load_session(file)
    loaded.bodies.close()
    assert found is not None
    assert (found.messages, set(found.leaves)) == (len(lines), set(loaded.tree.leaves))
