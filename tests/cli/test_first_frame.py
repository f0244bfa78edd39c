import os
from pathlib import Path

import pytest

from tests.bench.sessions import write_session
from tests.support.pty import Terminal

# Stops where loading would begin: right after the first frame was drawn.
_PROGRAM = """
import os, sys
from musepi_tui.cli.main import main
from musepi_tui.runtime.session import SessionRuntime

def begin(self):
    with open(sys.argv[1], "w") as file:
        file.write("\\n".join(sys.modules))
    os._exit(0)

SessionRuntime.begin = begin
main(sys.argv[2:])
"""

_LATER = (
    "hashlib",
    "httpx",
    "importlib.resources",
    "markdown_it",
    "pathspec",
    "pydantic",
    "pydantic_core",
    "pygments",
    "rich.markdown",
    "secrets",
    "sqlite3",
    "tiktoken",
    "truststore",
    "musepi_tui.base.http",
    "musepi_tui.base.process",
    "musepi_tui.base.tokenizer",
    "musepi_tui.commands.builtin.",
    "musepi_tui.context.",
    "musepi_tui.maintenance.",
    "musepi_tui.providers.demo",
    "musepi_tui.providers.registry",
    "musepi_tui.providers.wire.",
    "musepi_tui.runtime.assembly",
    "musepi_tui.runtime.loop",
    "musepi_tui.storage.listing",
    "musepi_tui.tools.builtin",
    "musepi_tui.tools.registry",
    "musepi_tui.tui.screens.",
)
"""Needed after the first frame only; one that ends in a dot stands for what is in that package."""


@pytest.mark.parametrize("is_stored", [pytest.param(False, id="new"), pytest.param(True, id="stored")])
def test_first_frame_of_the_program_loads_nothing_that_is_needed_later(tmp_path, is_stored):
    arguments = []
    if is_stored:
        write_session(tmp_path / "session.jsonl", 60, tmp_path)
        arguments = ["--session", str(tmp_path / "session.jsonl")]
    loaded = _modules_at_first_frame(tmp_path / "modules", arguments)
    assert "musepi_tui.tui.app" in loaded
    assert "asyncio" in loaded
    assert [name for name in loaded if name.startswith(_LATER)] == []


def _modules_at_first_frame(told: Path, arguments: list[str]) -> list[str]:
    environ = {**os.environ, "TERM": "xterm-256color"}
    terminal = Terminal(["-c", _PROGRAM, str(told), *arguments], environ, size=(100, 30))
    try:
        assert terminal.exit_code(30) == 0
    finally:
        terminal.end()
    return told.read_text().split("\n")
