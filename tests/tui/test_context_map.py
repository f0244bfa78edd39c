from typing import Any

import pytest

from musepi_tui.context.breakdown import ORDER
from musepi_tui.tui.screens.context import Figures, block_map
from musepi_tui.tui.screens.context_map import BEYOND, FREE, mark_of
from musepi_tui.tui.themes import load_palette
from tests.support.screens import Stage, on_stage
from tests.tui.test_upkeep import FIGURES

PARTS = (*ORDER, BEYOND, FREE)
LETTERS = [
    "S T T T M K K K K K",
    "U R R R R R R R R R",
    "R R R R R R R R B B",
    "B . . . . . . . . .",
    *[". . . . . . . . . ."] * 6,
]
ASCII = {"MUSEPI_ASCII": "1"}


async def opened(stage: Stage, **figures: Any) -> list[str]:
    """The rows of the screen with the panel open."""
    stage.app.host.show("context")
    stage.runtime.settle(**FIGURES | figures)
    await stage.settle()
    return stage.text.split("\n")


def map_in(rows: list[str]) -> list[str]:
    """The rows of the map, which begins below its caption."""
    top = next(at for at, row in enumerate(rows) if "each ~" in row)
    column = rows[top].index("each ~")
    return [row[column:] for row in rows[top + 1 : top + 11]]


async def test_whole_map_is_seen_beside_the_table_on_a_screen_of_24_rows(tmp_path):
    async with on_stage(tmp_path, environ=ASCII) as stage:
        rows = await opened(stage)
        assert map_in(rows) == LETTERS
        assert any(row.startswith("  R tool results          33,750   16.9%  ###  ") for row in rows)
        assert any(row.startswith("      project/AGENTS.md    1,200    0.6%  ") for row in rows)


async def test_blocks_have_the_colours_of_their_parts(tmp_path):
    async with on_stage(tmp_path) as stage:
        rows = await opened(stage)
        assert "".join(map_in(rows)).replace(" ", "") == "▰" * 31 + "▱" * 69
        palette = stage.app.looks.palette
        strips = stage.app.screen._compositor.render_strips()
        marks = {
            (segment.text.strip(), segment.style.color)
            for strip in strips
            for segment in strip
            if segment.style is not None and segment.text.strip() in {"▰", "▱"}
        }
        for part in ("system prompt", "tools", "summary", "kept tail", "user", "tool results"):
            sign, style = mark_of(part, palette)
            assert sign == "▰"
            assert style.color in {color for _, color in marks}


@pytest.mark.parametrize("size", [(60, 24), (40, 12)])
async def test_narrow_screen_has_the_table_alone(tmp_path, size):
    async with on_stage(tmp_path, size=size) as stage:
        rows = await opened(stage)
        assert "each ~" not in stage.text
        assert "What it consists of" in stage.text
        assert not any(row.startswith("  ▰") for row in rows)


async def test_map_comes_and_goes_with_the_width(tmp_path):
    async with on_stage(tmp_path, size=(60, 24), environ=ASCII) as stage:
        await opened(stage)
        await stage.pilot.resize_terminal(80, 24)
        await stage.settle()
        assert map_in(stage.text.split("\n")) == LETTERS
        await stage.pilot.resize_terminal(60, 24)
        await stage.settle()
        assert "each ~" not in stage.text


async def test_nothing_but_the_table_stands_beside_the_map(tmp_path):
    parts = [{"name": "system prompt", "tokens": 900}]
    small = {"parts": parts, "tokens": 900, "beyondParts": 0, "toolResults": [], "contextFiles": []}
    async with on_stage(tmp_path, size=(80, 40)) as stage:
        rows = await opened(stage, **small)
        assert len([row for row in map_in(rows) if set(row) <= {"▰", "▱", " "}]) == 10
        assert "results and large blocks, into an artifact" in stage.text


async def test_figures_that_need_the_place_keep_it(tmp_path):
    large = {"tokens": 12_345_678, "window": 20_000_000, "threshold": 19_000_000}
    large |= {"parts": [{"name": "user", "tokens": 12_345_678}], "beyondParts": 0, "contextFiles": []}
    async with on_stage(tmp_path, size=(60, 24)) as stage:
        rows = await opened(stage, **large)
        assert "    12,345,678 tokens  of 20,000,000 · 62%" in rows
        assert "each ~" not in stage.text
        assert any(row.endswith(" ▰ ▰ ▰ ▰ ▰ ▰ ▰ ▰ ▰ ▰") for row in rows)


@pytest.mark.parametrize(
    "figures",
    [
        {"window": None, "threshold": None, "budgetReserve": None, "percent": None},
        {"parts": [], "window": None},
    ],
)
def test_unknown_window_has_no_map(figures):
    assert block_map(Figures.read(FIGURES | figures), 120) is None


@pytest.mark.parametrize("figures", [{}, {"tokens": 230_000, "beyondParts": -1_234}, {"parts": []}])
def test_map_has_a_hundred_blocks(figures):
    made = block_map(Figures.read(FIGURES | figures), 120)
    assert made is not None
    assert len(made.blocks) == 100
    assert ("free" in made.blocks) is (figures.get("tokens", 0) < 200_000)


@pytest.mark.parametrize("theme", ["dark", "light", "ansi", "high-contrast", "mono"])
@pytest.mark.parametrize("environ", [{}, ASCII])
def test_no_two_parts_look_the_same(theme, environ):
    palette = load_palette(theme, environ)
    marks = {part: mark_of(part, palette) for part in PARTS}
    assert len({(sign, style.color) for sign, style in marks.values()}) == len(PARTS)
    if environ or theme not in {"dark", "light"}:
        assert len({sign for sign, _ in marks.values()}) == len(PARTS)
