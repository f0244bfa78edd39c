import pytest

from musepi_tui.runtime.events import ApprovalAsked, ApprovalClosed
from musepi_tui.runtime.intents import AnswerApproval
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.widgets.approval import subject_lines
from tests.support.screens import on_stage


def ask(
    request_id: str = "r1", *, command: str = "make all", rule: str | None = "bash(make *)"
) -> ApprovalAsked:
    view = ToolView("tail", f"$ {command}")
    return ApprovalAsked(request_id, "c1", "bash", {"command": command}, "runs a command", rule, view)


def ask_edit(lines: int, *, width: int = 10) -> ApprovalAsked:
    body = "\n".join(f"+line {number} {'x' * width}" for number in range(lines))
    view = ToolView("diff", "edit src/a.py", body)
    return ApprovalAsked("r1", "c1", "edit", {"path": "src/a.py"}, "changes a file", "edit(src/a.py)", view)


async def test_dialog_replaces_the_editor_and_keeps_the_draft(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("my draft")
        await stage.tell(ask())
        for words in ("Allow bash?", "runs a command", "$ make all", "/home/ada/parser", "bash(make *)"):
            assert words in stage.text
        assert "my draft" not in stage.text
        stage.clock.advance(1)
        await stage.press("1")
        await stage.settle()
        assert "my draft" in stage.text
        await stage.type("!")
        assert stage.draft == "my draft!"


@pytest.mark.parametrize(
    ("key", "decision"),
    [
        ("1", "allow"),
        ("y", "allow"),
        ("2", "allow_session"),
        ("3", "deny"),
        ("n", "deny"),
        ("escape", "deny_and_stop"),
        ("ctrl+c", "deny_and_stop"),
    ],
)
async def test_keys_answer(tmp_path, key, decision):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask())
        stage.clock.advance(0.31)
        await stage.press(key)
        assert stage.sent == [AnswerApproval("r1", decision)]


@pytest.mark.parametrize("key", ["1", "2", "3", "y", "n", "escape", "enter"])
async def test_keys_meant_for_the_editor_answer_nothing(tmp_path, key):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask())
        stage.clock.advance(0.29)
        await stage.press(key)
        assert stage.sent == []


@pytest.mark.parametrize("key", ["enter", "space", "x", "tab"])
async def test_other_keys_answer_nothing(tmp_path, key):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask())
        stage.clock.advance(1)
        await stage.press(key)
        assert stage.sent == []


async def test_paste_answers_nothing(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask())
        stage.clock.advance(1)
        await stage.paste("1")
        assert stage.sent == []
        assert stage.draft == ""


async def test_session_grant_is_not_offered_without_a_rule(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask(rule=None))
        assert "for this session" not in stage.text
        stage.clock.advance(1)
        await stage.press("2")
        assert stage.sent == []


async def test_several_questions_wait_and_each_is_deaf_at_first(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask("r1", command="one"), ask("r2", command="two"), ask("r3", command="three"))
        assert "1/3" in stage.text
        stage.clock.advance(1)
        await stage.press("1", "1")
        await stage.settle()
        assert stage.sent == [AnswerApproval("r1", "allow")]
        assert "2/3" in stage.text
        assert "$ two" in stage.text


async def test_question_answered_elsewhere_goes_away(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask())
        await stage.tell(ApprovalClosed("r1", "deny", "cancelled"))
        assert "Allow bash?" not in stage.text
        await stage.type("a")
        assert stage.draft == "a"


async def test_long_body_must_be_seen_to_its_end_before_allowing(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask_edit(60))
        stage.clock.advance(1)
        await stage.press("1")
        assert stage.sent == []
        assert "more rows" in stage.text
        await stage.press(*["pagedown"] * 30)
        await stage.settle()
        assert "line 59" in stage.text
        await stage.press("1")
        assert stage.sent == [AnswerApproval("r1", "allow")]


async def test_long_body_can_be_denied_at_once(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask_edit(60))
        stage.clock.advance(1)
        await stage.press("3")
        assert stage.sent == [AnswerApproval("r1", "deny")]


async def test_long_line_wraps_so_that_nothing_is_out_of_sight(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ask(command="echo " + "a" * 200 + " && rm -rf /"))
        assert "rm -rf /" in stage.text


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
async def test_dialog_fits_every_screen(tmp_path, size):
    async with on_stage(tmp_path, size=size) as stage:
        await stage.tell(ask_edit(100, width=90))
        lines = stage.text.splitlines()
        assert len(lines) == size[1]
        assert any("3 deny" in line for line in lines)
        assert any("12%" in line for line in lines)


def test_hidden_characters_and_blanks_are_spelled_out():
    request = ask(command="echo a\u202e" + " " * 37 + "&& rm x\x1b[8m")
    assert subject_lines(request) == ["$ echo a⟨U+202E⟩⟨37 blanks⟩&& rm x⟨U+001B⟩[8m"]


def test_every_argument_is_shown():
    view = ToolView("tail", "$ make")
    request = ApprovalAsked("r", "c", "bash", {"command": "a\nb", "timeout": 5}, "", None, view)
    assert subject_lines(request) == ["$ a", "b", "timeout: 5"]


def test_indentation_of_a_diff_stays():
    view = ToolView("diff", "edit a", "+            deep")
    request = ApprovalAsked("r", "c", "edit", {}, "", None, view)
    assert subject_lines(request)[1] == "+            deep"
