import pytest

from musepi_tui.session.records import (
    MAX_DEPTH,
    Record,
    Unreadable,
    is_title_slot,
    is_too_deep,
    parse_record,
    shape_problem,
)

SLOT = {"type": "title", "v": 1, "title": "T", "updatedAt": "t", "pad": "  "}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"type":"mess', "bad_json"),
        (b'{"a":"x\x00y"}', "bad_json"),
        (b"\x00\x00\x00", "bad_json"),
        (b"null", "not_object"),
        (b"42", "not_object"),
        (b"[1]", "not_object"),
        (b'{"a":' * 201 + b"1" + b"}" * 201, "too_deep"),
        (b"[" * 100_000, "too_deep"),
    ],
    ids=["torn", "nul inside", "nuls", "null", "number", "list", "deep", "very deep"],
)
def test_line_that_is_no_record_says_why(line, kind):
    result = parse_record(line)
    assert isinstance(result, Unreadable)
    assert result.kind == kind


@pytest.mark.parametrize("line", [b'\xef\xbb\xbf{"a":1}', b'{"a":1}\r', b' {"a":1} '])
def test_bom_and_carriage_return_do_not_matter(line):
    assert parse_record(line) == Record({"a": 1})


def test_bytes_that_are_no_utf8_are_replaced_and_told():
    assert parse_record(b'{"a":"\xff"}') == Record({"a": "\ufffd"}, is_repaired=True)


def test_lone_surrogates_are_kept():
    assert parse_record(b'{"a":"\\ud800"}') == Record({"a": "\ud800"})


def test_depth_at_the_limit_is_read():
    line = b'{"a":' * (MAX_DEPTH - 1) + b"{}" + b"}" * (MAX_DEPTH - 1)
    assert isinstance(parse_record(line), Record)


def test_many_brackets_that_are_not_deep_are_read():
    assert isinstance(parse_record(b'{"a":[' + b",".join([b"{}"] * 500) + b"]}"), Record)
    assert not is_too_deep({"a": [{}] * 500})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": "e"}, "no type"),
        ({"type": "label"}, "no id"),
        ({"type": "label", "id": ""}, "no id"),
        ({"type": "message", "id": "e"}, "a message without a role"),
        ({"type": "message", "id": "e", "message": {"role": "user"}}, None),
        ({"type": "future", "id": "e"}, None),
    ],
)
def test_shape_of_an_entry(fields, problem):
    assert shape_problem(fields) == problem


@pytest.mark.parametrize(
    "change", [{"type": "session"}, {"v": 2}, {"title": None}, {"pad": 3}, {"source": "other"}], ids=str
)
def test_title_slot_needs_its_fields(change):
    assert is_title_slot(SLOT)
    assert is_title_slot(SLOT | {"source": "auto"})
    assert not is_title_slot(SLOT | change)
