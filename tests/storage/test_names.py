import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.storage import names
from musepi_tui.storage.names import Name, find_name
from tests.support.lines import dump, record, user_record, write_lines


def name_line(text: str, second: int = 1) -> dict:
    return record("session_info", f"i{second}", None, second, name=text)


def found_in(path, start: int = 0, end: int | None = None) -> Name | None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return find_name(descriptor, start, path.stat().st_size if end is None else end)
    finally:
        os.close(descriptor)


@pytest.fixture(params=[1, 30, 64, 2 * 1024 * 1024])
def step(request, monkeypatch):
    monkeypatch.setattr(names, "STEP_BYTES", request.param)


@pytest.mark.usefixtures("step")
def test_last_name_is_found_wherever_blocks_end(tmp_path):
    lines = [name_line("first"), user_record("u", None, "x" * 100), name_line("second", 2)]
    file = write_lines(tmp_path / "s.jsonl", *lines, user_record("v", None, "y" * 100))
    assert found_in(file) == Name(1767225602000, "second")
    assert found_in(file, end=50).text == "first"
    assert found_in(file, start=file.stat().st_size - 120) is None


def test_mark_inside_another_line_is_passed_over(tmp_path):
    odd = {"type": "custom", "id": "c", "parentId": None, "data": {"type": "session_info", "name": "no"}}
    torn = dump(name_line("torn"))[:40] + b"\n"
    file = write_lines(tmp_path / "s.jsonl", name_line("yes"), odd, torn, user_record("u", None, "x"))
    assert found_in(file).text == "yes"


def test_text_that_looks_like_the_mark_is_no_name(tmp_path):
    file = write_lines(tmp_path / "s.jsonl", user_record("u", None, '{"type":"session_info","name":"no"}'))
    assert found_in(file) is None


def test_name_without_text_takes_the_name_away(tmp_path):
    file = write_lines(tmp_path / "s.jsonl", name_line("x"), record("session_info", "j", None, 2))
    assert found_in(file) == Name(1767225602000, "")


def test_bigger_files_are_not_looked_through(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "MAX_SEARCH_BYTES", 50)
    assert found_in(write_lines(tmp_path / "s.jsonl", name_line("x"))) is None


@given(st.lists(st.one_of(st.text(max_size=40), st.none()), max_size=8), st.integers(1, 300))
def test_search_finds_what_reading_every_line_finds(tmp_path_factory, parts, step):
    lines = [
        user_record("u", None, "filler" * 9) if text is None else name_line(text, second)
        for second, text in enumerate(parts, 1)
    ]
    file = write_lines(tmp_path_factory.mktemp("n") / "s.jsonl", *lines)
    given_names = [text for text in parts if text is not None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "STEP_BYTES", step)
        found = found_in(file)
    assert (None if found is None else found.text) == (given_names[-1] if given_names else None)
