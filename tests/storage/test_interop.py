"""What musepi writes, read by others: a reader written from the pages, and the checker of the format."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musepi_tui.session.codec import dump_line, encode_message
from musepi_tui.session.labels import collect_labels
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.branching import CopyPlace, branch_session, fork_session
from musepi_tui.storage.entry_file import Changes
from musepi_tui.storage.importers import import_session
from musepi_tui.storage.lines import Title
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.paths import find_paths
from musepi_tui.storage.session_file import SessionFile
from tests.support.builders import entry, u
from tests.support.lines import dump, header_line, record, user_record
from tests.support.minimal_reader import read_session, shape_of
from tests.support.random_sessions import HEADER, trees
from tests.support.shared import shared_path
from tests.support.stored import append_to, format_checker, write_session

FIXTURES = (
    "pi-v1-large-linear.jsonl",
    "pi-v1-two-compactions.jsonl",
    "pi-v3-fork-with-orphan.jsonl",
    "pi-v3-three-compactions.jsonl",
    "pi-v3-tree-all-kinds.jsonl",
)
quiet = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interop") / "s.jsonl"


def product_context(loaded: LoadedSession, leaf: str | None) -> list[tuple[Any, ...]]:
    context = build_session_context(loaded.read_path(leaf))
    pairs = zip(context.entry_ids, context.messages, strict=True)
    return [shape_of((entry_id, encode_message(message))) for entry_id, message in pairs]


def assert_both_readers_agree(path: Path) -> None:
    loaded, reading = load_session(path), read_session(path)
    tree = loaded.tree
    assert list(tree.order) == reading.order
    assert {entry_id: tree.parent(entry_id) for entry_id in tree.order} == reading.parents()
    assert tree.leaf_id == reading.leaf
    labels = collect_labels(loaded.bodies.get(head) for head in loaded.heads)
    assert {target: label for target, label in labels.items() if target in tree} == reading.labels()
    for leaf in {*tree.leaves, *([tree.leaf_id] if tree.leaf_id else [])}:
        assert product_context(loaded, leaf) == [shape_of(pair) for pair in reading.context(leaf)]


def empty_place(file):
    """Where a copy goes; one of an example before, whatever became of it, is not in its way."""
    folder = file.parent / "forks"
    shutil.rmtree(folder, ignore_errors=True)
    return CopyPlace(folder, "copy", HEADER.timestamp)


@quiet
@given(entries=trees(most=40))
def test_a_second_reader_sees_the_same_tree_and_contexts_in_written_files(file, entries):
    assert_both_readers_agree(write_session(file, HEADER, entries))


@pytest.mark.parametrize("name", FIXTURES)
def test_a_second_reader_sees_the_same_in_files_of_other_tools(name):
    assert_both_readers_agree(shared_path("fixtures", "sessions", name))


@pytest.mark.parametrize("name", FIXTURES)
def test_a_file_of_another_tool_that_was_continued_reads_the_same_for_both(name, file):
    shutil.copy(shared_path("fixtures", "sessions", name), file)
    before = read_session(file)
    append_to(file, entry(u("new"), "fffffff0", load_session(file).tree.leaf_id))
    assert_both_readers_agree(file)
    after = read_session(file)
    assert after.order == [*before.order, "fffffff0"]
    assert after.context("fffffff0")[:-1] == before.context(before.leaf)


def worked_example_c() -> bytes:
    return b"".join(
        [
            dump(header_line(id="ex-c")),
            dump(user_record("u1", None, "one", 1)),
            dump(record("future_kind", "f1", "u1", 2, payload={"keep": [1, 2]})),
            b'{"type":"message","id":"u2","parentId":"f1","timestamp":"2026-01-01T0\n',
            dump(user_record("u3", "u2", "three", 4)),
            dump(user_record("u1", "u3", "one again", 5)),
            dump(user_record("u4", "u3", "four", 6)),
            b'{"type":"message","id":"u5","par',
        ]
    )


def test_a_second_reader_agrees_about_a_damaged_file(file):
    file.write_bytes(worked_example_c())
    assert_both_readers_agree(file)
    assert [shape_of(pair)[2] for pair in read_session(file).context("u4")] == [
        ["one again"],
        ["three"],
        ["four"],
    ]


@quiet
@given(entries=trees(most=40))
def test_the_checker_of_the_format_accepts_what_is_written(file, entries):
    path = write_session(file, HEADER, entries)
    found = format_checker()(str(path))
    assert found["problems"] == []
    loaded = load_session(path)
    assert (found["entries"], found["leafId"]) == (len(entries), loaded.tree.leaf_id)
    assert (found["roots"], found["leaves"]) == (len(loaded.tree.roots), len(loaded.tree.leaves))
    assert (found["longestPath"], found["leafPath"]) == (loaded.tree.longest_path, len(loaded.tree.path()))


def assert_sound_for_all(path: Path) -> None:
    """Both readers see the same in it, and the checker has nothing to say."""
    assert_both_readers_agree(path)
    assert format_checker()(str(path))["problems"] == []


@quiet
@given(entries=trees(most=30))
def test_a_fork_is_the_same_session_for_every_reader(file, entries):
    source = write_session(file, HEADER, entries)
    copy = fork_session(source, empty_place(file))
    if not copy.is_written:
        return
    assert_sound_for_all(copy.path)
    before, after = read_session(source), read_session(copy.path)
    copy.path.unlink()
    assert after.header["parentSession"] == str(source)
    assert (after.order, after.labels()) == (before.order, before.labels())
    assert after.context(after.leaf) == before.context(before.leaf)


@quiet
@given(entries=trees(most=30), at=st.integers(0, 29))
def test_a_branch_taken_out_of_a_session_gives_the_same_context(file, entries, at):
    source = write_session(file, HEADER, entries)
    leaf = entries[at % len(entries)].id
    copy = branch_session(source, leaf, empty_place(file))
    if not copy.is_written:
        return
    assert_sound_for_all(copy.path)
    before, after = read_session(source), read_session(copy.path)
    copy.path.unlink()
    assert [shape_of(pair) for pair in after.context(after.leaf)] == [
        shape_of(pair) for pair in before.context(leaf)
    ]
    kept = {entry["id"] for entry in before.path(leaf) if entry["type"] != "label"}
    assert after.labels() == {target: text for target, text in before.labels().items() if target in kept}


@quiet
@given(entries=trees(most=20), at=st.integers(0, 19))
def test_a_file_written_anew_is_sound_for_every_reader(file, entries, at):
    source = write_session(file, HEADER, entries)
    before = read_session(source)
    session = SessionFile.open(source, load_session(source))
    session.rewrite(Changes(header=replace(HEADER, cwd="/somewhere/else"), title=Title("T", "user", "t")))
    changed = entries[at % len(entries)]
    session.rewrite(Changes(lines={changed.id: dump_line(changed)}))
    session.close()
    assert_sound_for_all(source)
    after = read_session(source)
    assert (after.header["cwd"], after.header["title"]) == ("/somewhere/else", "T")
    assert after.entries == before.entries


@quiet
@given(entries=trees(most=20))
def test_an_imported_session_is_sound_for_every_reader(file, entries, tmp_path_factory):
    source = write_session(file, HEADER, entries)
    home = find_paths({"MUSEPI_HOME": str(tmp_path_factory.getbasetemp() / "interop-home")})
    imported = import_session(source, home)
    assert_sound_for_all(imported.path)
    before, after = read_session(source), read_session(imported.path)
    imported.path.unlink()
    assert after.order[:-1] == before.order
    assert after.context(after.leaf) == before.context(before.leaf)
