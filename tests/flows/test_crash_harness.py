"""kill -9 at random moments of long runs over RPC: the file stays sound and holds everything told."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.crashes import KilledSession, Moment, answer, any_moment
from tests.support.harness import write_models
from tests.support.lines import chain, dump, header_line
from tests.support.minimal_reader import read_session
from tests.support.server import ModelServer
from tests.support.stored import format_checker
from tests.support.zygote import Zygote

LIVES = 5
"""How often one session is killed: each life but the first one resumes what a kill left."""

SLOT = b'{"type":"title","v":1,"title":"Tally","source":"user","updatedAt":"2026-01-02T00:00:00.000Z","pad":"'


def _new(_: Path) -> tuple[str, ...]:
    return ()


def _version_one(path: Path) -> tuple[str, ...]:
    """A file that the first append writes anew."""
    records = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")}
        for line in chain(*(f"text {number} " * 8 for number in range(12)))
    ]
    path.write_bytes(b"".join(map(dump, [header_line(None, cwd=str(path.parent)), *records])))
    return _ids_in(path)


def _torn_with_slot(path: Path) -> tuple[str, ...]:
    lines = b"".join(map(dump, [header_line(cwd=str(path.parent)), *chain("one", "two", "three")]))
    path.write_bytes(SLOT.ljust(253) + b'"}\n' + lines + b'{"type":"message","id":"e4","par')
    return _ids_in(path)


def _ids_in(path: Path) -> tuple[str, ...]:
    return tuple(read_session(path).order)


KINDS: tuple[Callable[[Path], tuple[str, ...]], ...] = (_new, _version_one, _new, _torn_with_slot)


@pytest.fixture
def chance(request: pytest.FixtureRequest, musepi_home: Path) -> Iterator[random.Random]:
    """Seeded; a model server answers by the same chance."""
    chance = random.Random(request.param)
    with ModelServer() as server:
        server.choose = lambda seen: answer(seen, chance)
        write_models(musepi_home, "anthropic-messages", server.base_url, contextWindow=6000, maxTokens=500)
        yield chance


@dataclass
class Toll:
    """How many kills there were, what had been acknowledged before them, what was wrong afterwards."""

    kills: int = 0
    entries: int = 0
    names: int = 0
    compactions: int = 0
    problems: list[str] = field(default_factory=list)
    leftovers: set[str] = field(default_factory=set)


def kill_again_and_again(kills: int, zygote: Zygote, chance: random.Random, folder: Path) -> Toll:
    """Kills sessions so often; ends at the first thing wrong."""
    toll = Toll()
    for number in range(0, kills, LIVES):
        path = folder / f"{number}.jsonl"
        session = KilledSession(path, folder, KINDS[number // LIVES % len(KINDS)](path))
        for _ in range(LIVES):
            moment = any_moment(chance)
            session.live(zygote, chance, moment)
            toll.kills += 1
            toll.problems += [f"kill {toll.kills} at {moment}: {found}" for found in session.problems()]
            if toll.problems:
                return toll
        toll.entries += len(session.acknowledged)
        toll.compactions += session.compactions
        toll.names += len(session.names)
        files = {item.name for item in folder.glob(f"*{number}.jsonl*")}
        toll.leftovers |= files - {path.name, f"{path.name}.lock", f"{path.name}.v1.bak"} - temporary(files)
    return toll


def temporary(names: set[str]) -> set[str]:
    """Files a rewrite was killed in; the next listing removes them."""
    return {name for name in names if name.startswith(".") and name.endswith(".tmp")}


@pytest.mark.parametrize("chance", [0], indirect=True, ids=["seed 0"])
def test_ten_kills_cost_nothing_that_was_told(zygote, chance, tmp_path):
    toll = kill_again_and_again(10, zygote, chance, tmp_path)
    assert (toll.problems, toll.leftovers, toll.kills) == ([], set(), 10)
    assert toll.entries > 0
    assert toll.names > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("chance", [1, 2, 3, 4], indirect=True, ids="seed {}".format)
def test_fifty_kills_cost_nothing_that_was_told(zygote, chance, tmp_path):
    toll = kill_again_and_again(50, zygote, chance, tmp_path)
    assert (toll.problems, toll.leftovers, toll.kills) == ([], set(), 50)
    assert toll.compactions >= 10
    assert toll.names > 0


@pytest.mark.parametrize("chance", [5], indirect=True, ids=["seed 5"])
def test_a_file_that_was_killed_again_and_again_passes_the_checker_of_the_format(zygote, chance, tmp_path):
    check = format_checker()
    session = KilledSession(tmp_path / "s.jsonl", tmp_path)
    for _ in range(LIVES):
        session.live(zygote, chance, Moment(("message_end",), chance.randint(4, 9), chance.uniform(0, 0.01)))
    found = check(str(session.path))
    assert (found["problems"], found["warnings"]) == ([], {})
    assert set(session.acknowledged) <= set(read_session(session.path).order)


@pytest.mark.parametrize("chance", [6], indirect=True, ids=["seed 6"])
def test_an_acknowledged_entry_that_is_gone_would_be_noticed(zygote, chance, tmp_path):
    session = KilledSession(tmp_path / "s.jsonl", tmp_path)
    session.live(zygote, chance, Moment(("message_end",), 4, 0))
    lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(b"".join(lines[:-1]))
    lost = json.loads(lines[-1])["id"]
    session.acknowledged.setdefault(lost, None)
    assert f"the acknowledged entry {lost} is not on the path" in session.problems()
