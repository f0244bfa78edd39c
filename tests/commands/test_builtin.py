from typing import Any

import pytest

from musepi_tui.commands.builtin import branch, delete, rewind
from musepi_tui.commands.registry import CommandRegistry
from musepi_tui.maintenance.modes import SHAKE_TAKES_NO_FOCUS, refuse_mode
from musepi_tui.runtime.intents import (
    CloneSession,
    Compact,
    ForkSession,
    Handoff,
    MoveSession,
    NewSession,
    Retry,
    SetLabel,
    SetMode,
    SetName,
    SetThinking,
    Shake,
)
from tests.support.transcripts import session_view

NOBODYS_HOME = "~nobody-at-all: nobody knows whose home folder that is"


class FakeHost:
    """Remembers what a command asked for."""

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []
        self.done: list[str] = []

    def send(self, intent: Any, *, done: str = "") -> str:
        self.did.append(("send", intent))
        self.done.append(done)
        return "intent-1"

    def show(self, screen: str, argument: str = "") -> None:
        self.did.append(("show", screen, argument))

    def notify(self, level: str, text: str) -> None:
        self.did.append(("notify", level, text))

    def view(self) -> Any:
        return session_view(())

    def act(self, name: str, argument: str = "") -> None:
        self.did.append(("act", name, argument))


@pytest.mark.parametrize(
    ("name", "args", "did"),
    [
        ("compact", "the parser", ("send", Compact(focus="the parser"))),
        ("compact", "summary", ("send", Compact(mode="summary"))),
        ("compact", "SOFT the parser", ("send", Compact(mode="soft", focus="the parser"))),
        ("compact", '"summary of it"', ("send", Compact(focus="summary of it"))),
        ("compact", "shake", ("send", Shake())),
        (
            "compact",
            "shake the tree",
            (
                "notify",
                "warning",
                SHAKE_TAKES_NO_FOCUS,
            ),
        ),
        ("compact", "remote the parser", ("send", Compact(mode="remote", focus="the parser"))),
        ("compact", "'undo it'", ("send", Compact(focus="undo it"))),
        ("compact", "Snapcompact foo", ("notify", "warning", refuse_mode("snapcompact", "foo"))),
        ("compact", "handoff", ("notify", "warning", refuse_mode("handoff", None))),
        ("compact", "--preview x", ("notify", "warning", refuse_mode("--preview", "x"))),
        ("compact", "edit", ("notify", "warning", refuse_mode("edit", None))),
        ("compact", "undo", ("notify", "warning", refuse_mode("undo", None))),
        ("shake", "", ("send", Shake())),
        ("shake", " Elide", ("send", Shake())),
        ("shake", "images", ("send", Shake("images"))),
        ("shake", "all", ("notify", "warning", 'There is no mode "all". Usage: /shake [elide|images].')),
        ("context", "", ("show", "context", "")),
        ("new", "", ("send", NewSession())),
        ("resume", "abc", ("show", "resume", "abc")),
        ("model", "son", ("show", "model", "son")),
        ("help", "/compact", ("show", "help", "compact")),
        ("hotkeys", "", ("show", "hotkeys", "")),
        ("theme", "", ("show", "theme", "")),
        ("theme", " light ", ("act", "set-theme", "light")),
        ("quit", "", ("act", "quit", "")),
        ("mode", "auto-edit", ("send", SetMode("auto-edit"))),
        ("mode", "YOLO", ("show", "yolo", "")),
        (
            "mode",
            "",
            ("notify", "info", "Mode: ask (reads run, everything else asks). Modes: ask, auto-edit, yolo."),
        ),
        ("mode", "x", ("notify", "warning", 'There is no mode "x". Modes: ask, auto-edit, yolo.')),
        ("thinking", "high", ("send", SetThinking("high"))),
        ("retry", "", ("send", Retry())),
        ("name", " The  parser ", ("send", SetName("The parser"))),
        ("rename", '""', ("send", SetName(""))),
        (
            "title",
            "",
            ("notify", "info", 'This session has no name. /name TEXT gives it one, /name "" takes it away.'),
        ),
        ("label", "here it\nbroke", ("send", SetLabel("here it broke"))),
        ("label", ' "my  place" ', ("send", SetLabel("my place"))),
        ("label", "don't", ("send", SetLabel("don't"))),
        ("label", "", ("send", SetLabel(""))),
        ("name", "'The \"new\" parser'", ("send", SetName('The "new" parser'))),
        ("fork", "", ("send", ForkSession())),
        ("fork", " 0a1b2c3d ", ("send", ForkSession("0a1b2c3d"))),
        ("clone", "", ("send", CloneSession())),
        ("tree", "", ("show", "tree", "")),
        ("tree", " 0a1b2c3d ", ("show", "tree", "0a1b2c3d")),
        ("branch", "", ("show", "branch", "")),
        ("branch", " New", ("show", "branch", "new")),
        ("branch", "0a1b2c3d", ("notify", "warning", branch.USAGE)),
        ("rewind", "", ("show", "rewind", "")),
        ("undo", " 2 ", ("show", "rewind", "2")),
        ("rewind", "0", ("notify", "warning", rewind.USAGE)),
        ("rewind", "-1", ("notify", "warning", rewind.USAGE)),
        ("rewind", "two", ("notify", "warning", rewind.USAGE)),
        ("rewind", "9" * 5_000, ("notify", "warning", rewind.USAGE)),
        ("redo", "", ("act", "redo", "")),
        ("delete", "", ("show", "delete", "")),
        ("delete", "0a1b2c3d", ("notify", "warning", delete.USAGE)),
        ("handoff", "", ("send", Handoff())),
        ("handoff", " the parser\nfirst ", ("send", Handoff("the parser\nfirst"))),
        ("move", '"../two words"', ("send", MoveSession("/two words"))),
        ("move", "~nobody-at-all", ("notify", "warning", NOBODYS_HOME)),
        ("move", "sub/..", ("notify", "info", "The session works in /project already.")),
        ("cwd", "", ("notify", "info", "The session works in /project. /move FOLDER changes that.")),
        ("session", "", ("show", "session", "")),
        ("status", "", ("show", "session", "")),
    ],
)
async def test_command_does_one_thing(name, args, did):
    host = FakeHost()
    await CommandRegistry.discover().find(name).run(host, args)
    assert host.did == [did]


@pytest.mark.parametrize(("args", "level"), [("", "info"), ("huge", "warning")])
async def test_thinking_names_the_levels_there_are(args, level):
    host = FakeHost()
    await CommandRegistry.discover().find("thinking").run(host, args)
    assert host.did[0][1] == level
    assert "off, minimal, low, medium, high, xhigh, max" in host.did[0][2]


@pytest.mark.parametrize(
    ("name", "now"),
    [(name, False) for name in ("compact", "new", "resume", "retry", "fork", "clone", "move", "shake")]
    + [(name, False) for name in ("tree", "branch", "rewind", "redo", "delete", "handoff")]
    + [(name, True) for name in ("name", "label", "session")]
    + [(name, True) for name in ("context", "model", "help", "hotkeys", "theme", "quit", "mode", "thinking")],
)
def test_commands_that_may_run_during_a_turn(name, now):
    assert CommandRegistry.discover().find(name).now is now


@pytest.mark.parametrize(
    ("name", "args", "done"),
    [
        ("label", "'here'", "Labelled: here"),
        ("label", "", "This place has no label now."),
        ("name", "Parser", "The session is called Parser."),
        ("name", "x" * 300, f"The session is called {'x' * 200} (names end after 200 characters)."),
        ("name", "''", "The session has no name any more."),
        ("move", "/tmp/../srv", "The session works in /srv from now on."),
    ],
)
async def test_commands_tell_what_they_did(name, args, done):
    host = FakeHost()
    await CommandRegistry.discover().find(name).run(host, args)
    assert host.done == [done]
