"""kill -9 at any moment: what was told as stored is in the file."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from musepi_tui.storage.loading import load_session
from tests.support.harness import runtime_options, write_models
from tests.support.server import ModelServer, anthropic_reply

CHILD = """
import asyncio, sys
from pathlib import Path
from musepi_tui.runtime.events import EntryAppended
from musepi_tui.runtime.intents import SubmitPrompt
from musepi_tui.runtime.session import SessionRuntime
from tests.support.harness import runtime_options

async def main(home, project):
    async with SessionRuntime.open(runtime_options(Path(home), Path(project))) as runtime:
        events = runtime.subscribe()
        runtime.begin()
        for number in range(100):
            runtime.send(SubmitPrompt(f"prompt {number}", delivery="follow_up"))
        print("file", runtime.view().file, flush=True)
        async for event in events:
            if isinstance(event, EntryAppended) and event.saved:
                print("saved", event.entry.id, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 7, 40])
async def test_acknowledged_entries_survive_a_kill(musepi_home: Path, tmp_path: Path, after: int):
    with ModelServer() as server:
        server.fallback = anthropic_reply(text="some words of an answer " * 20, tools=[("ls", {})], rate=2000)
        write_models(musepi_home, "anthropic-messages", server.base_url)
        root = Path(__file__).parents[2]
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            CHILD,
            str(musepi_home),
            str(tmp_path / "project"),
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
            stdout=asyncio.subprocess.PIPE,
        )
        path, saved = None, []
        async with asyncio.timeout(30):
            while len(saved) < after:
                word, _, value = (await child.stdout.readline()).decode().strip().partition(" ")
                if word == "file":
                    path = Path(value)
                elif word == "saved":
                    saved.append(value)
            child.send_signal(signal.SIGKILL)
            rest = (await child.stdout.read()).decode().split("\n")
            await child.wait()
    saved += [line.partition(" ")[2] for line in rest if line.startswith("saved ")]
    loaded = load_session(path)
    assert [entry_id for entry_id in saved if entry_id not in loaded.tree] == []
    assert [issue for issue in loaded.issues if issue.kind != "torn_tail"] == []
    first = json.loads(path.read_text().split("\n", 1)[0])
    assert first["type"] == "session"


def test_the_options_of_the_child_are_those_of_the_tests(musepi_home: Path, tmp_path: Path):
    write_models(musepi_home, "anthropic-messages", "http://127.0.0.1:9")
    assert runtime_options(musepi_home, tmp_path / "p").model == "local/m1"
