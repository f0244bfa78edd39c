import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import SessionError
from musepi_tui.base.known_secrets import KnownSecrets
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.exporters.export import ExportOptions, export_session, source_of
from musepi_tui.storage.exporters.items import ExportSource
from musepi_tui.storage.loading import load_session
from tests.support import builders
from tests.support.builders import PIXEL
from tests.support.exports import KEY, export, write_full
from tests.support.lines import chain, dump, header_line, user_record, write_lines
from tests.support.shared import shared_path

SLOT = {
    "type": "title",
    "v": 1,
    "title": f"my {KEY} title",
    "source": "user",
    "updatedAt": "2026-01-01T00:00:00.000Z",
}


def slot_line():
    line = dump(SLOT | {"pad": ""})
    return dump(SLOT | {"pad": " " * (256 - len(line))})


def masked(tmp_path, *lines, **options):
    source = write_lines(tmp_path / "s.jsonl", *lines)
    return export(source, tmp_path / "out.jsonl", secrets=KnownSecrets(frozenset({'pass"wörd-1'})), **options)


@pytest.mark.parametrize("secrets", [None, KnownSecrets(frozenset({"never-there-1"}))], ids=["raw", "masked"])
@pytest.mark.parametrize(
    "name", ["pi-v3-three-compactions.jsonl", "pi-v1-two-compactions.jsonl", "pi-v3-tree-all-kinds.jsonl"]
)
def test_real_files_come_out_byte_for_byte(tmp_path, name, secrets):
    source = shared_path("fixtures", "sessions", name)
    export(source, tmp_path / "out.jsonl", secrets=secrets)
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_damage_comes_along_byte_for_byte(tmp_path):
    lines = (
        b"\xef\xbb\xbf" + dump(header_line()),
        *chain("a"),
        b"junk\r\n",
        b"\n",
        b"\xff\xfe\n",
        dump({"x": 1e300}),
        b'{"torn',
    )
    source = write_lines(tmp_path / "s.jsonl", *lines)
    export(source, tmp_path / "out.jsonl", secrets=KnownSecrets())
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_only_lines_with_secrets_change_and_only_there(tmp_path):
    entry = user_record("u1", None, f'say "{KEY}"\nAuthorization: Bearer abcdefgh1234', 1)
    other = b'{"type":"x", "id":"u2","parentId":"u1","timestamp":"","odd":1.50}\n'
    lines = masked(tmp_path, header_line(), entry, other).splitlines(keepends=True)
    assert lines[0] == dump(header_line()).decode()
    assert lines[2] == other.decode()
    changed = json.loads(lines[1])
    assert changed["message"].pop("content") == 'say "sk…(16+)"\nAuthorization: Bearer ab…(8+)'
    entry["message"].pop("content")
    assert (changed, list(changed)) == (entry, list(entry))


@pytest.mark.parametrize(
    "spelling",
    ['token=abcdefgh\\"', "token=abcdefgh\\\\n", 'pass"wörd-1', "\\u0073k-ant-api03-abcdefghijklmnop"],
)
def test_masked_lines_stay_json(tmp_path, spelling):
    line = dump(user_record("u1", None, "HERE", 1)).replace(
        b"HERE", spelling.replace('s"w', 's\\"w').encode()
    )
    text = json.loads(masked(tmp_path, header_line(), line).splitlines()[1])["message"]["content"]
    assert "(8+)" in text or "(16+)" in text


@given(st.text(max_size=40), st.text(max_size=10))
def test_masking_never_breaks_a_line(around, inside):
    secrets = KnownSecrets(frozenset({"s3cret-value"}))
    value = {"type": "message", "id": "a", inside: [f"{around}s3cret-value{inside}", {"k": f"{KEY}{around}"}]}
    found = secrets.mask_json(json.loads(json.dumps(value)), is_entry=True)
    text = json.dumps(found, ensure_ascii=False)
    assert "s3cret-value" not in text
    assert json.loads(text) == found


def test_pictures_and_the_links_of_the_tree_are_never_masked(tmp_path):
    data = "AKIAABCDEFGHIJKLMNOP" + PIXEL
    entry = user_record("sk-abcdefghijklmnopqrst", None, "x", 1)
    entry["message"]["content"] = [{"type": "image", "mimeType": "image/png", "data": data}]
    line = json.loads(masked(tmp_path, header_line(), entry).splitlines()[1])
    assert line["id"] == "sk-abcdefghijklmnopqrst"
    assert line["message"]["content"][0]["data"] == data


def test_title_slot_keeps_its_length(tmp_path):
    out = masked(tmp_path, slot_line(), header_line(), *chain("a")).encode()
    assert out[255:256] == b"\n"
    assert json.loads(out[:255])["title"] == "my sk…(16+) title"
    assert load_session(tmp_path / "out.jsonl").name == "my sk…(16+) title"


def test_blobs_are_put_in_their_place_and_missing_ones_are_told(tmp_path):
    picture = base64.b64decode(PIXEL)
    digest = hashlib.sha256(picture).hexdigest()
    sessions = tmp_path / "agent" / "sessions"
    sessions.mkdir(parents=True)
    (tmp_path / "agent" / "blobs").mkdir()
    (tmp_path / "agent" / "blobs" / digest).write_bytes(picture)
    entry = user_record("u1", None, "x", 1)
    images = [
        {"type": "image", "mimeType": "image/png", "data": f"blob:sha256:{name}"}
        for name in (digest, "0" * 64)
    ]
    entry["message"]["content"] = images
    loaded = load_session(write_lines(sessions / "s.jsonl", header_line(), entry))
    target = tmp_path / "out.jsonl"
    exported = export_session(source_of(loaded), target, ExportOptions(None, inline=True))
    content = json.loads(target.read_bytes().splitlines()[1])["message"]["content"]
    assert [block["data"] for block in content] == [PIXEL, "blob:sha256:" + "0" * 64]
    assert exported.warnings == (
        "1 line names a blob that could not be found; the references stayed as they are.",
    )


def test_entries_in_memory_follow_the_lines_of_the_file(tmp_path):
    loaded = load_session(write_lines(tmp_path / "s.jsonl", header_line(), *chain("a"), b'{"torn'))
    bodies, tree = loaded.bodies, loaded.tree
    for number, entry in enumerate(builders.path(builders.u("b"), builders.u("c"), ids=("m1", "m2"))):
        bodies.remember(entry)
        tree = tree.with_entry(
            EntryHead(entry.id, f"m{number}" if number else "e1", entry.type, entry.timestamp)
        )
    source = ExportSource(loaded.header, None, tree, bodies, loaded.path)
    export_session(source, tmp_path / "out.jsonl", ExportOptions(None))
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert lines[2] == b'{"torn'
    assert [json.loads(line)["id"] for line in lines[3:]] == ["m1", "m2"]


def test_session_without_a_file_is_written_whole(tmp_path):
    loaded = load_session(write_full(tmp_path))
    entries = loaded.read_path()
    bodies = Bodies()
    for entry in entries:
        bodies.remember(entry)
    tree = SessionTree.from_heads([head._replace(offset=0, length=0) for head in loaded.tree.path()])
    source = ExportSource(loaded.header, None, tree, bodies, None)
    export_session(source, tmp_path / "out.jsonl", ExportOptions(None))
    assert load_session(tmp_path / "out.jsonl").read_path() == entries


def test_file_that_vanished_is_an_error(tmp_path):
    loaded = load_session(write_full(tmp_path))
    (tmp_path / "full.jsonl").unlink()
    with pytest.raises(SessionError, match="No such file"):
        export_session(source_of(loaded), tmp_path / "out.jsonl", ExportOptions(None))
    assert list(tmp_path.iterdir()) == []
