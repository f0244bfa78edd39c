import copy
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.session.codec import decode_entry
from musepi_tui.session.entries import KEEP_NOTHING
from musepi_tui.session.messages import text_of
from musepi_tui.session.migrate import derived_id, migrate_records
from musepi_tui.session.rebuild import build_session_context

OLD = [
    {"type": "message", "timestamp": "t1", "message": {"role": "user", "content": "a", "timestamp": 1}},
    {
        "type": "message",
        "timestamp": "t2",
        "message": {
            "role": "hookMessage",
            "customType": "h",
            "content": "b",
            "display": True,
            "timestamp": 2,
        },
    },
    {"type": "compaction", "timestamp": "t3", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 10},
    {"type": "message", "timestamp": "t4", "message": {"role": "user", "content": "c", "timestamp": 3}},
]


def hashed(number: int, start: int = 0) -> str:
    return hashlib.sha256(f"ex-b:{number}".encode()).hexdigest()[start : start + 8]


def test_version_one_becomes_a_chain_with_derived_ids():
    migrated = migrate_records("ex-b", 1, OLD)
    assert [record["id"] for record in migrated] == [hashed(number) for number in (1, 2, 3, 4)]
    assert [record["parentId"] for record in migrated] == [None, hashed(1), hashed(2), hashed(3)]


def test_worked_example_b():
    entries = [decode_entry(record) for record in migrate_records("ex-b", 1, OLD)]
    messages = build_session_context(entries).messages
    assert [getattr(m, "summary", None) or text_of(m.content) for m in messages] == ["S", "b", "c"]


@pytest.mark.parametrize("index", [0, -1, 5, 1.5])
def test_index_outside_the_file_keeps_nothing(index):
    records = [{**OLD[2], "firstKeptEntryIndex": index}]
    migrated = migrate_records("ex-b", 1, records)[0]
    assert migrated["firstKeptEntryId"] == KEEP_NOTHING
    assert "firstKeptEntryIndex" not in migrated


def test_derived_id_takes_the_next_digits_on_collision():
    assert derived_id("ex-b", 1, {hashed(1)}) == hashed(1, 8)


def test_version_two_keeps_its_ids_and_renames_hook_messages():
    records = [{"type": "message", "id": "x", "parentId": None, "message": {"role": "hookMessage"}}]
    assert migrate_records("s", 2, records) == [
        {"type": "message", "id": "x", "parentId": None, "message": {"role": "custom"}}
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_newer_records_stay_as_they_are(version):
    assert migrate_records("s", version, OLD) == OLD


@given(st.lists(st.sampled_from(OLD), max_size=8), st.sampled_from([1, 2]))
def test_migration_changes_nothing_it_was_given_and_agrees_with_itself(records, version):
    before = copy.deepcopy(records)
    first = migrate_records("s", version, records)
    assert records == before
    assert migrate_records("s", version, records) == first
    assert migrate_records("s", 3, first) == first
