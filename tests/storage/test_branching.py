import base64
import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import EntryNotFoundError, SessionError
from musepi_tui.session.labels import collect_labels
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.branching import CopyPlace, branch_session, fork_session, linked_to
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.paths import artifact_folder
from tests.support.lines import answer_record, chain, dump, header_line, record, user_record, write_lines
from tests.support.shared import shared_path

NOW = "2026-02-02T10:00:00.000Z"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    return folder / "s.jsonl"


@pytest.fixture
def place(tmp_path: Path) -> CopyPlace:
    return CopyPlace(tmp_path / "copies", "new-id", NOW, "/elsewhere")


def label(entry_id: str, parent: str | None, target: str, text: str | None, second: int = 1):
    fields = {"targetId": target} if text is None else {"targetId": target, "label": text}
    return record("label", entry_id, parent, second, **fields)


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def labels_of(path: Path) -> dict[str, str]:
    loaded = load_session(path)
    return collect_labels(loaded.bodies.get(head) for head in loaded.heads)


def context_of(path: Path) -> list[str]:
    messages = build_session_context(load_session(path).read_path()).messages
    return [
        str(getattr(message, "content", None) or getattr(message, "summary", None)) for message in messages
    ]


def test_a_fork_has_every_line_and_a_header_of_its_own(source, place):
    branches = [
        *chain("a", "b"),
        user_record("x1", "e1", "other branch", 9),
        b"not json\n",
        *chain("c", prefix="z"),
    ]
    before = write_lines(source, header_line(), *branches).read_bytes()
    copy = fork_session(source, place)
    header, body = copy.path.read_bytes().split(b"\n", 1)
    assert source.read_bytes() == before
    assert body == before.split(b"\n", 1)[1]
    assert json.loads(header) == {
        "type": "session",
        "version": 3,
        "id": "new-id",
        "timestamp": NOW,
        "cwd": "/elsewhere",
        "parentSession": str(source),
    }
    assert (copy.is_written, copy.path.name) == (True, "2026-02-02T10-00-00-000Z_new-id.jsonl")


def test_a_fork_keeps_the_folder_of_the_source_when_none_is_given(source, tmp_path):
    write_lines(source, header_line(), *chain("a"))
    copy = fork_session(source, CopyPlace(tmp_path / "copies", "n", NOW))
    assert copy.header.cwd == "/p"


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (dump(user_record("e3", "e2", "c")).rstrip(b"\n"), 3),
        (dump(user_record("e3", "e2", "c"))[:40], 2),
    ],
    ids=["without LF", "torn"],
)
def test_a_fork_ends_in_a_whole_line(end, kept, source, place):
    write_lines(source, header_line(), *chain("a", "b"), end)
    copy = fork_session(source, place)
    loaded = load_session(copy.path)
    assert (len(loaded.heads), loaded.issues, loaded.ends_with_lf) == (kept, (), True)


def test_a_fork_writes_the_parents_that_were_found_again(source, place):
    write_lines(
        source, header_line(), *chain("a"), user_record("e2", "gone", "b"), user_record("e3", "e2", "c")
    )
    loaded = load_session(fork_session(source, place).path)
    assert [head.parent_id for head in loaded.heads] == [None, "e1", "e2"]
    assert loaded.issues == ()


def test_a_fork_of_an_old_file_is_of_this_version(source, place):
    old = [
        {
            "type": "message",
            "timestamp": "2025-12-01T00:00:01.000Z",
            "message": {"role": "user", "content": text},
        }
        for text in "ab"
    ]
    before = write_lines(source, header_line(None), *old).read_bytes()
    copy = fork_session(source, place)
    loaded = load_session(copy.path)
    assert (loaded.version_on_disk, len(loaded.heads), loaded.issues) == (3, 2, ())
    assert context_of(copy.path) == context_of(source)
    assert source.read_bytes() == before


def test_a_copy_carries_title_and_unknown_header_fields_but_no_slot(source, place):
    slot = {"type": "title", "v": 1, "title": "made up", "source": "auto", "updatedAt": NOW, "pad": ""}
    extra = {"additionalDirectories": ["/q"], "providerPromptCacheKey": "k", "previousSessionFiles": ["/old"]}
    write_lines(source, slot, header_line(**extra), *chain("a"))
    forked = fork_session(source, place).header
    assert (forked.title, forked.title_source) == ("made up", "auto")
    assert forked.extra == {"additionalDirectories": ["/q"], "providerPromptCacheKey": "k"}
    branched = branch_session(source, "e1", CopyPlace(place.folder, "other", NOW))
    assert branched.header.extra == {"additionalDirectories": ["/q"]}
    assert [line["type"] for line in records(branched.path)] == ["session", "message"]


def test_a_branch_has_one_path_without_labels_and_a_chain_without_gaps(source, place):
    write_lines(
        source,
        header_line(),
        *chain("a", "b"),
        label("l1", "e2", "e1", "start", 3),
        label("l2", "l1", "x1", "not copied", 4),
        user_record("e3", "l2", "c", 5),
        user_record("x1", "e1", "other", 6),
        label("l3", "x1", "e2", "from another branch", 7),
    )
    copy = branch_session(source, "e3", place)
    found = records(copy.path)[1:]
    assert [line["type"] for line in found] == ["message"] * 3 + ["label"] * 2
    assert [line["parentId"] for line in found] == [None, *(line["id"] for line in found[:-1])]
    assert labels_of(copy.path) == {"e1": "start", "e2": "from another branch"}
    assert [line["timestamp"] for line in found[3:]] == [
        "2026-01-01T00:00:03.000Z",
        "2026-01-01T00:00:07.000Z",
    ]
    assert {line["id"] for line in found[3:]}.isdisjoint({"l1", "l2", "l3", "e1", "e2", "e3", "x1"})


def test_a_cleared_label_is_not_made_again(source, place):
    write_lines(
        source, header_line(), *chain("a"), label("l1", "e1", "e1", "x"), label("l2", "l1", "e1", None)
    )
    assert [line["type"] for line in records(branch_session(source, "l2", place).path)] == [
        "session",
        "message",
    ]


def test_untouched_lines_of_a_branch_are_byte_for_byte(source, place):
    odd = (
        b'{"type":"message","id":"e2","parentId":"e1","timestamp":"t","x": 1e2,'
        b'"message":{"role":"user","content":"\\u00e9"}}\n'
    )
    write_lines(source, header_line(), *chain("a"), odd)
    assert branch_session(source, "e2", place).path.read_bytes().endswith(odd)


def test_a_keep_boundary_on_a_label_moves_to_what_follows_it(source, place):
    write_lines(
        source,
        header_line(),
        *chain("old", "older"),
        label("l1", "e2", "e1", "x"),
        user_record("k1", "l1", "kept"),
        record("compaction", "c1", "k1", summary="S", firstKeptEntryId="l1", tokensBefore=9),
        user_record("n1", "c1", "new"),
    )
    copy = branch_session(source, "n1", place)
    assert context_of(copy.path) == context_of(source)
    assert len(context_of(copy.path)) == 3


def test_a_name_given_on_another_branch_goes_along(source, place):
    write_lines(
        source, header_line(), *chain("a", "b"), record("session_info", "i1", "e1", 5, name="The parser")
    )
    copy = branch_session(source, "e2", place)
    assert (copy.header.title, copy.header.title_source) == ("The parser", "user")
    assert load_session(copy.path).name == "The parser"
    assert records(copy.path)[-1]["name"] == "The parser"
    again = branch_session(copy.path, None, CopyPlace(place.folder, "third", NOW))
    assert again.header.title == "The parser"


def test_a_path_without_a_message_gets_no_file(source, place):
    change = record("model_change", "m1", None, provider="p", modelId="m")
    write_lines(source, header_line(), change, user_record("u1", "m1", "hi"))
    copy = branch_session(source, "m1", place)
    assert not copy.is_written
    assert not place.folder.exists()
    assert [(entry.id, entry.type) for entry in copy.entries] == [("m1", "model_change")]


def test_an_unknown_entry_makes_nothing(source, place):
    write_lines(source, header_line(), *chain("a"))
    with pytest.raises(EntryNotFoundError):
        branch_session(source, "nowhere", place)
    assert not place.folder.exists()


@pytest.mark.parametrize("copy_it", [fork_session, lambda path, place: branch_session(path, "e1", place)])
def test_artifacts_go_along(copy_it, source, place):
    write_lines(source, header_line(), *chain("a"))
    artifacts = artifact_folder(source)
    (artifacts / "sub").mkdir(parents=True)
    (artifacts / "0.bash.log").write_text("out")
    (artifacts / "sub" / "x.md").write_text("report")
    copied = artifact_folder(copy_it(source, place).path)
    assert sorted(str(path.relative_to(copied)) for path in copied.rglob("*")) == [
        "0.bash.log",
        "sub",
        "sub/x.md",
    ]
    assert (artifacts / "0.bash.log").read_text() == "out"


def test_an_artifact_that_cannot_be_read_is_a_warning(source, place, monkeypatch):
    import shutil

    def fails(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    write_lines(source, header_line(), *chain("a"))
    artifact_folder(source).mkdir()
    (artifact_folder(source) / "0.bash.log").write_text("out")
    monkeypatch.setattr(shutil, "copy2", fails)
    copy = fork_session(source, place)
    assert copy.path.exists()
    assert "0.bash.log could not be copied: Permission denied" in copy.warnings[0]


@pytest.mark.parametrize("copy_it", [fork_session, lambda path, place: branch_session(path, "e1", place)])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_blob_the_copy_would_not_find_is_put_into_its_line(copy_it, elsewhere, tmp_path):
    image = b"not really a picture" * 100
    digest = hashlib.sha256(image).hexdigest()
    root = tmp_path / "tool"
    for folder in ("blobs", "sessions/p"):
        (root / folder).mkdir(parents=True)
    (root / "blobs" / digest).write_bytes(image)
    block = {"type": "image", "data": f"blob:sha256:{digest}", "mimeType": "image/png"}
    entry = record("message", "e1", None, message={"role": "user", "content": [block], "timestamp": 1})
    source = write_lines(root / "sessions" / "p" / "s.jsonl", header_line(), entry)
    folder = tmp_path / "copies" if elsewhere else root / "sessions" / "q"
    copy = copy_it(source, CopyPlace(folder, "n", NOW))
    [stored] = records(copy.path)[1]["message"]["content"]
    assert stored["data"] == (base64.b64encode(image).decode() if elsewhere else f"blob:sha256:{digest}")


def test_a_disk_that_is_full_leaves_nothing_behind(source, place, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    write_lines(source, header_line(), *chain("a"))
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SessionError, match="No space left on device"):
        fork_session(source, place)
    monkeypatch.undo()
    assert list(place.folder.iterdir()) == []


@pytest.mark.parametrize("parent", [None, "e9", 'q"uote'])
@pytest.mark.parametrize("old", [None, "e1"])
def test_linked_to_changes_the_parent_alone(old, parent):
    line = dump(user_record("e2", old, "tab\tée", 3)).rstrip(b"\n")
    assert json.loads(linked_to(line, parent)) == {**json.loads(line), "parentId": parent}


def test_linked_to_reads_a_line_in_another_order():
    line = b'{"id":"a","type":"custom","timestamp":"t","parentId":"b","customType":"x"}'
    assert json.loads(linked_to(line, "c")) == {**json.loads(line), "parentId": "c"}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_branch_gives_the_context_of_the_path_it_was_taken_from(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("branch")
    lines = []
    for index in range(data.draw(st.integers(1, 14))):
        parent = data.draw(st.sampled_from([None, *(line["id"] for line in lines)])) if lines else None
        ids = [line["id"] for line in lines] or ["none"]
        lines.append(
            data.draw(
                st.sampled_from(
                    [
                        user_record(f"n{index}", parent, f"text {index}", index),
                        answer_record(f"n{index}", parent, f"answer {index}", index),
                        label(f"n{index}", parent, data.draw(st.sampled_from(ids)), f"label {index}", index),
                        record(
                            "compaction",
                            f"n{index}",
                            parent,
                            index,
                            summary=f"S{index}",
                            firstKeptEntryId=data.draw(st.sampled_from(ids)),
                            tokensBefore=5,
                        ),
                    ]
                )
            )
        )
    source = write_lines(folder / "s.jsonl", header_line(), *lines)
    leaf = data.draw(st.sampled_from([line["id"] for line in lines]))
    loaded = load_session(source)
    copy = branch_session(source, leaf, CopyPlace(folder / "copy", "n", NOW))
    expected = build_session_context(loaded.read_path(leaf))
    kept = {head.id for head in loaded.tree.path(leaf) if head.type != "label"}
    assert kept <= {entry.id for entry in copy.entries} or copy.is_written
    if copy.is_written:
        made = load_session(copy.path)
        assert build_session_context(made.read_path()).messages == expected.messages
        assert made.issues == ()
        wanted = {key: text for key, text in labels_of(source).items() if key in kept}
        assert labels_of(copy.path) == wanted


@pytest.mark.parametrize("name", ["pi-v3-fork-with-orphan.jsonl"])
def test_a_fork_of_a_real_file_gives_the_same_context(name, tmp_path, place):
    source = shared_path("fixtures/sessions", name)
    copy = fork_session(source, place)
    assert context_of(copy.path) == context_of(source)
    assert load_session(copy.path).issues == ()
