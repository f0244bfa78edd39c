import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import StateEntry
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.storage import index
from musepi_tui.storage.index import build_index, index_from
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.lines import chain, dump, header_line, record, user_record, write_lines

GOOD = chain("a", "b")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


def issues(loaded: LoadedSession) -> list[tuple[int, str]]:
    return [(issue.line, issue.kind) for issue in loaded.issues]


def context_length(loaded: LoadedSession) -> int:
    return len(build_session_context(loaded.read_path()).messages)


def test_number_with_too_many_digits_makes_the_line_opaque(file):
    huge = dump(user_record("e3", "e2", "c", 7)).replace(b'"timestamp":7', b'"timestamp":' + b"9" * 5000)
    path = write_lines(file, header_line(), *GOOD, huge, user_record("e4", "e3", "d"))
    assert issues(load_session(path, thorough=True)) == [(4, "bad_json"), (5, "orphan_relinked")]
    quick = load_session(path)
    assert isinstance(quick.read_path()[2], StateEntry)
    assert context_length(quick) == context_length(load_session(path, thorough=True)) == 3


def test_number_beyond_floats_is_kept_exactly(file):
    exact = dump(record("future", "e3", "e2", count=2**70 + 1))
    path = write_lines(file, header_line(), *GOOD, exact)
    loaded = load_session(path, thorough=True)
    assert loaded.issues == ()
    assert loaded.bodies.raw_line(loaded.heads[2]) + b"\n" == exact
    assert loaded.read_path()[2].fields["count"] == 2**70 + 1


@pytest.mark.parametrize("limit", [("MAX_LINES", 3), ("MAX_FILE_BYTES", 900)], ids=["lines", "bytes"])
def test_what_lies_beyond_the_limits_is_told_and_the_file_is_only_read(file, monkeypatch, limit):
    path = write_lines(file, header_line(), *chain(*("x" * 100 for _ in range(9))))
    monkeypatch.setattr(index, "BLOCK_BYTES", 300)
    monkeypatch.setattr(index, *limit)
    for thorough in (False, True):
        loaded = load_session(path, thorough=thorough)
        assert [issue.kind for issue in loaded.issues] == ["too_long"]
        assert loaded.issues[0].line == len(loaded.heads) + 2
        assert [head.id for head in loaded.heads] == [f"e{n}" for n in range(1, len(loaded.heads) + 1)]
        assert 2 <= len(loaded.heads) < 9
        with pytest.raises(SessionError, match="larger than musepi reads"):
            SessionFile.open(path, loaded)


def test_file_of_exactly_the_limit_is_read_whole(file, monkeypatch):
    path = write_lines(file, header_line(), *GOOD)
    monkeypatch.setattr(index, "MAX_LINES", 3)
    monkeypatch.setattr(index, "MAX_FILE_BYTES", path.stat().st_size)
    assert issues(load_session(path)) == issues(load_session(path, thorough=True)) == []


@pytest.fixture
def short_memory(monkeypatch) -> None:
    """Every line is long."""
    monkeypatch.setattr(index, "BLOCK_BYTES", 100)
    monkeypatch.setattr(index, "JOINED_LINE_BYTES", 50)


SHUFFLED = {key: value for key, value in reversed(GOOD[1].items())}
TORN = dump(GOOD[0])[:-30] + dump(GOOD[1])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (GOOD[1], []),
        (SHUFFLED, []),
        (dump(GOOD[1]).replace(b'"b"', b'"\0"'), [(3, "bad_json")]),
        (TORN, [(3, "bad_json")]),
        (b"junk " * 40 + b"\n", [(3, "bad_json")]),
        (header_line(id="second", note="x" * 99), [(3, "extra_header")]),
        (record("message", "x", "e1", message={"content": "y" * 99}), [(3, "bad_shape")]),
        (dump(GOOD[1])[:-3], [(3, "torn_tail")]),
    ],
    ids=["sound", "other order", "nul", "glued", "junk", "header", "no role", "torn"],
)
def test_long_lines_are_known_as_short_ones_are(file, short_memory, line, expected):
    loaded = load_session(write_lines(file, header_line(), GOOD[0], line))
    assert issues(loaded) == expected
    data = file.read_bytes()
    for head in loaded.heads:
        assert data[head.offset : head.offset + head.length] in data.split(b"\n")


def test_long_line_is_read_by_its_head_alone(file, short_memory, monkeypatch):
    monkeypatch.setattr(index, "HEAD_BYTES", 150)
    path = write_lines(file, header_line(), *chain("x" * 5000, "b"))
    reads: list[int] = []
    pread = index.os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        reads.append(size)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(index.os, "pread", counted)
    assert len(load_session(path).heads) == 2
    assert max(reads[1:]) < 300


@given(st.integers(1, 400), st.integers(1, 300), st.data())
def test_blocks_and_long_lines_change_nothing(block, joined, data):
    lines = data.draw(
        st.lists(st.sampled_from([*GOOD, SHUFFLED, TORN, b"junk\n", b"\n", b"\0\n"]), max_size=8)
    )
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = write_lines(Path(folder) / "s.jsonl", header_line(), *lines)
        whole = load_session(path)
        patch.setattr(index, "BLOCK_BYTES", block)
        patch.setattr(index, "JOINED_LINE_BYTES", joined)
        again = load_session(path)
        assert (again.heads, again.issues) == (whole.heads, whole.issues)
        for loaded in (whole, again):
            loaded.bodies.close()


def test_lines_that_came_later_are_indexed_from_their_start(file):
    path = write_lines(file, header_line(), *GOOD)
    known = load_session(path)
    with path.open("ab") as more:
        more.write(dump(user_record("e3", "e2", "c")) + dump(header_line()) + b'{"type":"mess')
    with path.open("rb") as opened:
        found = index_from(opened.fileno(), known.size_bytes, line=3)
        whole = build_index(opened.fileno())
    assert [head.id for head in found.heads] == ["e3"]
    assert found.heads[0] == whole.heads[2]
    assert [(issue.line, issue.kind) for issue in found.issues] == [(5, "extra_header"), (6, "torn_tail")]
    assert (found.size_bytes, found.ends_with_lf) == (path.stat().st_size, False)


MEASURE = """
import sys
from pathlib import Path
from musepi_tui.storage.loading import load_session
loaded = load_session(Path(sys.argv[1]))
kinds = [issue.kind for issue in loaded.issues]
peak_kib = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
print(len(loaded.heads), *kinds, int(peak_kib) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line_mib", "expected"), [(200, ["2"]), (257, ["1", "too_long"])], ids=["allowed", "too long"]
)
def test_huge_line_takes_no_memory(file, line_mib, expected):
    start, end = dump(user_record("e2", "e1", "MARK")).split(b"MARK")
    with file.open("wb") as target:
        target.write(dump(header_line()) + dump(GOOD[0]) + start)
        for _ in range(line_mib):
            target.write(b"y" * 2**20)
        target.write(end)
    done = subprocess.run([sys.executable, "-c", MEASURE, file], capture_output=True, text=True, check=True)
    *found, peak_mib = done.stdout.split()
    assert found == expected
    assert int(peak_mib) < 80
