"""A newcomer's first session in a real terminal: three prompts, a compaction, quit, resume."""

import re
import shlex
import sys
import time

import pytest

from tests.support.tmux import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROMPTS = ("fix the bug", "explain the code", "make a table")
DIVIDER = "── 📷 compacted · ctrl+o ──"


TURN_S = 120.0
ALLOW = "1 allow once"


def work_through(terminal: Terminal, prompt: str) -> None:
    """Sends a prompt and allows everything it asks for until the turn is over."""
    terminal.submit(prompt)
    terminal.wait("esc to cancel")
    deadline = time.monotonic() + TURN_S
    while time.monotonic() < deadline:
        screen = terminal.settle()
        if ALLOW in screen:
            allow(terminal, screen)
        elif "esc to cancel" not in screen:
            return
    raise AssertionError(f"the turn did not end:\n{terminal.screen()}")


def question(screen: str) -> str:
    """What is asked on the screen, without what moves around it; nothing when nothing is asked."""
    above, found, _ = screen.partition(ALLOW)
    return above[above.rfind("  Allow ") :] if found else ""


def allow(terminal: Terminal, screen: str) -> None:
    """Answers a question as a person does: reads to its end, presses the key, and again if it is still there.

    Allowing is off until the end was drawn, and for a moment after the question came.
    """
    asked = question(screen)
    for _ in range(10):
        key = "PageDown" if " more row" in asked else "1"
        terminal.press(key)
        if terminal.reaches(lambda now, asked=asked: question(now) != asked, limit_s=5):
            if key == "1":
                return
            asked = question(terminal.settle(0.2))
    raise AssertionError(f"the question cannot be answered:\n{terminal.screen()}")


def resume(terminal: Terminal) -> None:
    """Quits and opens the session again with the command that was told."""
    terminal.submit("/quit")
    ended = terminal.wait("--resume")
    command = re.search(r"musepi --resume (\S+)", ended)
    assert command is not None
    terminal.press("C-l")
    terminal.wait("--resume", gone=True)
    terminal.start("--resume", command.group(1))


def test_three_prompts_a_divider_and_the_same_screen_after_resume(tmp_path):
    with Terminal(80, 24, tmp_path) as terminal:
        terminal.start()
        assert "demo (script)" in terminal.screen()
        for prompt in PROMPTS:
            work_through(terminal, prompt)
        terminal.seek(DIVIDER, "PageUp")

        terminal.press("C-o")
        terminal.press("C-End")  # what was opened lies below the divider
        terminal.seek("· summary · demo/demo", "PageUp")
        terminal.press("C-o")

        terminal.press("C-Home")
        terminal.seek(f"› {PROMPTS[0]}", "PageDown")

        for columns, rows in ((80, 24), (100, 30)):
            terminal.resize(columns, rows)
            terminal.press("C-End")
            before = terminal.settle()
            resume(terminal)
            assert terminal.becomes(before), (before, terminal.screen())


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
        assert "› make a table" not in terminal.wait("Steering: make a table")
        terminal.wait("esc to cancel", gone=True, limit_s=TURN_S)
        terminal.press("C-Home")
        assert "› make a table" in terminal.seek("› make a table", "PageDown")


def test_escape_stops_the_turn_and_keeps_what_came(tmp_path):
    with Terminal(100, 30, tmp_path) as terminal:
        terminal.start("--yolo")
        terminal.submit("explain the code")
        terminal.wait("esc to cancel")
        terminal.press("Escape")
        screen = terminal.wait("esc to cancel", gone=True)
        assert "Interrupted" in terminal.wait("Interrupted"), screen


def test_the_screen_survives_any_size(tmp_path):
    with Terminal(100, 30, tmp_path) as terminal:
        terminal.start("--yolo")
        terminal.submit("make a table")
        for columns, rows in ((30, 8), (3, 2), (200, 50), (41, 13), (1, 1), (80, 24)):
            terminal.resize(columns, rows)
        terminal.wait("too small", gone=True)
        terminal.wait("esc to cancel", gone=True)
        assert "(auto)" in terminal.wait("· demo (script) · YOLO")
