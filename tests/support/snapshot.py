"""Pictures of screens as SVG files: compared, or written again with ``MUSEPI_SNAP=1`` (``make snap``)."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

from textual.app import App

from musepi_tui import __version__

WRITE = os.environ.get("MUSEPI_SNAP") == "1"
"""Read when tests are collected: each test runs without the variables of the program."""
FOLDER = Path(__file__).resolve().parents[1] / "snapshots"


def screen_text(app: App[Any]) -> str:
    """The rows of the screen as text, without blanks at line ends: the readable form for asserts."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


def screen_svg(app: App[Any]) -> str:
    """The screen as SVG; what differs from run to run (ids, web fonts, versions) is made equal."""
    svg = app.export_screenshot(title="musepi", simplify=True).replace(__version__, "0.0.0")
    svg = re.sub(r"terminal-\d+", "T", svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    return re.sub(r"font-family: ?[^;]+;", "font-family: DejaVu Sans Mono, monospace;", svg) + "\n"


def assert_snapshot(app: App[Any], name: str) -> None:
    """Compares the screen with ``tests/snapshots/<name>.svg``; fails naming both files."""
    path = FOLDER / f"{name}.svg"
    now = screen_svg(app)
    path.parent.mkdir(exist_ok=True)
    if WRITE:
        path.write_text(now, encoding="utf-8")
        return
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    if stored != now:
        actual = Path(tempfile.gettempdir()) / "musepi-snapshots" / path.name
        actual.parent.mkdir(exist_ok=True)
        actual.write_text(now, encoding="utf-8")
        raise AssertionError(
            f"the screen differs from {path.name}: look at {actual}, then run make snap if it is right"
        )
