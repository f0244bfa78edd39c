"""kill -9 in the middle of passes of every kind: the file stays sound, and what it says is one state."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from musepi_tui.session.entries import CompactionEntry
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from tests.support.crashes import KilledSession, Moment
from tests.support.harness import write_models
from tests.support.server import ModelServer, Reply, SeenRequest, anthropic_reply, status_reply
from tests.support.stored import keeps_the_rules
from tests.support.zygote import Zygote

LIVES = 6
LARGE_BYTES = 9_000
"""A request that has something to compact in it; system prompt and tools alone are 5,200."""
DURING = ("auto_compaction_start", "compaction_progress", "auto_compaction_end")
KINDS = ("threshold", "mid-turn", "overflow", "incomplete")


class Trouble:
    """A model whose answers lead to passes of one kind again and again."""

    def __init__(self, kind: str, chance: random.Random) -> None:
        self._kind = kind
        self._chance = chance
        self._number = 0

    def __call__(self, request: SeenRequest) -> Reply:
        if not request.body.get("tools"):
            return anthropic_reply(text="## Goal\nKeep counting.").slow(self._chance.choice((0, 0.002)))
        self._number += 1
        words = "word-" * self._chance.randrange(200, 1500)
        troubled = self._number % 3 == 0 and len(request.raw) > LARGE_BYTES
        match self._kind:
            case "mid-turn":
                read = ("read", {"path": "big.txt", "limit": self._number}, f"toolu_{self._number}")
                return anthropic_reply(text=words, tools=[] if self._number % 3 == 0 else [read])
            case "overflow" if troubled:
                error = {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}
                return status_reply(400, {"type": "error", "error": error})
            case "incomplete" if troubled:
                used = {"input_tokens": 5_500, "output_tokens": 300}
                return anthropic_reply(text=words, stop="max_tokens", usage=used)
            case _:
                return anthropic_reply(text=words)


@pytest.fixture
def chance(request: pytest.FixtureRequest, musepi_home: Path, tmp_path: Path) -> Iterator[random.Random]:
    """Seeded; a model server makes the trouble."""
    kind, seed = request.param
    chance = random.Random(seed)
    (tmp_path / "big.txt").write_text("a line of a large file\n" * 400)
    with ModelServer() as server:
        server.choose = Trouble(kind, chance)
        write_models(musepi_home, "anthropic-messages", server.base_url, contextWindow=6_000, maxTokens=500)
        yield chance


def any_moment_of_a_pass(chance: random.Random) -> Moment:
    """While it runs, or right after the one before it."""
    return Moment(DURING, chance.randint(1, 10), chance.uniform(0, 0.02))


def kill_in_passes(zygote: Zygote, chance: random.Random, folder: Path, lives: int) -> int:
    """Kills one session so often in the middle of a pass; how many compactions its file has."""
    session = KilledSession(folder / "s.jsonl", folder)
    for life in range(lives):
        moment = any_moment_of_a_pass(chance)
        session.live(zygote, chance, moment)
        assert keeps_the_rules(session.path), f"life {life} at {moment}"
        check_one_state(session.path)
        gone = [text for text in session.problems() if "compaction" in text]
        assert gone == [], f"life {life} at {moment}"
    loaded = load_session(session.path)
    return sum(head.type == "compaction" for head in loaded.heads)


def check_one_state(path: Path) -> None:
    """The context can be rebuilt; it begins with the newest divider of the path, if there is one."""
    loaded = load_session(path, thorough=True)
    entries = loaded.bodies.read_all(loaded.tree.path())
    context = build_session_context(entries)
    dividers = [entry.id for entry in entries if isinstance(entry, CompactionEntry)]
    assert context.compaction_id == (dividers[-1] if dividers else None)
    assert all(entry.first_kept_entry_id for entry in entries if isinstance(entry, CompactionEntry))
    loaded.bodies.close()


@pytest.mark.parametrize("chance", [(kind, 1) for kind in KINDS], indirect=True, ids=KINDS)
def test_killed_passes_leave_one_state(zygote, chance, tmp_path):
    assert kill_in_passes(zygote, chance, tmp_path, LIVES) >= 1


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("chance", [(kind, 7) for kind in KINDS], indirect=True, ids=KINDS)
def test_passes_killed_again_and_again_leave_one_state(zygote, chance, tmp_path):
    assert kill_in_passes(zygote, chance, tmp_path, 25) >= 3
