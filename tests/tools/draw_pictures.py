"""Draws the pictures of the README from the running program. Run by ``make snap``.

The program runs on its demo in a home of its own, with no terminal attached; what it shows is written as SVG.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from textual.pilot import Pilot

from musepi_tui.cli.launch import Place, make_runtime_options
from musepi_tui.cli.options import parse_options
from musepi_tui.runtime.events import AgentSettled
from musepi_tui.runtime.session import SessionRuntime
from musepi_tui.settings.load import load_settings
from musepi_tui.storage.paths import find_paths
from musepi_tui.tui.app import MusepiApp
from tests.support.checkout import ROOT
from tests.support.snapshot import screen_text

FOLDER = ROOT / "docs" / "pictures"
PATIENCE_S = 90
MAX_SCROLL_ROWS = 300
FONTS = "ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
"""In place of the font that Rich's pictures load from the network."""

Show: TypeAlias = Callable[[Pilot[int], SessionRuntime], Awaitable[None]]


@dataclass(frozen=True)
class Picture:
    """``show`` brings the screen, ``size`` columns and rows large, to what is drawn."""

    show: Show
    size: tuple[int, int]


async def _ask(pilot: Pilot[int], runtime: SessionRuntime, text: str) -> None:
    """Types a prompt, sends it, and waits until everything it set off is over."""
    events = runtime.subscribe()
    await pilot.press(*("space" if key == " " else key for key in text), "enter")
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            if isinstance(event, AgentSettled):
                break
    events.close()
    await pilot.pause(0.5)


async def _scroll_to(pilot: Pilot[int], words: str, row: int) -> None:
    """Scrolls back until ``words`` stand in that row of the screen."""
    for _ in range(MAX_SCROLL_ROWS):
        if words in screen_text(pilot.app).split("\n")[row]:
            return
        await pilot.press("shift+up")
    raise SystemExit(f"{words!r} is nowhere on the screen")


async def _fix(pilot: Pilot[int], runtime: SessionRuntime) -> None:
    await _ask(pilot, runtime, "fix the bug")
    await _scroll_to(pilot, "edit ", row=0)


async def _compact(pilot: Pilot[int], runtime: SessionRuntime) -> None:
    for prompt in ("fix the bug", "explain the code", "add a feature"):
        await _ask(pilot, runtime, prompt)
    await pilot.press("ctrl+o")
    await pilot.pause(0.5)
    await _scroll_to(pilot, "compacted", row=7)


async def _branch(pilot: Pilot[int], runtime: SessionRuntime) -> None:
    await _ask(pilot, runtime, "explain the code")
    await _ask(pilot, runtime, "fix the bug")
    await _press(pilot, "escape", "escape", "alt+u", "enter", "ctrl+u")
    await _ask(pilot, runtime, "make a table")
    await _press(pilot, "escape", "escape", "alt+t")


async def _press(pilot: Pilot[int], *keys: str) -> None:
    """Presses keys as a person does, each once the one before has been seen to."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause(0.2)


PICTURES = {
    "screen": Picture(_fix, (100, 46)),
    "compaction": Picture(_compact, (100, 40)),
    "tree": Picture(_branch, (120, 40)),
}


async def draw(name: str, picture: Picture, home: Path) -> Path:
    """Runs the program in ``home/my-project``, lets it be used, and writes what is on the screen."""
    environ = {
        "HOME": str(home),
        "MUSEPI_HOME": str(home / name),
        "MUSEPI_OFFLINE": "1",
        "COLORTERM": "truecolor",
    }
    os.environ.update(environ)
    overrides = ["theme=dark", "permissions.mode=auto-edit", 'permissions.allow=["bash"]']
    place = Place(find_paths(os.environ), Path.cwd(), load_settings(home / name, None, overrides=overrides))
    flags = parse_options(["--provider", "demo", "--model", "demo"])
    options = make_runtime_options(flags, place, os.environ, interactive=True)
    async with SessionRuntime.open(options) as runtime:
        app = MusepiApp(runtime, os.environ)
        async with app.run_test(size=picture.size) as pilot:
            await pilot.pause(1.0)
            await picture.show(pilot, runtime)
            target = FOLDER / f"{name}.svg"
            target.write_text(without_web_font(app.export_screenshot(title="musepi")), encoding="utf-8")
            return target


def without_web_font(svg: str) -> str:
    """The picture drawn with a font of the reader's machine; every cell keeps its place."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("font-family: Fira Code, monospace;", f"font-family: {FONTS};")


def main() -> None:
    """Draws every picture, or those named on the command line."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    # So that the pictures show `python3` and not where this checkout is.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve() / "my-project"
        project.mkdir()
        os.chdir(project)
        for name in sys.argv[1:] or PICTURES:
            target = asyncio.run(draw(name, PICTURES[name], project.parent))
            sys.stdout.write(f"{target.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
