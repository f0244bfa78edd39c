import pytest

from musepi_tui.runtime.events import AgentStarted, Phase, PhaseChanged
from musepi_tui.runtime.intents import NewSession
from tests.support.builders import path, u
from tests.support.screens import on_stage

CLEAR = "/clear is another name for /new"
WAIT = "wait for the turn to end or press esc"
HANDOFF = "A response is still running: let it end or press esc, then hand off"


async def run(stage, line):
    await stage.paste(line)
    await stage.press("enter")


async def test_alias_that_may_surprise_is_explained_once_after_what_it_did(tmp_path):
    async with on_stage(tmp_path, *path(u("hi"))) as stage:
        await run(stage, "/clear")
        await stage.until(lambda: stage.sent == [NewSession()])
        assert CLEAR not in stage.text
        stage.runtime.settle()
        await stage.shows(CLEAR)
        await run(stage, "/clear")
        await stage.until(lambda: stage.sent == [NewSession(), NewSession()])
        stage.runtime.settle()
        await stage.settle()
        assert stage.text.count(CLEAR) == 1
        assert "×2" not in stage.text


async def test_command_under_its_own_name_explains_nothing(tmp_path):
    async with on_stage(tmp_path, *path(u("hi"))) as stage:
        await run(stage, "/new")
        await stage.until(lambda: stage.sent == [NewSession()])
        stage.runtime.settle()
        await stage.settle()
        assert CLEAR not in stage.text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/tree", "press esc first"),
        ("/branch", "press esc first"),
        ("/handoff the parser", HANDOFF),
        ("/rewind", WAIT),
        ("/redo", WAIT),
        ("/fork", WAIT),
        ("/delete", WAIT),
    ],
)
async def test_command_that_has_to_wait_says_why_and_stays_in_the_editor(line, told, tmp_path):
    async with on_stage(tmp_path, *path(u("hi"))) as stage:
        await stage.tell(PhaseChanged(Phase.STREAMING), AgentStarted())
        await run(stage, line)
        await stage.shows(told)
        assert stage.draft == line
        assert stage.sent == []
