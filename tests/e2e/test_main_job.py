"""A newcomer's first session in a real terminal: three prompts, a compaction, quit, resume."""

import re
import shlex
import sys

import pytest

from tests.support.tmux import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROMPTS = ("fix the bug", "explain the code", "make a table")
DIVIDER = "── 📷 compacted · ctrl+o ──"


def work_through(terminal: Terminal, prompt: str) -> None:
    """Sends a prompt and allows everything it asks for until the turn is over."""
    terminal.submit(prompt)
    terminal.wait("esc to cancel")
    for _ in range(600):
        screen = terminal.settle()
        if "1 allow once" in screen:
            terminal.press("PageDown", "1")  # allowing is off until the end was seen
            terminal.wait("1 allow once", gone=True)
        elif "esc to cancel" not in screen:
            return
    raise AssertionError(f"the turn did not end:\n{terminal.screen()}")


@pytest.mark.parametrize(("columns", "rows"), [(100, 30), (80, 24)])
def test_three_prompts_a_divider_and_the_same_screen_after_resume(columns, rows, tmp_path):
    with Terminal(columns, rows, tmp_path) as terminal:
        terminal.start()
        assert "demo (script)" in terminal.screen()
        for prompt in PROMPTS:
            work_through(terminal, prompt)
        screen = terminal.settle()
        for _ in range(20):
            if DIVIDER in screen:
                break
            terminal.press("PageUp")
            screen = terminal.settle()
        assert DIVIDER in screen

        terminal.press("C-o")
        terminal.press("C-End")  # what was opened lies below the divider
        screen = terminal.settle()
        for _ in range(60):
            if "· summary · demo/demo" in screen:
                break
            terminal.press("PageUp")
            screen = terminal.settle()
        assert "· summary · demo/demo" in screen
        terminal.press("C-o")

        for _ in range(60):
            if f"› {PROMPTS[0]}" in screen:
                break
            terminal.press("PageUp")
            screen = terminal.settle()
        assert f"› {PROMPTS[0]}" in screen

        terminal.press("C-End")
        before = terminal.settle()
        terminal.submit("/quit")
        ended = terminal.wait("--resume")
        command = re.search(r"musepi --resume (\S+)", ended)
        assert command is not None
        terminal.press("C-l")
        terminal.start("--resume", command.group(1))
        assert terminal.becomes(before)


def test_quit_with_ctrl_d_leaves_the_shell_usable(tmp_path):
    with Terminal(80, 24, tmp_path) as terminal:
        terminal.start()
        terminal.press("C-d")
        terminal.wait("READY>")
        terminal.type("echo still-$((40+2))")
        terminal.press("Enter")
        assert "still-42" in terminal.wait("still-42")


def test_what_is_typed_while_the_program_starts_lands_in_the_editor(tmp_path):
    with Terminal(80, 24, tmp_path) as terminal:
        terminal.type(shlex.join([sys.executable, "-m", "musepi_tui"]))
        terminal.press("Enter")
        terminal.type("typed too early")
        terminal.wait("(auto)")
        assert "› typed too early" in terminal.wait("› typed too early")


def test_typing_during_a_turn_is_queued_and_delivered(tmp_path):
    with Terminal(100, 30, tmp_path) as terminal:
        terminal.start("--yolo")
        terminal.submit("fix the bug")
        terminal.wait("esc to cancel")
        terminal.submit("make a table")
        terminal.wait("Steering: make a table")
        terminal.wait("esc to cancel", gone=True, limit_s=90)
        terminal.press("C-Home")
        seen = terminal.settle()
        for _ in range(40):
            if "› make a table" in seen:
                break
            terminal.press("PageDown")
            seen = terminal.settle()
        assert "› make a table" in seen


def test_escape_stops_the_turn_and_keeps_what_came(tmp_path):
    with Terminal(100, 30, tmp_path) as terminal:
        terminal.start("--yolo")
        terminal.submit("explain the code")
        terminal.wait("esc to cancel")
        terminal.press("Escape")
        screen = terminal.wait("esc to cancel", gone=True, limit_s=10)
        assert "Interrupted" in terminal.wait("Interrupted"), screen


def test_the_screen_survives_any_size(tmp_path):
    with Terminal(100, 30, tmp_path) as terminal:
        terminal.start("--yolo")
        terminal.submit("make a table")
        for columns, rows in ((30, 8), (3, 2), (200, 50), (41, 13), (1, 1), (80, 24)):
            terminal.resize(columns, rows)
        terminal.wait("esc to cancel", gone=True, limit_s=60)
        assert "demo" in terminal.wait("(auto)")
