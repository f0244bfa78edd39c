"""A file cut anywhere: it opens, every whole line is there, and what is written next is a line of its own."""

import os
from collections.abc import Callable

import pytest

from musepi_tui.base.errors import NotASessionFileError
from musepi_tui.session.codec import dump_json, encode_entry, encode_header
from musepi_tui.session.messages import Usage
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.tail import open_tail
from tests.support.builders import a, branch_summary, call, compaction, custom, edit, entry, path, state, t, u
from tests.support.lines import chain, dump, header_line
from tests.support.random_sessions import HEADER
from tests.support.stored import append_to

END_BYTES = 4096
"""How much of the end of a file is cut off: byte by byte of the one with every type of entry."""

LAST_BYTES = 512
STRIDE = 13
"""What is cut off the other kinds: every one of the last bytes, and so many at a time before them."""

SLOT = b'{"type":"title","v":1,"title":"Tally","source":"user","updatedAt":"2026-01-02T00:00:00.000Z","pad":"'


def all_kinds() -> bytes:
    entries = path(
        state("model_change", provider="test", modelId="model", model="test/model"),
        u("héllo \u2028 " + "x" * 300),
        a("let me see", [call("read", "c1", path="x"), call("ls", "c2")], thinking="hm 🧭" * 30),
        t("line\n" * 60, "c1"),
        t("y", "c2", "ls", error=True),
        a("done " * 50, usage=Usage(1, 2, 3, 4)),
        state("label", targetId="e3", label="stärt"),
        edit("e4", "short"),
        compaction("S " * 80, "e3", tokens_before=99, tokens_after=9, usage=Usage(5, 6)),
        branch_summary("B" * 200, "e3"),
        custom("note " * 40),
        state("session_info", name="n"),
        u("ü" * 400),
        a("last words " * 40),
    )
    lines = [encode_header(HEADER), *map(encode_entry, entries)]
    return b"".join(dump_json(line) + b"\n" for line in lines)


def old_version() -> bytes:
    records = [
        {key: value for key, value in line.items() if key not in ("id", "parentId")}
        for line in chain(*(f"text {number} " * 20 for number in range(20)))
    ]
    return b"".join(map(dump, [header_line(None), *records]))


def slot_and_crlf() -> bytes:
    lines = [header_line(), *chain(*("ß" * number for number in range(0, 900, 60)))]
    return SLOT.ljust(253) + b'"}\n' + b"".join(dump(line).replace(b"\n", b"\r\n") for line in lines)


def one_huge_line() -> bytes:
    return b"".join(map(dump, [header_line(), *chain("a", "b", "x" * 9000)]))


KINDS: dict[str, Callable[[], bytes]] = {
    "every type of entry": all_kinds,
    "version 1": old_version,
    "title slot and CRLF": slot_and_crlf,
    "one huge line": one_huge_line,
}
HEAD_LINES = {"title slot and CRLF": 2}


def lines_behind_the_head(data: bytes, head_lines: int) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in data.split(b"\n")[head_lines:]]


def found_lines(loaded: LoadedSession) -> list[bytes]:
    return [loaded.bodies.read_line(head).removesuffix(b"\r") for head in loaded.heads]


def end_of(kind: str) -> tuple[bytes, range, int]:
    """The bytes of such a file, the sizes it is cut to, and how many lines its head has."""
    data, head_lines = KINDS[kind](), HEAD_LINES.get(kind, 1)
    head_bytes = sum(len(line) + 1 for line in data.split(b"\n")[:head_lines])
    return data, range(max(head_bytes, len(data) - END_BYTES), len(data)), head_lines


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_of_the_last_bytes_opens_with_every_whole_line(kind, tmp_path):
    data, sizes, head_lines = end_of(kind)
    if kind != "every type of entry":
        sizes = [*sizes[:-LAST_BYTES:STRIDE], *sizes[-LAST_BYTES:]]
    file = tmp_path / "s.jsonl"
    file.write_bytes(data)
    whole = set(lines_behind_the_head(data, head_lines)) - {b""}
    for size in reversed(sizes):  # cut on and on: a file written anew each time is a wait for the disk
        os.truncate(file, size)
        expected = [line for line in lines_behind_the_head(data[:size], head_lines) if line in whole]
        for loaded in (load_session(file, thorough=True), load_session(file)):
            assert found_lines(loaded) == expected, size
            if size % STRIDE == 0:  # what the lines say depends on nothing else than on them
                build_session_context(loaded.read_path())
            kinds = {issue.kind for issue in loaded.issues}
            assert kinds <= {"torn_tail"}, size
        open_tail(file)
        assert file.read_bytes() == data[:size]


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_turned_into_nuls_costs_only_the_lines_it_hits(kind, tmp_path):
    data, sizes, head_lines = end_of(kind)
    file = tmp_path / "s.jsonl"
    for size in sizes[::41]:
        file.write_bytes(data[:size] + bytes(len(data) - size))
        whole = data[: data.rfind(b"\n", 0, size) + 1]
        loaded = load_session(file, thorough=True)
        assert found_lines(loaded) == lines_behind_the_head(whole, head_lines)[:-1], size
        assert [issue.kind for issue in loaded.issues] == ["torn_tail"]
        append_to(file, entry(u("new"), "fffffff0", loaded.tree.leaf_id))
        again = load_session(file, thorough=True)
        assert again.tree.leaf_id == "fffffff0"
        assert len(again.heads) == len(loaded.heads) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_cut_the_next_entry_is_a_line_of_its_own(kind, tmp_path):
    data, sizes, head_lines = end_of(kind)
    file = tmp_path / "s.jsonl"
    ends = [size for size in sizes if data[size - 1 : size] == b"\n" or data[size : size + 1] == b"\n"]
    for size in sorted({*sizes[::97], *ends}):
        file.write_bytes(data[:size])
        before = load_session(file, thorough=True)
        append_to(file, entry(u("new"), "fffffff0", before.tree.leaf_id))
        after = load_session(file, thorough=True)
        ids = [head.id for head in before.heads]
        assert [head.id for head in after.heads] == [*ids, "fffffff0"], size
        assert [head.id for head in after.tree.path()][-2:] == [*ids[-1:], "fffffff0"]
        if kind != "version 1":  # that one is written anew
            feed = b"" if data[:size].endswith(b"\n") else b"\n"
            assert file.read_bytes().startswith(data[:size] + feed + b'{"type":"message","id":"fffffff0"')


def test_a_cut_inside_the_header_is_refused_and_the_file_kept(tmp_path):
    data = all_kinds()
    file = tmp_path / "s.jsonl"
    for size in range(data.index(b"\n") - 1):
        file.write_bytes(data[:size])
        with pytest.raises(NotASessionFileError, match="line 1: first record is not a session header"):
            load_session(file)
        assert file.read_bytes() == data[:size]
