"""How screens look. ``make snap`` writes the pictures again; look at the difference before you commit it."""

from pathlib import Path

import pytest

from musepi_tui.runtime.events import (
    AgentStarted,
    ApprovalAsked,
    ContextPruned,
    IdleCountdown,
    MaintenanceProgress,
    MaintenanceStarted,
    Meter,
    Phase,
    PhaseChanged,
    QueueChanged,
    SummaryRetryScheduled,
)
from musepi_tui.session.messages import Cost, Usage
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import DisplaySettings, Settings
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.transcript.engines import load_engines
from tests.support.builders import a, call, compaction, custom, path, state, t, u
from tests.support.fake_runtime import DEMO, FakeRuntime
from tests.support.screens import Stage, on_stage
from tests.support.snapshot import assert_snapshot
from tests.tui.test_panels import with_foreign_sessions, with_sessions
from tests.tui.test_session_list import stored_sessions
from tests.tui.test_upkeep import FIGURES

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
WARNED = path(
    *[entry.message for entry in TALK],
    compaction(
        "## Goal\nFix nested quotes.\n\n<files>\n# src/\nlexer.py (RW)\n</files>",
        "e6",
        tokens_before=231_785,
        tokens_after=171_300,
        reason="threshold",
        mid_turn=True,
        method="summary",
        model="anthropic/claude-sonnet",
        duration_ms=12_400,
        usage=Usage(cost=Cost(total=0.08)),
    ),
    state(
        "custom",
        customType="compaction.warning",
        data={
            "targetId": "e7",
            "warning": "The context still takes 171,300 tokens after the pass; 136,000 of a 200,000-token "
            "window are the limit. Free more with /shake, choose a larger model (/model), or start a new "
            "session (/new).",
        },
    ),
    custom("Resume the newest request.", "auto-continue"),
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


def folding(runtime: FakeRuntime) -> None:
    still(runtime)
    display = DisplaySettings(animations=False, collapse_compacted=True)
    runtime.options.settings = LoadedSettings(Settings(display=display))


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
            MaintenanceProgress("summary", 0, 2, 84_000, 2_100),
        )
        it.clock.advance(12)
        await it.settle()
        assert_snapshot(it.app, f"compacting-{size}")


@pytest.mark.parametrize(
    ("name", "reason", "action", "progress"),
    [
        ("prepare", "threshold", "summary", MaintenanceProgress("prepare")),
        ("window", "overflow", "summary", MaintenanceProgress("window", 2, 7, 400_000, 5_000)),
        ("write", "idle", "summary", MaintenanceProgress("write")),
        ("shake", "threshold", "shake", None),
    ],
)
async def test_maintenance_line(stage, size, name, reason, action, progress):
    async with stage(*TALK) as it:
        await it.tell(
            PhaseChanged(Phase.MAINTAINING),
            MaintenanceStarted(reason, action, mid_turn=reason == "threshold"),
            *([progress] if progress is not None else []),
        )
        it.clock.advance(12)
        it.app.main.status_line.tick()
        await it.settle()
        assert_snapshot(it.app, f"maintenance-{name}-{size}")


async def test_summary_that_is_tried_again(stage, size):
    async with stage(*TALK) as it:
        await it.tell(
            PhaseChanged(Phase.MAINTAINING),
            MaintenanceStarted("threshold", "summary"),
            QueueChanged(("run the linter too",), ()),
            SummaryRetryScheduled(2, 10, 8.0, "overloaded"),
        )
        it.clock.advance(3)
        it.app.main.status_line.tick()
        await it.settle()
        assert_snapshot(it.app, f"maintenance-retry-{size}")


async def test_divider_with_a_warning(stage, size):
    async with stage(*WARNED) as it:
        await it.tell(ContextPruned("threshold", 8, 31_400))
        assert_snapshot(it.app, f"divider-warned-{size}")
        await it.press("ctrl+o")
        await it.settle()
        assert_snapshot(it.app, f"divider-warned-open-{size}")


async def test_folded_history(stage, size):
    async with stage(*WARNED, prepare=folding) as it:
        await it.press("ctrl+home")
        await it.settle()
        assert_snapshot(it.app, f"folded-{size}")


async def test_idle_countdown(stage, size):
    async with stage(*TALK) as it:
        await it.tell(IdleCountdown(42))
        assert_snapshot(it.app, f"idle-countdown-{size}")


async def test_context_panel(stage, size):
    async with stage(*WARNED) as it:
        it.app.host.show("context")
        it.runtime.settle(**FIGURES)
        await it.settle()
        assert_snapshot(it.app, f"panel-context-{size}")


async def test_context_panel_without_colours(stage, size):
    async with stage(*WARNED) as it:
        it.app.looks.preview("mono")
        it.app.host.show("context")
        it.runtime.settle(**FIGURES)
        await it.settle()
        assert_snapshot(it.app, f"panel-context-mono-{size}")


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
        await previewed(it, name, size)
        assert_snapshot(it.app, f"panel-{name}-{size}")


async def previewed(it: Stage, name: str, size: str) -> None:
    """Waits for what comes a moment later: the end of the marked session, of which there is no file here."""
    if name == "resume" and size == "120x40":
        await it.shows("No such file")


def foreign_sessions(runtime: FakeRuntime) -> None:
    still(runtime)
    with_foreign_sessions(runtime)


async def test_sessions_of_other_tools(stage, size):
    async with stage(*TALK, prepare=foreign_sessions) as it:
        it.app.host.show("resume")
        await it.settle()
        await it.press("ctrl+a")
        await it.settle()
        await previewed(it, "resume", size)
        assert_snapshot(it.app, f"panel-resume-all-{size}")


async def test_stored_sessions(stage, size, tmp_path):
    def stored(runtime: FakeRuntime) -> None:
        still(runtime)
        runtime.sessions = stored_sessions(tmp_path)

    async with stage(*TALK, prepare=stored) as it:
        it.app.host.show("resume")
        await it.shows("Why does it hang?")
        if size == "120x40":
            await it.shows("It reads peek() twice")
        assert_snapshot(it.app, f"panel-resume-stored-{size}")


async def test_ascii_signs(tmp_path):
    async with on_stage(tmp_path, *DIVIDED, prepare=still, environ={"MUSEPI_ASCII": "1"}, meter=METER) as it:
        assert_snapshot(it.app, "ascii-80x24")


async def test_smallest_size(tmp_path):
    async with on_stage(tmp_path, *TALK, prepare=still, size=(40, 12), meter=METER) as it:
        assert_snapshot(it.app, "conversation-40x12")
