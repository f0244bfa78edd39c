import base64
import hashlib
import os
import stat
from pathlib import Path

import pytest

from musepi_tui.context.llm import LlmTemplates, convert_to_llm
from musepi_tui.session.codec import dump_line
from musepi_tui.session.messages import ImageBlock, TextBlock
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage import blobs
from musepi_tui.storage.blobs import BlobStore, blob_folder_beside
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.tail import open_tail
from tests.support.builders import PIXEL
from tests.support.lines import header_line, record, write_lines

PICTURE = base64.b64decode(PIXEL)
DIGEST = hashlib.sha256(PICTURE).hexdigest()
REFERENCE = f"blob:sha256:{DIGEST}"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MUSEPI_HOME", str(tmp_path / "musepi"))
    return tmp_path


def own(home: Path) -> Path:
    return home / "musepi" / "blobs"


def put(folder: Path, data: bytes, name: str | None = None) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    digest = name or hashlib.sha256(data).hexdigest()
    (folder / digest).write_bytes(data)
    return digest


def session(folder: Path, *content: dict) -> Path:
    message = {"role": "user", "content": list(content), "timestamp": 1}
    return write_lines(folder / "s.jsonl", header_line(), record("message", "e1", None, message=message))


def image(reference: str = REFERENCE) -> dict:
    return {"type": "image", "data": reference, "mimeType": "image/png"}


def sent(path: Path) -> tuple:
    context = build_session_context(load_session(path).read_path())
    return convert_to_llm(context.messages, LlmTemplates("{{summary}}", "{{summary}}"))[0].content


@pytest.mark.parametrize("where", ["beside", "own"])
def test_image_is_read_from_the_tool_of_the_session_or_from_our_own_blobs(home, where):
    folder = home / "omp" / "agent" / "sessions" / "-p"
    folder.mkdir(parents=True)
    put(home / "omp" / "agent" / "blobs" if where == "beside" else own(home), PICTURE)
    assert sent(session(folder, image())) == (ImageBlock(PIXEL, "image/png"),)
    assert open_tail(folder / "s.jsonl").entries[0].message.content == (ImageBlock(PIXEL, "image/png"),)


def test_session_of_a_sub_agent_finds_the_blobs_of_its_tool(home):
    path = home / "agent" / "sessions" / "-p" / "2026_x" / "0-worker.jsonl"
    assert blob_folder_beside(path) == home / "agent" / "blobs"
    assert blob_folder_beside(home / "elsewhere" / "x.jsonl") is None


def test_missing_blob_is_a_few_words_for_the_model_and_stays_a_reference_on_disk(home):
    path = session(home, {"type": "text", "text": "look"}, image())
    assert sent(path) == (TextBlock("look"), TextBlock(f"[image not available: blob {DIGEST[:12]}]"))
    loaded = load_session(path)
    assert dump_line(loaded.read_path()[0]) == loaded.bodies.read_line(loaded.heads[0])


def test_blob_with_other_bytes_than_its_name_says_is_missing(home):
    put(own(home), b"something else", DIGEST)
    assert sent(session(home, image())) == (TextBlock(f"[image not available: blob {DIGEST[:12]}]"),)


def test_long_text_is_put_back_and_written_as_the_reference(home):
    text = "Größe " * 1000
    digest = put(own(home), text.encode())
    path = session(home, {"type": "text", "text": f"blobtext:sha256:{digest}"})
    loaded = load_session(path)
    entry = loaded.bodies.get(loaded.heads[0])
    assert entry.message.content == (TextBlock(text),)
    assert dump_line(entry) == loaded.bodies.read_line(loaded.heads[0])


def test_text_that_is_no_utf8_is_missing(home):
    digest = put(own(home), b"\xff\xfe")
    reference = f"blobtext:sha256:{digest}"
    assert sent(session(home, {"type": "text", "text": reference})) == (
        TextBlock(f"[text not available: blob {digest[:12]}]"),
    )


def test_picture_over_the_limit_is_not_read(home, monkeypatch):
    monkeypatch.setattr(blobs, "MAX_IMAGE_BYTES", len(PICTURE) - 1)
    put(own(home), PICTURE)
    assert sent(session(home, image()))[0] == TextBlock(f"[image not available: blob {DIGEST[:12]}]")


def test_pipe_in_place_of_a_blob_does_not_hang(home):
    own(home).mkdir(parents=True)
    os.mkfifo(own(home) / DIGEST)
    assert BlobStore.of_session(home / "s.jsonl").read(DIGEST) is None


@pytest.mark.parametrize("digest", ["", "../" + DIGEST, DIGEST[:-1], DIGEST.upper(), DIGEST + "\n"])
def test_what_is_no_digest_never_becomes_a_path(home, digest):
    put(own(home), b"x", "x")
    asked: list[object] = []
    store = BlobStore(lambda: asked.append(1) or own(home))
    assert store.read(digest) is None
    assert not asked


def test_stored_blob_is_private_and_named_by_its_bytes(home):
    store = BlobStore.of_session(home / "s.jsonl")
    assert store.put(PICTURE) == REFERENCE
    path = own(home) / DIGEST
    assert path.read_bytes() == PICTURE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(own(home).stat().st_mode) == 0o700
    assert store.read(DIGEST) == PICTURE
    assert [each.name for each in own(home).iterdir()] == [DIGEST]


def test_blob_that_is_there_is_not_written_again_unless_it_was_cut(home):
    store = BlobStore.of_session(home / "s.jsonl")
    store.put(PICTURE)
    before = (own(home) / DIGEST).stat()
    store.put(PICTURE)
    assert (own(home) / DIGEST).stat().st_ino == before.st_ino
    (own(home) / DIGEST).write_bytes(PICTURE[:10])
    store.put(PICTURE)
    assert store.read(DIGEST) == PICTURE
