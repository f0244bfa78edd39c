"""Real files of other tools against the facts told about them."""

import re
from collections import Counter

import pytest

from musepi_tui.session.messages import AssistantMessage
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.tail import open_tail
from tests.support.shared import shared_path

FILES = (
    "pi-v1-two-compactions.jsonl",
    "pi-v1-large-linear.jsonl",
    "pi-v3-three-compactions.jsonl",
    "pi-v3-tree-all-kinds.jsonl",
    "pi-v3-fork-with-orphan.jsonl",
)
RELINKED = {"pi-v3-fork-with-orphan.jsonl": {"roots": 1, "leaves": 1, "longest path": 11, "context": 9}}
ONLY_CALLS = {"pi-v1-large-linear.jsonl": 1}
"""Answers that hold nothing but a call without a result: the tool the table is from leaves them in."""


def facts() -> dict[str, dict[str, str]]:
    """The two tables of the pi family, by file and column."""
    text = shared_path("fixtures", "sessions", "README.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            continue
        if cells[0] == "File":
            columns = cells
        elif cells[0].strip("`") in FILES and len(columns) > 3:
            found.setdefault(cells[0].strip("`"), {}).update(zip(columns[1:], cells[1:], strict=True))
    return found


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.?\d*", text)]


def counted(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", text)}


@pytest.fixture(params=FILES)
def name(request) -> str:
    shared_path("fixtures", "sessions", request.param)
    return request.param


def test_tree_has_the_counts_of_the_table(name):
    fact, after = facts()[name], RELINKED.get(name, {})
    loaded = load_session(shared_path("fixtures", "sessions", name), thorough=True)
    assert len(loaded.heads) == int(fact["entries"])
    assert Counter(head.type for head in loaded.heads) == counted(fact["by type"])
    assert Counter(head.role for head in loaded.heads if head.role) == counted(fact["roles"])
    assert len(loaded.tree.roots) == after.get("roots", int(fact["roots (null)"]))
    assert len(loaded.tree.leaves) == after.get("leaves", int(fact["leaves"]))
    assert loaded.orphans == int(fact["orphans"])
    assert loaded.tree.longest_path == after.get("longest path", int(fact["longest path"]))
    assert sum(len(loaded.tree.children(head.id)) > 1 for head in loaded.heads) == int(fact["branch points"])


def test_strict_tree_is_that_of_the_table(name):
    fact = facts()[name]
    loaded = load_session(shared_path("fixtures", "sessions", name), strict=True)
    assert len(loaded.tree.leaves) == int(fact["leaves"])
    assert loaded.tree.longest_path == int(fact["longest path"])
    assert len(loaded.tree.path()) == int(fact["path of last entry"])


def test_context_is_that_of_the_tool_that_wrote_the_file(name):
    fact = facts()[name]
    loaded = load_session(shared_path("fixtures", "sessions", name))
    context = build_session_context(loaded.read_path())
    expected = RELINKED.get(name, {}).get("context", numbers(fact["context"])[0])
    assert len(context.messages) == expected - ONLY_CALLS.get(name, 0)
    if name not in RELINKED:
        model = "/".join(context.model or ())
        assert f"{context.thinking_level}, {model}" == fact["thinking, model"]


def test_totals_are_those_of_the_table(name):
    fact = facts()[name]
    totals = load_session(shared_path("fixtures", "sessions", name)).totals
    key = "usage in / out / cache read / cache write"
    assert [totals.input, totals.output, totals.cache_read, totals.cache_write] == numbers(fact[key])
    assert totals.cost == pytest.approx(float(fact["cost total"]))


def test_stop_reasons_are_those_of_the_table(name):
    fact = facts()[name]
    loaded = load_session(shared_path("fixtures", "sessions", name))
    answers = [loaded.bodies.get(head).message for head in loaded.heads if head.role == "assistant"]
    reasons = Counter(answer.stop_reason.value for answer in answers if isinstance(answer, AssistantMessage))
    assert reasons == counted(fact["stop reasons"])


def test_tail_is_the_end_of_the_path(name):
    path = shared_path("fixtures", "sessions", name)
    loaded = load_session(path, strict=True)
    tail = open_tail(path, want=50)
    entries = loaded.read_path()
    shown = [entry.id for entry in tail.entries]
    assert shown == [entry.id for entry in entries][-len(shown) :]
    assert len(shown) >= min(50, len(entries))
