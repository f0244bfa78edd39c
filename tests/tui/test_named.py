from dataclasses import replace
from pathlib import Path

import pytest

from musepi_tui.runtime.intents import OpenSession
from musepi_tui.storage.listing import SessionInfo
from musepi_tui.tui.screens.named import sessions_named
from tests.support.screens import on_stage

HERE, ELSEWHERE = "/home/ada/parser", "/gone/away"
TIME = "2025-06-15T14:00:00.000Z"


def info(session_id: str, title: str, cwd: str = HERE) -> SessionInfo:
    file = Path(f"/s/2025_{session_id}.jsonl")
    return SessionInfo(file, session_id, cwd, title, TIME, TIME, 1, 1, "musepi", "complete")


PARSER, LEXER, OTHER = info("aa11", "Fix the parser"), info("aa22", "The lexer"), info("bb33", "The lexer")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("aa11", [PARSER]),
        ("AA", [PARSER, LEXER]),
        ("2025_bb33", [OTHER]),
        ("fix the PARSER", [PARSER]),
        ("the lexer", [LEXER, OTHER]),
        ("parser", []),
    ],
)
def test_ids_come_before_titles(wanted, found):
    assert sessions_named((PARSER, LEXER, OTHER), wanted) == found


def test_whole_id_comes_before_one_that_begins_so():
    longer = info("aa112", "Other")
    assert sessions_named((longer, PARSER), "aa11") == [PARSER]


def scoped(here, everywhere):
    """Sessions of the folder, and of all."""

    def prepare(runtime):
        async def read(*, everywhere=False, progress=None):
            return all_rows if everywhere else here

        all_rows = (*here, *everywhere)
        runtime.list_sessions = read

    return prepare


async def resume(stage, argument):
    await stage.paste(f"/resume {argument}")
    await stage.press("enter")


@pytest.mark.parametrize("argument", ["aa1", "fix the parser"])
async def test_one_session_of_that_name_is_opened(argument, tmp_path):
    async with on_stage(tmp_path, prepare=scoped((PARSER, LEXER), ())) as stage:
        await resume(stage, argument)
        await stage.until(lambda: stage.sent == [OpenSession(str(PARSER.path))])


async def test_session_of_another_folder_is_found_and_asked_about(tmp_path):
    away = replace(OTHER, cwd=ELSEWHERE)
    async with on_stage(tmp_path, prepare=scoped((PARSER,), (away,))) as stage:
        await resume(stage, "bb3")
        await stage.shows("The folder /gone/away is gone")
        await stage.press("enter")
        assert stage.sent == [OpenSession(str(away.path), "move", HERE)]


async def test_session_of_this_folder_is_taken_before_one_of_another(tmp_path):
    async with on_stage(tmp_path, prepare=scoped((LEXER,), (OTHER,))) as stage:
        await resume(stage, "the lexer")
        await stage.until(lambda: stage.sent == [OpenSession(str(LEXER.path))])


@pytest.mark.parametrize("argument", ["aa", "the"])
async def test_what_fits_several_is_searched_for_in_the_list(argument, tmp_path):
    async with on_stage(tmp_path, prepare=scoped((PARSER, LEXER), ())) as stage:
        await resume(stage, argument)
        await stage.shows("Fix the parser")
        assert "The lexer" in stage.text
        assert stage.app.screen.query_text == argument
        assert stage.sent == []


async def test_what_only_another_folder_knows_is_searched_for_in_all(tmp_path):
    async with on_stage(tmp_path, prepare=scoped((PARSER,), (OTHER,))) as stage:
        await resume(stage, "lexer")
        await stage.shows("Sessions · all folders")
        await stage.shows("The lexer")


async def test_name_of_no_session_is_told(tmp_path):
    async with on_stage(tmp_path, prepare=scoped((PARSER,), (OTHER,))) as stage:
        await resume(stage, "zz9 plural")
        await stage.shows('Session "zz9 plural" not found. /resume without a name lists them.')
        assert stage.sent == []


async def test_listing_that_fails_is_told(tmp_path):
    def broken(runtime):
        async def fail(**_):
            raise OSError("disk gone")

        runtime.list_sessions = fail

    async with on_stage(tmp_path, prepare=broken) as stage:
        await resume(stage, "aa1")
        await stage.shows("The sessions cannot be listed: disk gone")
