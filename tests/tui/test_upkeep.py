import re
from pathlib import Path
from typing import Any

import pytest
from textual import events

from musepi_tui.runtime.events import (
    AgentStarted,
    ContextPruned,
    ExtensionFailed,
    IdleCountdown,
    MaintenanceEnded,
    MaintenanceStarted,
    Meter,
    ModelPromoted,
    Phase,
    PhaseChanged,
    QueueChanged,
    SessionReady,
    SummaryRetryScheduled,
    SummaryRetryStarted,
    UsageChanged,
)
from musepi_tui.runtime.intents import Cancel, EditorChanged, MeasureContext, Shake, TakeQueue, Touch
from musepi_tui.session.messages import Cost, Usage
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import CompactionSettings, DisplaySettings, Settings
from musepi_tui.tui.screens.context import Figures, figure_items, reclaimable_items
from musepi_tui.tui.themes import load_palette
from tests.support.builders import a, compaction, custom, path, state, u
from tests.support.fake_runtime import FakeRuntime
from tests.support.screens import Stage, on_stage

FAILED = MaintenanceEnded("overflow", "summary", error="Context overflow recovery failed: too long")
WORK = (PhaseChanged(Phase.STREAMING), AgentStarted())
FIGURES: dict[str, Any] = {
    "window": 200_000,
    "threshold": 170_000,
    "budgetReserve": 30_000,
    "tokens": 62_400,
    "percent": 31.2,
    "parts": [
        {"name": "system prompt", "tokens": 3_100},
        {"name": "tools", "tokens": 5_600},
        {"name": "summary", "tokens": 2_050},
        {"name": "kept tail", "tokens": 9_800},
        {"name": "user", "tokens": 1_500},
        {"name": "tool results", "tokens": 33_750},
    ],
    "beyondParts": 6_600,
    "toolResults": [{"name": "bash", "tokens": 21_150}, {"name": "read", "tokens": 12_600}],
    "toolSchemas": [{"name": "bash", "tokens": 900}, {"name": "ls", "tokens": 300}],
    "contextFiles": [{"name": "/home/ada/work/project/AGENTS.md", "tokens": 1_200}],
    "reclaimable": [
        {"name": "superseded", "tokens": 1_189, "rested": 8_400},
        {"name": "useless", "tokens": 0, "rested": 0},
        {"name": "threshold", "tokens": 0, "rested": 0},
        {"name": "shake", "tokens": 30_500, "rested": 30_500},
        {"name": "images", "tokens": 2_400, "rested": 2_400},
    ],
    "cache": {"read": 48_000, "prompt": 60_300, "cold": False},
}
COMPACTED = path(
    u("u1"),
    a("a1"),
    u("u2"),
    compaction(
        "the sum",
        "e3",
        tokens_before=231_785,
        tokens_after=24_100,
        reason="threshold",
        method="summary",
        model="acme/big",
        duration_ms=12_400,
        usage=Usage(cost=Cost(total=0.08)),
    ),
    u("u3"),
)


def using(**groups: Any):
    """Opens the screen with other settings."""

    def prepare(runtime: FakeRuntime) -> None:
        runtime.options.settings = LoadedSettings(Settings(**groups))

    return prepare


async def test_failed_overflow_recovery_gives_the_queue_back_to_an_empty_editor(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(
            *WORK, QueueChanged(("also",), ("later",)), MaintenanceStarted("overflow", "summary"), FAILED
        )
        assert stage.sent == [TakeQueue()]
        stage.runtime.settle(text="also\n\nlater")
        await stage.settle()
        assert stage.draft == "also\n\nlater"
        assert "✗ Context overflow recovery failed: too long" in stage.text


async def test_draft_in_the_editor_keeps_the_queue_where_it_is(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("draft")
        await stage.tell(
            *WORK, QueueChanged(("also",), ()), MaintenanceStarted("overflow", "summary"), FAILED
        )
        assert stage.sent == []
        assert stage.draft == "draft"


async def test_escape_cancels_a_pass_that_waits_for_its_next_try(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(
            PhaseChanged(Phase.MAINTAINING),
            MaintenanceStarted("threshold", "summary"),
            SummaryRetryScheduled(1, 10, 2.0, "overloaded"),
        )
        assert "Retrying (1/10) in 2s… (esc to cancel)" in stage.text
        await stage.press("escape")
        assert stage.sent == [Cancel()]
        await stage.tell(SummaryRetryStarted(1))
        assert "Auto-compacting… 0s (esc to cancel)" in stage.text


async def test_pruning_is_told_unless_switched_off(tmp_path):
    pruned = ContextPruned("threshold", 8, 31_400)
    async with on_stage(tmp_path) as stage:
        await stage.tell(pruned)
        assert "· Pruned 8 old tool results (~31k tokens)" in stage.text
    quiet = using(display=DisplaySettings(prune_notices=False))
    async with on_stage(tmp_path, prepare=quiet) as stage:
        await stage.tell(pruned)
        assert "Pruned" not in stage.text


async def test_promotion_is_told_by_its_row_and_without_rows_by_a_notice(tmp_path):
    promotion = ModelPromoted("acme/small", "acme/big", "context")
    row = state("model_change", provider="acme", modelId="big", role="promoted")
    entries = path(u("go"), row)
    async with on_stage(tmp_path, *entries[:1]) as stage:
        stage.runtime.append(entries[1])
        await stage.tell(promotion)
        assert stage.text.count("Switched to acme/big for a larger window") == 1
    async with on_stage(tmp_path, *entries) as stage:
        assert "Switched to acme/big for a larger window" in stage.text
    hidden = using(display=DisplaySettings(show_model_changes=False))
    async with on_stage(tmp_path, *entries[:1], prepare=hidden) as stage:
        stage.runtime.append(entries[1])
        await stage.tell(promotion)
        assert stage.text.count("Switched to acme/big for a larger window") == 1


async def test_failure_of_an_extension_is_a_warning(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(ExtensionFailed("notes", "turn_end", "no file"))
        assert "! The extension notes failed at turn_end: no file." in stage.text


async def test_next_compaction_is_announced(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(UsageChanged(Meter(context_tokens=154_000, window=200_000, threshold=170_000)))
        assert "· context at 90% of the auto-compact point · /compact" in stage.text


async def test_work_that_goes_on_by_itself_is_a_dim_line(tmp_path):
    entries = path(u("go"), custom("Resume the newest request.", "auto-continue"))
    async with on_stage(tmp_path, *entries) as stage:
        assert "· continuing…" in stage.text
        assert "Resume the newest" not in stage.text
        await stage.press("ctrl+o")
        await stage.settle()
        assert "Resume the newest request." in stage.text


# /shake and /context


async def test_shake_reports_once_what_it_did(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/shake")
        await stage.press("enter")
        await stage.until(lambda: stage.sent == [Shake()])
        await stage.tell(
            MaintenanceStarted("manual", "shake"),
            ContextPruned("shake", 15, 41_200),
            MaintenanceEnded("manual", "shake"),
        )
        stage.runtime.settle(mode="elide", toolResults=12, blocks=3, images=0, tokensFreed=41_200)
        await stage.shows("· Shaken: 12 tool results, 3 blocks (~41,200 tokens freed)")
        assert "Pruned" not in stage.text


async def test_failed_shake_is_told_once(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.paste("/shake images")
        await stage.press("enter")
        await stage.until(lambda: stage.sent == [Shake("images")])
        await stage.tell(
            MaintenanceStarted("manual", "shake"), MaintenanceEnded("manual", "shake", error="disk full")
        )
        stage.runtime.settle(error="disk full")
        await stage.shows("Compaction failed: disk full")
        assert stage.text.count("disk full") == 1


async def open_context(stage: Stage, **figures: Any) -> None:
    await stage.paste("/context")
    await stage.press("enter")
    await stage.until(lambda: stage.sent[-1:] == [MeasureContext()])
    stage.runtime.settle(**figures)
    await stage.shows("What it consists of")


def table_row(row: str) -> str:
    """The row without the map beside it and the mark before it."""
    words = " ".join(row.split()).removesuffix(" each ~2.0k tokens")
    return re.sub(r"( [▰▱]){10}$", "", words).removeprefix("▰ ").removeprefix("▱ ")


async def test_context_shows_parts_limits_and_the_last_compaction(tmp_path):
    idle = using(compaction=CompactionSettings(threshold="85%", idle_enabled=True))
    async with on_stage(tmp_path, *COMPACTED, size=(100, 70), prepare=idle) as stage:
        await open_context(stage, **FIGURES)
        rows = [table_row(row) for row in stage.text.split("\n")]
        for row in (
            "62,400 tokens of 200,000 · 31%",
            "system prompt 3,100 1.6%",
            "project/AGENTS.md 1,200 0.6%",
            "bash 900 0.5%",
            "kept tail 9,800 4.9% ▰",
            "tool results 33,750 16.9% ▰▰▰",
            "bash 21,150 10.6%",
            "billed beyond these 6,600 3.3% ▰",
            "free 137,600 68.8% ▰▰▰▰▰▰▰▰▰▰▰▰▰▰",
            "superseded reads 1,189 after the next turn; 8,400 after a rest of 90 minutes",
            "/shake 30,500 results and large blocks, into an artifact",
            "/shake images 2,400 all pictures",
            "cache 48,000 of the last 60,300 tokens sent came from it",
            "starts at 170,000 tokens (compaction.threshold 85%)",
            "reserve 30,000 tokens stay free for a request",
            "by itself on, strategy summary",
            "when idle after 5m, from 200,000 tokens on",
            "last one 231,785 → 24,100 tokens",
            "threshold · summary · acme/big · 12s · $0.0800",
            "2025-06-15 15:06",
        ):
            assert row in rows
        assert "useless results" not in stage.text
        assert "ls" not in {row.split(" ")[0] for row in rows}


def test_the_rows_of_the_context_add_up_to_the_window():
    figures = Figures.read(FIGURES)
    items = figure_items(figures, load_palette("dark", {}), 100)
    heading = next(at for at, item in enumerate(items) if item.label.startswith("What it consists of"))
    outer = [item.label for item in items[heading + 1 :] if not item.label.startswith("    ")]
    assert sum(int(label.split()[-1].replace(",", "")) for label in outer) == 200_000


@pytest.mark.parametrize(
    ("cache", "text"),
    [
        ({"read": None, "prompt": None, "cold": False}, "not known before the next answer"),
        ({"read": 5, "prompt": 9, "cold": True}, "cold: nothing was said for 90 minutes"),
    ],
)
def test_the_cache_that_was_not_used_is_told_so(cache, text):
    items = reclaimable_items(Figures.read(FIGURES | {"cache": cache}))
    assert items[-1].detail == text


def test_context_that_was_billed_lower_than_it_was_counted_says_so():
    figures = Figures.read(FIGURES | {"beyondParts": -1_234})
    labels = [" ".join(item.label.split()) for item in figure_items(figures, load_palette("dark", {}), 100)]
    assert "counted, not billed -1,234" in labels


async def test_context_of_a_model_without_a_known_window(tmp_path):
    figures = FIGURES | {"window": None, "threshold": None, "budgetReserve": None, "percent": None}
    async with on_stage(tmp_path, size=(100, 70), meter=Meter(auto_compaction=False)) as stage:
        await open_context(stage, **figures)
        assert "the context window of this model is unknown" in stage.text
        assert "last one   none in this conversation" in stage.text
        assert "by itself  off" in stage.text


async def test_completion_tells_the_modes_and_how_full_the_context_is(tmp_path):
    async with on_stage(tmp_path, meter=Meter(context_tokens=84_000, window=200_000)) as stage:
        await stage.type("/comp")
        await stage.shows("/compact  Compact now · 42% used")
        await stage.type("act s")
        await stage.shows("› summary")
        assert "soft" in stage.text
        assert "shake" in stage.text


# folding


async def test_enter_in_an_empty_editor_opens_the_fold(tmp_path):
    folding = using(display=DisplaySettings(collapse_compacted=True))
    async with on_stage(tmp_path, *COMPACTED, prepare=folding) as stage:
        assert "… 2 earlier messages · enter to show" in stage.text
        assert "a1" not in stage.text
        await stage.press("enter")
        assert "a1" in stage.text
        assert "earlier messages" not in stage.text
        assert stage.sent == []


async def test_click_opens_the_fold_and_a_new_compaction_folds_again(tmp_path):
    folding = using(display=DisplaySettings(collapse_compacted=True))
    async with on_stage(tmp_path, *COMPACTED, prepare=folding) as stage:
        row = stage.text.split("\n").index("  … 2 earlier messages · enter to show")
        await stage.pilot.click(offset=(5, row))
        await stage.settle()
        assert "a1" in stage.text
        newer = path(*COMPACTED, compaction("again", "e5"))[-1]
        stage.runtime.append(newer)
        await stage.settle()
        assert "… 3 earlier messages · enter to show" in stage.text


async def test_key_folds_and_shows_at_run_time(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "keybindings.json").write_text('{"app.transcript.collapse": "f6"}')
    async with on_stage(tmp_path, *COMPACTED) as stage:
        first = stage.text
        await stage.press("f6")
        assert "… 2 earlier messages" in stage.text
        await stage.press("f6")
        assert stage.text == first


LONG = path(
    *(part for number in range(30) for part in (u(f"question {number}"), a(f"answer {number}"))),
    compaction("the sum", "e31"),
)


def rows_without_scroll_mark(stage: Stage) -> list[str]:
    return [row.rstrip(" │") for row in stage.text.split("\n")[:15]]


async def test_what_is_read_stays_when_history_is_folded_and_shown(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    (config / "keybindings.json").write_text('{"app.transcript.collapse": "f6"}')
    async with on_stage(tmp_path, *LONG) as stage:
        await stage.press("pageup", "pageup")
        reading = rows_without_scroll_mark(stage)
        assert "› question 20" in reading
        await stage.press("f6")
        assert rows_without_scroll_mark(stage) == reading
        await stage.press("f6")
        assert rows_without_scroll_mark(stage) == reading
        await stage.press("ctrl+home", "pagedown")
        assert "question 5" in stage.text
        await stage.press("f6")
        assert stage.text.split("\n")[0] == "  … 30 earlier messages · enter to show"


# the idle clock

IDLE = using(compaction=CompactionSettings(idle_enabled=True))


async def test_any_key_paste_and_wheel_is_told_at_most_once_a_second(tmp_path):
    async with on_stage(tmp_path, prepare=IDLE) as stage:
        await stage.press("left", "right", "left")
        assert stage.sent == [Touch()]
        stage.clock.advance(1.0)
        stage.app.post_message(events.MouseScrollDown(None, 3, 3, 0, 0, 0, False, False, False, 3, 3, None))
        await stage.pilot.pause()
        assert stage.sent == [Touch(), Touch()]
        stage.clock.advance(1.0)
        await stage.press("right")
        assert stage.sent == [Touch()] * 3


async def test_editor_tells_when_it_is_filled_and_empty_again(tmp_path):
    async with on_stage(tmp_path, prepare=IDLE) as stage:
        await stage.type("ab")
        await stage.press("backspace", "backspace")
        await stage.paste("text")
        changes = [intent for intent in stage.sent if isinstance(intent, EditorChanged)]
        assert changes == [EditorChanged(False), EditorChanged(True), EditorChanged(False)]
        await stage.tell(SessionReady(stage.runtime.view_now))
        assert stage.sent[-1] == EditorChanged(False)


async def test_nothing_is_told_while_no_idle_pass_is_wanted(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.type("ab")
        await stage.tell(SessionReady(stage.runtime.view_now))
        assert stage.sent == []


def counted_paints(stage: Stage) -> list[int]:
    """A list that grows with every repaint of the footer."""
    paints: list[int] = []
    footer = stage.app.main.footer
    real = footer.refresh

    def refresh(*args: Any, **fields: Any) -> Any:
        paints.append(1)
        return real(*args, **fields)

    footer.refresh = refresh
    return paints


@pytest.mark.parametrize(
    ("shown", "at_300", "at_60", "at_42"),
    [
        ("off", "", "", ""),
        ("last-minute", "", "idle 1:00", "idle 0:42"),
        ("always", "idle 5:00", "idle 1:00", "idle 0:42"),
    ],
)
async def test_footer_counts_down_as_the_setting_says(tmp_path: Path, shown, at_300, at_60, at_42):
    prepare = using(display=DisplaySettings(idle_countdown=shown))
    async with on_stage(tmp_path, prepare=prepare) as stage:

        async def expect(text: str) -> None:
            stage.app.main.footer.refresh_row()
            await stage.settle()
            assert ("idle " in stage.text) is bool(text)
            assert text in stage.text

        await stage.tell(IdleCountdown(300))
        await expect(at_300)
        stage.clock.advance(240)
        await expect(at_60)
        stage.clock.advance(18)
        await expect(at_42)
        await stage.tell(IdleCountdown(None))
        await expect("")


async def test_countdown_paints_once_a_second_and_nothing_afterwards(tmp_path):
    async with on_stage(tmp_path) as stage:
        await stage.tell(IdleCountdown(50))
        assert "idle 0:50" in stage.text
        paints = counted_paints(stage)
        await stage.pilot.pause(0.5)
        assert paints == []
        stage.clock.advance(1.0)
        await stage.until(lambda: len(paints) == 1)
        assert "idle 0:49" in stage.text
        await stage.tell(IdleCountdown(None))
        count = len(paints)
        stage.clock.advance(10.0)
        await stage.pilot.pause(1.2)
        assert len(paints) == count
        assert "idle" not in stage.text.split("\n")[-1]
