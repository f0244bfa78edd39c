import pytest

from musepi_tui.cli.sessions import main
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.messages import AssistantMessage
from musepi_tui.storage.loading import load_session
from musepi_tui.tui.tree.forest import NONE, plant
from musepi_tui.tui.tree.layout import lay_out
from musepi_tui.tui.tree.text import is_calls_only
from tests.support.shared import shared_path


def is_hidden(entry) -> bool:
    message = entry.message if isinstance(entry, MessageEntry) else None
    return isinstance(message, AssistantMessage) and is_calls_only(message)


@pytest.mark.parametrize(
    ("name", "entries", "roots", "leaves", "branch_points"),
    [
        ("pi-v1-two-compactions", 1002, 1, 1, 0),
        ("pi-v1-large-linear", 1018, 1, 1, 0),
        ("pi-v3-three-compactions", 377, 1, 1, 0),
        ("pi-v3-tree-all-kinds", 30, 2, 5, 3),
        ("pi-v3-fork-with-orphan", 11, 2, 2, 0),
    ],
)
def test_tree_of_a_session_of_another_tool_is_drawn_whole(name, entries, roots, leaves, branch_points):
    loaded = load_session(shared_path("fixtures", "sessions", f"{name}.jsonl"), strict=True)
    layout = lay_out(plant(loaded.tree, loaded.tree.parents, NONE), b"\1" * len(loaded.tree), ())
    children = [segment.children for segment in layout.segments]
    assert len(layout.rows) == entries
    assert sum(segment.parent == NONE for segment in layout.segments) == roots
    assert (children.count(0), sum(count > 1 for count in children)) == (leaves, branch_points)


@pytest.mark.parametrize("name", ["pi-v1-two-compactions", "pi-v3-three-compactions", "pi-v3-tree-all-kinds"])
def test_tree_command_prints_every_entry_but_the_hidden_answers(name, capsys):
    file = shared_path("fixtures", "sessions", f"{name}.jsonl")
    assert main(["tree", str(file), "--all"], {"LANG": "C.UTF-8"}) == 0
    printed = [line.split(maxsplit=1)[0] for line in capsys.readouterr().out.splitlines()]
    loaded = load_session(file)
    hidden = {head.id for head in loaded.tree.all_heads if is_hidden(loaded.bodies.get(head))}
    assert sorted(printed) == sorted(set(loaded.tree.order) - hidden)
