from contextlib import nullcontext

import pytest

from musepi_tui.runtime.events import QueueChanged
from musepi_tui.runtime.intents import SubmitPrompt
from tests.support.screens import Stage, on_stage


def without_terminal(stage: Stage) -> None:
    """The headless driver cannot give its terminal away."""
    stage.app.suspend = nullcontext


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j"])
async def test_newline_keys_break_the_line(tmp_path, key):
    async with on_stage(tmp_path) as stage:
        await stage.type("a")
        await stage.press(key)
        await stage.type("b")
        assert stage.draft == "a\nb"


async def test_trailing_backslash_makes_enter_a_newline(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("a\\")
        await stage.press("enter")
        await stage.type("b")
        assert stage.draft == "a\nb"
        assert stage.sent == []


async def test_editor_grows_to_a_third_of_the_screen_and_then_scrolls(tmp_path):
    async with on_stage(tmp_path, size=(80, 24)) as stage:
        composer = stage.app.main.composer
        assert composer.size.height == 1
        await stage.press(*["ctrl+j"] * 3)
        await stage.settle()
        assert composer.size.height == 4
        await stage.press(*["ctrl+j"] * 20)
        await stage.settle()
        assert composer.size.height == 8


async def test_editor_is_one_row_on_the_smallest_screen(tmp_path):
    async with on_stage(tmp_path, size=(40, 12)) as stage:
        await stage.press(*["ctrl+j"] * 20)
        await stage.settle()
        assert stage.app.main.composer.size.height == 4


async def test_up_and_down_recall_prompts_at_the_first_and_last_row_only(tmp_path):
    async with on_stage(tmp_path) as stage:
        for text in ("one", "two"):
            await stage.type(text)
            await stage.press("enter")
        await stage.type("a")
        await stage.press("ctrl+j")
        await stage.type("b")
        await stage.press("up")
        assert stage.draft == "a\nb"
        await stage.press("up")
        assert stage.draft == "two"
        await stage.press("up")
        assert stage.draft == "one"
        await stage.press("down", "down")
        assert stage.draft == "a\nb"


async def test_recall_is_one_step_of_undo(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("one")
        await stage.press("enter")
        await stage.type("draft")
        await stage.press("up")
        assert stage.draft == "one"
        await stage.press("ctrl+underscore")
        assert stage.draft == "draft"
        await stage.press("alt+minus")
        assert stage.draft == "one"


async def test_sent_text_cannot_be_undone_back(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("one")
        await stage.press("enter", "ctrl+underscore")
        assert stage.draft == ""


async def test_kills_yank_and_rotate(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("one two three")
        await stage.press("ctrl+w", "ctrl+w")
        assert stage.draft == "one "
        await stage.press("ctrl+y")
        assert stage.draft == "one two three"
        await stage.press("ctrl+u")
        assert stage.draft == ""
        await stage.press("ctrl+y")
        assert stage.draft == "one two three"
        await stage.press("alt+y")
        assert stage.draft == "two three"


async def test_kills_with_a_move_between_are_two(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("one two")
        await stage.press("ctrl+w", "left", "ctrl+w", "ctrl+y")
        assert stage.draft == "one "


async def test_recall_keeps_its_place_when_keys_come_in_a_burst(tmp_path):
    async with on_stage(tmp_path) as stage:
        for text in ("one", "two", "three"):
            await stage.type(text)
            await stage.press("enter")
        await stage.press("up", "up", "up")
        assert stage.draft == "one"
        await stage.press("down", "down", "down")
        assert stage.draft == ""


async def test_kill_to_line_end_then_takes_the_break(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("ab\ncd")
        await stage.press("up", "home", "right", "ctrl+k")
        assert stage.draft == "a\ncd"
        await stage.press("ctrl+k")
        assert stage.draft == "acd"


async def test_kill_word_right(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("one two")
        await stage.press("home", "alt+d")
        assert stage.draft == " two"


async def test_emacs_moves(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("one two")
        await stage.press("ctrl+a", "ctrl+f", "alt+f", "ctrl+b")
        await stage.type("X")
        assert stage.draft == "onXe two"
        await stage.press("ctrl+e", "alt+b")
        await stage.type("Y")
        assert stage.draft == "onXe Ytwo"


async def test_paste_is_taken_once_and_never_sends(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("a\r\nb\x1b[31m\x07")
        assert stage.draft == "a\nb"
        assert stage.sent == []


async def test_long_paste_is_a_marker_and_is_sent_whole(tmp_path):
    text = "\n".join(f"line {number}" for number in range(123))
    async with on_stage(tmp_path) as stage:
        await stage.type("see ")
        await stage.paste(text)
        assert stage.draft == "see [paste #1 +123 lines]"
        await stage.press("enter")
        assert stage.sent == [SubmitPrompt(f"see {text}")]


async def test_paste_marker_is_one_unit_for_cursor_and_delete(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("x" * 1500)
        await stage.press("left")
        await stage.type("a")
        assert stage.draft == "a[paste #1 1500 chars]"
        await stage.press("right")
        await stage.type("b")
        assert stage.draft == "a[paste #1 1500 chars]b"
        await stage.press("backspace", "backspace")
        assert stage.draft == "a"
        await stage.press("ctrl+underscore")
        assert "[paste #1 1500 chars]" in stage.draft
        await stage.press("enter")
        assert "x" * 1500 in stage.sent[0].text


async def test_cursor_never_stands_inside_a_marker(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("x" * 1500)
        composer = stage.app.main.composer
        composer.move_cursor((0, 5))
        assert composer.cursor_location == (0, len("[paste #1 1500 chars]"))


async def test_completion_offers_commands_and_tab_takes_one(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("/")
        await stage.shows("/compact")
        assert "Compact now · 12% used" in stage.text
        await stage.type("th")
        await stage.settle()
        assert "/compact" not in stage.text
        await stage.press("down", "tab")
        assert stage.draft == "/thinking "


async def test_completion_offers_arguments(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("/theme li")
        await stage.shows("› light")
        await stage.press("tab")
        assert stage.draft == "/theme light"


async def test_enter_takes_the_marked_command(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("/hot")
        await stage.press("enter")
        await stage.shows("─ Keys ─")
        assert stage.draft == ""


async def test_enter_sends_free_text_that_looks_like_an_argument(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("/compact su")
        await stage.press("enter")
        assert stage.sent[0].focus == "su"


async def test_up_and_down_move_in_the_list_while_it_is_open(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("/")
        await stage.press("up", "tab")
        assert stage.draft == "/tree "


async def test_tab_inserts_nothing_and_keeps_the_focus(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.press("tab")
        await stage.type("a")
        assert stage.draft == "a"


async def test_external_editor_replaces_the_text(tmp_path):
    script, seen = tmp_path / "editor", tmp_path / "seen"
    script.write_text(f'#!/bin/sh\ncp "$1" "{seen}"\nprintf "edited\\n" > "$1"\n')
    script.chmod(0o755)
    async with on_stage(tmp_path, environ={"VISUAL": str(script)}) as stage:
        without_terminal(stage)
        await stage.paste("x" * 1500)
        await stage.press("ctrl+g")
        await stage.until(lambda: stage.draft == "edited")
        assert seen.read_text() == "x" * 1500


async def test_external_editor_that_fails_leaves_the_text(tmp_path):
    async with on_stage(tmp_path, environ={"VISUAL": "false"}) as stage:
        without_terminal(stage)
        await stage.type("draft")
        await stage.press("ctrl+g")
        await stage.until(lambda: "false ended with code 1" in stage.text)
        assert stage.draft == "draft"


async def test_external_editor_that_does_not_exist_is_named(tmp_path):
    async with on_stage(tmp_path, environ={"EDITOR": "no-such-editor"}) as stage:
        without_terminal(stage)
        await stage.press("ctrl+g")
        await stage.until(lambda: "no-such-editor cannot be started" in stage.text)


async def test_rules_of_the_editor_tell_the_thinking_level(tmp_path):
    async with on_stage(tmp_path, thinking_level="high") as stage:
        palette = stage.app.looks.palette
        frame = stage.app.main.frame
        assert frame.styles.border_top[1].rgb == tuple(palette.style("thinkingHigh").color.triplet)


async def test_cursor_of_the_terminal_stands_at_the_caret(tmp_path):
    async with on_stage(tmp_path) as stage:
        assert stage.app.cursor_position == (2, 21)
        await stage.type("日本")
        assert stage.app.cursor_position == (6, 21)
        await stage.tell(QueueChanged(("one", "two"), ()))
        await stage.pilot.resize_terminal(60, 20)
        await stage.settle()
        assert stage.app.cursor_position == (6, 17)
