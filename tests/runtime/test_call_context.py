import asyncio
from pathlib import Path

from musepi_tui.runtime.call_context import PROGRESS_EVERY_S, CallContext, ToolKit
from musepi_tui.runtime.events import ToolProgress
from musepi_tui.storage.artifacts import ArtifactStore
from musepi_tui.tools.approval.decide import Policy
from musepi_tui.tools.paths import Workspace
from musepi_tui.tools.registry import ToolRegistry
from tests.support.clock import FakeClock


def context(folder: Path):
    told: list[ToolProgress] = []
    clock = FakeClock()
    kit = ToolKit(
        ToolRegistry(()),
        Workspace(folder),
        ArtifactStore(folder / "a"),
        Policy,
        lambda: {"MUSEPI": "1"},
        told.append,
    )
    return CallContext("c1", kit, clock), told, clock


async def test_the_first_progress_is_shown_at_once_and_the_newest_a_moment_later(tmp_path: Path):
    made, told, _ = context(tmp_path)
    for text in ("1", "1 2", "1 2 3"):
        made.progress(text)
    assert told == [ToolProgress("c1", "1")]
    await asyncio.sleep(PROGRESS_EVERY_S * 3)
    assert told[1] == ToolProgress("c1", "1 2 3")


async def test_progress_is_shown_again_when_enough_time_has_passed(tmp_path: Path):
    made, told, clock = context(tmp_path)
    made.progress("1")
    clock.advance(PROGRESS_EVERY_S)
    made.progress("2")
    assert [event.text for event in told] == ["1", "2"]


async def test_nothing_is_shown_once_the_call_is_over(tmp_path: Path):
    made, told, _ = context(tmp_path)
    made.progress("1")
    made.progress("2")
    made.close()
    made.progress("3")
    await asyncio.sleep(PROGRESS_EVERY_S * 1.5)
    assert [event.text for event in told] == ["1"]


async def test_blocking_work_runs_in_a_thread(tmp_path: Path):
    made, _, _ = context(tmp_path)
    assert await made.in_thread(lambda number: number + 1, 1) == 2
    assert made.environment == {"MUSEPI": "1"}
