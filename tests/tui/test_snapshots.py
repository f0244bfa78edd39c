"""How screens look. ``make snap`` writes the pictures again; look at the difference before you commit it."""

from pathlib import Path

import pytest

from musepi_tui.runtime.events import (
    AgentStarted,
    ApprovalAsked,
    MaintenanceProgress,
    MaintenanceStarted,
    Meter,
    Phase,
    PhaseChanged,
    QueueChanged,
)
from musepi_tui.session.messages import Usage
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import DisplaySettings, Settings
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.transcript.engines import load_engines
from tests.support.builders import a, call, compaction, path, t, u
from tests.support.fake_runtime import DEMO, FakeRuntime
from tests.support.screens import on_stage
from tests.support.snapshot import assert_snapshot
from tests.tui.test_panels import with_foreign_sessions, with_sessions

SIZES = {"80x24": (80, 24), "120x40": (120, 40)}

ANSWER = """The parser stops at the **first** quote. Two places matter:

1. `scan` in *lexer.py*
2. the test for nested quotes

| input | before | now |
|---|---|---|
| `'a'` | ok | ok |
| `'a "b"'` | error | ok |

```python
def scan(text: str) -> int:
    return text.count("'")  # every quote
```
"""
DIFF = """@@ -1,3 +1,4 @@
 def scan(text):
-    return 1
+    count = text.count("'")
+    return count
     # end"""
TALK = path(
    u("Nested quotes break the parser. Please fix it."),
    a("I look at the code first.", [call("read", path="lexer.py")], thinking="Where is the scanner?"),
    t(
        "def scan(text):\n    return 1\n",
        details={"view": {"kind": "none", "title": "read lexer.py", "note": "2 lines"}},
    ),
    a("", [call("edit", path="lexer.py")]),
    t(
        "done",
        tool="edit",
        details={"view": {"kind": "diff", "title": "edit lexer.py (+2 −1)", "body": DIFF}},
    ),
    a(ANSWER),
)
DIVIDED = path(
    *[entry.message for entry in TALK],
    compaction(
        "## Goal\nFix nested quotes.", "e5", tokens_before=231_785, tokens_after=24_100, reason="manual"
    ),
    u("And now the documentation"),
    a("The manual has one page about quotes."),
)
METER = Meter(
    context_tokens=62_400,
    window=200_000,
    threshold=160_000,
    totals=Usage(input=12_000, output=3_400, cache_read=180_000),
    cost=0.123,
)


def still(runtime: FakeRuntime) -> None:
    load_engines()
    runtime.options.settings = LoadedSettings(Settings(display=DisplaySettings(animations=False)))
    with_sessions(runtime)


def demo_only(runtime: FakeRuntime) -> None:
    still(runtime)
    runtime.offered = (DEMO,)
    runtime.options.paths = type(runtime.options.paths)(*[Path("/home/ada/.config/musepi")] * 3)


@pytest.fixture(params=sorted(SIZES), ids=sorted(SIZES))
def size(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def stage(tmp_path, size):
    def open_stage(*entries, prepare=still, **fields):
        fields.setdefault("meter", METER)
        return on_stage(tmp_path, *entries, size=SIZES[size], prepare=prepare, **fields)

    return open_stage


async def test_empty(stage, size):
    async with stage() as it:
        assert_snapshot(it.app, f"empty-{size}")


async def test_first_start_without_a_key(stage, size):
    async with stage(
        model=DEMO, prepare=demo_only, meter=Meter(context_tokens=0, window=9_000, threshold=8_000)
    ) as it:
        assert_snapshot(it.app, f"first-start-{size}")


async def test_conversation(stage, size):
    async with stage(*TALK) as it:
        assert_snapshot(it.app, f"conversation-{size}")


@pytest.mark.parametrize("theme", ["light", "ansi", "mono", "high-contrast"])
async def test_conversation_in_other_themes(stage, size, theme):
    async with stage(*TALK) as it:
        it.app.looks.preview(theme)
        await it.settle()
        assert_snapshot(it.app, f"conversation-{theme}-{size}")


async def test_working_with_a_queue(stage, size):
    async with stage(*TALK) as it:
        await it.tell(
            PhaseChanged(Phase.STREAMING),
            AgentStarted(),
            QueueChanged(("run the linter too",), ("then commit",)),
        )
        it.clock.advance(12)
        await it.type("and update")
        await it.settle()
        assert_snapshot(it.app, f"working-{size}")


async def test_approval(stage, size):
    async with stage(*TALK) as it:
        view = ToolView("diff", "edit lexer.py (+2 −1)", DIFF)
        await it.tell(
            ApprovalAsked(
                "r", "c", "edit", {"path": "lexer.py"}, "edit writes to lexer.py", "edit(lexer.py)", view
            ),
            ApprovalAsked(
                "s", "d", "bash", {"command": "make"}, "runs a command", None, ToolView("tail", "$ make")
            ),
        )
        assert_snapshot(it.app, f"approval-{size}")


async def test_compaction_running(stage, size):
    async with stage(*TALK) as it:
        await it.tell(
            PhaseChanged(Phase.MAINTAINING),
            MaintenanceStarted("manual", "summary"),
            MaintenanceProgress("summary", 1, 2, 84_000, 2_100),
        )
        it.clock.advance(12)
        await it.settle()
        assert_snapshot(it.app, f"compacting-{size}")


async def test_divider(stage, size):
    async with stage(*DIVIDED) as it:
        assert_snapshot(it.app, f"divider-{size}")
        await it.press("ctrl+o")
        await it.settle()
        assert_snapshot(it.app, f"divider-open-{size}")


async def test_completion(stage, size):
    async with stage(*TALK) as it:
        await it.type("/")
        await it.settle()
        assert_snapshot(it.app, f"completion-{size}")


@pytest.mark.parametrize("name", ["resume", "model", "theme", "help", "hotkeys", "yolo"])
async def test_panels(stage, size, name):
    async with stage(*TALK) as it:
        it.app.host.show(name)
        await it.settle()
        assert_snapshot(it.app, f"panel-{name}-{size}")


def foreign_sessions(runtime: FakeRuntime) -> None:
    still(runtime)
    with_foreign_sessions(runtime)


async def test_sessions_of_other_tools(stage, size):
    async with stage(*TALK, prepare=foreign_sessions) as it:
        it.app.host.show("resume")
        await it.settle()
        await it.press("ctrl+a")
        await it.settle()
        assert_snapshot(it.app, f"panel-resume-all-{size}")


async def test_ascii_signs(tmp_path):
    async with on_stage(tmp_path, *DIVIDED, prepare=still, environ={"MUSEPI_ASCII": "1"}, meter=METER) as it:
        assert_snapshot(it.app, "ascii-80x24")


async def test_smallest_size(tmp_path):
    async with on_stage(tmp_path, *TALK, prepare=still, size=(40, 12), meter=METER) as it:
        assert_snapshot(it.app, "conversation-40x12")
