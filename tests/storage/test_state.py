import os
import stat

import pytest

from musepi_tui.storage import state
from musepi_tui.storage.paths import find_paths
from musepi_tui.storage.state import PromptHistory


@pytest.fixture
def paths(tmp_path):
    return find_paths({"MUSEPI_HOME": str(tmp_path / "home")})


def test_prompts_of_a_project_come_back_in_order(paths, tmp_path):
    history = PromptHistory(paths, tmp_path)
    assert history.load() == []
    for text in ("one", "two\nlines", "é\ud800"):
        history.append(text)
    assert PromptHistory(paths, tmp_path).load() == ["one", "two\nlines", "é\ud800"]
    assert PromptHistory(paths, tmp_path / "other").load() == []


def test_repeated_and_empty_prompts_are_not_kept(paths, tmp_path):
    PromptHistory(paths, tmp_path).append("one")
    history = PromptHistory(paths, tmp_path)
    history.load()
    for text in ("one", "", "  \n", "two", "two", "one"):
        history.append(text)
    assert history.load() == ["one", "two", "one"]


def test_only_the_last_hundred_are_recalled(paths, tmp_path):
    history = PromptHistory(paths, tmp_path)
    for number in range(130):
        history.append(str(number))
    assert history.load() == [str(number) for number in range(30, 130)]


def test_file_is_private_and_unreadable_lines_are_passed_over(paths, tmp_path):
    history = PromptHistory(paths, tmp_path)
    history.append("one")
    file = paths.state / "history.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with file.open("ab") as out:
        out.write(b'junk\n[1]\n{"project":1}\n\xff\n')
    history.append("two")
    assert history.load() == ["one", "two"]


def test_big_file_is_cut_to_the_last_prompts_of_each_project(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "COMPACT_AT_BYTES", 20_000)
    other = PromptHistory(paths, tmp_path / "other")
    other.append("mine")
    history = PromptHistory(paths, tmp_path)
    for number in range(300):
        history.append(f"prompt {number}")
    assert (paths.state / "history.jsonl").stat().st_size < 20_000
    assert other.load() == ["mine"]
    assert history.load()[-1] == "prompt 299"


def test_folder_that_cannot_be_written_raises(paths, tmp_path):
    (tmp_path / "home").touch()
    with pytest.raises(OSError, match="Not a directory"):
        PromptHistory(paths, tmp_path).append("x")


def test_pipe_in_place_of_the_file_is_an_error_and_nobody_waits(paths, tmp_path):
    history = PromptHistory(paths, tmp_path)
    paths.state.mkdir(parents=True)
    os.mkfifo(paths.state / "history.jsonl")
    for call in (history.load, lambda: history.append("one")):
        with pytest.raises(OSError):
            call()
    reader = os.open(paths.state / "history.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OSError, match="not a regular file"):
        history.append("two")
    os.close(reader)
