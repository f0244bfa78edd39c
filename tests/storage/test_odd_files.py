"""Damaged and odd files, row by row: what is read, what is told, and that nothing the file held is lost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.cli.main import main
from musepi_tui.session.codec import encode_entry
from musepi_tui.session.messages import text_of
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage import index
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.session_file import SessionFile
from musepi_tui.storage.tail import open_tail
from tests.support.builders import entry, u
from tests.support.lines import answer_record, chain, dump, header_line, record, user_record
from tests.support.program import run_musepi
from tests.support.random_sessions import HEADER
from tests.support.stored import append_to

Line = Mapping[str, Any] | bytes
ONE, TWO = chain("one", "two")
LONE = dump(user_record("e3", "e2", "SURROGATE")).replace(b"SURROGATE", b"\\ud800")
NOT_NUMBERS = b'{"type":"custom","id":"n","parentId":"e2","timestamp":"t","data":[NaN,-Infinity,1e400]}\n'
BIG = record("custom", "b", "e2", customType="c", data={"n": 2**70, "f": 0.1})


@dataclass(frozen=True)
class Row:
    """Lines behind the header, the issues they give as (line, kind), and the texts of the context."""

    lines: Sequence[Line]
    issues: Sequence[tuple[int, str]] = ()
    texts: Sequence[str] = ("one", "two")


ROWS: dict[str, Row] = {
    "last line torn": Row([ONE, TWO, dump(user_record("e3", "e2", "three"))[:-9]], [(4, "torn_tail")]),
    "last line torn behind a brace": Row(
        [ONE, TWO, dump(user_record("e3", "e2", "{a}"))[: -len('","timestamp":1}}\n')]], [(4, "torn_tail")]
    ),
    "last line valid without LF": Row(
        [ONE, TWO, dump(user_record("e3", "e2", "three"))[:-1]], texts=["one", "two", "three"]
    ),
    "bad line in the middle": Row(
        [ONE, dump(TWO)[:-30] + b"\n", user_record("e3", "e2", "three")],
        [(3, "bad_json"), (4, "orphan_relinked")],
        ["one", "three"],
    ),
    "NULs as the tail": Row([ONE, TWO, bytes(512)], [(4, "torn_tail")]),
    "NULs as a line": Row([ONE, bytes(512) + b"\n", TWO], [(3, "bad_json")]),
    "NULs inside a line": Row(
        [ONE, TWO, dump(user_record("e3", "e2", "a\0b")).replace(b"\\u0000", b"\0")], [(4, "bad_json")]
    ),
    "invalid UTF-8": Row([ONE, dump(TWO).replace(b"two", b"t\xffo")], [(3, "bad_utf8")], ["one", "t\ufffdo"]),
    "lone surrogate": Row([ONE, TWO, LONE], texts=["one", "two", "\ud800"]),
    "U+2028, U+0085 and a form feed are no line ends": Row(
        [ONE, user_record("e2", "e1", "a\u2028b\u0085c\x0cd")], texts=["one", "a\u2028b\u0085c\x0cd"]
    ),
    "blank lines": Row([b"\n", ONE, b" \t \n\n", TWO, b"\n"]),
    "no objects": Row(
        [ONE, b"null\n", b"42\n", b"[1]\n", b'"x"\n', TWO], [(line, "not_object") for line in (3, 4, 5, 6)]
    ),
    "no type": Row([ONE, {"id": "x", "parentId": "e1"}, user_record("e2", "x", "two")], [(3, "bad_shape")]),
    "no role": Row(
        [ONE, record("message", "x", "e1", message={"content": "?"}), user_record("e2", "x", "two")],
        [(3, "bad_shape")],
    ),
    "no usage": Row([ONE, answer_record("a", "e1", "two", usage=None)]),
    "usage of words": Row([ONE, answer_record("a", "e1", "two", usage={"input": "many"})]),
    "content null": Row([ONE, TWO, answer_record("a", "e2", "", content=None)], texts=["one", "two", ""]),
    "repeated id": Row(
        [ONE, TWO, user_record("e3", "e2", "three"), user_record("e3", "e2", "three again")],
        [(5, "dup_id")],
        ["one", "two", "three again"],
    ),
    "own parent": Row([user_record("e1", "e1", "one"), TWO], [(2, "cycle")]),
    "ring": Row(
        [user_record("e1", "e2", "one"), TWO, user_record("e3", "e2", "three")],
        [(2, "cycle"), (2, "late_parent")],
        ["one", "two", "three"],
    ),
    "missing parent": Row([ONE, user_record("e2", "gone", "two")], [(3, "orphan_relinked")]),
    "first entry without its parent": Row([user_record("e1", "gone", "one"), TWO], [(2, "orphan_relinked")]),
    "parent later in the file": Row(
        [TWO, ONE, user_record("e3", "e2", "three")], [(2, "late_parent")], ["one", "two", "three"]
    ),
    "two headers": Row([ONE, header_line(id="again"), TWO], [(3, "extra_header")]),
    "unknown type": Row([ONE, record("future", "f", "e1", new={"deep": [1]}), user_record("e2", "f", "two")]),
    "unknown fields": Row([ONE | {"new": {"a": 1}}, TWO]),
    "numbers": Row([ONE, TWO, BIG]),
    "NaN and infinities": Row([ONE, TWO, NOT_NUMBERS]),
    "nested too deep": Row(
        [
            ONE,
            b'{"type":"custom","id":"d","parentId":"e1","timestamp":"t","data":'
            + b"[" * 900
            + b"]" * 900
            + b"}\n",
            TWO,
        ],
        [(3, "too_deep")],
    ),
    "number of ten thousand digits": Row(
        [
            ONE,
            b'{"type":"custom","id":"d","parentId":"e1","timestamp":"t","data":' + b"9" * 10_000 + b"}\n",
            TWO,
        ],
        [(3, "bad_json")],
    ),
    "keys in another order": Row([dict(reversed(ONE.items())), TWO]),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def bytes_of(*lines: Line) -> bytes:
    return b"".join(line if isinstance(line, bytes) else dump(line) for line in lines)


def told(loaded: LoadedSession) -> list[tuple[int, str]]:
    return [(issue.line, issue.kind) for issue in loaded.issues]


def texts(loaded: LoadedSession) -> list[str]:
    return [text_of(message.content) for message in build_session_context(loaded.read_path()).messages]


@pytest.mark.parametrize("name", ROWS)
def test_row_is_read_told_and_left_alone(name, file):
    row = ROWS[name]
    data = bytes_of(header_line(), *row.lines)
    file.write_bytes(data)
    loaded = load_session(file, thorough=True)
    assert told(loaded) == list(row.issues)
    assert texts(loaded) == list(row.texts)
    assert texts(load_session(file)) == list(row.texts)
    SessionFile.open(file, loaded).close()
    assert file.read_bytes() == data
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("name", ROWS)
def test_row_can_be_continued_and_keeps_its_bytes(name, file):
    row = ROWS[name]
    data = bytes_of(header_line(), *row.lines)
    file.write_bytes(data)
    append_to(file, entry(u("new"), "fffffff0", load_session(file).tree.leaf_id))
    append_to(file, entry(u("newer"), "fffffff1", "fffffff0"))
    assert file.read_bytes().startswith(data if data.endswith(b"\n") else data + b"\n")
    again = load_session(file, thorough=True)
    assert texts(again) == [*row.texts, "new", "newer"]
    assert [issue for issue in told(again) if issue[1] != "bad_json"] == [
        issue for issue in row.issues if issue[1] not in ("bad_json", "torn_tail")
    ]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_byte_order_mark_and_crlf_are_accepted_and_kept(mark, ending, file):
    data = mark + bytes_of(header_line(), ONE, TWO).replace(b"\n", ending)
    file.write_bytes(data)
    append_to(file, entry(u("new"), "fffffff0", "e2"))
    loaded = load_session(file, thorough=True)
    assert (told(loaded), texts(loaded)) == ([], ["one", "two", "new"])
    assert file.read_bytes().startswith(data + b'{"type":"message","id":"fffffff0"')


def test_unknown_fields_and_types_come_back_in_their_order(file):
    odd = {"x-first": None} | dict(reversed(ONE.items())) | {"z": [2**70, 0.1, True]}
    strange = record("future", "f", "e1", b=1, a={"d": [], "c": {}})
    file.write_bytes(bytes_of(header_line(), odd, strange))
    loaded = load_session(file)
    assert [json.dumps(encode_entry(loaded.bodies.get(head))) for head in loaded.heads] == [
        json.dumps(odd),
        json.dumps(strange),
    ]


def test_usage_that_is_unknown_adds_nothing_to_the_totals(file):
    file.write_bytes(
        bytes_of(header_line(), ONE, *ROWS["no usage"].lines[1:], answer_record("b", "a", "three"))
    )
    totals = load_session(file).totals
    assert (totals.input, totals.output, totals.unknown) == (1, 1, 1)


def test_line_over_the_limit_is_kept_aside(file, monkeypatch):
    monkeypatch.setattr(index, "MAX_LINE_BYTES", 2000)
    monkeypatch.setattr(index, "BLOCK_BYTES", 512)
    data = bytes_of(header_line(), ONE, user_record("x", "e1", "y" * 3000), TWO)
    file.write_bytes(data)
    loaded = load_session(file, thorough=True)
    assert (told(loaded), texts(loaded)) == ([(3, "too_long")], ["one", "two"])


def test_line_of_many_megabytes_is_read(file):
    file.write_bytes(
        bytes_of(header_line(), ONE, user_record("e2", "e1", "y" * 5_000_000), user_record("e3", "e2", "z"))
    )
    loaded = load_session(file, thorough=True)
    assert [len(text) for text in texts(loaded)] == [3, 5_000_000, 1]


NO_HEADERS = {
    "nothing of a header": bytes_of(ONE, TWO),
    "torn header": bytes_of(header_line())[:40] + b"\n" + bytes_of(ONE, TWO),
    "header of NULs": bytes(300) + b"\n" + bytes_of(ONE),
    "header without an id": b'{"type":"session","version":3,"cwd":"/"}\n' + bytes_of(ONE),
    "text": b"some notes\nof mine\n",
    "a single byte": b"{",
}


@pytest.mark.parametrize("name", NO_HEADERS)
def test_file_without_a_header_is_refused_and_not_touched(name, file, capsys):
    data = NO_HEADERS[name]
    file.write_bytes(data)
    with pytest.raises(NotASessionFileError, match=r"s\.jsonl: line 1: first record is not a session header"):
        load_session(file)
    for command in ("inspect", "context", "transcript", "tree", "check"):
        assert main(["sessions", command, str(file)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert f"{file}: line 1: first record is not a session header" in captured.err
    assert file.read_bytes() == data


def test_torn_header_is_not_opened_for_work_and_the_way_out_is_named(file, tmp_path):
    data = NO_HEADERS["torn header"]
    file.write_bytes(data)
    run = run_musepi(
        "-p", "hi", "--session", str(file), "--provider", "demo", "--model", "demo", cwd=tmp_path
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert f"{file}: line 1: first record is not a session header" in run.stderr
    assert f"try: musepi sessions import --salvage {file}" in run.stderr
    assert file.read_bytes() == data


@pytest.mark.parametrize("version", ["3", True, 0, -1, 2.5, [3], {}], ids=repr)
def test_version_that_is_none_is_refused_and_can_be_salvaged(version, file, musepi_home, capsys):
    data = bytes_of({**header_line(), "version": version}, ONE, TWO, user_record("x1", "e1", "a branch"))
    file.write_bytes(data)
    for read in (load_session, open_tail):
        with pytest.raises(NotASessionFileError, match="its version is .*, not a whole number from 1 up"):
            read(file)
    assert file.read_bytes() == data
    assert main(["sessions", "import", "--salvage", str(file)]) == 0
    copy = load_session(Path(capsys.readouterr().out.strip()))
    assert len(copy.tree.children("e1")) == 2


def test_version_written_with_a_fraction_of_zero_is_that_version(file):
    line = json.dumps({**header_line(), "version": 3.0})
    assert '"version": 3.0' in line
    file.write_bytes(line.encode() + b"\n" + bytes_of(ONE, TWO))
    loaded = load_session(file)
    assert (loaded.version_on_disk, loaded.header.version, loaded.header.extra) == (3, 3, {})
    assert list(loaded.tree.order) == ["e1", "e2"]


def test_empty_file_becomes_a_session_with_the_first_entry(file):
    file.touch()
    session = SessionFile.create(file, HEADER)
    session.sync()
    assert file.read_bytes() == b""
    session.append([entry(u("hi"), "a1", None)])
    session.close()
    assert texts(load_session(file)) == ["hi"]


def test_newer_version_is_read_and_not_written(file):
    data = bytes_of(header_line(4), ONE, TWO)
    file.write_bytes(data)
    loaded = load_session(file)
    assert texts(loaded) == ["one", "two"]
    assert loaded.read_only_reason == "session file version 4 is newer than this musepi understands (3)"
    with pytest.raises(SessionError, match="version 4 is newer"):
        SessionFile.open(file, loaded)
    assert file.read_bytes() == data


def test_path_of_a_hundred_thousand_entries_needs_no_stack(file):
    heads = [
        b'{"type":"custom","id":"%08x","parentId":%s,"timestamp":"t","customType":"c"}\n'
        % (number, b'"%08x"' % (number - 1) if number else b"null")
        for number in range(100_000)
    ]
    file.write_bytes(bytes_of(header_line(), *heads))
    tree = load_session(file).tree
    assert (len(tree.path()), tree.longest_path, len(tree.roots)) == (100_000, 100_000, 1)
