from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.context.branch import (
    Destination,
    branch_budget,
    collect_entries_for_branch_summary,
    find_destination,
    prepare_branch_entries,
)
from musepi_tui.context.estimate import estimate_tokens
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.messages import (
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    text_of,
)
from musepi_tui.session.tree import LEAF_MARK, SessionTree
from tests.support.builders import (
    a,
    branch_summary,
    call,
    compaction,
    custom,
    dev,
    edit,
    heads,
    path,
    state,
    stub_count,
    t,
    u,
    words,
)
from tests.support.random_sessions import trees
from tests.support.sketch import sketch

quiet = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])


def tree_of(links: str, leaf: str) -> SessionTree:
    """``"A BA CB"`` is a root ``A``, its child ``B`` and that one's child ``C``."""
    made = [EntryHead(link[0], link[1:] or None, "message", "") for link in links.split()]
    return SessionTree.from_heads(made, leaf)


FORKED = tree_of("A BA CB DC EA FE", "D")


@pytest.mark.parametrize(
    ("old", "target", "ancestor", "left"),
    [
        ("D", "F", "A", "BCD"),
        ("F", "D", "A", "EF"),
        ("D", "B", "B", "CD"),
        ("B", "D", "B", ""),
        ("D", "A", "A", "BCD"),
        ("D", "D", "D", ""),
        (None, "F", None, ""),
    ],
)
def test_branch_that_is_left_ends_at_the_deepest_shared_entry(old, target, ancestor, left):
    found = collect_entries_for_branch_summary(FORKED, old, target)
    assert found.ancestor_id == ancestor
    assert [head.id for head in found.heads] == list(left)


def test_another_root_shares_nothing():
    found = collect_entries_for_branch_summary(tree_of("A BA X YX", "B"), "B", "Y")
    assert (found.ancestor_id, [head.id for head in found.heads]) == (None, ["A", "B"])


def test_entry_that_is_not_there_cannot_be_moved_to():
    with pytest.raises(EntryNotFoundError, match="gone"):
        collect_entries_for_branch_summary(FORKED, "D", "gone")


@quiet
@given(trees(), st.data())
def test_what_is_left_and_what_is_shared_make_up_the_old_path(entries, data):
    if not entries:
        return
    ids = [made.id for made in entries]
    old, target = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
    tree = SessionTree.from_heads(heads(entries))
    found = collect_entries_for_branch_summary(tree, old, target)
    shared = () if found.ancestor_id is None else tree.path(found.ancestor_id)
    assert [head.id for head in (*shared, *found.heads)] == [head.id for head in tree.path(old)]
    assert not {head.id for head in found.heads} & {head.id for head in tree.path(target)}


PLACES = {
    "user": (u("ask me"), Destination("e1", "ask me")),
    "ordinary custom": (custom("a skill", attribution="user"), Destination("e1", "a skill")),
    "custom of other tools": (custom("said", attribution=None), Destination("e1", "said")),
    "old hook message": (CustomMessage("hook", "hooked", display=True), Destination("e1", "hooked")),
    "injected": (custom("go on", attribution="agent"), Destination("e2")),
    "handoff": (custom("document", "handoff"), Destination("e2")),
    "assistant": (a("answer"), Destination("e2")),
    "tool result": (t("out"), Destination("e2")),
    "developer": (dev("rules"), Destination("e2")),
    "bash": (BashExecution("ls", "x"), Destination("e2")),
    "compaction": (compaction("S", "e1"), Destination("e2")),
    "branch summary": (branch_summary("S"), Destination("e2")),
    "label": (state("label", targetId="e1", label="x"), Destination("e2")),
}


@pytest.mark.parametrize("kind", PLACES)
def test_destination_is_before_what_a_person_wrote_and_at_everything_else(kind):
    part, expected = PLACES[kind]
    entries = path(a("first"), part)
    tree = SessionTree.from_heads(heads(entries))
    assert find_destination(tree, entries[1]) == expected


def test_destination_of_the_first_message_is_before_everything():
    entries = path(u("first"), a("answer"))
    tree = SessionTree.from_heads(heads(entries))
    assert find_destination(tree, entries[0]) == Destination(None, "first")


def test_mark_of_an_earlier_move_counts_as_the_entry_it_marks():
    entries = path(a("first"), state("custom", customType=LEAF_MARK), u("again"))
    marked = [
        head._replace(role=LEAF_MARK) if head.type == "custom" else head._replace() for head in heads(entries)
    ]
    assert find_destination(SessionTree.from_heads(marked), entries[2]) == Destination("e1", "again")


def estimate(message):
    return estimate_tokens(message, stub_count)


def prepared(entries, budget=0):
    return prepare_branch_entries(entries, budget, estimate)


@pytest.mark.parametrize(
    ("newest_last", "sizes"),
    [
        ("u500 a400 u300", [400, 300]),
        ("b600 a400 u300", [600, 400, 300]),
        ("b600 a450 u500", [450, 500]),
        ("u1 b600 a400 u300", [600, 400, 300]),
        ("u300 a400 u300", [300, 400, 300]),
        ("u1001", []),
        ("b1001", [1001]),
        ("", []),
    ],
)
def test_newest_messages_are_taken_until_the_budget_is_used(newest_last, sizes):
    material = prepared(sketch(newest_last), 1000)
    assert [estimate(message) for message in material.messages] == sizes
    assert material.tokens == sum(sizes)
    assert material.left_out == len(newest_last.split()) - len(sizes)


def test_no_budget_takes_everything():
    assert len(prepared(sketch("u5000 a90000 u100")).messages) == 3


def test_long_result_counts_as_much_as_is_sent_of_it():
    entries = path(u("go"), a(calls=[call("read", path="x")]), t(3000))
    material = prepared(entries, 1000)
    assert len(material.messages) == 3
    assert material.tokens < 600


def test_entries_that_no_model_sees_are_left_out():
    entries = path(
        u("go"),
        a(calls=[call("read", path="x")]),
        t("nothing", useless=True),
        BashExecution("secret", "", excluded=True),
        state("model_change", model="test/model"),
        compaction("  ", "e1"),
        branch_summary(""),
        a("end"),
    )
    assert [type(message).__name__ for message in prepared(entries).messages] == [
        "UserMessage",
        "AssistantMessage",
        "AssistantMessage",
    ]


def test_failed_result_counts_although_it_said_nothing():
    entries = path(a(calls=[call("read", path="x")]), t("no such file", error=True))
    assert len(prepared(entries).messages) == 2


def test_compaction_counts_as_its_summary_and_hides_nothing():
    material = prepared(path(u("old"), a("old"), compaction("THE SUMMARY", "e2"), u("new")))
    assert [text_of(m.content) if hasattr(m, "content") else m.summary for m in material.messages] == [
        "old",
        "old",
        "THE SUMMARY",
        "new",
    ]
    assert isinstance(material.messages[2], CompactionSummary)


def test_edits_count_as_they_do_in_the_context():
    entries = path(u("go"), a(calls=[call("read", path="x")]), t("long"), edit("e3", "short"), edit("e1"))
    assert [text_of(message.content) for message in prepared(entries).messages] == ["", "short"]


def files_of(entries, budget=0):
    ops = prepared(entries, budget).file_ops
    return ops.read_files, ops.modified_files


def test_files_come_from_calls_and_from_earlier_branch_summaries():
    entries = path(
        branch_summary("S", details={"readFiles": ["a.py"], "modifiedFiles": ["b.py"]}),
        branch_summary("X", details={"readFiles": ["not-ours.py"]}, from_extension=True),
        branch_summary("Y", details="nothing readable"),
        a(calls=[call("read", path="c.py:1-20")]),
        a(calls=[call("edit", path="a.py")]),
    )
    assert files_of(entries) == (("c.py",), ("a.py", "b.py"))


def test_files_before_what_fits_are_known_only_from_summaries():
    entries = path(
        branch_summary("S", details={"readFiles": ["kept.py"], "modifiedFiles": []}),
        a(calls=[call("read", path="lost.py")]),
        a(words(900), calls=[call("read", path="looked-at.py")]),
        a(words(500), calls=[call("read", path="new.py")]),
    )
    assert files_of(entries, 1000) == (("kept.py", "looked-at.py", "new.py"), ())


sizes = st.lists(st.tuples(st.sampled_from("uab"), st.integers(1, 400)), max_size=12)


@given(sizes, st.integers(1, 2000))
def test_material_is_the_newest_part_and_only_a_summary_may_go_over(drawn, budget):
    entries = sketch(" ".join(f"{letter}{size}" for letter, size in drawn))
    material = prepared(entries, budget)
    whole = prepared(entries)
    count = len(material.messages)
    assert whole.messages[len(whole.messages) - count :] == material.messages
    assert material.left_out + count == len(whole.messages)
    first = estimate(material.messages[0]) if material.messages else 0
    over = material.tokens > budget
    assert not over or isinstance(material.messages[0], BranchSummary)
    assert not over or material.tokens - first < 0.9 * budget
    if material.left_out and not over:
        next_one = whole.messages[-count - 1]
        assert material.tokens + estimate(next_one) > budget
        assert not isinstance(next_one, BranchSummary) or material.tokens >= 0.9 * budget


@quiet
@given(trees())
def test_preparing_changes_nothing_and_gives_the_same_again(entries):
    before = [replace(made) for made in entries]
    assert prepared(entries, 50) == prepared(entries, 50)
    assert list(entries) == before


@pytest.mark.parametrize(
    ("window", "reserve", "budget"),
    [
        (200_000, 16_384, 183_616),
        (None, 16_384, 111_616),
        (128_000, 0, 128_000),
        (20_000, 16_384, 3_616),
        (16_384, 16_384, 13_927),
        (8_192, 16_384, 6_964),
    ],
)
def test_budget_is_the_window_without_the_reserve(window, reserve, budget):
    assert branch_budget(window, reserve) == budget
