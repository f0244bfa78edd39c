from dataclasses import replace

import pytest

from musepi_tui.runtime.intents import DeleteSession, NewSession, OpenSession
from musepi_tui.storage.paths import ToolRoot
from tests.support.builders import a, path, u
from tests.support.screens import on_stage

TALK = path(u("fix the parser"), a("done"))


def stored(file, **fields):
    """A session that is in a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}\n", encoding="utf-8")

    def prepare(runtime):
        runtime.view_now = replace(runtime.view_now, file=file, **fields)

    return prepare


async def delete(stage):
    await stage.paste("/delete")
    await stage.press("enter")


async def test_delete_asks_leaves_the_session_moves_it_to_the_trash_and_shows_the_others(tmp_path):
    file = tmp_path / "s.jsonl"
    async with on_stage(tmp_path, *TALK, prepare=stored(file, name="Parser")) as stage:
        await delete(stage)
        await stage.shows("Delete Parser?")
        await stage.press("y")
        await stage.until(lambda: stage.sent == [NewSession()])
        stage.runtime.settle()
        await stage.until(lambda: stage.sent == [NewSession(), DeleteSession(str(file))])
        stage.runtime.settle(left=["/s/artifacts"])
        await stage.shows("no stored session yet")
        await stage.press("escape")
        await stage.shows("Moved to the trash: Parser")
        assert "/s/artifacts belonged to the session and could not go with it." in stage.text


async def test_nothing_happens_without_a_yes(tmp_path):
    async with on_stage(tmp_path, *TALK, prepare=stored(tmp_path / "s.jsonl")) as stage:
        await delete(stage)
        await stage.shows("Delete this session?")
        await stage.press("enter")
        assert stage.sent == []


async def test_session_that_cannot_be_left_is_not_deleted(tmp_path):
    async with on_stage(tmp_path, *TALK, prepare=stored(tmp_path / "s.jsonl")) as stage:
        await delete(stage)
        await stage.shows("Delete this session?")
        await stage.press("y")
        await stage.until(lambda: stage.sent == [NewSession()])
        stage.runtime.settle(error="The extension guard stopped this.")
        await stage.shows("The extension guard stopped this.")
        assert stage.sent == [NewSession()]


async def test_session_that_no_trash_takes_is_opened_again(tmp_path):
    file = tmp_path / "s.jsonl"
    async with on_stage(tmp_path, *TALK, prepare=stored(file)) as stage:
        await delete(stage)
        await stage.shows("Delete this session?")
        await stage.press("y")
        await stage.until(lambda: stage.sent == [NewSession()])
        stage.runtime.settle()
        await stage.until(lambda: len(stage.sent) == 2)
        stage.runtime.settle(error="s.jsonl could not be moved to the trash: no trash here")
        await stage.until(lambda: stage.sent[2:] == [OpenSession(str(file))])
        stage.runtime.settle()
        await stage.shows("s.jsonl could not be moved to the trash: no trash here")


@pytest.mark.parametrize("in_memory", [True, False])
async def test_session_that_is_not_on_disk_is_not_asked_about(in_memory, tmp_path):
    def unstored(runtime):
        file = None if in_memory else tmp_path / "not-yet.jsonl"
        runtime.view_now = replace(runtime.view_now, file=file)

    async with on_stage(tmp_path, *TALK, prepare=unstored) as stage:
        await delete(stage)
        await stage.shows("This session is not on disk, so there is nothing to delete.")


async def test_session_that_may_only_be_read_stays(tmp_path):
    read_only = stored(tmp_path / "s.jsonl", read_only=True, read_only_cause="it is open in process 12")
    async with on_stage(tmp_path, *TALK, prepare=read_only, size=(120, 40)) as stage:
        await stage.press("escape")  # the question what to do with it
        stage.app.host.show("delete")
        await stage.shows("This session can only be read, so it is not deleted: it is open in process 12.")


async def test_session_of_another_tool_stays(tmp_path):
    store = stored(tmp_path / "pi" / "s.jsonl")

    def foreign(runtime):
        store(runtime)
        tools = (ToolRoot("pi", tmp_path / "pi"),)
        runtime.options.paths = replace(runtime.options.paths, tools=tools)

    async with on_stage(tmp_path, *TALK, prepare=foreign) as stage:
        await delete(stage)
        await stage.shows("pi keeps this session; musepi deletes only its own.")
