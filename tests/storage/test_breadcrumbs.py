import os
import stat
from pathlib import Path

import pytest

from musepi_tui.storage import breadcrumbs
from musepi_tui.storage.breadcrumbs import (
    continue_recent,
    outer_session,
    remember_terminal,
    remembered_session,
    terminal_id,
)
from musepi_tui.storage.paths import Paths, find_paths, session_folder
from tests.support.lines import chain, header_line, write_lines

PANE = {"TMUX_PANE": "%3"}


@pytest.fixture(autouse=True)
def no_tty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> str:
        raise OSError

    monkeypatch.setattr(os, "ttyname", refuse)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"MUSEPI_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def session(paths: Paths, cwd: Path, name: str) -> Path:
    folder = session_folder(paths, cwd)
    folder.mkdir(parents=True, exist_ok=True)
    return write_lines(folder / f"{name}.jsonl", header_line(id=name, cwd=str(cwd)), *chain("x"))


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, None),
        ({"TMUX_PANE": "%3"}, "tmux-_3"),
        ({"ZELLIJ_PANE_ID": "4", "ZELLIJ_SESSION_NAME": "main", "TMUX_PANE": "%3"}, "zellij-main-4"),
        ({"CMUX_SURFACE_ID": "u/1"}, "cmux-u-1"),
        ({"KITTY_WINDOW_ID": "2"}, "kitty-2"),
        ({"WEZTERM_PANE": "../../x"}, "wezterm-..-..-x"),
        ({"TERM_SESSION_ID": "w0t0p0:A"}, "term-w0t0p0_A"),
        ({"WT_SESSION": "g" * 300}, ("wt-" + "g" * 300)[:100]),
    ],
)
def test_terminal_is_named_by_its_variables(environ, name):
    assert terminal_id(environ) == name


def test_tty_comes_before_the_variables(monkeypatch):
    monkeypatch.setattr(os, "ttyname", lambda descriptor: "/dev/pts/3")
    assert terminal_id(PANE) == "pts-3"


def test_terminal_goes_on_with_its_own_session(paths, cwd):
    mine = session(paths, cwd, "mine")
    newest = session(paths, cwd, "newest")
    os.utime(mine, (1, 1))
    assert continue_recent(paths, PANE, cwd) == newest
    remember_terminal(paths, PANE, cwd, mine)
    assert continue_recent(paths, PANE, cwd) == mine
    assert continue_recent(paths, {"TMUX_PANE": "%4"}, cwd) == newest
    assert continue_recent(paths, {}, cwd) == newest


def test_note_is_private_and_reads_like_that_of_other_tools(paths, cwd):
    file = session(paths, cwd, "mine")
    remember_terminal(paths, PANE, cwd, file)
    note = paths.state / "terminal-sessions" / "tmux-_3"
    assert note.read_text() == f"{cwd}\n{file}\n"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600


def test_note_from_another_folder_does_not_count(paths, cwd, tmp_path):
    file = session(paths, cwd, "mine")
    remember_terminal(paths, PANE, tmp_path, file)
    assert remembered_session(paths, PANE, cwd) is None


def test_note_of_a_session_that_is_gone_does_not_count(paths, cwd):
    remember_terminal(paths, PANE, cwd, cwd / "gone.jsonl")
    assert remembered_session(paths, PANE, cwd) is None
    assert continue_recent(paths, PANE, cwd) is None


@pytest.mark.parametrize("data", [b"", b"one line", b"/p\nrelative\n", b"/p\n/a\0b\n", b"x" * 100_000])
def test_broken_note_is_set_aside(paths, cwd, data):
    newest = session(paths, cwd, "newest")
    folder = paths.state / "terminal-sessions"
    folder.mkdir(parents=True)
    (folder / "tmux-_3").write_bytes(data)
    assert continue_recent(paths, PANE, cwd) == newest
    assert [item.name for item in folder.iterdir()] == ["tmux-_3.bad-1"]


def test_session_of_an_agent_leads_to_the_one_around_it(tmp_path):
    outer = write_lines(tmp_path / "s.jsonl", header_line())
    inner = tmp_path / "s" / "agent"
    inner.mkdir(parents=True)
    write_lines(tmp_path / "s" / "agent.jsonl", header_line())
    assert outer_session(inner / "deep.jsonl") == outer
    assert outer_session(outer) == outer


def test_following_artifact_folders_outwards_ends(tmp_path):
    folder = tmp_path
    for level in range(breadcrumbs.MAX_LEVELS + 3):
        write_lines(folder / f"d{level}.jsonl", header_line())
        folder = folder / f"d{level}"
        folder.mkdir()
    assert outer_session(folder / "x.jsonl") == tmp_path / "d0" / "d1" / "d2" / "d3.jsonl"


def test_terminal_without_a_name_and_a_folder_that_cannot_be_written_stop_nothing(paths, cwd):
    file = session(paths, cwd, "mine")
    remember_terminal(paths, {}, cwd, file)
    assert not paths.state.exists()
    paths.state.write_text("no folder")
    remember_terminal(paths, PANE, cwd, file)
    assert remembered_session(paths, {}, cwd) is None
