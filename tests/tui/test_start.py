import json
import os
import subprocess
import sys

_PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from musepi_tui.tui.app import MusepiApp
from musepi_tui.tui.driver import patch_toolkit
from tests.support.fake_runtime import FakeRuntime

async def main():
    runtime = FakeRuntime(Path(sys.argv[1]))
    loaded = []
    runtime.begin = lambda: (loaded.extend(sys.modules), app.exit(0))
    patch_toolkit()
    app = MusepiApp(runtime, {"LANG": "C.UTF-8"})
    await app.run_async(headless=True)
    print(json.dumps(loaded))

asyncio.run(main())
"""

HEAVY = (
    "httpx",
    "tiktoken",
    "markdown_it",
    "pygments",
    "rich.markdown",
    "textual.widgets._markdown",
    "truststore",
    "pathspec",
    "musepi_tui.commands.builtin.help",
    "musepi_tui.tui.screens.panel",
    "musepi_tui.providers.wire.anthropic",
    "musepi_tui.providers.demo.script",
    "musepi_tui.tools.builtin.bash",
    "musepi_tui.settings.write",
)


def test_first_frame_needs_none_of_the_heavy_modules(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
    )
    assert run.returncode == 0, run.stderr
    loaded = set(json.loads(run.stdout.splitlines()[-1]))
    assert "textual" in loaded
    assert sorted(loaded & set(HEAVY)) == []
