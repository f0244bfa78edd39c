from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.events import Notice, SaveStateChanged
from musepi_tui.runtime.intents import OpenSession
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.messages import Usage
from musepi_tui.session.tree import LEAF_MARK
from musepi_tui.storage.listing import SessionInfo
from musepi_tui.tui.screens.session import session_items
from tests.support.builders import a, path, state, u
from tests.support.lines import chain, header_line, write_lines
from tests.support.screens import on_stage
from tests.support.transcripts import session_view

HERE = "/home/ada/parser"
TIME = "2025-06-15T14:00:00.000Z"


def facts(view, width_cells: int = 80) -> dict[str, str]:
    found: dict[str, str] = {}
    label = ""
    for item in session_items(view, width_cells):
        label = item.label.strip() or label
        found[label] = found.get(label, "") + item.detail
    return found


def test_facts_of_a_session():
    view = session_view(path(state("model_change"), u("hi"), a("hello"), u("more")))
    view = replace(
        view, name="Parser", meter=replace(view.meter, totals=Usage(input=1234, output=5), cost=0.25)
    )
    shown = facts(view)
    assert shown["file"] == "/sessions/session.jsonl"
    assert (shown["name"], shown["folder"], shown["branches"]) == ("Parser", "/project", "1 leaf")
    assert (shown["message"], shown["model_change"]) == ("3", "1")
    assert (shown["input"], shown["output"], shown["cost"]) == ("1,234 tokens", "5 tokens", "$0.250")
    assert "cache read" not in shown


def test_going_back_and_forth_makes_no_branch():
    view = session_view(path(u("hi"), a("hello")))
    tree = view.tree
    for number, parent_id in enumerate(("e1", "e2", "e1")):
        mark = EntryHead(f"m{number}", parent_id, "custom", "", 0, 0, LEAF_MARK)
        tree = tree.with_entry(mark)
    assert facts(replace(view, tree=tree))["branches"] == "1 leaf"
    tree = tree.with_entry(EntryHead("x", tree.leaf_id, "message", "", 0, 0, "user"))
    assert facts(replace(view, tree=tree))["branches"] == "2 leaves"


def test_a_long_path_is_shown_whole():
    file = Path("/a" + "/very-long-folder-name" * 8 + "/s.jsonl")
    items = session_items(replace(session_view(()), file=file), 60)
    assert facts(replace(session_view(()), file=file), 60)["file"] == str(file)
    assert all(len(item.label) + len(item.detail) <= 58 for item in items)


def test_a_session_in_memory_and_one_that_is_not_written_say_so():
    shown = facts(replace(session_view(()), file=None, unsaved=2, read_only_cause="it is old"))
    assert shown["file"] == "in memory only"
    assert (shown["not written"], shown["read-only"]) == ("2 entries", "it is old")


async def test_session_command_shows_the_facts(tmp_path):
    async with on_stage(tmp_path, *path(u("hi")), size=(80, 30)) as stage:
        await stage.paste("/session")
        await stage.press("enter")
        await stage.shows("0198c0de-0000-7000-8000-000000000000")
        await stage.press("escape")


# -- a session of another folder


def info(cwd: str) -> SessionInfo:
    return SessionInfo(
        Path("/s/1.jsonl"), "id1", cwd, "Fix the parser", TIME, TIME, 1, 1, "musepi", "complete"
    )


@pytest.mark.parametrize(
    ("exists", "keys", "sent"),
    [
        (True, (), [OpenSession("/s/1.jsonl", "there")]),
        (True, ("down",), [OpenSession("/s/1.jsonl", "fork", HERE)]),
        (True, ("down", "down"), []),
        (False, (), [OpenSession("/s/1.jsonl", "move", HERE)]),
        (False, ("down",), [OpenSession("/s/1.jsonl", "fork", HERE)]),
    ],
)
async def test_a_session_of_another_folder_is_asked_about(exists, keys, sent, tmp_path):
    there = tmp_path / "there"
    if exists:
        there.mkdir()

    def with_session(runtime):
        runtime.sessions = [info(str(there))]

    async with on_stage(tmp_path, prepare=with_session, size=(160, 24)) as stage:
        await stage.paste("/resume")
        await stage.press("enter")
        await stage.shows("Fix the parser")
        await stage.press("enter")
        await stage.shows("Open a copy here")
        assert (f"This session belongs to {there}" in stage.text) is exists
        await stage.press(*keys, "enter")
        assert stage.sent == sent


@pytest.mark.parametrize("cwd", ["/home/ada/parser", ""])
async def test_a_session_of_this_folder_opens_at_once(cwd, tmp_path):
    def with_session(runtime):
        runtime.sessions = [info(cwd)]

    async with on_stage(tmp_path, prepare=with_session) as stage:
        await stage.paste("/resume")
        await stage.press("enter")
        await stage.shows("Fix the parser")
        await stage.press("enter")
        assert stage.sent == [OpenSession("/s/1.jsonl")]


@pytest.mark.parametrize(
    ("tool", "exists", "rows"),
    [
        ("claude", True, ["Open there", "Open here", "Cancel"]),
        ("codex", False, ["Open here", "Cancel"]),
        ("pi", False, ["Open a copy here", "Move it here", "Cancel"]),
    ],
)
async def test_sessions_of_other_tools_are_asked_about_too(tool, exists, rows, tmp_path):
    there = tmp_path / "there"
    if exists:
        there.mkdir()

    def with_session(runtime):
        runtime.sessions = [replace(info(str(there)), tool=tool, is_own=False)]

    async with on_stage(tmp_path, prepare=with_session, size=(160, 24)) as stage:
        stage.app.host.show("resume")
        await stage.shows("Fix the parser")
        await stage.press("enter")
        await stage.shows("Cancel")
        assert [item.label for item in stage.app.screen.items] == rows
        await stage.press("home", *(("down",) if exists else ()), "enter")
        assert stage.sent == [OpenSession("/s/1.jsonl", "fork", HERE)]


async def test_a_path_of_another_folder_is_asked_about(tmp_path):
    file = write_lines(tmp_path / "s.jsonl", header_line(id="s", cwd="/gone/away"), *chain("a"))
    async with on_stage(tmp_path) as stage:
        await stage.paste(f"/resume {file}")
        await stage.press("enter")
        await stage.shows("The folder /gone/away is gone")
        await stage.press("enter")
        assert stage.sent == [OpenSession(str(file), "move", HERE)]


async def test_the_screen_names_the_folder_where_tools_work(tmp_path):
    def moved(runtime):
        runtime.view_now = replace(runtime.view_now, cwd=Path("/srv/website"))

    async with on_stage(tmp_path, prepare=moved, size=(100, 30)) as stage:
        assert "/srv/website" in stage.text
        assert "parser" not in stage.text
        await stage.paste("/session")
        await stage.press("enter")
        await stage.shows("tools work in")


# -- what was told about saving


async def test_it_is_told_when_everything_is_saved_again_after_a_failure(tmp_path):
    async with on_stage(tmp_path, *path(u("hi"))) as stage:
        await stage.tell(SaveStateChanged(2), SaveStateChanged(0))
        assert "saved" not in stage.text
        failure = Notice("error", "session: could not write s.jsonl: No space left on device", "session")
        await stage.tell(failure, SaveStateChanged(3), SaveStateChanged(1))
        assert "Everything is saved" not in stage.text
        await stage.tell(SaveStateChanged(0), SaveStateChanged(0))
        await stage.shows("Everything is saved now.")
        assert "×2" not in stage.text
