import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import SessionError
from musepi_tui.storage.importers import SourceKind, detect_source, import_session
from musepi_tui.storage.importers.source import SourceFile
from musepi_tui.storage.loading import load_session
from tests.support.clock import FakeClock
from tests.support.imports import META, Import, answered, assert_sound, codex_text, paths_in, said, text
from tests.support.lines import chain, dump, header_line, write_lines

PI = (header_line(), *chain("a"))
CLAUDE = (said("u", None, "one"), answered("a", "u", text("two"), "m"))
CODEX = (META, codex_text("user", "one"))


@pytest.mark.parametrize("lines", [PI, CLAUDE, CODEX], ids=["pi", "claude", "codex"])
def test_one_session_is_made_and_nothing_else(tmp_path, lines):
    done = Import(tmp_path, *lines)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(files) == sorted([done.source, done.done.path])
    assert done.done.path.stat().st_mode & 0o777 == 0o600
    assert done.done.path.parent.stat().st_mode & 0o777 == 0o700
    assert_sound(done.done)


@pytest.mark.parametrize("lines", [PI, CLAUDE, CODEX], ids=["pi", "claude", "codex"])
def test_second_import_names_the_first_and_is_made_all_the_same(tmp_path, lines):
    first = Import(tmp_path, *lines)
    second = import_session(first.source, paths_in(tmp_path))
    assert (first.done.earlier, second.earlier) == (None, first.done.path)
    assert second.path != first.done.path
    moved = first.source.rename(tmp_path / "moved.jsonl")
    assert import_session(moved, paths_in(tmp_path)).earlier is not None


def test_another_source_of_the_same_folder_is_no_earlier_copy(tmp_path):
    Import(tmp_path, *CLAUDE)
    other = [record | {"sessionId": "c-2"} for record in CLAUDE]
    assert Import(tmp_path, *other, name="other.jsonl").done.earlier is None


def test_time_is_that_of_the_clock_and_the_folder_may_be_given(tmp_path):
    source = write_lines(tmp_path / "s.jsonl", *PI)
    clock = FakeClock()
    done = import_session(source, paths_in(tmp_path), override=tmp_path / "flat", clock=clock)
    assert done.path.parent == tmp_path / "flat"
    assert load_session(done.path).header.timestamp.startswith(
        time.strftime("%Y-%m-%d", time.gmtime(clock.now_ms() / 1000))
    )


@pytest.mark.parametrize(
    "cwd", ["", "relative/../../x", "..", "/a\nb", "/nul\0", "/lone\ud800", "/" + "x" * 5000], ids=repr
)
def test_hostile_folder_is_not_taken_over(tmp_path, monkeypatch, cwd):
    monkeypatch.chdir(tmp_path)
    line = dump(header_line(cwd="CWD")).replace(b'"CWD"', json_bytes(cwd))
    done = Import(tmp_path, line, *chain("a"))
    assert done.loaded.header.cwd == str(tmp_path)
    assert done.done.path.is_relative_to(tmp_path / "data" / "sessions")
    assert len(done.done.warnings) == 1


def json_bytes(value):
    import json

    return json.dumps(value).encode()


@pytest.mark.parametrize("cwd", ["/a/../../../etc", "/no/such/folder", "C:\\Users\\me\\x", "/" + "ü" * 300])
def test_folder_of_another_place_stays_one_name_below_the_root(tmp_path, cwd):
    done = Import(tmp_path, header_line(cwd=cwd), *chain("a"))
    assert done.loaded.header.cwd == cwd
    assert done.done.path.parent.parent == tmp_path / "data" / "sessions"


def test_names_in_the_file_never_become_paths(tmp_path):
    evil = "../../../evil"
    done = Import(tmp_path, header_line(id=evil, timestamp=evil, title=evil), *chain("a"))
    assert "evil" not in str(done.done.path)
    assert done.done.path.parent.parent == tmp_path / "data" / "sessions"


@pytest.mark.parametrize(
    ("start", "word"),
    [
        (b"\x1f\x8b\x08", "gzip"),
        (b"PK\x03\x04", "zip"),
        (b"SQLite format 3\0", "SQLite"),
        ("{}".encode("utf-16"), "UTF-16"),
        (b"{\0}\0", "not a session|session header"),
        (b"", "session header"),
    ],
    ids=["gzip", "zip", "sqlite", "utf-16 with mark", "utf-16 without", "empty"],
)
def test_other_files_are_refused_in_one_line(tmp_path, start, word):
    source = tmp_path / "s.jsonl"
    source.write_bytes(start)
    with pytest.raises(SessionError, match=word) as caught:
        import_session(source, paths_in(tmp_path))
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


def test_folders_pipes_and_links_that_lead_nowhere_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    started = time.monotonic()
    for name in (tmp_path, tmp_path / "pipe", tmp_path / "loop", Path("/dev/zero"), tmp_path / "missing"):
        with pytest.raises(SessionError):
            import_session(name, paths_in(tmp_path))
        with pytest.raises(SessionError):
            detect_source(name)
    assert time.monotonic() - started < 1


def test_failure_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    source = write_lines(tmp_path / "s.jsonl", *PI)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "0.bash.log").write_bytes(b"x")
    data = tmp_path / "data"
    data.mkdir(mode=0o500)
    with (
        pytest.raises(SessionError, match="could not import") if os.getuid() else pytest.raises(SessionError)
    ):
        if not os.getuid():  # root may write anywhere
            data.rmdir()
            data.write_bytes(b"")
        import_session(source, paths_in(tmp_path))
    assert not [path for path in tmp_path.rglob("*.tmp")]


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (PI, SourceKind.FAMILY),
        (CLAUDE, SourceKind.CLAUDE),
        (CODEX, SourceKind.CODEX),
        (({"type": "summary", "summary": "s", "leafUuid": "x"},), SourceKind.CLAUDE),
        (({"type": "file-history-snapshot", "messageId": "x"}, b"junk\n"), SourceKind.CLAUDE),
        (({"type": "message", "role": "user", "content": []},), SourceKind.CODEX),
        ((b"junk\n", *chain("a")), None),
        (({"hello": 1},), None),
        (({"type": []}, {"type": {}, "payload": {}}, *CODEX), SourceKind.CODEX),
        ((), None),
    ],
    ids=[
        "pi",
        "claude",
        "codex",
        "summary",
        "snapshot",
        "bare item",
        "torn header",
        "other json",
        "odd types",
        "empty",
    ],
)
def test_kind(tmp_path, lines, kind):
    assert detect_source(write_lines(tmp_path / "s.jsonl", *lines)) is kind


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    "type",
    "uuid",
    "parentUuid",
    "message",
    "content",
    "role",
    "id",
    "payload",
    "timestamp",
    "info",
    "subtype",
    "logicalParentUuid",
    "isSidechain",
    "isCompactSummary",
    "compactMetadata",
    "cwd",
    "sessionId",
    "call_id",
    "name",
    "arguments",
    "output",
    "summary",
    "replacement_history",
    "leafUuid",
    "customTitle",
    "model",
    "effort",
    "last_token_usage",
    "input_tokens",
    "tool_use_id",
    "images",
]
TYPES = [
    "user",
    "assistant",
    "system",
    "progress",
    "summary",
    "custom-title",
    "last-prompt",
    "session_meta",
    "turn_context",
    "response_item",
    "event_msg",
    "compacted",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "user_message",
    "token_count",
    "text",
    "tool_use",
    "tool_result",
    "image",
    "thinking",
    "session",
]
odd_values = json_values | st.sampled_from(TYPES) | st.sampled_from(["a", "b", "c"])
objects = st.recursive(
    st.dictionaries(st.sampled_from(KEYS), odd_values, max_size=6),
    lambda inner: st.dictionaries(
        st.sampled_from(KEYS), inner | st.lists(inner, max_size=2) | odd_values, max_size=6
    ),
    max_leaves=5,
)


@given(st.sampled_from([PI, CLAUDE, CODEX]), st.lists(objects, max_size=6), st.binary(max_size=20))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_of_any_shape_are_never_fatal(tmp_path, first, records, torn):
    done = Import(tmp_path, *first, *records, torn.replace(b"\n", b""))
    assert [
        issue for issue in done.loaded.issues if issue.kind in ("dup_id", "cycle", "orphan_relinked")
    ] == []
    assert done.loaded.heads[-1].type == "custom"


@pytest.mark.parametrize("end", [b"\n", b""], ids=["whole", "open"])
@pytest.mark.parametrize(("limit", "is_told"), [(3, True), (4, False)])
def test_lines_beyond_the_limit_are_told(tmp_path, monkeypatch, end, limit, is_told):
    monkeypatch.setattr("musepi_tui.storage.importers.source.MAX_LINES", limit)
    records = [said(f"u{number}", f"u{number - 1}" if number else None, "x") for number in range(4)]
    source = write_lines(tmp_path / "claude.jsonl", *records)
    source.write_bytes(source.read_bytes().rstrip(b"\n") + end)
    done = import_session(source, paths_in(tmp_path))
    assert done.counts["user"] == limit
    assert [text for text in done.warnings if "the rest is not in the session" in text] == (
        ["only its first 5,000,000 lines were read, the rest is not in the session"] if is_told else []
    )


def test_lines_are_found_across_blocks(tmp_path):
    data = b"\n".join(b"x" * length for length in (0, 1, 1024 * 1024 - 3, 5, 3 * 1024 * 1024, 0, 7))
    path = tmp_path / "s"
    path.write_bytes(data)
    source = SourceFile.open(path)
    lines = [source.read(place) for place in source.places()]
    source.close()
    assert lines == [line for line in data.split(b"\n") if line]


GROWTH = """
import sys
from pathlib import Path
from musepi_tui.storage.importers import import_session
from tests.support.imports import paths_in

def most_kb():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])

before = most_kb()
import_session(Path(sys.argv[1]), paths_in(Path(sys.argv[2])))
print(most_kb() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the most memory that was used")
@pytest.mark.parametrize("kind", ["pi", "claude", "codex"])
def test_large_files_are_imported_in_little_memory(tmp_path, kind):
    source = tmp_path / "big.jsonl"
    words = "word " * 1500
    with source.open("wb") as file:
        file.writelines(big_lines(kind, words, 8_000))
    result = subprocess.run(
        [sys.executable, "-c", GROWTH, source, tmp_path], capture_output=True, text=True, check=True
    )
    assert source.stat().st_size > 60_000_000
    assert int(result.stdout) * 1024 < source.stat().st_size / 3


def big_lines(kind, words, count):
    if kind == "pi":
        yield dump(header_line())
    if kind == "codex":
        yield dump(META)
    for index in range(count):
        if kind == "pi":
            yield dump(chain(words)[0] | {"id": f"i{index}", "parentId": f"i{index - 1}" if index else None})
        elif kind == "claude":
            yield dump(said(f"u{index}", f"u{index - 1}" if index else None, words))
        else:
            yield dump(codex_text("user" if index % 2 else "assistant", words))
