import base64
import hashlib
import json
import os

import pytest

from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.importers import import_session
from musepi_tui.storage.loading import load_session
from tests.support.imports import Import, assert_sound, paths_in
from tests.support.lines import answer_record, chain, dump, header_line, record, user_record, write_lines

SLOT = {
    "type": "title",
    "v": 1,
    "title": "Slot",
    "source": "auto",
    "updatedAt": "2026-01-01T00:00:00.000Z",
    "pad": "",
}


def lines_of(done):
    return done.done.path.read_bytes().splitlines()


def test_lines_are_copied_byte_for_byte(tmp_path):
    odd = (
        dump(record("future_kind", "f1", "e2", 9, x=[1])).replace(b',"timestamp"', b', "timestamp"')[:-1]
        + b"\r\n"
    )
    done = Import(tmp_path, header_line(extraField=1), *chain("a", "b"), odd)
    source = done.source.read_bytes().split(b"\n")
    assert done.done.path.read_bytes().split(b"\n")[1:4] == source[1:4]
    assert_sound(done.done)


def test_header_is_new_and_says_where_the_session_came_from(tmp_path):
    done = Import(
        tmp_path, header_line(depth=2, additionalDirectories=["/"], providerPromptCacheKey="k"), *chain("a")
    )
    header = done.loaded.header
    assert header.id != "s-1"
    assert header.id == done.done.session_id
    assert header.id[14] == "7"
    assert header.timestamp > "2026-01-01"
    assert (header.cwd, header.version, header.parent_session) == ("/p", 3, str(done.source))
    assert header.extra == {"depth": 2}
    assert done.done.path.parent == tmp_path / "data" / "sessions" / "--p--"
    assert done.done.path.name.endswith(f"Z_{header.id}.jsonl")


def test_last_entry_tells_of_the_import(tmp_path):
    done = Import(tmp_path, header_line(), *chain("a", "b"))
    last = done.entries[-1]
    assert (last.type, last.fields["customType"], last.parent_id) == ("custom", "musepi.import", "e2")
    assert last.fields["data"] == {
        "source": str(done.source),
        "sourceId": "s-1",
        "size": done.source.stat().st_size,
        "mtime": done.source.stat().st_mtime_ns // 1_000_000,
        "sha256": hashlib.sha256(done.source.read_bytes()).hexdigest(),
    }


def test_slot_becomes_the_title_of_the_header(tmp_path):
    done = Import(tmp_path, SLOT, header_line(), *chain("a"))
    assert lines_of(done)[0].startswith(b'{"type":"session"')
    assert (done.loaded.name, done.loaded.header.title_source) == ("Slot", "auto")


def test_name_given_by_the_person_wins_over_an_older_title(tmp_path):
    named = record("session_info", "n", "e1", 9, name="Mine")
    done = Import(tmp_path, header_line(title="made up", titleSource="auto"), *chain("a"), named)
    assert (done.loaded.name, done.loaded.header.title_source) == ("Mine", "user")


@pytest.mark.parametrize("version", [None, 2])
def test_older_versions_are_migrated(tmp_path, version):
    hook = {"role": "hookMessage", "customType": "h", "content": "x", "display": True}
    done = Import(tmp_path, header_line(version), *chain("a"), record("message", "h", "e1", 2, message=hook))
    assert (done.roles, done.loaded.version_on_disk) == (["user", "custom"], 3)
    assert done.loaded.migrated == {}
    context = build_session_context(load_session(done.source).read_path())
    assert build_session_context(done.loaded.read_path()).messages == context.messages


def test_damage_is_left_behind_and_told(tmp_path):
    done = Import(
        tmp_path,
        header_line(),
        *chain("a"),
        b"junk\n\n",
        user_record("o", "gone", "orphan", 3),
        header_line(id="again"),
        b"[1]\n",
        user_record("p", "later", "early", 4),
        user_record("later", "o", "late", 5),
        user_record("e1", None, "a again", 6),
        user_record("end", "p", "end", 7),
        b'{"type":"mess',
    )
    assert done.done.skipped == {"unreadable line": 3, "extra header": 1, "repeated id": 1}
    assert "line 3" in done.done.warnings[0]
    assert [head.id for head in done.loaded.tree.path()[:-1]] == ["e1", "o", "later", "p", "end"]
    theirs = build_session_context(load_session(done.source).read_path())
    assert build_session_context(done.loaded.read_path()).messages == theirs.messages
    assert_sound(done.done)


def test_ring_of_parents_becomes_a_root(tmp_path):
    done = Import(
        tmp_path,
        header_line(),
        user_record("a", "b", "x"),
        user_record("b", "a", "y"),
        user_record("c", "c", "z"),
    )
    assert len(done.loaded.tree) == 4
    assert_sound(done.done)


def test_newer_version_is_imported_with_a_warning(tmp_path):
    done = Import(tmp_path, header_line(9), *chain("a"))
    assert done.loaded.version_on_disk == 3
    assert "version 9" in done.done.warnings[0]


def agent_file(tmp_path, *lines):
    """A session in the folders of a tool with blobs; returns the file and the blob folder."""
    folder = tmp_path / "agent" / "sessions" / "--p--"
    folder.mkdir(parents=True)
    blobs = tmp_path / "agent" / "blobs"
    blobs.mkdir()
    return write_lines(folder / "s.jsonl", header_line(), *lines), blobs


def test_blobs_are_written_into_the_lines(tmp_path):
    data = b"\x89PNG picture"
    digest, gone = hashlib.sha256(data).hexdigest(), "0" * 64
    content = [
        {"type": "image", "data": f"blob:sha256:{digest}", "mimeType": "image/png"},
        {"type": "image", "data": f"blob:sha256:{gone}", "mimeType": "image/png"},
        {"type": "text", "text": f"see blob:sha256:{digest}"},
    ]
    source, blobs = agent_file(
        tmp_path, record("message", "e", None, message={"role": "user", "content": content})
    )
    (blobs / digest).write_bytes(data)
    done = import_session(source, paths_in(tmp_path))
    stored = json.loads(done.path.read_bytes().splitlines()[1])["message"]["content"]
    assert stored[0]["data"] == base64.b64encode(data).decode()
    assert stored[1:] == content[1:]
    assert (done.counts["blob"], done.skipped["missing blob"]) == (1, 1)


def test_artifacts_are_copied_but_links_are_not(tmp_path):
    source, _ = agent_file(tmp_path, *chain("a"))
    secret = tmp_path / "secret"
    secret.write_text("private")
    folder = source.with_suffix("")
    (folder / "agent-1").mkdir(parents=True)
    (folder / "0.bash.log").write_bytes(b"output")
    (folder / "agent-1" / "1.read.log").write_bytes(b"inner")
    (folder / "2.link.log").symlink_to(secret)
    os.mkfifo(folder / "3.pipe.log")
    done = import_session(source, paths_in(tmp_path))
    copied = done.path.with_suffix("")
    files = {str(path.relative_to(copied)): path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    assert files == {"0.bash.log": b"output", "agent-1/1.read.log": b"inner"}
    assert (done.counts["artifact"], done.skipped["artifact that is no file"]) == (2, 2)
    assert (copied / "0.bash.log").stat().st_mode & 0o777 == 0o600
    assert copied.stat().st_mode & 0o777 == 0o700


def test_import_of_an_import_is_a_session_of_its_own(tmp_path):
    first = Import(tmp_path, header_line(), *chain("a"), answer_record("x", "e1", "b", 2))
    second = import_session(first.done.path, paths_in(tmp_path))
    assert second.path != first.done.path
    assert load_session(second.path).header.parent_session == str(first.done.path)
    assert_sound(second)


def test_deep_and_wide_files_are_imported_without_recursion(tmp_path):
    lines = [dump(user_record(f"d{index}", f"d{index - 1}" if index else None, "x")) for index in range(3000)]
    lines += [dump(user_record(f"w{index}", None, "x")) for index in range(500)]
    done = Import(tmp_path, header_line(), *reversed(lines))
    assert len(done.loaded.tree) == 3501
    assert done.loaded.tree.longest_path >= 3000
