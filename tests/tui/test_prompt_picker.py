from dataclasses import replace

import pytest

from musepi_tui.runtime.events import Phase, PhaseChanged
from musepi_tui.runtime.intents import ForkSession, NavigateTree
from musepi_tui.session.messages import ImageBlock, UserMessage
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import BranchSummarySettings, Settings
from tests.support.builders import PIXEL, a, call, path, t, u
from tests.support.screens import on_stage

TALK = path(
    u("fix the parser"),
    a("done"),
    u("now the lexer"),
    a("", [call("read")]),
    t("seen"),
    u("add a\ttest\nplease"),
    a("done"),
)


def escaping_to(action):
    def prepare(runtime):
        runtime.options.settings = LoadedSettings(Settings(double_escape_action=action))

    return prepare


async def run(stage, line):
    await stage.paste(line)
    await stage.press("enter")


def labels(stage):
    return [item.label for item in stage.app.screen.items]


async def test_rewind_shows_the_prompts_newest_first_and_goes_to_before_the_chosen_one(tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        await run(stage, "/rewind")
        await stage.shows("Back to before a prompt")
        await stage.shows("fix the parser")
        assert labels(stage) == ["add a test please", "now the lexer", "fix the parser"]
        assert [item.detail.split(" · ")[0] for item in stage.app.screen.items] == ["1", "2", "3"]
        await stage.press("down", "enter")
        await stage.until(lambda: stage.sent == [NavigateTree("e3")])


async def test_words_of_a_search_stand_anywhere_in_the_prompt(tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        await run(stage, "/undo")
        await stage.shows("fix the parser")
        await stage.type("THE x")
        assert labels(stage) == ["now the lexer", "fix the parser"]
        await stage.type("yz")
        await stage.shows("no prompt fits")
        await stage.press("escape")
        assert stage.sent == []


@pytest.mark.parametrize(("number", "entry_id"), [(1, "e6"), (3, "e1")])
async def test_rewind_with_a_number_asks_nothing(number, entry_id, tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        await run(stage, f"/rewind {number}")
        await stage.until(lambda: stage.sent == [NavigateTree(entry_id)])


async def test_number_of_no_prompt_is_told(tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        await run(stage, "/rewind 4")
        await stage.shows("There is no prompt 4: this path has 3 prompts.")
        assert stage.sent == []


@pytest.mark.parametrize("line", ["/rewind", "/rewind 1", "/branch new"])
@pytest.mark.parametrize("entries", [(), path(a("hello"))], ids=["empty", "no prompt"])
async def test_path_without_prompts_is_told(line, entries, tmp_path):
    async with on_stage(tmp_path, *entries) as stage:
        await run(stage, line)
        await stage.shows("There is no prompt on this path yet.")


async def test_prompts_of_another_branch_are_not_among_them(tmp_path):
    def moved(runtime):
        runtime.view_now = replace(runtime.view_now, tree=runtime.view_now.tree.with_leaf("e2"))

    async with on_stage(tmp_path, *TALK, prepare=moved) as stage:
        await run(stage, "/rewind")
        await stage.shows("fix the parser")
        assert labels(stage) == ["fix the parser"]


async def test_long_path_is_read_to_its_first_prompt(tmp_path):
    parts = [part for number in range(150) for part in (u(f"prompt {number}"), a("ok"))]
    async with on_stage(tmp_path, *path(*parts)) as stage:
        await run(stage, "/rewind")
        await stage.until(lambda: len(labels(stage)) == 150)
        await stage.press("end")
        await stage.shows("prompt 0")
        await stage.press("enter")
        await stage.until(lambda: stage.sent == [NavigateTree("e1")])


async def test_prompt_that_is_only_a_picture_has_a_row(tmp_path):
    picture = UserMessage((ImageBlock(PIXEL, "image/png"),))
    async with on_stage(tmp_path, *path(picture, a("a pixel"))) as stage:
        await run(stage, "/rewind")
        await stage.shows("(no text)")


async def test_entry_that_cannot_be_read_is_left_out(tmp_path):
    def torn(runtime):
        del runtime._entries["e3"]

    async with on_stage(tmp_path, *TALK, prepare=torn) as stage:
        await run(stage, "/rewind")
        await stage.shows("fix the parser")
        assert labels(stage) == ["add a test please", "fix the parser"]


@pytest.mark.parametrize("line", ["/rewind", "/rewind 1", "/branch new"])
async def test_nothing_is_offered_while_the_path_is_not_whole(line, tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        await stage.tell(PhaseChanged(Phase.LOADING))
        await run(stage, line)
        await stage.shows("The session is still being loaded.")
        assert stage.sent == []


@pytest.mark.parametrize(
    ("line", "action"),
    [("/branch new", "tree"), ("/branch new", "none"), ("/branch", "rewind"), ("/branch", "fork")],
)
async def test_branch_makes_a_session_of_what_came_before_the_chosen_prompt(line, action, tmp_path):
    async with on_stage(tmp_path, *TALK, prepare=escaping_to(action)) as stage:
        await run(stage, line)
        await stage.shows("New session from before a prompt")
        await stage.shows("now the lexer")
        await stage.press("down", "enter")
        await stage.until(lambda: stage.sent == [ForkSession("e3")])
        stage.runtime.settle(text="now the lexer")
        await stage.until(lambda: stage.draft == "now the lexer")


async def test_branch_opens_the_tree_when_two_presses_of_escape_do(tmp_path):
    async with on_stage(tmp_path, *TALK, prepare=escaping_to("tree")) as stage:
        await run(stage, "/branch")
        await stage.until(lambda: type(stage.app.screen).__name__ == "TreeScreen")


async def test_row_and_search_are_as_they_were_when_the_person_comes_back(tmp_path):
    def asking(runtime):
        settings = Settings(branch_summary=BranchSummarySettings(enabled=True))
        runtime.options.settings = LoadedSettings(settings)

    async with on_stage(tmp_path, *TALK, prepare=asking) as stage:
        await run(stage, "/rewind")
        await stage.shows("fix the parser")
        await stage.type("the")
        await stage.press("down", "enter")
        await stage.shows("Summarize with custom prompt")
        await stage.press("escape")
        await stage.shows("Back to before a prompt")
        await stage.until(lambda: stage.app.screen.chosen is not None)
        assert (stage.app.screen.query_text, stage.app.screen.chosen.key) == ("the", "e1")


@pytest.mark.parametrize("size", [(1, 1), (40, 12), (200, 60)])
async def test_list_opens_at_every_size(size, tmp_path):
    async with on_stage(tmp_path, *TALK, size=size) as stage:
        stage.app.host.show("rewind")
        await stage.settle()
        await stage.press("down", "pagedown", "pageup", "home", "end", "up")
        await stage.press("escape")
        await stage.type("a")
        assert stage.draft == "a"
