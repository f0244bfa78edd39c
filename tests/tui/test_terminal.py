import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from musepi_tui.tui.terminal import draft_file, find_editor, signals_wake, title_sequence
from tests.support.pty import Terminal


def test_title_sequence_drops_what_a_terminal_would_obey_and_cuts_at_80_cells():
    sequence = title_sequence("a\x1b]52;c;aGk=\x07b\nc " + "日" * 60)
    assert sequence.startswith("\x1b]2;ab c ")
    assert sequence.endswith("…\x07")
    assert sequence.count("\x1b") == 1
    assert sequence.count("日") == 37


@pytest.mark.parametrize(
    ("environ", "command"),
    [
        ({"VISUAL": "code --wait", "EDITOR": "vi"}, ("code", "--wait")),
        ({"EDITOR": "vi"}, ("vi",)),
        ({}, ("nano",)),
    ],
)
def test_find_editor_prefers_visual_then_editor_then_nano(environ, command):
    assert find_editor(environ) == command


def test_draft_file_is_private_and_gone_afterwards():
    with draft_file("text") as path:
        assert path.read_text(encoding="utf-8") == "text"
        assert path.suffix == ".md"
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


async def test_signal_that_meets_another_thread_is_handled_while_the_loop_waits():
    seen = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.set())

    def meet() -> bool:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        return seen.wait(10)

    try:
        with signals_wake(asyncio.get_running_loop()):
            assert await asyncio.to_thread(meet)
    finally:
        signal.signal(signal.SIGUSR1, before)


Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Terminal] = []

    def open_terminal(*extra: str, **environ: str) -> Terminal:
        argv = ["-m", "tests.support.shell_program", str(tmp_path), *extra]
        terminal = Terminal(argv, {**os.environ, **environ}, forked=True)
        running.append(terminal)
        assert terminal.wait_for("first answer"), bytes(terminal.output[-2000:])
        terminal.wait_quiet()
        return terminal

    yield open_terminal
    for terminal in running:
        terminal.end()


def assert_restored(terminal: Terminal) -> None:
    modes = terminal.last_modes()
    assert [mode for mode in (1000, 1002, 1003, 1004, 1006, 1016, 1049, 2004, 2026) if modes.get(mode)] == []
    assert modes[25] is True
    assert terminal.modes_now() == terminal.modes_before


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_restores_the_terminal_and_gives_its_exit_code(start: Start, number, code):
    terminal = start()
    terminal.kill(number)
    assert terminal.exit_code() == code
    assert_restored(terminal)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        b"\xff\xfe",
        b"\x1b[97;1:3u",
        b"\x1b[<32;NaN;NaNM",
        b"\x1b[?62;c",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b[1114112;5u",
    ],
    ids=["bad utf-8", "event type", "mouse", "attributes", "background", "code point"],
)
def test_hostile_input_neither_ends_the_program_nor_is_typed(start: Start, noise):
    terminal = start()
    del terminal.output[:]
    terminal.send(noise + b"Q7")
    assert terminal.wait_for("Q7")
    assert terminal.exit_code(0) is None
    assert b"rgb" not in terminal.output
    assert b"NaN" not in terminal.output


@pytest.mark.slow
def test_nothing_is_written_while_idle(start: Start):
    terminal = start()
    terminal.send(b"hello")
    assert terminal.wait_for("hello")
    terminal.wait_quiet(0.5)
    size = len(terminal.output)
    time.sleep(1.2)  # longer than a blink of a cursor and than a second of a clock
    assert len(terminal.output) == size


@pytest.mark.slow
def test_crash_is_one_line_without_local_variables_and_exit_code_1(start: Start):
    terminal = start("crash")
    terminal.send(b"\x1bm")
    assert terminal.exit_code() == 1
    last = bytes(terminal.output).rpartition(b"\x1b")[2]
    assert b"musepi stopped because of a bug (ZeroDivisionError)" in last
    assert last.count(b"\n") == 1
    assert b"a-secret-local-value" not in terminal.output
    assert b"Traceback" not in terminal.output
    assert_restored(terminal)


@pytest.mark.slow
def test_lone_escape_clears_text_soon_after_the_second_one(start: Start):
    terminal = start()
    terminal.send(b"some text")
    assert terminal.wait_for("some text")
    terminal.wait_quiet()
    del terminal.output[:]
    for _ in range(5):  # on a busy machine two presses may be taken too far apart
        terminal.send(b"\x1b")
        time.sleep(0.15)  # alone: the rest of a key would come sooner
        terminal.send(b"\x1b")
        if terminal.wait_for("sk anything", 2.0):
            break
    terminal.wait_quiet()
    assert b"sk anything" in terminal.output
    del terminal.output[:]
    terminal.send(b"\x1b[A")  # up: the cleared text can be recalled
    assert terminal.wait_for("some text")


@pytest.mark.slow
def test_stopped_terminal_stalls_nothing_and_is_painted_whole_afterwards(start: Start):
    terminal = start()
    terminal.pause()
    for size in range(40):
        terminal.resize(80 + size % 2, 24)
        time.sleep(0.02)
    terminal.kill(signal.SIGTERM)
    assert terminal.exit_code() == 143


@pytest.mark.slow
def test_closed_terminal_ends_the_program(start: Start):
    terminal = start()
    terminal.hang_up()
    assert terminal.exit_code() == 129


@pytest.mark.slow
def test_suspend_and_resume_paints_everything_again(start: Start):
    terminal = start()
    terminal.send(b"\x1a")
    assert terminal.is_stopped()
    assert terminal.wait_for("\x1b[?1049l")  # written before the stop, perhaps read after it
    terminal.wait_quiet()
    del terminal.output[:]
    terminal.kill(signal.SIGCONT)
    assert terminal.wait_for("first answer"), bytes(terminal.output)
    assert terminal.last_modes()[1049] is True
