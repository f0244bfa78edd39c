import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import NotASessionFileError, SessionError
from musepi_tui.session.entries import StateEntry
from musepi_tui.session.messages import text_of
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage import index
from musepi_tui.storage.glance import glance_at
from musepi_tui.storage.loading import LoadedSession, describe_issues, load_session
from musepi_tui.storage.tail import open_tail
from tests.support.lines import answer_record, chain, dump, header_line, record, user_record, write_lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def issues(loaded: LoadedSession) -> list[tuple[int, str]]:
    return [(issue.line, issue.kind) for issue in loaded.issues]


def texts(loaded: LoadedSession) -> list[str]:
    messages = build_session_context(loaded.read_path()).messages
    return [getattr(m, "summary", None) or text_of(m.content) for m in messages]


def load_both(path: Path) -> LoadedSession:
    """Loads in both ways, which must agree on everything that can be read."""
    quick, thorough = load_session(path), load_session(path, thorough=True)
    assert list(quick.tree.order) == list(thorough.tree.order)
    assert issues(quick) == issues(thorough)
    assert texts(quick) == texts(thorough)
    return quick


def test_sound_file_is_read_whole(file):
    loaded = load_both(write_lines(file, header_line(), *chain("a", "b", "c")))
    assert (loaded.header.id, loaded.header.cwd, loaded.version_on_disk) == ("s-1", "/p", 3)
    assert (loaded.tree.leaf_id, loaded.orphans, loaded.issues) == ("e3", 0, ())
    assert texts(loaded) == ["a", "b", "c"]
    assert loaded.size_bytes == file.stat().st_size
    assert loaded.ends_with_lf


def test_heads_know_where_their_lines_are(file):
    loaded = load_session(write_lines(file, header_line(), *chain("a", "bé", "c")))
    data = file.read_bytes()
    for head in loaded.heads:
        assert json.loads(data[head.offset : head.offset + head.length])["id"] == head.id
        assert head.role == "user"


EXAMPLE_C = (
    header_line(id="ex-c"),
    user_record("u1", None, "one", 1),
    record("future_kind", "f1", "u1", 2, payload={"keep": [1, 2]}),
    b'{"type":"message","id":"u2","parentId":"f1","timestamp":"2026-01-01T0\n',
    user_record("u3", "u2", "three", 4),
    user_record("u1", "u3", "one again", 5),
    user_record("u4", "u3", "four", 6),
    b'{"type":"message","id":"u5","par',
)


def test_worked_example_c(file):
    loaded = load_both(write_lines(file, *EXAMPLE_C))
    assert issues(loaded) == [
        (4, "bad_json"),
        (5, "orphan_relinked"),
        (6, "cycle"),
        (6, "dup_id"),
        (8, "torn_tail"),
    ]
    assert [head.id for head in loaded.heads] == ["u1", "f1", "u3", "u1", "u4"]
    assert loaded.tree.leaf_id == "u4"
    assert loaded.orphans == 1
    assert texts(loaded) == ["one again", "three", "four"]


def test_worked_example_c_without_relinking(file):
    loaded = load_session(write_lines(file, *EXAMPLE_C), strict=True)
    assert [head.id for head in loaded.tree.path()] == ["u3", "u4"]
    assert texts(loaded) == ["three", "four"]


GOOD = chain("a", "b")
DEEP = b'{"type":"x","id":"d","parentId":null,"timestamp":"t","data":' + b"[" * 300 + b"]" * 300 + b"}\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((*GOOD, b'{"type":"mess'), [(4, "torn_tail")]),
        ((*GOOD, b"\x00\x00\x00"), [(4, "torn_tail")]),
        ((GOOD[0], b"not json\n", GOOD[1]), [(3, "bad_json")]),
        ((GOOD[0], b"\x00\x00\n", GOOD[1]), [(3, "bad_json")]),
        (
            (
                GOOD[0],
                b'{"type":"label","id":"x","parentId":"e1","timestamp":"t","label":"a\x00b"}\n',
                GOOD[1],
            ),
            [(3, "bad_json")],
        ),
        (
            (GOOD[0], b"null\n", b"42\n", b"[1]\n", GOOD[1]),
            [(3, "not_object"), (4, "not_object"), (5, "not_object")],
        ),
        ((GOOD[0], {"id": "x", "parentId": "e1"}, GOOD[1]), [(3, "bad_shape")]),
        ((GOOD[0], {"type": "label", "parentId": "e1"}, GOOD[1]), [(3, "bad_shape")]),
        ((GOOD[0], record("message", "x", "e1", message={"content": ""}), GOOD[1]), [(3, "bad_shape")]),
        ((*GOOD, user_record("e1", "e2", "again")), [(4, "cycle"), (4, "dup_id")]),
        ((user_record("e1", "e1", "self"),), [(2, "cycle")]),
        ((GOOD[1], GOOD[0]), [(2, "late_parent")]),
        ((*GOOD, user_record("x", "gone", "o")), [(4, "orphan_relinked")]),
        ((*GOOD, header_line(id="second"), user_record("e3", "e2", "c")), [(4, "extra_header")]),
        ((b"\n", GOOD[0], b"\n  \n", GOOD[1]), []),
    ],
    ids=[
        "torn tail",
        "nul tail",
        "bad line",
        "nul line",
        "nul inside",
        "no objects",
        "no type",
        "no id",
        "no role",
        "repeated id",
        "own parent",
        "late parent",
        "orphan",
        "two headers",
        "blank lines",
    ],
)
def test_damage_is_named_and_the_rest_is_read(file, lines, expected):
    loaded = load_both(write_lines(file, header_line(), *lines))
    assert issues(loaded) == expected
    assert file.read_bytes() == b"".join(
        line if isinstance(line, bytes) else dump(line) for line in (header_line(), *lines)
    )


def test_line_glued_to_a_torn_one_is_found(file):
    lines = dump(GOOD[0])[:-20] + dump(GOOD[1])
    loaded = load_both(write_lines(file, header_line(), lines, user_record("e3", "e2", "c")))
    assert issues(loaded) == [(2, "bad_json"), (3, "orphan_relinked")]


def test_key_of_the_parent_inside_a_message_is_no_damage(file):
    quoted = json.dumps(GOOD[0])
    nested = record("custom", "x", "e2", customType="c", data={"parentId": "nobody"})
    loaded = load_both(write_lines(file, header_line(), *GOOD, user_record("e3", "e2", quoted), nested))
    assert issues(loaded) == []
    assert loaded.tree.leaf_id == "x"


def test_invalid_utf8_is_replaced_and_told(file):
    line = dump(GOOD[1]).replace(b'"b"', b'"\xff"')
    loaded = load_both(write_lines(file, header_line(), GOOD[0], line))
    assert texts(loaded) == ["a", "\ufffd"]
    assert issues(loaded) == [(3, "bad_utf8")]
    assert loaded.bodies.raw_line(loaded.heads[1]) + b"\n" == line


def test_entry_whose_parent_id_is_no_text_is_opaque(file):
    odd = user_record("e2", "e1", "b") | {"parentId": 7}
    loaded = load_both(write_lines(file, header_line(), GOOD[0], odd, user_record("e3", "e2", "c")))
    assert issues(loaded) == [(3, "bad_shape")]
    assert [head.id for head in loaded.tree.path()] == ["e2", "e3"]
    assert texts(loaded) == ["c"]


def test_too_deep_line_is_kept_aside(file):
    loaded = load_session(write_lines(file, header_line(), *GOOD, DEEP), thorough=True)
    assert issues(loaded) == [(4, "too_deep")]


def test_entry_that_turns_out_unreadable_is_opaque(file):
    broken = dump(GOOD[1]).replace(b'"content"', b'"content')
    loaded = load_session(write_lines(file, header_line(), GOOD[0], broken))
    entry = loaded.read_path()[-1]
    assert isinstance(entry, StateEntry)
    assert texts(loaded) == ["a"]


def test_line_over_the_limit_is_passed_over(file, monkeypatch):
    monkeypatch.setattr(index, "MAX_LINE_BYTES", 5000)
    monkeypatch.setattr(index, "BLOCK_BYTES", 1024)
    huge = user_record("x", "e1", "y" * 9000)
    path = write_lines(file, header_line(), GOOD[0], huge, GOOD[1])
    loaded = load_session(path)
    assert issues(loaded) == [(3, "too_long")]
    assert texts(loaded) == ["a", "b"]
    assert file.read_bytes()[loaded.heads[1].offset :].startswith(b'{"type":"message","id":"e2"')


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1000])
def test_lines_cut_by_a_block_are_put_together(file, monkeypatch, block_bytes):
    path = write_lines(file, *EXAMPLE_C)
    whole = load_session(path)
    monkeypatch.setattr(index, "BLOCK_BYTES", block_bytes)
    again = load_session(path)
    assert again.heads == whole.heads
    assert again.issues == whole.issues


@pytest.mark.parametrize("newline", [b"\r\n"])
def test_crlf_and_bom_are_accepted(file, newline):
    data = b"\xef\xbb\xbf" + b"".join(dump(line)[:-1] + newline for line in (header_line(), *GOOD))
    file.write_bytes(data)
    loaded = load_both(file)
    assert (issues(loaded), texts(loaded)) == ([], ["a", "b"])


def test_keys_in_any_order_are_read(file):
    shuffled = [{key: line[key] for key in reversed(line)} for line in GOOD]
    loaded = load_both(write_lines(file, header_line(), *shuffled))
    assert [head.role for head in loaded.heads] == ["user", "user"]
    assert texts(loaded) == ["a", "b"]


def test_ids_of_any_text_are_read(file):
    odd = [
        user_record('q"uote', None, "1"),
        user_record("ü|\\", 'q"uote', "2"),
        user_record("\ud800", "ü|\\", "3"),
    ]
    lines = [json.dumps(line).encode() + b"\n" for line in odd]
    loaded = load_both(write_lines(file, header_line(), *lines))
    assert list(loaded.tree.order) == ['q"uote', "ü|\\", "\ud800"]
    assert texts(loaded) == ["1", "2", "3"]


SLOT = {
    "type": "title",
    "v": 1,
    "title": "Slot",
    "source": "user",
    "updatedAt": "2026-01-02T00:00:00Z",
    "pad": "   ",
}


def test_title_slot_names_the_session(file):
    loaded = load_both(write_lines(file, SLOT, header_line(title="old"), *GOOD))
    assert loaded.name == "Slot"
    assert len(loaded.heads) == 2


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (
            [
                record("session_info", "i1", "e2", 3, name="one"),
                record("session_info", "i2", "i1", 4, name=" t\two\n"),
            ],
            "t wo",
        ),
        (
            [
                record("session_info", "i1", "e2", 3, name="one"),
                record("session_info", "i2", "i1", 4, name=""),
            ],
            None,
        ),
        ([record("session_info", "i1", "e2", 3, name="one"), record("session_info", "i2", "i1", 4)], None),
        ([], None),
    ],
)
def test_last_name_counts_and_an_empty_one_clears(file, lines, name):
    assert load_session(write_lines(file, header_line(), *GOOD, *lines)).name == name


def test_title_of_the_header_is_the_name_until_a_newer_one(file):
    named = record("session_info", "i1", "e2", 3, name="newer")
    assert load_session(write_lines(file, header_line(title="T"), *GOOD)).name == "T"
    assert load_session(write_lines(file, header_line(title="T"), *GOOD, named)).name == "newer"


@pytest.mark.parametrize(
    "first",
    [
        b'{"type":"sess\n',
        b"{}\n",
        b"null\n",
        dump(GOOD[0]),
        b"\x00\x00\n",
        b'{"type":"session","version":3,"id":7}\n',
        b"",
    ],
    ids=["torn", "empty object", "null", "entry", "nul", "id is a number", "empty file"],
)
def test_file_without_header_is_refused_and_untouched(file, first):
    path = write_lines(file, first, *([] if first == b"" else GOOD))
    before = path.read_bytes()
    with pytest.raises(NotASessionFileError, match="line 1: first record is not a session header"):
        load_session(path)
    assert path.read_bytes() == before


def test_slot_without_header_is_refused(file):
    with pytest.raises(NotASessionFileError, match="line 2"):
        load_session(write_lines(file, SLOT, *GOOD))


def test_missing_file_and_folder_are_errors(tmp_path):
    with pytest.raises(SessionError, match="No such file"):
        load_session(tmp_path / "no.jsonl")
    with pytest.raises(SessionError, match="directory"):
        load_session(tmp_path)


def test_newer_version_can_only_be_read(file):
    loaded = load_session(write_lines(file, header_line(4), *GOOD))
    assert loaded.read_only_reason == "session file version 4 is newer than this musepi understands (3)"
    assert texts(loaded) == ["a", "b"]


def test_version_one_is_migrated_in_memory(file):
    old = [{key: value for key, value in line.items() if key not in ("id", "parentId")} for line in GOOD]
    compaction = {
        "type": "compaction",
        "timestamp": "t",
        "summary": "S",
        "firstKeptEntryIndex": 2,
        "tokensBefore": 1,
    }
    path = write_lines(file, header_line(None), *old, b"broken\n", compaction, old[0])
    before = path.read_bytes()
    first, second = load_session(path), load_session(path)
    assert list(first.tree.order) == list(second.tree.order)
    assert first.version_on_disk == 1
    assert (issues(first), texts(first)) == ([(4, "bad_json")], ["S", "b", "a"])
    assert path.read_bytes() == before


def test_totals_cover_all_branches_and_agree_with_decoding(file):
    plain = {
        "input": 1,
        "output": 2,
        "cacheRead": 3,
        "cacheWrite": 4,
        "totalTokens": 10,
        "cost": {"input": 0, "total": 0.5},
    }
    lines = [
        user_record("u", None, 'a text with "usage":{"input":9} in it'),
        answer_record("a1", "u", "x", usage=plain),
        answer_record("a2", "u", 'quoted "usage":{', usage={"output": 5, "input": 7}),
        answer_record("a3", "u", "none", usage=None),
        record("compaction", "c", "a3", summary="S", firstKeptEntryId="u", tokensBefore=1, usage=plain),
    ]
    totals = load_session(write_lines(file, header_line(), *lines)).totals
    assert (totals.input, totals.output, totals.cache_read, totals.cache_write) == (9, 9, 6, 8)
    assert (totals.cost, totals.requests, totals.unknown) == (1.0, 3, 1)


def test_issues_are_told_in_one_sentence(file):
    bad = [b"x\n"] * 7
    text = describe_issues(load_session(write_lines(file, header_line(), *bad)).issues)
    assert text is not None
    assert text.startswith("session: 7 unreadable lines kept aside (line 2, byte ")
    assert text.count("line ") == 5
    assert describe_issues(()) is None


def test_faults_that_were_mended_are_told_apart(file):
    lines = (*chain("a"), user_record("x", "gone", "o"), b"{")
    text = describe_issues(load_session(write_lines(file, header_line(), *lines)).issues)
    assert text is not None
    assert text.startswith("session: 1 unreadable line kept aside, 1 fault mended in memory (line 3, ")


def open_descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_descriptor_is_given_back(file):
    path = write_lines(file, header_line(), *GOOD)
    before = open_descriptors()
    load_session(path).bodies.close()
    with pytest.raises(NotASessionFileError):
        load_session(write_lines(file, b"{}\n"))
    assert open_descriptors() == before


damage = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 2000), st.integers(0, 60)),
    st.tuples(st.just("zero"), st.integers(0, 2000), st.integers(1, 60)),
    st.tuples(st.just("join"), st.integers(0, 12), st.integers(0, 0)),
    st.tuples(st.just("flip"), st.integers(0, 2000), st.integers(0, 255)),
    st.tuples(st.just("drop"), st.integers(0, 12), st.integers(0, 0)),
)


def apply_damage(data: bytes, how: tuple[str, int, int]) -> bytes:
    kind, place, size = how
    match kind:
        case "cut":
            return data[:place] + data[place + size :]
        case "zero":
            return data[:place] + b"\0" * len(data[place : place + size]) + data[place + size :]
        case "flip":
            return data[:place] + bytes([size]) + data[place + 1 :] if place < len(data) else data
        case "join":
            lines = data.split(b"\n")
            return b"\n".join(lines[:place]) + b"\n".join(lines[place:])
        case _:
            lines = data.split(b"\n")
            return b"\n".join(lines[:place] + lines[place + 1 :])


SOUND = b"".join(
    dump(line) for line in (*chain(*"abcdef"), answer_record("x", "e3", "ü"), user_record("y", "x", "z"))
)


@settings(deadline=None)
@given(damages=st.lists(damage, min_size=1, max_size=3))
def test_no_damage_stops_the_load_or_costs_a_readable_line(tmp_path_factory, damages):
    data = SOUND
    for how in damages:
        data = apply_damage(data, how)
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    path.write_bytes(dump(header_line()) + data)
    readable = []
    for line in data.split(b"\n"):
        try:
            obj = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if (
            isinstance(obj, dict)
            and isinstance(obj.get("id"), str)
            and obj["id"]
            and obj.get("type") != "session"
        ):
            readable.append(obj["id"])
    thorough = load_session(path, thorough=True)
    assert [head.id for head in thorough.heads] == readable
    quick = load_session(path)
    assert [head.id for head in quick.heads if head.id in readable] == readable
    for loaded in (thorough, quick):
        build_session_context(loaded.read_path())
        assert loaded.totals.requests >= 0


@pytest.mark.parametrize("read", [load_session, open_tail, glance_at])
def test_a_device_and_a_pipe_are_refused_and_not_waited_for(read, tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (Path("/dev/zero"), pipe):
        with pytest.raises(SessionError, match="not a regular file"):
            read(path)
