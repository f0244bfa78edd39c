"""kill -9 at any moment: what was told as stored is in the file."""

import json
from pathlib import Path

import pytest

from musepi_tui.storage.loading import load_session
from tests.support.harness import runtime_options, write_models
from tests.support.server import ModelServer, anthropic_reply
from tests.support.zygote import Zygote


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 7, 40])
def test_acknowledged_entries_survive_a_kill(zygote: Zygote, musepi_home: Path, tmp_path: Path, after: int):
    with ModelServer() as server:
        server.fallback = anthropic_reply(text="some words of an answer " * 20, tools=[("ls", {})], rate=2000)
        write_models(musepi_home, "anthropic-messages", server.base_url)
        arguments = (str(musepi_home), str(tmp_path / "project"))
        with zygote.start(*arguments, module="tests.support.saving_program", cwd=tmp_path) as child:
            path, saved = None, []
            while len(saved) < after:
                line = child.stdout.readline().decode()
                assert line, child.stderr.read().decode()
                word, _, value = line.strip().partition(" ")
                if word == "file":
                    path = Path(value)
                elif word == "saved":
                    saved.append(value)
            child.kill()
            rest = child.stdout.read().decode().split("\n")
    saved += [line.partition(" ")[2] for line in rest if line.startswith("saved ")]
    loaded = load_session(path)
    assert [entry_id for entry_id in saved if entry_id not in loaded.tree] == []
    assert [issue for issue in loaded.issues if issue.kind != "torn_tail"] == []
    first = json.loads(path.read_text().split("\n", 1)[0])
    assert first["type"] == "session"


def test_the_options_of_the_child_are_those_of_the_tests(musepi_home: Path, tmp_path: Path):
    write_models(musepi_home, "anthropic-messages", "http://127.0.0.1:9")
    assert runtime_options(musepi_home, tmp_path / "p").model == "local/m1"
