import asyncio
import json
from dataclasses import replace
from typing import Any, cast

import pytest
from textual import events

from musepi_tui.runtime.events import (
    AgentStarted,
    ApprovalAsked,
    MaintenanceEnded,
    MaintenanceStarted,
    ModeChanged,
    ModelChanged,
    Notice,
    Phase,
    PhaseChanged,
    QueueChanged,
    SessionReady,
)
from musepi_tui.runtime.intents import (
    AnswerApproval,
    Cancel,
    Compact,
    NewSession,
    Retry,
    SelectModel,
    SetMode,
    SetThinking,
    SubmitPrompt,
    TakeQueue,
)
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.app import MusepiApp
from musepi_tui.tui.driver import GroundTold
from musepi_tui.tui.screens.resume import SessionPanel
from tests.support.builders import a, compaction, path, u
from tests.support.fake_runtime import DEMO, GPT, SONNET, FakeRuntime
from tests.support.screens import ENVIRON, Stage, on_stage

WORK = (PhaseChanged(Phase.STREAMING), AgentStarted())
TALK = path(u("first prompt"), a("first answer"))


async def test_first_frame_shows_the_tail_before_the_runtime_begins(tmp_path):
    seen: list[bool] = []

    def watch(runtime):
        real = runtime.begin

        def begin():
            seen.append("first answer" in stage_text())
            real()

        runtime.begin = begin

    def stage_text() -> str:
        from textual._context import active_app

        from tests.support.snapshot import screen_text

        return screen_text(active_app.get())

    async with on_stage(tmp_path, *TALK, prepare=watch):
        assert seen == [True]


async def test_keys_typed_before_the_first_frame_land_in_the_editor(tmp_path):
    app = MusepiApp(cast("Any", FakeRuntime(tmp_path)), ENVIRON)
    for key in "early":
        app.post_message(events.Key(key, key))
    app.post_message(events.Paste(" paste"))
    async with app.run_test() as pilot:
        async with asyncio.timeout(5):
            while not app.main.composer.text.endswith("paste"):
                await pilot.pause(0.02)
        assert app.main.composer.text == "early paste"


async def test_enter_sends_the_text_and_empties_the_editor(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("fix it")
        await stage.press("enter")
        assert stage.sent == [SubmitPrompt("fix it")]
        assert stage.draft == ""


async def test_keys_that_come_in_a_burst_act_in_their_order(tmp_path):
    async with on_stage(tmp_path) as stage:
        for key in [*"one", "ctrl+j", *"two", "enter", *"bad", "ctrl+c", *"three", "enter", *"four"]:
            stage.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await stage.until(lambda: stage.draft == "four")
        assert stage.sent == [SubmitPrompt("one\ntwo"), SubmitPrompt("three")]


async def test_blank_text_is_not_sent(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("   ")
        await stage.press("enter")
        assert stage.sent == []


async def test_text_typed_while_loading_or_working_is_sent_for_the_queue(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK)
        await stage.type("also")
        await stage.press("enter")
        await stage.type("later")
        await stage.press("alt+enter")
        assert stage.sent == [SubmitPrompt("also"), SubmitPrompt("later", delivery="follow_up")]
        await stage.tell(QueueChanged(("also",), ("later",)))
        assert "Steering: also" in stage.text
        assert "Follow-up: later" in stage.text
        assert "↳ alt+up edits the queue" in stage.text


async def test_alt_enter_breaks_the_line_while_idle(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("a")
        await stage.press("alt+enter")
        await stage.type("b")
        assert stage.draft == "a\nb"
        assert stage.sent == []


async def test_refused_prompt_comes_back_into_the_editor_with_its_reason(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("fix it")
        await stage.press("enter")
        await stage.type("more")
        stage.runtime.settle(error="No key for claude-sonnet: set ANTHROPIC_API_KEY")
        await stage.settle()
        assert stage.draft == "fix it\n\nmore"
        assert "No key for claude-sonnet" in stage.text


async def test_failure_that_was_told_is_not_told_twice(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("x")
        await stage.press("enter")
        await stage.tell(Notice("error", "The key is wrong", "provider"))
        stage.runtime.settle(error="The key is wrong")
        await stage.settle()
        assert stage.text.count("The key is wrong") == 1
        assert "×2" not in stage.text


async def test_alt_up_takes_the_queue_back_before_the_draft(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("draft")
        await stage.press("alt+up")
        assert stage.sent == [TakeQueue()]
        stage.runtime.settle(text="one\n\ntwo")
        await stage.settle()
        assert stage.draft == "one\n\ntwo\n\ndraft"


async def test_escape_stops_the_turn_and_takes_its_queue_back(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK, QueueChanged(("also",), ()))
        await stage.press("escape")
        assert stage.sent == [TakeQueue(), Cancel()]


async def test_escape_during_a_compaction_leaves_the_queue(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(
            PhaseChanged(Phase.MAINTAINING),
            MaintenanceStarted("manual", "summary"),
            QueueChanged(("also",), ()),
        )
        assert "Compacting… 0s (esc to cancel)" in stage.text
        assert "compacting…" in stage.text
        await stage.press("escape")
        assert stage.sent == [Cancel()]


async def test_escape_closes_the_completion_list_first(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK)
        await stage.type("/he")
        assert "/help" in stage.text
        await stage.press("escape")
        assert stage.sent == []
        assert stage.draft == "/he"
        await stage.press("escape")
        assert stage.sent == [Cancel()]


async def test_second_escape_clears_the_text_into_the_history(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("draft")
        await stage.press("escape")
        assert stage.draft == "draft"
        stage.clock.advance(0.4)
        await stage.press("escape")
        assert stage.draft == ""
        await stage.press("up")
        assert stage.draft == "draft"


async def test_slow_second_escape_clears_nothing(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("draft")
        await stage.press("escape")
        stage.clock.advance(0.6)
        await stage.press("escape")
        assert stage.draft == "draft"


async def test_ctrl_c_clears_then_asks_then_quits(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("draft")
        await stage.press("ctrl+c")
        assert stage.draft == ""
        await stage.press("ctrl+c")
        assert "press ctrl+c again to quit" in stage.text
        assert stage.app.is_running
        stage.clock.advance(1.9)
        await stage.press("ctrl+c")
        assert stage.app.return_value == 0


async def test_ctrl_c_after_a_while_only_asks_again(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.press("ctrl+c")
        stage.clock.advance(2.1)
        await stage.press("ctrl+c")
        assert stage.app.return_value is None


async def test_ctrl_c_stops_what_runs_instead_of_quitting(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK)
        await stage.press("ctrl+c", "ctrl+c")
        assert stage.sent == [Cancel(), Cancel()]
        assert stage.app.return_value is None


@pytest.mark.parametrize("text", ["exit", "quit", ":q", "/quit", "/exit"])
async def test_words_that_quit(tmp_path, text):
    async with on_stage(tmp_path) as stage:
        await stage.type(text)
        await stage.press("enter")
        assert stage.app.return_value == 0
        assert stage.sent == []


async def test_ctrl_d_quits_only_when_the_editor_is_empty(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("ab")
        await stage.press("home", "ctrl+d")
        assert stage.draft == "b"
        await stage.press("ctrl+d", "ctrl+d")
        assert stage.app.return_value == 0


async def test_quitting_during_a_compaction_asks_once(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(PhaseChanged(Phase.MAINTAINING), MaintenanceStarted("manual", "summary"))
        await stage.press("ctrl+d")
        assert "compaction running – quit anyway?" in stage.text
        await stage.press("escape")
        assert stage.app.return_value is None
        await stage.press("ctrl+d")
        await stage.press("down", "enter")
        assert stage.app.return_value == 0


async def test_one_key_quits_during_a_compaction(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(PhaseChanged(Phase.MAINTAINING), MaintenanceStarted("idle", "summary"))
        await stage.paste("/quit")
        await stage.press("enter")
        await stage.shows("compaction running – quit anyway?")
        await stage.press("y")
        assert stage.app.return_value == 0


async def test_unknown_command_is_not_sent_and_stays(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("/modle x")
        await stage.press("enter")
        await stage.settle()
        assert stage.sent == []
        assert stage.draft == "/modle x"
        assert "There is no command /modle. Did you mean /mode, /model" in stage.text


async def test_path_and_double_slash_are_prompts(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/usr/bin/env is missing")
        await stage.press("enter")
        await stage.paste("//help me")
        await stage.press("enter")
        assert stage.sent == [SubmitPrompt("/usr/bin/env is missing"), SubmitPrompt("/help me")]


async def test_command_that_must_wait_is_refused_and_stays(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK)
        await stage.paste("/resume the parser")
        await stage.press("enter")
        await stage.settle()
        assert stage.sent == []
        assert stage.draft == "/resume the parser"
        assert "wait for the turn to end or press esc" in stage.text


async def test_compact_stops_what_runs_after_one_key(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK)
        await stage.paste("/compact the parser")
        await stage.press("enter")
        await stage.shows("something is running – stop it for /compact?")
        await stage.press("n")
        assert (stage.sent, stage.draft) == ([], "/compact the parser")
        await stage.press("enter")
        await stage.press("y")
        await stage.until(lambda: stage.sent == [Compact(focus="the parser")])
        assert stage.draft == ""


async def test_second_manual_compaction_is_refused_without_a_question(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(PhaseChanged(Phase.MAINTAINING), MaintenanceStarted("manual", "summary"))
        await stage.paste("/compact")
        await stage.press("enter")
        await stage.until(lambda: stage.sent == [Compact()])
        stage.runtime.settle(error="Compaction already in progress")
        await stage.settle()
        assert stage.sent == [Compact()]
        assert stage.text.count("· Compaction already in progress") == 1


async def test_command_that_may_run_now_does(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(*WORK)
        await stage.paste("/thinking high")
        await stage.press("enter")
        assert stage.sent == [SetThinking("high")]


async def test_compact_tells_how_it_ended_and_nothing_twice(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/compact the parser")
        await stage.press("enter")
        assert stage.sent == [Compact(focus="the parser")]
        await stage.tell(
            MaintenanceStarted("manual", "summary"), MaintenanceEnded("manual", "summary", aborted=True)
        )
        stage.runtime.settle(error="Compaction cancelled")
        await stage.settle()
        assert stage.text.count("Compaction cancelled") == 1


async def test_nothing_to_compact_is_a_friendly_line(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/compact")
        await stage.press("enter")
        stage.runtime.settle(error="Nothing to compact (session too small)")
        await stage.shows("· Nothing to compact (session too small)")
        assert "✗" not in stage.text


async def test_new_session_replaces_the_transcript(tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        await stage.paste("/new")
        await stage.press("enter")
        assert stage.sent == [NewSession()]
        header = replace(stage.runtime.view_now.header, id="another")
        empty = replace(
            stage.runtime.view_now, header=header, tail=(), tree=type(stage.runtime.view_now.tree).empty()
        )
        stage.runtime.view_now = empty
        await stage.tell(SessionReady(empty, "new"))
        assert "first answer" not in stage.text
        assert "musepi" in stage.text


async def test_shift_tab_goes_through_the_levels_of_the_model(tmp_path):
    async with on_stage(tmp_path, thinking_level="high") as stage:
        await stage.press("shift+tab")
        assert stage.sent == [SetThinking("off")]
        await stage.tell(ModelChanged(GPT, "off"))
        await stage.press("shift+tab")
        assert len(stage.sent) == 1
        assert "no thinking levels" in stage.text


async def test_ctrl_p_goes_through_the_models(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.press("ctrl+p")
        assert stage.sent == [SelectModel("openai", "gpt-large")]


async def test_alt_a_goes_through_the_modes_and_asks_before_yolo(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.press("alt+a")
        assert stage.sent == [SetMode("auto-edit")]
        await stage.tell(ModeChanged("auto-edit"))
        await stage.press("alt+a")
        assert "without asking?" in stage.text
        await stage.press("down", "enter")
        assert stage.sent[-1] == SetMode("yolo")
        await stage.tell(ModeChanged("yolo"))
        assert "YOLO" in stage.text


async def test_alt_r_repeats_the_failed_turn(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.press("alt+r")
        assert stage.sent == [Retry()]


async def test_page_keys_move_the_transcript_while_the_editor_keeps_the_focus(tmp_path):
    long = path(*(part for number in range(30) for part in (u(f"prompt {number}"), a(f"answer {number}"))))
    async with on_stage(tmp_path, *long) as stage:
        assert "answer 29" in stage.text
        await stage.press("pageup")
        await stage.settle()
        assert "answer 29" not in stage.text
        await stage.type("still typing")
        assert "still typing" in stage.text
        assert "answer 29" not in stage.text
        await stage.press("ctrl+home")
        await stage.shows("prompt 0")
        await stage.press("end", "end")
        await stage.shows("answer 29")


async def test_ctrl_o_opens_the_summary_of_the_divider(tmp_path):
    entries = path(u("one"), a("two"), compaction("What was done", "e1"), u("three"))
    async with on_stage(tmp_path, *entries) as stage:
        assert "📷 compacted · ctrl+o" in stage.text
        assert "What was done" not in stage.text
        await stage.press("ctrl+o")
        await stage.shows("What was done")


async def test_remapped_key_works_and_is_named_in_the_divider(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "keybindings.json").write_text(json.dumps({"app.tools.expand": "f2", "nope": "x"}))
    entries = path(u("one"), a("two"), compaction("What was done", "e1"), u("three"))
    async with on_stage(tmp_path, *entries) as stage:
        assert "📷 compacted · f2" in stage.text
        assert 'no action "nope"' in stage.text
        await stage.press("ctrl+o")
        await stage.settle()
        assert "What was done" not in stage.text
        await stage.press("f2")
        await stage.shows("What was done")


async def test_missing_key_is_explained_once_and_the_demo_labelled(tmp_path):
    def demo_only(runtime):
        runtime.offered = (DEMO,)

    async with on_stage(tmp_path, model=DEMO, prepare=demo_only) as stage:
        assert "ANTHROPIC_API_KEY" in stage.text
        assert "demo (script)" in stage.text
        await stage.tell(SessionReady(stage.runtime.view_now, "resume"))
        assert stage.text.count("ANTHROPIC_API_KEY") == 1


async def test_history_of_earlier_runs_can_be_recalled(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("remember me")
        await stage.press("enter")
        await stage.until(lambda: (tmp_path / "state" / "history.jsonl").exists())
    async with on_stage(tmp_path) as stage:
        await stage.until(lambda: stage.app.main.composer.recall.older("") is not None)
        assert stage.app.main.composer.recall.newer() == ""
        await stage.press("up")
        assert stage.draft == "remember me"


async def test_initial_prompts_are_sent_once_the_runtime_begins(tmp_path):
    runtime = FakeRuntime(tmp_path)
    app = MusepiApp(cast("Any", runtime), ENVIRON, prompts=("one", "two"))
    async with app.run_test() as pilot:
        await pilot.pause(0.1)
        assert runtime.sent == [SubmitPrompt("one"), SubmitPrompt("two")]


async def test_broken_event_is_told_and_logged_not_fatal(tmp_path):
    def no_models(runtime):
        def fail():
            raise RuntimeError("boom")

        runtime.models = fail

    async with on_stage(tmp_path, prepare=no_models) as stage:
        await stage.shows("Something went wrong (RuntimeError)")
        assert "boom" not in stage.text
        await stage.type("still here")
        assert stage.draft == "still here"


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (10, 5), (39, 12), (40, 11)])
async def test_small_terminal_shows_one_line_and_keys_still_work(tmp_path, size):
    async with on_stage(tmp_path, *TALK, size=size) as stage:
        await stage.settle()
        assert "first answer" not in stage.text
        if size[0] >= 26:
            assert stage.text.strip() == "terminal too small (40x12)"
        await stage.tell(*WORK)
        await stage.press("escape")
        assert stage.sent == [Cancel()]


async def test_full_screen_returns_when_the_terminal_grows(tmp_path):
    async with on_stage(tmp_path, *TALK, size=(30, 8)) as stage:
        await stage.type("kept")
        await stage.pilot.resize_terminal(80, 24)
        await stage.shows("first answer")
        assert "kept" in stage.text


async def test_everything_is_there_at_40_by_12(tmp_path):
    async with on_stage(tmp_path, *TALK, size=(40, 12)) as stage:
        assert "first answer" in stage.text
        assert "12%" in stage.text
        stage.app.host.show("theme")
        await stage.settle()
        assert stage.text.count("auto") >= 1
        await stage.press("escape")


async def test_no_color_runs_without_a_colour(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_stage(tmp_path, *TALK, environ={"NO_COLOR": "1"}) as stage:
        assert stage.app.looks.palette.name == "mono"
        styles = [
            segment.style for strip in stage.app.screen._compositor.render_strips() for segment in strip
        ]
        assert all(style is None or style.color is None or style.color.is_default for style in styles)


async def test_model_of_the_footer_follows_the_runtime(tmp_path):
    async with on_stage(tmp_path, model=SONNET) as stage:
        await stage.tell(ModelChanged(GPT, "off"))
        assert "gpt-large · ask" in stage.text


@pytest.mark.parametrize(
    ("environ", "is_light", "theme"),
    [
        ({}, True, "light"),
        ({}, False, "dark"),
        ({"NO_COLOR": "1"}, True, "mono"),
        ({"TERM": "linux", "COLORTERM": ""}, True, "ansi"),
    ],
)
async def test_auto_theme_follows_what_the_terminal_says(tmp_path, environ, is_light, theme):
    async with on_stage(tmp_path, environ=environ) as stage:
        stage.app.post_message(GroundTold(is_light=is_light))
        await stage.settle()
        assert stage.app.looks.palette.name == theme


async def test_chosen_theme_stays_whatever_the_terminal_says(tmp_path):
    async with on_stage(tmp_path) as stage:
        stage.app.looks.choose("dark")
        stage.app.post_message(GroundTold(is_light=True))
        await stage.settle()
        assert stage.app.looks.palette.name == "dark"


async def test_dragging_over_the_transcript_selects_text_that_ctrl_c_copies(tmp_path):
    async with on_stage(tmp_path, *TALK) as stage:
        row = next(y for y, line in enumerate(stage.text.splitlines()) if "first answer" in line)
        pilot = stage.pilot
        await pilot.mouse_down(offset=(2, row))
        await pilot.hover(offset=(6, row))
        await pilot.mouse_up(offset=(6, row))
        await stage.press("ctrl+c")
        assert stage.app.clipboard == "first"
        await stage.press("escape")
        assert stage.app.screen.selections == {}
        assert stage.sent == []


async def test_question_that_comes_while_a_panel_is_open_gets_the_keys_afterwards(tmp_path):
    view = ToolView("tail", "$ make")
    async with on_stage(tmp_path) as stage:
        stage.app.host.show("theme")
        await stage.settle()
        await stage.tell(ApprovalAsked("r1", "c1", "bash", {"command": "make"}, "runs a command", None, view))
        stage.clock.advance(1)
        await stage.press("escape")
        await stage.shows("Allow bash?")
        assert stage.sent == []
        await stage.press("1")
        assert stage.sent == [AnswerApproval("r1", "allow")]


async def test_pick_opens_the_session_list_at_once(tmp_path):
    runtime = FakeRuntime(tmp_path)
    app = MusepiApp(cast("Any", runtime), ENVIRON, pick=True)
    async with app.run_test() as pilot:
        stage = Stage(runtime, app, pilot)
        await stage.shows("─ Sessions ─")
        assert isinstance(app.screen, SessionPanel)
