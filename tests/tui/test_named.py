from pathlib import Path

import pytest

from musepi_tui.runtime.intents import OpenSession
from musepi_tui.storage.listing import list_sessions
from musepi_tui.storage.paths import Paths, session_folder
from tests.support.lines import chain, header_line, record, write_lines
from tests.support.screens import on_stage

HERE, ELSEWHERE = "/home/ada/parser", "/gone/away"


@pytest.fixture
def store(tmp_path):
    """Puts a session where the app looks for it; returns its path."""
    paths = Paths(tmp_path / "config", tmp_path / "data", tmp_path / "state")

    def write(session_id, name, cwd=HERE):
        folder = session_folder(paths, Path(cwd))
        folder.mkdir(parents=True, exist_ok=True)
        named = record("session_info", "n", "e1", 2, name=name)
        file = folder / f"2025_{session_id}.jsonl"
        return str(write_lines(file, header_line(id=session_id, cwd=cwd), *chain("hello"), named))

    return write


def reading(runtime):
    """Lists what is on the disk."""

    async def read(*, everywhere=False, progress=None):
        folder = None if everywhere else Path(HERE)
        return list_sessions(runtime.options.paths, folder, progress=progress)

    runtime.list_sessions = read


async def resume(stage, argument):
    await stage.paste(f"/resume {argument}")
    await stage.press("enter")


@pytest.mark.parametrize("argument", ["aa1", "2025_aa11", "fix the PARSER", "--all aa1"])
async def test_one_session_of_that_name_is_opened(argument, tmp_path, store):
    parser = store("aa11", "Fix the parser")
    store("aa22", "The lexer")
    async with on_stage(tmp_path, prepare=reading) as stage:
        await resume(stage, argument)
        await stage.until(lambda: bool(stage.sent))
        assert stage.sent == [OpenSession(parser)]


async def test_session_of_another_folder_is_found_and_asked_about(tmp_path, store):
    store("aa11", "Fix the parser")
    away = store("bb33", "The lexer", ELSEWHERE)
    async with on_stage(tmp_path, prepare=reading) as stage:
        await resume(stage, "bb3")
        await stage.shows("The folder /gone/away is gone")
        await stage.press("enter")
        assert stage.sent == [OpenSession(away, "move", HERE)]


async def test_session_of_this_folder_is_taken_before_one_of_another(tmp_path, store):
    lexer = store("aa22", "The lexer")
    store("bb33", "The lexer", ELSEWHERE)
    async with on_stage(tmp_path, prepare=reading) as stage:
        await resume(stage, "the lexer")
        await stage.until(lambda: bool(stage.sent))
        assert stage.sent == [OpenSession(lexer)]


@pytest.mark.parametrize("argument", ["aa", "the"])
async def test_what_fits_several_is_searched_for_in_the_list(argument, tmp_path, store):
    store("aa11", "Fix the parser")
    store("aa22", "The lexer")
    async with on_stage(tmp_path, prepare=reading) as stage:
        await resume(stage, argument)
        await stage.shows("Fix the parser")
        assert "The lexer" in stage.text
        assert stage.app.screen.query_text == argument
        assert stage.sent == []


async def test_what_only_another_folder_knows_is_searched_for_in_all(tmp_path, store):
    store("aa11", "Fix the parser")
    store("bb33", "The lexer", ELSEWHERE)
    async with on_stage(tmp_path, prepare=reading) as stage:
        await resume(stage, "lexer")
        await stage.shows("The lexer")
        assert "Sessions · all folders" in stage.text
        assert stage.sent == []


async def test_name_of_no_session_is_told(tmp_path, store):
    store("aa11", "Fix the parser")
    async with on_stage(tmp_path, prepare=reading) as stage:
        await resume(stage, "zz9 plural")
        await stage.shows('Session "zz9 plural" not found. /resume without a name lists them.')
        assert stage.sent == []


async def test_home_folder_of_nobody_is_told(tmp_path):
    async with on_stage(tmp_path) as stage:
        await resume(stage, "~nobody-at-all/a.jsonl")
        await stage.shows("nobody knows whose home folder that is")
        assert stage.sent == []


async def test_listing_that_fails_is_told(tmp_path):
    def broken(runtime):
        async def fail(**_):
            raise OSError("disk gone")

        runtime.list_sessions = fail

    async with on_stage(tmp_path, prepare=broken) as stage:
        await resume(stage, "aa1")
        await stage.shows("The sessions cannot be listed: disk gone")
        assert stage.sent == []
