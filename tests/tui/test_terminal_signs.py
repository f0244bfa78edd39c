import re
import signal
import time
from collections.abc import Callable, Iterator
from os import environ as own_environ
from pathlib import Path
from typing import Any, cast

import pytest

from musepi_tui.runtime.events import (
    AgentStarted,
    ApprovalAsked,
    ApprovalClosed,
    MaintenanceEnded,
    MaintenanceProgress,
    MaintenanceStarted,
    Phase,
    PhaseChanged,
)
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import Settings, TerminalSettings
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.terminal_signs import BUSY, NO_PROGRESS, WAITING, shows_progress
from tests.support.fake_runtime import FakeRuntime
from tests.support.pty import Terminal
from tests.support.screens import Stage, on_stage

WORK = (PhaseChanged(Phase.STREAMING), AgentStarted())
REST = PhaseChanged(Phase.IDLE)
ASKED = ApprovalAsked("r", "c", "bash", {}, "runs a command", None, ToolView("tail", "$ make"))
ANSWERED = ApprovalClosed("r", "allow", "user")
GHOSTTY = {"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.3"}


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({}, False),
        ({"WT_SESSION": "guid"}, True),
        ({"ConEmuANSI": "ON"}, True),
        ({"ConEmuANSI": "OFF"}, False),
        (GHOSTTY, True),
        ({"TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.1.3"}, False),
        ({"TERM_PROGRAM": "ghostty"}, False),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.6.6"}, True),
        ({"TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.5.14"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20240203-110809-5046fc22"}, False),
        ({"TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20250402-092113-a1b2"}, True),
        ({"TERM_PROGRAM": "mintty", "TERM_PROGRAM_VERSION": "3.7.8"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal", "TERM_PROGRAM_VERSION": "455"}, False),
        ({"VTE_VERSION": "8000"}, True),
        ({"VTE_VERSION": "7603"}, False),
        ({"VTE_VERSION": ""}, False),
        ({"TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.5a"}, False),
    ],
)
def test_progress_is_for_terminals_that_are_known_to_show_it(environ, shown):
    assert shows_progress(environ) is shown


def using(**terminal: Any) -> Callable[[FakeRuntime], None]:
    def prepare(runtime: FakeRuntime) -> None:
        runtime.options.settings = LoadedSettings(Settings(terminal=TerminalSettings(**terminal)))

    return prepare


ALWAYS = using(progress="always")


def watched(stage: Stage) -> list[str]:
    """The sequences that are written from now on."""
    written: list[str] = []
    cast("Any", stage.app).write_terminal = written.append
    return written


def progress(written: list[str]) -> list[str]:
    return [sequence for sequence in written if sequence.startswith("\x1b]9;")]


async def test_progress_follows_the_turn_and_the_question_in_it(tmp_path):
    async with on_stage(tmp_path, prepare=ALWAYS) as stage:
        written = watched(stage)
        await stage.tell(*WORK)
        await stage.tell(PhaseChanged(Phase.TOOLS))
        assert progress(written) == [BUSY]
        await stage.tell(ASKED)
        assert progress(written)[1:] == [WAITING]
        await stage.tell(ANSWERED)
        assert progress(written)[2:] == [BUSY]
        await stage.tell(REST)
        assert progress(written)[3:] == [NO_PROGRESS]


async def test_progress_of_a_pass_counts_its_pieces(tmp_path):
    async with on_stage(tmp_path, prepare=ALWAYS) as stage:
        written = watched(stage)
        await stage.tell(PhaseChanged(Phase.MAINTAINING), MaintenanceStarted("threshold", "summary"))
        for done in range(3):
            await stage.tell(MaintenanceProgress("window", done, 3, 84_000, 2_100))
        await stage.tell(MaintenanceProgress("write"))
        await stage.tell(MaintenanceEnded("threshold", "summary"), REST)
        assert progress(written) == [BUSY, "\x1b]9;4;1;33\x1b\\", "\x1b]9;4;1;66\x1b\\", BUSY, NO_PROGRESS]


@pytest.mark.parametrize(
    ("wish", "environ", "shown"),
    [
        ("auto", {}, False),
        ("auto", GHOSTTY, True),
        ("always", {}, True),
        ("off", GHOSTTY, False),
    ],
)
async def test_setting_and_terminal_decide_whether_there_is_progress(tmp_path, wish, environ, shown):
    async with on_stage(tmp_path, prepare=using(progress=wish), environ=environ) as stage:
        written = watched(stage)
        await stage.tell(*WORK)
        await stage.tell(REST)
        stage.app.repaint_all()
        assert bool(progress(written)) is shown
        assert bool(stage.app.undo) is shown


async def test_title_tells_who_waits_for_whom(tmp_path):
    async with on_stage(tmp_path) as stage:
        written = watched(stage)
        await stage.tell(*WORK)
        await stage.tell(ASKED)
        await stage.tell(ANSWERED, REST)
        titles = [sequence[4:-1] for sequence in written if sequence.startswith("\x1b]2;")]
        assert titles == ["… musepi – parser", "● musepi – parser", "musepi – parser"]


async def test_signs_follow_a_question_at_once(tmp_path):
    async with on_stage(tmp_path, prepare=ALWAYS) as stage:
        await stage.tell(*WORK)
        written = watched(stage)
        stage.runtime.emit(ASKED)
        await stage.until(lambda: WAITING in written)
        stage.runtime.emit(ANSWERED)
        await stage.until(lambda: BUSY in written)


async def test_what_may_be_lost_is_written_again(tmp_path):
    async with on_stage(tmp_path, prepare=ALWAYS) as stage:
        written = watched(stage)
        stage.app.repaint_all()
        assert progress(written) == []
        await stage.tell(*WORK)
        stage.app.repaint_all()
        assert progress(written) == [BUSY, BUSY]
        await stage.tell(REST)
        stage.app.repaint_all()
        assert progress(written)[2:] == [NO_PROGRESS, NO_PROGRESS]


async def test_long_work_is_told_again_and_rest_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr("musepi_tui.tui.terminal_signs.REPEAT_S", 0.02)
    async with on_stage(tmp_path, prepare=ALWAYS) as stage:
        written = watched(stage)
        await stage.tell(*WORK)
        await stage.until(lambda: len(progress(written)) > 2)
        await stage.tell(REST)
        count = len(written)
        await stage.pilot.pause(0.1)
        assert len(written) == count
        assert progress(written)[-1] == NO_PROGRESS
        assert set(progress(written)[:-1]) == {BUSY}


# in a real terminal

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Terminal] = []
    telling = ("TERM_PROGRAM", "VTE_VERSION", "ConEmuANSI", "WT_SESSION")
    unknown = {name: value for name, value in own_environ.items() if not name.startswith(telling)}

    def open_terminal(*words: str, **environ: str) -> Terminal:
        argv = ["-m", "tests.support.shell_program", str(tmp_path), *words]
        terminal = Terminal(argv, {**unknown, **environ}, forked=True)
        running.append(terminal)
        assert terminal.wait_for("first answer"), bytes(terminal.output[-2000:])
        return terminal

    yield open_terminal
    for terminal in running:
        terminal.end()


def shown(terminal: Terminal) -> list[str]:
    """What was written about progress, in order."""
    return [found.decode() for found in re.findall(rb"\x1b\]9;[^\x1b\x07]*\x1b\\", bytes(terminal.output))]


def assert_taken_back(terminal: Terminal) -> None:
    """It was shown, and taken back while the terminal was still the program's."""
    assert shown(terminal)[0] == BUSY
    assert shown(terminal)[-1] == NO_PROGRESS
    output = bytes(terminal.output)
    assert output.rindex(NO_PROGRESS.encode()) < output.rindex(b"\x1b[?1049l")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_takes_the_progress_back(start: Start, number, code):
    terminal = start("busy", **GHOSTTY)
    assert terminal.wait_for(BUSY)
    terminal.kill(number)
    assert terminal.exit_code() == code
    assert_taken_back(terminal)


@pytest.mark.slow
def test_crash_takes_the_progress_back(start: Start):
    terminal = start("busy", "crash", **GHOSTTY)
    assert terminal.wait_for(BUSY)
    terminal.send(b"\x1bm")
    assert terminal.exit_code() == 1
    assert_taken_back(terminal)


@pytest.mark.slow
def test_leaving_takes_the_progress_back(start: Start):
    terminal = start("busy", **GHOSTTY)
    assert terminal.wait_for(BUSY)
    terminal.send(b"\x04")
    assert terminal.exit_code() == 0
    assert_taken_back(terminal)


@pytest.mark.slow
def test_program_that_hangs_takes_the_progress_back_at_its_end(start: Start):
    terminal = start("busy", "blocked", **GHOSTTY)
    assert terminal.wait_for(BUSY)
    terminal.send(b"\x1bm")
    terminal.wait_quiet()
    terminal.kill(signal.SIGTERM)
    assert terminal.exit_code() == 143
    assert_taken_back(terminal)


@pytest.mark.slow
def test_stopped_program_shows_no_progress_and_a_resumed_one_does_again(start: Start):
    terminal = start("busy", **GHOSTTY)
    assert terminal.wait_for(BUSY)
    terminal.send(b"\x1a")
    assert terminal.is_stopped()
    assert terminal.wait_for("\x1b[?1049l")  # written before the stop, perhaps read after it
    terminal.wait_quiet()
    assert_taken_back(terminal)
    del terminal.output[:]
    terminal.kill(signal.SIGCONT)
    assert terminal.wait_for(BUSY)


@pytest.mark.slow
def test_nothing_is_written_at_rest_after_progress_was_shown(start: Start):
    terminal = start("busy", **GHOSTTY)
    assert terminal.wait_for(BUSY)
    terminal.send(b"\x1b")
    assert terminal.wait_for(NO_PROGRESS)
    terminal.wait_quiet(0.5)
    size = len(terminal.output)
    time.sleep(1.2)  # longer than a blink of a cursor and than a second of a clock
    assert len(terminal.output) == size


@pytest.mark.slow
def test_unknown_terminal_gets_no_progress(start: Start):
    terminal = start("busy")
    assert terminal.wait_for("… musepi")
    terminal.kill(signal.SIGTERM)
    assert terminal.exit_code() == 143
    assert shown(terminal) == []
