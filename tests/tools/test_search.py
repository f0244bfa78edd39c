import json

from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.tools.search import SearchEvents


def event(line: int, kind: str = "match", path: str = "a") -> bytes:
    data = {
        "path": {"text": f"./{path}"},
        "line_number": line,
        "lines": {"text": f"row {line}\n"},
        "submatches": [],
    }
    return json.dumps({"type": kind, "data": data}).encode() + b"\n"


def events(limit: int = 100) -> SearchEvents:
    return SearchEvents(limit, lambda path: path == "secret")


@given(st.lists(st.integers(1, 200), max_size=5))
def test_events_are_the_same_however_the_stream_is_cut(cuts):
    stream = event(1) + event(2, "context") + b"odd line\n" + event(3) + b'{"type":"end"}\n'
    found = events()
    positions = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in zip(positions, positions[1:], strict=False):
        found.take(stream[start:end])
    assert [(hit.line, hit.is_match) for hit in found.hits] == [(1, True), (2, False), (3, True)]
    assert found.errors == ["odd line"]


def test_context_behind_the_last_wanted_match_still_comes():
    found = events(limit=1)
    assert found.take(event(1) + event(2, "context"))
    assert not found.take(event(3))
    assert [hit.line for hit in found.hits] == [1, 2]


def test_hidden_files_are_only_named():
    found = events()
    found.take(event(1, path="secret") + event(1))
    assert ([hit.path for hit in found.hits], found.hidden, found.matches) == (["a"], {"secret"}, 1)


def test_event_without_end_is_dropped_after_a_while():
    found = events()
    for _ in range(200):
        found.take(b"x" * 65_536)
    found.take(b"\n" + event(1))
    assert len(found.hits) == 1


def test_name_that_is_no_utf8_is_taken_from_base64():
    found = events()
    data = {"path": {"bytes": "Li9jYWbp"}, "line_number": 1, "lines": {"text": "x"}, "submatches": []}
    found.take(json.dumps({"type": "match", "data": data}).encode() + b"\n")
    assert found.hits[0].path == "caf\ufffd"
