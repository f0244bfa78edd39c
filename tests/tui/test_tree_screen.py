from dataclasses import replace

import pytest
from textual import events

from musepi_tui.runtime.events import Phase, PhaseChanged, SessionReady
from musepi_tui.runtime.intents import NavigateTree, SetLabel
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import Settings
from musepi_tui.tui.tree.screen import TreeScreen
from musepi_tui.tui.tree.view import TreeView
from tests.support.branches import BACK, PARSER, growing, tree_of
from tests.support.builders import entry, state, u
from tests.support.screens import on_stage

SMALL, WIDE, HIGH = (80, 24), (120, 40), (80, 40)


@pytest.fixture
def stage(tmp_path):
    def open_stage(entries=PARSER, leaf_id="added", size=SMALL, **fields):
        return on_stage(tmp_path, *entries, size=size, prepare=growing(leaf_id), **fields)

    return open_stage


async def open_tree(it, *keys):
    it.app.navigation.open_tree()
    await it.settle()
    for key in keys:
        await it.press(key)
    await it.settle()
    return it.app.screen


def rows_of(it):
    """The rows of the tree, without the preview."""
    view = it.app.screen.view.region
    lines = it.text.split("\n")[view.y : view.bottom]
    return [line[: view.width].rstrip() for line in lines]


def marked(it):
    """The row under the cursor, without the signs of the tree."""
    row = next(row for row in rows_of(it) if row.startswith(("›", ">")))
    return row.lstrip("›>│├└─⊞⊟• ").removesuffix("← here").rstrip()


async def test_tree_opens_at_the_current_leaf_with_path_label_and_branches(stage):
    async with stage() as it:
        await open_tree(it)
        assert marked(it).startswith("assistant: Both examples are in the manual now")
        rows = rows_of(it)
        assert "› │     • assistant: Both examples are in the manual now, with the outpu… ← here" in rows
        assert "  ├⊟ • user: And now the documentation" in rows
        assert "  └⊟ user: Could a regular expression do it?" in rows
        assert any(row.startswith("  • [works] assistant: The parser stops") for row in rows)
        assert "(10/16)" in it.text


@pytest.mark.parametrize(
    ("size", "rows"), [((80, 24), 12), ((120, 40), 20), ((40, 12), 4), ((80, 9), 1), ((40, 5), 1)]
)
async def test_rows_take_half_the_screen_and_leave_eight_for_the_rest(stage, size, rows):
    async with stage(size=size) as it:
        screen = await open_tree(it)
        assert screen.view.size.height == rows


async def test_tree_survives_the_smallest_screens_and_growing_again(stage):
    async with stage() as it:
        await open_tree(it)
        for size in ((1, 1), (3, 2), (7, 30), (200, 3), SMALL):
            await it.pilot.resize_terminal(*size)
            await it.settle()
        assert marked(it).startswith("assistant: Both examples")


async def test_arrows_move_and_wrap_pages_and_edges_stop(stage):
    async with stage() as it:
        await open_tree(it, "end")
        assert marked(it).startswith("assistant: `'a")
        await it.press("down")
        assert marked(it).startswith("user: Nested quotes")
        await it.press("left")
        assert marked(it).startswith("user: Nested quotes")
        await it.press("right", "pagedown")
        assert marked(it).startswith("assistant: `'a")
        await it.press("home", "up")
        assert marked(it).startswith("assistant: `'a")


async def test_turn_keys_pass_tool_results_over(stage):
    async with stage() as it:
        await open_tree(it, "home", "down", "alt+down")
        assert marked(it).startswith("[works] assistant: The parser stops")
        await it.press("alt+up")
        assert marked(it) == "assistant: I look at the code first."


@pytest.mark.parametrize(("fold", "unfold"), [("ctrl+left", "ctrl+right"), ("alt+left", "alt+right")])
async def test_a_branch_folds_and_unfolds(stage, fold, unfold):
    async with stage() as it:
        await open_tree(it, fold)
        assert marked(it) == "user: And now the documentation"
        await it.press(fold)
        await it.settle()
        assert "› ├⊞ • user: And now the documentation" in rows_of(it)
        assert "Add two examples" not in it.text
        await it.press(unfold)
        await it.settle()
        assert any("Add two examples" in row for row in rows_of(it))


async def test_filters_have_a_key_each_and_a_tag(stage):
    async with stage() as it:
        await open_tree(it)
        for key, tag in (
            ("alt+t", "[no-tools]"),
            ("ctrl+u", "[user]"),
            ("alt+l", "[labeled]"),
            ("ctrl+a", "[all]"),
        ):
            await it.press(key)
            await it.settle()
            assert tag in it.text
        assert any("[model: claude-sonnet]" in row for row in rows_of(it))
        await it.press("alt+d")
        await it.settle()
        assert "[all]" not in it.text
        await it.press("ctrl+shift+o")
        await it.settle()
        assert "[all]" in it.text
        await it.press("ctrl+o", "ctrl+o")
        await it.settle()
        assert "[no-tools]" in it.text


async def test_filter_without_rows_says_so(stage):
    async with stage(entries=BACK, leaf_id="other") as it:
        await open_tree(it, "alt+l")
        assert "no labels yet" in it.text
        assert "(0/0) [labeled]" in it.text
        await it.press("enter", "up", "ctrl+left", "ctrl+x", "shift+enter", "L")
        await it.settle()
        assert isinstance(it.app.screen, TreeScreen)


async def test_first_filter_is_the_setting(tmp_path):
    def prepare(runtime):
        growing("added")(runtime)
        runtime.options.settings = LoadedSettings(Settings(tree_filter_mode="user-only"))

    async with on_stage(tmp_path, *PARSER, prepare=prepare) as it:
        await open_tree(it)
        assert "[user]" in it.text
        assert marked(it) == "user: Add two examples to it"


async def test_typing_searches_and_esc_empties_the_search_before_it_closes(stage):
    async with stage() as it:
        await open_tree(it)
        await it.type("regular")
        await it.settle()
        assert "› regular" in it.text
        assert any("Could a regular expression do it?" in row for row in rows_of(it))
        assert not any("Add two examples" in row for row in rows_of(it))
        await it.press("escape")
        await it.settle()
        assert any("Add two examples" in row for row in rows_of(it))
        await it.press("escape")
        await it.settle()
        assert not isinstance(it.app.screen, TreeScreen)
        assert it.sent == []


async def test_words_in_quotes_are_typed_as_they_are_searched_for(stage):
    async with stage() as it:
        await open_tree(it)
        await it.type('"')
        await it.settle()
        assert '› "' in it.text
        assert "/16)" in it.text
        await it.type('regular"')
        await it.settle()
        assert '› "regular"' in it.text
        assert any("Could a regular expression do it?" in row for row in rows_of(it))
        assert not any("Add two examples" in row for row in rows_of(it))


async def test_search_without_a_hit_says_no_match(stage):
    async with stage() as it:
        await open_tree(it)
        await it.type("zebra")
        await it.shows("no match")
        assert "(0/0)" in it.text
        await it.press(*["backspace"] * 6)
        await it.settle()
        assert "/16)" in it.text


async def test_pasted_text_is_searched_for_as_one_safe_line(stage):
    async with stage() as it:
        await open_tree(it)
        await it.paste("\n\x1b[31mregular\x1b[0m\nsecond")
        await it.settle()
        assert "› regular" in it.text
        await it.press("ctrl+w")
        await it.settle()
        assert "type to search" in it.text


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_tree_closes_and_the_editor_has_the_keys_again(stage, key):
    async with stage() as it:
        await open_tree(it, key)
        await it.type("hi")
        assert it.draft == "hi"


async def test_end_of_a_long_search_stays_in_sight(stage):
    async with stage() as it:
        await open_tree(it)
        await it.type("parser " * 12 + "END")
        await it.settle()
        search = next(line for line in it.text.split("\n") if line.startswith("› …"))
        assert search.rstrip().endswith("parser END")


async def test_ctrl_c_closes_although_something_is_searched_for(stage):
    async with stage() as it:
        await open_tree(it)
        await it.type("regular")
        await it.press("ctrl+c")
        await it.settle()
        assert not isinstance(it.app.screen, TreeScreen)


async def test_enter_goes_to_the_marked_entry(stage):
    async with stage() as it:
        await open_tree(it, "down", "down", "enter")
        assert it.sent == [NavigateTree("cannot")]
        assert not isinstance(it.app.screen, TreeScreen)


@pytest.mark.parametrize("key", ["shift+enter", "alt+enter"])
async def test_shift_enter_wants_a_summary_without_a_question(stage, key):
    async with stage() as it:
        await open_tree(it, "down", "down", key)
        assert it.sent == [NavigateTree("cannot", summarize=True)]


# -- labels


async def test_label_is_edited_in_its_row_and_stored(stage):
    async with stage() as it:
        await open_tree(it, "home", "down", "L")
        assert "enter keep the label · esc leave it" in it.text
        await it.type(" start here ")
        await it.press("enter")
        assert it.sent == [SetLabel("start here", "look")]
        await it.settle()
        assert "enter go" in it.text


async def test_label_editor_begins_with_the_label_and_an_empty_one_clears_it(stage):
    async with stage() as it:
        screen = await open_tree(it, "home", "alt+down", "alt+down", "L")
        assert screen.view.editor.text == "works"
        await it.press("ctrl+u", "enter")
        assert it.sent == [SetLabel("", "fixed")]


@pytest.mark.parametrize("keys", [("escape",), ("ctrl+c",), ("enter",)])
async def test_label_that_is_left_or_unchanged_stores_nothing_and_the_tree_stays(stage, keys):
    async with stage() as it:
        screen = await open_tree(it, "home", "alt+down", "alt+down", "L")
        await it.press(*keys)
        await it.settle()
        assert it.sent == []
        assert screen.view.editor is None
        await it.press("up")
        assert isinstance(it.app.screen, TreeScreen)


async def test_keys_of_the_tree_wait_while_a_label_is_edited(stage):
    async with stage() as it:
        screen = await open_tree(it, "L")
        await it.press("alt+l", "alt+up", "shift+enter", "pageup")
        await it.type("Tea Lounge")
        await it.paste("two\nlines")
        await it.settle()
        assert screen.view.editor.text == "Tea Loungetwo lines"
        assert "(10/16)" in it.text


async def test_label_that_cannot_be_stored_says_why_where_it_is_seen(stage):
    async with stage() as it:
        await open_tree(it, "home", "L")
        await it.type("goal")
        await it.press("enter")
        it.runtime.settle(error="Another process writes this session.")
        await it.settle()
        assert "(1/16)  Another process writes this session." in it.text


async def test_mouse_does_not_take_the_keys_or_the_row_from_a_label(stage):
    async with stage() as it:
        screen = await open_tree(it, "home", "down", "L")
        await it.type("start")
        it.app.post_message(events.MouseScrollDown(None, 5, 15, 0, 0, 0, False, False, False, 5, 15, None))
        await it.pilot.click(TreeView, offset=(60, 5))
        await it.pilot.click(offset=(5, 1))
        await it.settle()
        assert marked(it).startswith("start")
        await it.type(" here")
        assert screen.view.editor.text == "start here"
        await it.press("enter")
        assert it.sent == [SetLabel("start here", "look")]


async def test_new_label_is_shown_when_its_entry_comes(stage):
    async with stage() as it:
        await open_tree(it, "home", "L")
        await it.type("goal")
        await it.press("enter")
        label = entry(state("label", targetId="quotes", label="goal"), "l1", "added")
        it.runtime.append(label)
        it.runtime.view_now = replace(it.runtime.view_now, tree=tree_of((*PARSER, label), "l1"))
        it.runtime.settle()
        await it.settle()
        assert marked(it) == "[goal] user: Nested quotes break the parser. Please fix it."


async def test_letters_of_commands_are_searched_for_once_something_is_typed(stage):
    async with stage() as it:
        screen = await open_tree(it)
        await it.type("aLT")
        assert screen.model.query == "aLT"
        assert screen.view.editor is None


async def test_label_times_are_shown_on_demand(stage):
    async with stage() as it:
        await open_tree(it, "T")
        assert "[+label time]" in it.text
        await it.press("T")
        await it.settle()
        assert "[+label time]" not in it.text


# -- copying, preview, mouse


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ((), "Both examples are in the manual now, with the output they give."),
        (("up", "up"), "## Goal\nFix nested quotes."),
        (("home",), "Nested quotes break the parser. Please fix it."),
        (("home", "down", "down", "down"), "done"),
    ],
)
async def test_copy_takes_the_text_of_the_entry(stage, keys, text):
    async with stage() as it:
        await open_tree(it, *keys, "ctrl+x")
        assert it.app.clipboard == text
        assert "copied" in it.text
        await it.press("up")
        await it.settle()
        assert "copied" not in it.text


async def test_preview_beside_a_wide_tree_shows_the_entry_in_full(stage):
    async with stage(size=WIDE) as it:
        await open_tree(it, "home", "down", "down", "down")
        assert "edit result · " in it.text
        assert "edit src/lexer.py (+2 −1)" in it.text
        assert '+    count = text.count("\'")' in it.text
        await it.press("up", "up")
        await it.settle()
        assert "· model ·" in it.text
        assert "↑100 ↓10 tokens" in it.text
        assert "read src/lexer.py:1-40" in it.text


async def test_preview_below_a_high_tree(stage):
    async with stage(size=HIGH) as it:
        screen = await open_tree(it)
        assert screen.preview.region.y > screen.view.region.y
        assert "assistant · 2025-06-15" in it.text.split("← here")[1]


async def test_small_screen_has_no_preview(stage):
    async with stage() as it:
        screen = await open_tree(it)
        assert not screen.preview.display


async def test_long_text_of_the_preview_scrolls(stage):
    text = "\n".join(f"line {number}" for number in range(100))
    entries = (*PARSER, entry(u(text), "long", "added"))
    async with stage(entries=entries, leaf_id="long", size=WIDE) as it:
        await open_tree(it)
        assert "… 83 more lines" in it.text
        await it.press(*["shift+down"] * 100)
        await it.settle()
        assert "line 99" in it.text
        assert "more line" not in it.text
        await it.press("up", "down")
        await it.settle()
        assert "line 1" in it.text


async def test_click_marks_a_row_and_a_second_one_goes_there(stage):
    async with stage() as it:
        await open_tree(it)
        row = next(number for number, text in enumerate(rows_of(it)) if "Could a regular" in text)
        await it.pilot.click(TreeView, offset=(20, row))
        await it.settle()
        assert marked(it) == "user: Could a regular expression do it?"
        assert it.sent == []
        row = next(number for number, text in enumerate(rows_of(it)) if text.startswith("›"))
        await it.pilot.click(TreeView, offset=(20, row), times=2)
        await it.settle()
        assert it.sent == [NavigateTree("regex")]


async def test_double_click_goes_to_the_row_it_began_on(stage):
    async with stage() as it:
        screen = await open_tree(it)
        top = screen.view.top
        row = next(number for number, text in enumerate(rows_of(it)) if "Could a regular" in text)
        await it.pilot.click(TreeView, offset=(20, row))
        await it.settle()
        assert screen.view.top == top
        await it.pilot.click(TreeView, offset=(20, row), times=2)
        await it.settle()
        assert it.sent == [NavigateTree("regex")]


async def test_click_on_a_fold_sign_folds(stage):
    async with stage() as it:
        await open_tree(it)
        row = next(number for number, text in enumerate(rows_of(it)) if "Could a regular" in text)
        await it.pilot.click(TreeView, offset=(3, row))
        await it.settle()
        assert any("└⊞ user: Could a regular" in text for text in rows_of(it))


async def test_click_above_the_tree_closes_it(stage):
    async with stage() as it:
        await open_tree(it)
        await it.pilot.click(offset=(5, 1))
        await it.settle()
        assert not isinstance(it.app.screen, TreeScreen)


async def test_wheel_moves_the_mark_and_stops_at_the_ends(stage):
    async with stage() as it:
        await open_tree(it, "home")
        for _ in range(2):
            it.app.post_message(events.MouseScrollUp(None, 5, 15, 0, 0, 0, False, False, False, 5, 15, None))
        await it.settle()
        assert marked(it).startswith("user: Nested quotes")
        it.app.post_message(events.MouseScrollDown(None, 5, 15, 0, 0, 0, False, False, False, 5, 15, None))
        await it.settle()
        assert marked(it) == "assistant: I look at the code first."


# -- opening


async def test_empty_session_has_no_tree(tmp_path):
    async with on_stage(tmp_path) as it:
        it.app.navigation.open_tree()
        await it.shows("No entries yet")
        assert not isinstance(it.app.screen, TreeScreen)


async def test_session_with_bookkeeping_only_has_no_tree(stage):
    entries = (entry(state("model_change", model="test/model"), "m", None),)
    async with stage(entries=entries, leaf_id="m") as it:
        it.app.navigation.open_tree()
        await it.shows("No entries yet")


@pytest.mark.parametrize("phase", [Phase.STREAMING, Phase.MAINTAINING])
async def test_tree_is_refused_while_something_runs(stage, phase):
    async with stage() as it:
        await it.tell(PhaseChanged(phase))
        it.app.navigation.open_tree()
        await it.shows("press esc first")
        assert not isinstance(it.app.screen, TreeScreen)


async def test_action_without_a_key_can_be_given_one(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "keybindings.json").write_text('{"app.session.tree": "f4", "tree.label": "f5"}')
    async with on_stage(tmp_path, *PARSER, prepare=growing("added")) as it:
        await it.press("f4")
        await it.settle()
        assert isinstance(it.app.screen, TreeScreen)
        await it.press("f5")
        await it.settle()
        assert it.app.screen.view.editor is not None


async def test_tree_grows_with_the_session_and_closes_with_it(stage):
    async with stage() as it:
        await open_tree(it, "up")
        more = entry(u("One more thing"), "more", "added")
        it.runtime.view_now = replace(it.runtime.view_now, tree=tree_of((*PARSER, more), "more"))
        it.runtime.append(more)
        await it.settle()
        assert any("One more thing ← here" in row for row in rows_of(it))
        assert marked(it) == "user: Add two examples to it"
        await it.tell(SessionReady(it.runtime.view_now, "new"))
        assert not isinstance(it.app.screen, TreeScreen)


async def test_ascii_terminal_gets_ascii_lines(stage):
    async with stage(environ={"MUSEPI_ASCII": "1"}, size=WIDE) as it:
        await open_tree(it)
        assert any(row.startswith("  |- * user: And now") for row in rows_of(it))
        assert it.text[it.text.index("- Session tree") :].isascii()
        assert "<- here" in it.text


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "xterm-16color", "COLORTERM": ""}])
async def test_tree_is_drawn_without_many_colours(stage, environ):
    async with stage(environ=environ) as it:
        await open_tree(it, "L")
        assert "Session tree" in it.text
