"""Random sessions under random damage: opening never raises, never changes the file, never loses a line."""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import SessionError
from musepi_tui.cli.sessions.check import check
from musepi_tui.cli.sessions.facts import facts_of
from musepi_tui.session.codec import dump_json, encode_entry, encode_header
from musepi_tui.session.entries import Entry
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.session.transcript import build_transcript
from musepi_tui.storage.glance import glance_at
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.session_file import SessionFile
from musepi_tui.storage.tail import open_tail
from tests.support.builders import entry, u
from tests.support.minimal_reader import Reading
from tests.support.random_sessions import HEADER, damaged, damages, trees
from tests.support.shared import shared_path
from tests.support.stored import append_to, write_anew, write_session

SLOT = b'{"type":"title","v":1,"title":"Tally","source":"user","updatedAt":"2026-01-02T00:00:00.000Z","pad":"'
FORMS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "slot": lambda data: SLOT.ljust(253) + b'"}\n' + data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
}
HEAD_LINES = {"slot": 2}

quiet = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
broken_sessions = st.tuples(
    trees(), st.sampled_from(sorted(FORMS)), st.lists(damages, min_size=1, max_size=4)
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damage") / "s.jsonl"


def put_broken(file: Path, entries: tuple[Entry, ...], form: str, harm: list[tuple[str, int, int]]) -> bytes:
    """Writes a session in this form whose lines after the header were damaged; the bytes."""
    whole = FORMS[form](write_session(file, HEADER, entries).read_bytes())
    lines = whole.split(b"\n")
    head = b"\n".join(lines[: HEAD_LINES.get(form, 1)]) + b"\n"
    body = whole[len(head) :]
    for one in harm:
        body = damaged(body, one)
    write_anew(file, head + body)
    return head + body


def use(loaded: LoadedSession) -> None:
    """Asks everything a screen or a command asks of a session."""
    build_session_context(loaded.read_path())
    for leaf in loaded.tree.leaves:
        path = loaded.read_path(leaf)
        build_session_context(path)
        build_transcript(path)
    assert {entry_id for entry_id, _ in loaded.tree.walk()} == set(loaded.tree.order)
    assert loaded.totals.requests >= 0
    facts_of(loaded)


@quiet
@given(broken=broken_sessions)
def test_every_readable_line_is_found_whatever_else_is_broken(file, broken):
    data = put_broken(file, *broken)
    readable = [fields["id"] for fields in Reading(data).entries]
    thorough = load_session(file, thorough=True)
    assert [head.id for head in thorough.heads] == readable
    quick = load_session(file)
    assert Counter(readable) - Counter(head.id for head in quick.heads) == Counter()
    use(thorough)
    use(quick)
    use(load_session(file, strict=True))
    check(argparse.Namespace(file=file, strict=False), {})
    open_tail(file)
    glance_at(file)
    assert file.read_bytes() == data


@quiet
@given(broken=broken_sessions)
def test_lines_that_can_be_read_come_back_as_they_are_stored(file, broken):
    data = put_broken(file, *broken)
    loaded = load_session(file, thorough=True)
    replaced = {issue.offset for issue in loaded.issues if issue.kind == "bad_utf8"}
    for head in loaded.heads:
        line = data[head.offset : head.offset + head.length]
        assert loaded.bodies.read_line(head) == line
        if head.offset not in replaced:
            stored = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
            again = encode_entry(loaded.bodies.get(head))
            assert json.dumps(again) == json.dumps(stored)


@quiet
@given(broken=broken_sessions)
def test_opening_and_closing_leaves_every_byte(file, broken):
    data = put_broken(file, *broken)
    SessionFile.open(file, load_session(file)).close()
    assert file.read_bytes() == data
    assert [item.name for item in file.parent.iterdir()] == [file.name]


@quiet
@given(broken=broken_sessions, at_root=st.booleans())
def test_what_is_appended_stands_behind_the_old_bytes_and_hides_none(file, broken, at_root):
    data = put_broken(file, *broken)
    before = load_session(file, thorough=True)
    parent = None if at_root else before.tree.leaf_id
    append_to(file, entry(u("new"), "fffffff0", parent), entry(u("newer"), "fffffff1", "fffffff0"))
    after = file.read_bytes()
    assert after.startswith(data)
    assert after[len(data) :].count(b"\n") == (2 if data.endswith(b"\n") else 3)
    again = load_session(file, thorough=True)
    assert [head.id for head in again.heads] == [*(head.id for head in before.heads), "fffffff0", "fffffff1"]
    assert [head.id for head in again.tree.path()][-2:] == ["fffffff0", "fffffff1"]


@quiet
@given(entries=trees(most=8), harm=st.lists(damages, min_size=1, max_size=3))
def test_damage_to_the_header_is_an_error_that_names_the_file_and_nothing_worse(file, entries, harm):
    data = write_session(file, HEADER, entries).read_bytes()
    for one in harm:
        data = damaged(data, one)
    write_anew(file, data)
    for read in (load_session, open_tail, glance_at):
        try:
            read(file)
        except SessionError as error:
            assert str(file) in str(error)
    assert file.read_bytes() == data


@quiet
@given(entries=trees())
def test_a_session_reads_back_as_it_was_written_byte_for_byte(file, entries):
    data = write_session(file, HEADER, entries).read_bytes()
    loaded = load_session(file, thorough=True)
    kinds = {issue.kind for issue in loaded.issues}
    assert kinds == set()
    again = [dump_json(encode_header(loaded.header))]
    again += [dump_json(encode_entry(loaded.bodies.get(head))) for head in loaded.heads]
    assert b"".join(line + b"\n" for line in again) == data
    assert [dump_json(encode_entry(made)) for made in entries] == again[1:]


REAL_FILES = (
    "pi-v1-large-linear.jsonl",
    "pi-v1-two-compactions.jsonl",
    "pi-v3-fork-with-orphan.jsonl",
    "pi-v3-three-compactions.jsonl",
    "pi-v3-tree-all-kinds.jsonl",
)
KEPT_LINES = 12
"""Lines of a real file that are damaged: its first and its last ones. Whole files would take minutes."""

MUTATIONS = 300
OTHER_VALUES: tuple[Any, ...] = (None, True, -1, 1.5, 2**70, "", "x" * 300, "\ud800", [], [[]], {}, {"id": 1})


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes after one to three harms: a flipped bit, swapped lines, a value of another type."""
    lines = data.split(b"\n")
    for _ in range(chance.randint(1, 3)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.choice(("bit", "swap", "value", "value")):
            case "bit" if lines[at]:
                place = chance.randrange(len(lines[at]))
                flipped = lines[at][place] ^ (1 << chance.randrange(8))
                lines[at] = lines[at][:place] + bytes([flipped]) + lines[at][place + 1 :]
            case "swap":
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                lines[at] = with_other_value(lines[at], chance)
    return b"\n".join(lines)


def with_other_value(line: bytes, chance: random.Random) -> bytes:
    try:
        whole = json.loads(line)
    except ValueError:
        return line
    inside, keys = whole, list(whole) if isinstance(whole, dict) else []
    while keys:
        key = chance.choice(keys)
        value = inside[key]
        keys = (
            list(value)
            if isinstance(value, dict)
            else list(range(len(value)))
            if isinstance(value, list)
            else []
        )
        if not keys or chance.random() < 0.3:
            inside[key] = chance.choice(OTHER_VALUES)
            break
        inside = value
    return json.dumps(whole).encode()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", REAL_FILES)
def test_mutations_of_real_files_never_raise_anything_but_a_session_error(file, name):
    lines = shared_path("fixtures", "sessions", name).read_bytes().split(b"\n")
    data = b"\n".join(lines[:KEPT_LINES] + lines[KEPT_LINES:][-KEPT_LINES:])
    for seed in range(MUTATIONS):
        write_anew(file, mutated(data, random.Random(seed)))
        try:
            loaded = load_session(file, thorough=seed % 2 == 0)
        except SessionError:
            continue
        try:
            use(loaded)
            tail = open_tail(file)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        assert tail.header.id == loaded.header.id, seed
