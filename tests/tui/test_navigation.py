from dataclasses import replace

import pytest

from musepi_tui.providers.types import Prices
from musepi_tui.runtime.events import (
    ApprovalAsked,
    BranchSummaryEnded,
    BranchSummaryStarted,
    LeafMoved,
    Phase,
    PhaseChanged,
    QueueChanged,
    SessionReady,
)
from musepi_tui.runtime.intents import Cancel, MoveLeaf, NavigateTree
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import BranchSummarySettings, Settings
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.leaving import LeavingPanel, PromptScreen
from musepi_tui.tui.tree.screen import TreeScreen
from tests.support.branches import PARSER, growing, tree_of
from tests.support.fake_runtime import GPT, SONNET
from tests.support.screens import on_stage

VIEW = ToolView("tail", "$ ls")
DONE = {"cancelled": False, "leafId": "docs", "oldLeafId": "added"}


@pytest.fixture
def stage(tmp_path):
    def open_stage(leaf_id="added", **fields):
        return on_stage(tmp_path, *PARSER, prepare=growing(leaf_id), **fields)

    return open_stage


@pytest.fixture
def asking(tmp_path):
    """A stage on which leaving a branch is asked about."""

    def open_stage(leaf_id="added", offered=(SONNET, GPT), **fields):
        def prepare(runtime):
            growing(leaf_id)(runtime)
            runtime.offered = offered
            settings = Settings(branch_summary=BranchSummarySettings(enabled=True))
            runtime.options.settings = LoadedSettings(settings)

        return on_stage(tmp_path, *PARSER, prepare=prepare, **fields)

    return open_stage


async def choose_in_tree(it, *keys, accept="enter"):
    it.app.navigation.open_tree()
    await it.settle()
    await it.press(*keys, accept)
    await it.settle()


async def settle(it, *, error=None, **data):
    it.runtime.settle(error=error, **data)
    await it.settle()


# -- moving


async def test_moving_without_a_question_sends_one_intent(stage):
    async with stage() as it:
        it.app.navigation.go("cannot")
        assert it.sent == [NavigateTree("cannot")]


async def test_prompt_comes_back_into_an_empty_editor(stage):
    async with stage() as it:
        it.app.navigation.go("docs")
        await settle(it, **DONE, editorText="And now the documentation")
        assert it.draft == "And now the documentation"


async def test_draft_stays_and_the_prompt_can_be_inserted(stage):
    async with stage() as it:
        await it.type("half a thought ")
        it.app.navigation.go("docs")
        await settle(it, **DONE, editorText="And now the documentation")
        assert it.draft == "half a thought "
        await it.shows("What you were writing stays in the editor: ctrl+y inserts the prompt.")
        await it.press("ctrl+y")
        assert it.draft == "half a thought And now the documentation"


@pytest.mark.parametrize("target", ["added", "model"])
async def test_current_place_is_no_move(stage, target):
    leaf = "added" if target == "added" else "model"
    async with stage(leaf_id=leaf) as it:
        it.app.navigation.go(target)
        await it.shows("Already at this point")
        assert it.sent == []


async def test_place_before_bookkeeping_counts_as_the_current_one(stage):
    async with stage(leaf_id="model") as it:
        it.app.navigation.go("manual")
        await it.shows("Already at this point")


async def test_place_that_the_runtime_finds_unchanged_is_told(stage):
    async with stage() as it:
        it.app.navigation.go("examples")
        await settle(it, cancelled=False, unchanged=True)
        await it.shows("Already at this point")


async def test_unknown_entry_is_told(stage):
    async with stage() as it:
        it.app.navigation.go("nowhere")
        await it.shows("Entry nowhere not found")
        assert it.sent == []


async def test_tree_does_not_open_at_an_unknown_entry(stage):
    async with stage() as it:
        it.app.navigation.open_tree("nowhere")
        await it.shows("Entry nowhere not found")
        assert not isinstance(it.app.screen, TreeScreen)


async def test_tree_opens_at_the_only_entry_that_begins_so(stage):
    async with stage() as it:
        it.app.navigation.open_tree("docu")
        await it.shows("Entry docu not found")
        it.app.navigation.open_tree("doc")
        await it.settle()
        assert it.app.screen.model.selected == "docs"


async def test_tree_does_not_open_at_one_of_several_entries(stage):
    async with stage() as it:
        it.app.navigation.open_tree("re")
        await it.shows("2 entries begin with re")
        assert not isinstance(it.app.screen, TreeScreen)


async def test_open_tree_makes_room_for_a_question(stage):
    async with stage() as it:
        it.app.navigation.open_tree()
        await it.settle()
        await it.tell(ApprovalAsked("r", "c", "bash", {"command": "ls"}, "runs a command", None, VIEW))
        assert not isinstance(it.app.screen, TreeScreen)
        await it.shows("runs a command")


async def test_move_is_refused_while_something_runs(stage):
    async with stage() as it:
        await it.tell(PhaseChanged(Phase.STREAMING))
        it.app.navigation.go("docs")
        it.app.navigation.redo()
        await it.shows("press esc first")
        assert it.sent == []


async def test_transcript_shows_its_end_after_a_move(stage):
    async with stage() as it:
        await it.press("ctrl+home")
        await it.settle()
        assert not it.app.main.transcript.following
        it.runtime.view_now = replace(it.runtime.view_now, tree=tree_of(PARSER, "manual"))
        await it.tell(LeafMoved("added", "manual"))
        assert it.app.main.transcript.following


# -- nothing came of it


async def test_summary_that_was_cancelled_shows_the_tree_at_the_same_row(stage):
    async with stage() as it:
        await choose_in_tree(it, "down", "down", accept="shift+enter")
        await settle(it, cancelled=True, aborted=True)
        assert isinstance(it.app.screen, TreeScreen)
        assert it.app.screen.model.selected == "cannot"
        await it.press("enter")
        assert it.sent[-1] == NavigateTree("cannot")


async def test_tree_that_comes_back_keeps_search_filter_and_folds(stage):
    async with stage() as it:
        it.app.navigation.open_tree()
        await it.settle()
        await it.press("alt+t")
        await it.type("regular")
        await it.settle()
        await it.press("enter")
        await settle(it, cancelled=True, aborted=True)
        assert "› regular" in it.text
        assert "[no-tools]" in it.text


async def test_failure_is_told_in_the_transcript_and_in_the_tree(stage):
    async with stage() as it:
        await choose_in_tree(it, "down", "down", accept="shift+enter")
        await settle(it, error="Branch summary failed: overloaded")
        assert isinstance(it.app.screen, TreeScreen)
        assert "Branch summary failed: overloaded" in it.text
        await it.press("escape")
        await it.shows("Branch summary failed: overloaded")


async def test_move_that_an_extension_stopped_shows_the_tree_again(stage):
    async with stage() as it:
        await choose_in_tree(it, "up")
        await settle(it, cancelled=True)
        assert isinstance(it.app.screen, TreeScreen)
        assert "an extension stopped the move" in it.text


async def test_cancelled_summary_without_a_tree_is_told(stage):
    async with stage() as it:
        it.app.navigation.go("cannot", summarize=True)
        await settle(it, cancelled=True, aborted=True)
        await it.shows("Branch summary cancelled; you are where you were.")


async def test_tree_of_a_session_that_was_left_does_not_come_back(stage):
    async with stage() as it:
        await choose_in_tree(it, "down", "down", accept="shift+enter")
        await it.tell(SessionReady(it.runtime.view_now, "new"))
        await settle(it, cancelled=True, aborted=True)
        assert not isinstance(it.app.screen, TreeScreen)


@pytest.mark.parametrize(
    "ending", [{"cancelled": True, "aborted": True}, {"error": "Branch summary failed: no"}]
)
async def test_tree_does_not_come_back_over_the_turn_of_a_message_that_waits(stage, ending):
    async with stage() as it:
        await choose_in_tree(it, "down", "down", accept="shift+enter")
        await it.tell(
            PhaseChanged(Phase.NAVIGATING), BranchSummaryStarted("cannot"), QueueChanged((), ("and then?",))
        )
        await settle(it, **ending)
        assert not isinstance(it.app.screen, TreeScreen)
        await it.shows("Branch summary")
        await it.tell(QueueChanged((), ()), BranchSummaryEnded(), PhaseChanged(Phase.IDLE))
        it.app.navigation.open_tree()
        await it.settle()
        assert "Branch summary" not in it.text


async def test_esc_stops_the_summary_and_leaves_the_queue_alone(stage):
    async with stage() as it:
        it.app.navigation.go("cannot", summarize=True)
        await it.tell(
            PhaseChanged(Phase.NAVIGATING), BranchSummaryStarted("cannot"), QueueChanged(("and then?",), ())
        )
        await it.press("escape")
        assert it.sent[1:] == [Cancel()]


# -- the question


async def test_question_has_three_answers_and_says_what_is_left(asking):
    async with asking() as it:
        await choose_in_tree(it, "down", "down")
        assert isinstance(it.app.screen, LeavingPanel)
        await it.shows("4 messages, ~")
        for answer in ("› No summary", "  Summarize\n", "  Summarize with custom prompt"):
            assert answer in it.text
        await it.press("enter")
        assert it.sent == [NavigateTree("cannot")]


async def test_question_estimates_the_price_where_it_is_known(asking):
    priced = replace(SONNET, prices=Prices(input=1_000.0, output=1_000.0))
    async with asking(model=priced, offered=(priced,)) as it:
        it.app.navigation.go("cannot")
        await it.shows("4 messages, ~")
        await it.shows(", est. $1.0")


@pytest.mark.parametrize("target", ["docs", "examples"])
async def test_going_back_on_the_path_asks_as_well(asking, target):
    async with asking() as it:
        it.app.navigation.go(target)
        await it.settle()
        assert isinstance(it.app.screen, LeavingPanel)


async def test_nothing_is_asked_where_no_message_is_left_behind(asking):
    async with asking(leaf_id="cannot") as it:
        it.app.navigation.go("slow")
        assert it.sent == [NavigateTree("slow")]


async def test_nothing_is_asked_where_the_session_is_only_read(asking):
    async with asking() as it:
        await it.tell(
            SessionReady(replace(it.runtime.view_now, read_only=True, read_only_cause="open"), "resume")
        )
        it.app.navigation.go("cannot")
        assert it.sent == [NavigateTree("cannot")]


async def test_answer_of_before_is_marked_next_time(asking):
    async with asking() as it:
        it.app.navigation.go("cannot")
        await it.settle()
        await it.press("down", "enter")
        assert it.sent == [NavigateTree("cannot", summarize=True)]
        await settle(it, **DONE)
        it.app.navigation.go("regex")
        await it.settle()
        assert "› Summarize\n" in it.text


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
async def test_all_answers_are_seen_on_the_lowest_screen(asking, size):
    async with asking(size=size) as it:
        it.app.navigation.go("cannot")
        await it.shows("4 messages, ~")
        for answer in ("› No summary", "  Summarize\n", "  Summarize with custom prompt"):
            assert answer in it.text


async def test_last_answer_is_reached_where_not_all_fit(asking):
    async with asking(size=(40, 7)) as it:
        it.app.navigation.go("cannot")
        await it.shows("› No summary")
        await it.press("down", "down")
        await it.shows("› Summarize with custom prompt")
        await it.press("enter")
        await it.settle()
        assert isinstance(it.app.screen, PromptScreen)


async def test_question_is_drawn_with_the_signs_of_the_preset(asking):
    async with asking(environ={"MUSEPI_ASCII": "1"}) as it:
        it.app.navigation.go("cannot")
        await it.shows("4 messages, ~")
        assert "enter choose . esc back" in it.text
        assert it.text.isascii()
        await it.press("end", "enter")
        await it.shows("enter summarize . shift+enter, ctrl+j new line . esc back")
        assert "·" not in it.text


async def test_esc_in_the_question_shows_the_tree_at_the_same_row(asking):
    async with asking() as it:
        await choose_in_tree(it, "down", "down")
        await it.press("escape")
        await it.settle()
        assert isinstance(it.app.screen, TreeScreen)
        assert it.app.screen.model.selected == "cannot"
        assert it.sent == []


async def test_custom_prompt_is_sent(asking):
    async with asking() as it:
        it.app.navigation.go("cannot")
        await it.settle()
        await it.press("end", "enter")
        await it.settle()
        assert isinstance(it.app.screen, PromptScreen)
        await it.press("enter")
        assert it.sent == []
        await it.type("only the numbers")
        await it.press("ctrl+j")
        await it.type("and files")
        await it.press("enter")
        assert it.sent == [NavigateTree("cannot", summarize=True, instructions="only the numbers\nand files")]


async def test_leaving_the_custom_prompt_shows_the_answers_and_keeps_the_text(asking):
    async with asking() as it:
        it.app.navigation.go("cannot")
        await it.settle()
        await it.press("end", "enter")
        await it.settle()
        await it.type("only the numbers")
        await it.press("escape")
        await it.settle()
        assert isinstance(it.app.screen, LeavingPanel)
        assert "› Summarize with custom prompt" in it.text
        await it.press("enter")
        await it.settle()
        assert it.app.screen.field.text == "only the numbers"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model": None}, "there is no model: /model chooses one"),
        ({"offered": (GPT,)}, "there is no key for anthropic"),
    ],
    ids=["no model", "no key"],
)
async def test_answers_nobody_can_carry_out_say_why(asking, fields, reason):
    async with asking(**fields) as it:
        it.app.navigation.go("cannot")
        await it.shows(reason)
        await it.press("down", "down", "enter")
        assert it.sent == [NavigateTree("cannot")]


# -- the way back


async def test_newest_move_is_taken_back_first(stage):
    async with stage() as it:
        await it.tell(LeafMoved("added", "cannot"), LeafMoved("cannot", "manual"))
        it.app.navigation.redo()
        assert it.sent == [MoveLeaf("cannot")]
        await it.tell(LeafMoved("manual", "cannot"))
        await settle(it)
        it.app.navigation.redo()
        assert it.sent[1:] == [MoveLeaf("added")]
        await it.tell(LeafMoved("cannot", "added"))
        await settle(it)
        it.app.navigation.redo()
        await it.shows("There is no move to take back.")


async def test_way_back_that_failed_can_be_tried_again(stage):
    async with stage() as it:
        await it.tell(LeafMoved("added", "cannot"))
        it.app.navigation.redo()
        await settle(it, error="disk full")
        await it.shows("disk full")
        it.app.navigation.redo()
        assert it.sent == [MoveLeaf("added")] * 2


async def test_way_back_takes_the_prompt_out_of_the_editor_unless_it_was_changed(stage):
    async with stage() as it:
        for draft in ("", "more"):
            it.app.navigation.go("docs")
            await it.tell(LeafMoved("added", "fixed"))
            await settle(it, **DONE, editorText="And now the documentation")
            await it.type(draft)
            it.app.navigation.redo()
            await settle(it)
            assert it.draft == ("And now the documentationmore" if draft else "")


async def test_way_back_from_a_place_without_a_prompt_leaves_the_editor_alone(stage):
    async with stage() as it:
        it.app.navigation.go("docs")
        await it.tell(LeafMoved("added", "fixed"))
        await settle(it, **DONE, editorText="And now the documentation")
        it.app.navigation.go("look")
        await it.tell(LeafMoved("fixed", "look"))
        await settle(it, **DONE)
        it.app.navigation.redo()
        await settle(it)
        assert it.draft == "And now the documentation"


async def test_way_back_to_before_the_first_entry_goes_to_the_first_prompt(stage):
    async with stage(leaf_id="quotes") as it:
        await it.tell(LeafMoved(None, "quotes"))
        it.app.navigation.redo()
        assert it.sent == [NavigateTree("quotes")]


async def test_moves_of_another_session_cannot_be_taken_back(stage):
    async with stage() as it:
        await it.tell(LeafMoved("added", "cannot"), SessionReady(it.runtime.view_now, "new"))
        it.app.navigation.redo()
        await it.shows("There is no move to take back.")


# -- two presses of esc


def with_action(action):
    def prepare(runtime):
        growing("added")(runtime)
        runtime.options.settings = LoadedSettings(Settings(double_escape_action=action))

    return prepare


async def test_double_esc_in_an_empty_editor_opens_the_tree(stage):
    async with stage() as it:
        await it.press("escape", "escape")
        await it.settle()
        assert isinstance(it.app.screen, TreeScreen)


async def test_two_slow_presses_of_esc_open_nothing(stage):
    async with stage() as it:
        await it.press("escape")
        it.clock.advance(0.6)
        await it.press("escape")
        await it.settle()
        assert not isinstance(it.app.screen, TreeScreen)


async def test_double_esc_with_text_clears_it_and_opens_nothing(stage):
    async with stage() as it:
        await it.type("draft")
        await it.press("escape", "escape")
        await it.settle()
        assert it.draft == ""
        assert not isinstance(it.app.screen, TreeScreen)


@pytest.mark.parametrize("action", ["fork", "rewind"])
async def test_double_esc_opens_what_the_setting_says(tmp_path, action):
    async with on_stage(tmp_path, *PARSER, prepare=with_action(action)) as it:
        await it.press("escape", "escape")
        await it.settle()
        assert len(it.app.screen_stack) == 2
        assert not isinstance(it.app.screen, TreeScreen)
        assert "Add two examples to it" in it.text


async def test_double_esc_can_be_switched_off(tmp_path):
    async with on_stage(tmp_path, *PARSER, prepare=with_action("none")) as it:
        await it.press("escape", "escape")
        await it.settle()
        assert len(it.app.screen_stack) == 1
