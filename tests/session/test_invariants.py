import pytest

from musepi_tui.session.codec import decode_entry
from musepi_tui.session.entries import KEEP_NOTHING, Entry, EntryHead
from musepi_tui.session.invariants import find_breaches
from musepi_tui.session.tree import SessionTree
from tests.support.builders import a, call, compaction, path, t, u


def breaches(entries: list[Entry]) -> list[str]:
    heads = [EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp) for entry in entries]
    by_id = {entry.id: entry for entry in entries}
    tree = SessionTree.from_heads(heads)
    return [
        f"{breach.entry_id}: {breach.text}" for breach in find_breaches(tree, lambda head: by_id[head.id])
    ]


def test_sound_session_has_no_breach():
    entries = path(
        u("1"), a(calls=[call("read")]), t("x"), compaction("S", "e1"), u("2"), compaction("T", "e5")
    )
    assert breaches(list(entries)) == []


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((u("1"), t("x", "c")), "e2: a tool result answers c, no call before it has that id"),
        ((u("1"), compaction(" ", "e1")), "e2: a compaction has a blank summary"),
        (
            (a(calls=[call("read")]), t("x"), compaction("S", "e2")),
            "e3: the first message a compaction keeps, e2, is a tool result",
        ),
        (
            (u("1"), compaction("S", "gone")),
            "e2: the first kept entry gone of a compaction is not on its branch",
        ),
        (
            (u("1"), compaction("S", "e1"), compaction("T", "e1")),
            "e3: a compaction follows e2 without a message between them",
        ),
        (
            (u("1"), compaction("<files>a</files>x<files>b</files>", "e1")),
            "e2: a summary has more than one <files> block",
        ),
        (
            (u("1"), compaction("S", "e1", details={"readFiles": ["artifact://1"]})),
            "e2: readFiles holds an address that is no path",
        ),
    ],
)
def test_each_breach_is_found(parts, expected):
    assert breaches(list(path(*parts))) == [expected]


def test_call_on_another_branch_does_not_answer():
    entries = list(path(u("1"), a(calls=[call("read")])))
    result = path(t("x"), ids=["r"])[0]
    from dataclasses import replace

    assert breaches([*entries, replace(result, parent_id="e1")])[0].startswith("r: a tool result answers")


def test_error_marked_useless_is_a_breach():
    stored = {
        "type": "message",
        "id": "r",
        "parentId": "e2",
        "timestamp": "t",
        "message": {
            "role": "toolResult",
            "toolCallId": "call-read",
            "isError": True,
            "useless": True,
            "content": [],
        },
    }
    entries = [*path(u("1"), a(calls=[call("read")])), decode_entry(stored)]
    assert breaches(entries) == ["r: a tool result is an error and marked useless"]


def test_reserved_id_is_a_breach():
    assert breaches(list(path(u("1"), ids=[KEEP_NOTHING]))) == [
        f"{KEEP_NOTHING}: an entry has the reserved id {KEEP_NOTHING}"
    ]
