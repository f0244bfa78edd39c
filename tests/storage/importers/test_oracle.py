"""Imports of real files against the facts told about them."""

import hashlib
from collections import Counter

import pytest

from musepi_tui.session.entries import CompactionEntry
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.importers import SourceKind, detect_source, import_session
from musepi_tui.storage.loading import load_session
from tests.storage.test_fixtures import FILES, counted, facts
from tests.support.imports import assert_sound, paths_in, role_counts
from tests.support.shared import shared_path

FOREIGN = {
    "claude-code-short.jsonl": {"user": 2, "assistant": 1, "toolResult": 2},
    "claude-code-tools.jsonl": {"user": 4, "assistant": 4, "toolResult": 6},
    "claude-code-subagent.jsonl": {"user": 2, "assistant": 12, "toolResult": 16},
    "claude-code-compacted.jsonl": {"user": 5, "assistant": 152, "toolResult": 186},
    "codex-rollout-short.jsonl": {"user": 1, "assistant": 1},
    "codex-rollout-compacted.jsonl": {"user": 38, "assistant": 286, "toolResult": 365},
}


def sample(name):
    return shared_path("fixtures", "sessions", name)


def imported(name, tmp_path):
    return import_session(sample(name), paths_in(tmp_path))


@pytest.mark.parametrize("name", FOREIGN)
def test_messages_of_a_foreign_file_are_all_there_on_one_line(name, tmp_path):
    done = imported(name, tmp_path)
    loaded = load_session(done.path)
    assert role_counts(loaded) == FOREIGN[name]
    assert len(loaded.tree.path()) == len(loaded.heads)
    assert_sound(done)


@pytest.mark.parametrize("name", [*FOREIGN, *FILES])
def test_source_is_not_touched(name, tmp_path):
    before = sample(name).read_bytes(), sample(name).stat().st_mtime_ns
    done = imported(name, tmp_path)
    assert (sample(name).read_bytes(), sample(name).stat().st_mtime_ns) == before
    assert done.path.stat().st_mode & 0o777 == 0o600


def test_kind_is_known_by_the_first_records():
    kinds = {name: detect_source(sample(name)) for name in (*FOREIGN, *FILES)}
    expected = {"claude": SourceKind.CLAUDE, "codex-": SourceKind.CODEX}
    assert kinds == {name: expected.get(name[:6], SourceKind.FAMILY) for name in kinds}


def test_compaction_of_claude_code_divides_the_session(tmp_path):
    done = imported("claude-code-compacted.jsonl", tmp_path)
    loaded = load_session(done.path)
    path = loaded.read_path()
    (compaction,) = (entry for entry in path if isinstance(entry, CompactionEntry))
    assert compaction.tokens_before == 167094
    context = build_session_context(path)
    assert len(context.messages) == len(path) - 1 - path.index(compaction)
    assert done.skipped["progress"] == 1333
    assert done.skipped["file-history-snapshot"] == 28


def test_usage_of_codex_is_taken_once_and_cached_tokens_are_not_input(tmp_path):
    done = imported("codex-rollout-compacted.jsonl", tmp_path)
    totals = load_session(done.path).totals
    # The last total the program itself had noted.
    assert (totals.input + totals.cache_read, totals.cache_read) == codex_totals(
        "codex-rollout-compacted.jsonl"
    )


def codex_totals(name):
    import json

    records = (json.loads(line) for line in sample(name).open())
    infos = (
        record["payload"].get("info") for record in records if record["payload"].get("type") == "token_count"
    )
    last = [info for info in infos if info][-1]["total_token_usage"]
    return last["input_tokens"], last["cached_input_tokens"]


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_family_keep_their_entries_and_context(name, tmp_path):
    done = imported(name, tmp_path)
    loaded, source = load_session(done.path), load_session(sample(name))
    by_type = Counter(head.type for head in loaded.heads[:-1])
    assert by_type == counted(facts()[name]["by type"])
    assert loaded.tree.order[:-1] == source.tree.order[:]
    ours, theirs = build_session_context(loaded.read_path()), build_session_context(source.read_path())
    assert ours.messages == theirs.messages
    assert loaded.version_on_disk == 3
    assert_sound(done)


@pytest.mark.parametrize("name", ["pi-v3-three-compactions.jsonl", "pi-v3-tree-all-kinds.jsonl"])
def test_lines_of_a_sound_file_are_copied_byte_for_byte(name, tmp_path):
    done = imported(name, tmp_path)
    copied, lines = done.path.read_bytes().split(b"\n"), sample(name).read_bytes().split(b"\n")
    assert copied[1:-2] == lines[1:-1]
    assert done.counts["user"] > 0
    origin = load_session(done.path).bodies.get(load_session(done.path).heads[-1]).fields["data"]
    assert origin["sha256"] == hashlib.sha256(sample(name).read_bytes()).hexdigest()
