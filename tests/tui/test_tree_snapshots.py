"""How the tree and what belongs to it look. ``make snap`` writes the pictures again."""

import time
from dataclasses import replace

import pytest

from musepi_tui.providers.types import Prices
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import BranchSummarySettings, DisplaySettings, Settings
from musepi_tui.tui.transcript.engines import load_engines
from tests.support.branches import PARSER, growing
from tests.support.builders import START_MS
from tests.support.fake_runtime import SONNET
from tests.support.screens import on_stage
from tests.support.snapshot import assert_snapshot

SIZES = {"80x24": (80, 24), "120x40": (120, 40)}
PRICED = replace(SONNET, prices=Prices(input=3.0, output=15.0))


@pytest.fixture(params=sorted(SIZES), ids=sorted(SIZES))
def size(request):
    return request.param


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def still(runtime):
    load_engines()
    display, asking = DisplaySettings(animations=False), BranchSummarySettings(enabled=True)
    runtime.options.settings = LoadedSettings(Settings(display=display, branch_summary=asking))
    runtime.offered = (PRICED,)
    runtime.options.clock.advance(START_MS / 1000)
    growing("added")(runtime)


@pytest.fixture
def tree(tmp_path, size):
    def open_stage(cells=None, **fields):
        fields.setdefault("model", PRICED)
        return on_stage(tmp_path, *PARSER, size=cells or SIZES[size], prepare=still, **fields)

    return open_stage


async def show(it, *keys, typed=""):
    it.app.navigation.open_tree()
    await it.settle()
    for key in keys:
        await it.press(key)
        await it.settle()
    if typed:
        await it.type(typed)
        await it.settle()


async def test_tree(tree, size):
    async with tree() as it:
        await show(it)
        assert_snapshot(it.app, f"tree-{size}")


@pytest.mark.parametrize("theme", ["light", "mono", "high-contrast"])
async def test_tree_in_other_themes(tree, size, theme):
    async with tree() as it:
        it.app.looks.preview(theme)
        await it.settle()
        await show(it, "up", "up")
        assert_snapshot(it.app, f"tree-{theme}-{size}")


async def test_tree_with_ascii_signs(tree, size):
    async with tree(environ={"MUSEPI_ASCII": "1"}) as it:
        await show(it, "down", "ctrl+left")
        assert_snapshot(it.app, f"tree-ascii-{size}")


async def test_tree_folded_with_all_entries_and_label_times(tree, size):
    async with tree() as it:
        await show(it, "alt+a", "T", "end", "ctrl+left", "ctrl+left", "home", *["down"] * 5)
        assert_snapshot(it.app, f"tree-all-{size}")


async def test_tree_searched(tree, size):
    async with tree() as it:
        await show(it, typed="quot")
        assert_snapshot(it.app, f"tree-search-{size}")


async def test_label_being_edited(tree, size):
    async with tree() as it:
        await show(it, "up", "L", typed="examples")
        assert_snapshot(it.app, f"tree-label-{size}")


async def test_tree_with_an_edit_in_full(tree, size):
    async with tree() as it:
        await show(it, "home", "down", "down", "down")
        assert_snapshot(it.app, f"tree-edit-{size}")


async def test_question_on_leaving(tree, size):
    async with tree() as it:
        it.app.navigation.go("cannot")
        await it.shows("est. $")
        assert_snapshot(it.app, f"leaving-{size}")


async def test_question_that_cannot_be_answered_with_a_summary(tree, size):
    async with tree(model=None) as it:
        it.app.navigation.go("cannot")
        await it.shows("tokens")
        assert_snapshot(it.app, f"leaving-without-model-{size}")


async def test_custom_prompt(tree, size):
    async with tree() as it:
        it.app.navigation.go("cannot")
        await it.shows("est. $")
        await it.press("end", "enter")
        await it.settle()
        await it.type("Keep the inputs that failed.")
        await it.settle()
        assert_snapshot(it.app, f"leaving-prompt-{size}")


@pytest.mark.parametrize("cells", [(80, 40), (40, 12)], ids=["80x40", "40x12"])
async def test_tree_at_other_sizes(tmp_path, cells):
    async with on_stage(tmp_path, *PARSER, size=cells, prepare=still, model=PRICED) as it:
        await show(it, "end")
        assert_snapshot(it.app, f"tree-{cells[0]}x{cells[1]}")
