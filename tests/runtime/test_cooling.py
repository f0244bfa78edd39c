from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from musepi_tui.runtime.cooling import context_heads, cool
from musepi_tui.session.codec import dump_line
from musepi_tui.session.entries import KEEP_NOTHING, Entry, EntryHead
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.session.transcript import build_transcript
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.loading import load_session
from tests.support.builders import a, compaction, path, state, u
from tests.support.random_sessions import HEADER, trees
from tests.support.stored import write_session


def with_total(entry: Entry) -> Entry:
    """The entry with the sum of its tokens as total: the only thing that writing and reading changes."""
    usage = getattr(getattr(entry, "message", None), "usage", None)
    if usage is None or usage.total_tokens:
        return entry
    total = usage.input + usage.output + usage.cache_read + usage.cache_write
    return replace(entry, message=replace(entry.message, usage=replace(usage, total_tokens=total)))


def warmed(file: Path, entries: tuple[Entry, ...]) -> tuple[SessionTree, Bodies]:
    """A stored session whose entries are all in memory, as after a long run."""
    loaded = load_session(write_session(file, HEADER, entries))
    for entry in entries:
        loaded.bodies.remember(with_total(entry))
    return loaded.tree, loaded.bodies


def views(tree: SessionTree, bodies: Bodies) -> list[object]:
    """Everything people and models get to see: every branch as context and transcript, every line."""
    branches = [tuple(bodies.get(head) for head in tree.path(leaf)) for leaf in tree.leaves]
    seen: list[object] = []
    for branch in branches:
        context = build_session_context(branch)
        seen += [context.messages, context.entry_ids, context.warnings, context.model, context.mode]
        seen += [build_transcript(branch), build_transcript(branch, collapse=True)]
    return [*seen, [dump_line(bodies.get(head)) for head in tree.all_heads]]


@settings(max_examples=60)
@given(trees())
def test_nothing_differs_when_history_is_cold(entries):
    with TemporaryDirectory() as folder:
        tree, bodies = warmed(Path(folder) / "s.jsonl", entries)
        before = views(tree, bodies)
        cool(tree, bodies)
        assert views(tree, bodies) == before
        bodies.close()


@settings(max_examples=60)
@given(trees())
def test_context_is_the_same_from_the_heads_that_stay_warm(entries):
    with TemporaryDirectory() as folder:
        tree, bodies = warmed(Path(folder) / "s.jsonl", entries)
        whole = build_session_context(bodies.read_all(tree.path()))
        assert build_session_context(bodies.read_all(context_heads(tree, bodies))) == whole
        bodies.close()


def test_what_a_compaction_hides_is_let_go_but_not_the_state(tmp_path):
    entries = path(
        u("old"),
        a("old answer"),
        state("model_change", provider="test", modelId="model"),
        state("session_init", systemPrompt="x" * 2000, task="t", tools=[]),
        compaction("S", KEEP_NOTHING),
        u("new"),
    )
    tree, bodies = warmed(tmp_path / "s.jsonl", entries)
    cool(tree, bodies)
    assert [entry_id for entry_id in tree.order if bodies.is_hot(entry_id)] == ["e2", "e3", "e5", "e6"]


def test_other_branches_are_let_go(tmp_path):
    entries = path(u("a"), a("b"), u("c"))
    branch = path(u("x"), ids=["x1"])[0]
    tree, bodies = warmed(tmp_path / "s.jsonl", (*entries, replace(branch, parent_id="e1")))
    cool(tree, bodies)
    assert [entry_id for entry_id in tree.order if bodies.is_hot(entry_id)] == ["e1", "x1"]


def test_entries_the_file_does_not_hold_stay():
    entries = path(u("a"), a("b"), compaction("S", KEEP_NOTHING), u("c"))
    bodies = Bodies()
    for entry in entries:
        bodies.remember(entry)
    tree = SessionTree.from_heads([EntryHead(e.id, e.parent_id, e.type, e.timestamp) for e in entries])
    cool(tree, bodies)
    assert all(bodies.is_hot(entry.id) for entry in entries)


def test_compaction_that_keeps_an_unknown_entry_keeps_everything(tmp_path):
    tree, bodies = warmed(tmp_path / "s.jsonl", path(u("a"), a("b"), compaction("S", "gone"), u("c")))
    assert context_heads(tree, bodies) == tuple(tree.path())


def test_model_of_a_hidden_answer_is_still_that_of_the_session(tmp_path):
    tree, bodies = warmed(tmp_path / "s.jsonl", path(u("a"), a("b"), compaction("S", KEEP_NOTHING), u("c")))
    context = build_session_context(bodies.read_all(context_heads(tree, bodies)))
    assert context.model == ("test", "model")
    assert context.entry_ids == ("e3", "e4")
