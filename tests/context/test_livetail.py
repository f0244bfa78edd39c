import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.livetail import extend_live_tail, read_live_tail, stored_size, tokens_behind
from musepi_tui.session.entries import KEEP_NOTHING
from tests.support.builders import a, branch_summary, call, compaction, custom, edit, path, state, t, u, words
from tests.support.tails import ESTIMATE, flat, read


@pytest.mark.parametrize(
    ("first", "start"), [("e2", 1), ("e1", 0), (KEEP_NOTHING, 2), ("gone", 0), (None, 0), ("e4", 2)]
)
def test_the_tail_starts_where_the_compaction_keeps_from(first, start):
    entries = path(u("x"), a("y"), compaction("s", first), u("z"))
    assert read_live_tail(entries).start == start


def test_without_a_compaction_everything_is_live():
    assert read_live_tail(path(u("x"), a("y"))).live == range(2)


def test_a_reset_starts_the_tail():
    entries = path(u("x"), compaction("s", "e1"), state("reset_boundary"), u("y"))
    assert read_live_tail(entries).start == 3
    entries = path(u("x"), state("reset_boundary"), u("y"), compaction("s", "e3"), u("z"))
    assert read_live_tail(entries).start == 2


def test_messages_inside_a_divider_are_not_part_of_the_tail():
    entries = path(u("x"), compaction("s", "e1", retained_tail=(u("kept"),)), u("y"))
    assert read_live_tail(entries).start == 2


def test_a_result_is_paired_with_the_newest_call_of_its_id():
    entries = path(
        a("", [call("read", "k", path="old")]),
        t("1", "k"),
        a("", [call("read", "k", path="new")]),
        t("2", "k"),
    )
    calls = read_live_tail(entries).calls
    assert [calls[index].arguments["path"] for index in (1, 3)] == ["old", "new"]


def test_calls_before_the_boundary_protect_results_behind_it():
    entries = path(a("", [call("read", "k", path="skill://x")]), compaction("s", "e3"), t("rules", "k"))
    tail = read_live_tail(entries)
    assert 2 in tail.protected


@pytest.mark.parametrize(
    ("parts", "protected"),
    [
        (read("skill://x/y", 9), True),
        (read("plan.md", 9), True),
        (read("plan.md:3-4", 9), True),
        (read("other.md", 9), False),
        ([a("", [call("skill", "s")]), t("x", "s", "skill")], True),
        ([t("x", "lost", "skill")], True),
    ],
    ids=["skill-read", "plan", "part-of-the-plan", "file", "skill-tool", "skill-tool-without-a-call"],
)
def test_protection(parts, protected):
    tail = read_live_tail(flat(parts), protected_paths={"plan.md"})
    assert bool(tail.protected) is protected


def test_newest_message_of_the_person():
    assert read_live_tail(path(u("x"), a("y"), u("z"), a("w"))).newest_user_index() == 2
    assert read_live_tail(path(a("y"))).newest_user_index() is None


def test_tokens_behind_counts_what_comes_after():
    entries = path(u(words(1)), custom(words(20)), branch_summary(words(300)), u(words(4_000)))
    items = read_live_tail(entries).items
    assert tokens_behind(items, ESTIMATE) == [4_320, 4_300, 4_000, 0]
    assert tokens_behind((), ESTIMATE) == []
    assert [stored_size(item, ESTIMATE) for item in items[1:]] == [0, 0, 4_000]


RECOVERED = {"retryRecovery": {"status": "recovered"}}
PARTS = st.sampled_from(
    [
        u("go"),
        a("", [call("read", "k", path="a.py")]),
        a("", [call("read", "k", path="skill://x")]),
        a("", [call("read", "m", path="plan.md")], extra=RECOVERED),
        t("1", "k"),
        t("2", "m"),
        t("3", "lost", "skill"),
        custom("note"),
        branch_summary("elsewhere"),
        state("label", label="x"),
        state("reset_boundary"),
        compaction("s", "e1"),
        edit("e1"),
        edit("e2", "shorter"),
    ]
)


@given(st.lists(PARTS, max_size=12), st.integers(0, 12))
def test_a_tail_that_grew_is_the_one_read_whole(parts, known):
    entries = path(*parts)
    grown = extend_live_tail(read_live_tail(entries[:known], {"plan.md"}), entries, {"plan.md"})
    assert grown in (None, read_live_tail(entries, {"plan.md"}))


def test_messages_are_added_to_a_tail():
    entries = flat(
        u("x"), read("a.py", 9), compaction("s", "e2"), u("y"), read("skill://x", 9), state("label")
    )
    assert extend_live_tail(read_live_tail(entries[:6]), entries) == read_live_tail(entries)


@pytest.mark.parametrize("change", [state("reset_boundary"), compaction("s", "e1"), edit("e1")])
def test_what_changes_earlier_messages_is_not_added(change):
    entries = path(u("x"), a("y"), change, u("z"))
    assert extend_live_tail(read_live_tail(entries[:2]), entries) is None


def test_another_path_is_not_added():
    before, after = path(u("x"), a("y")), path(u("x"), a("other"), u("z"))
    assert extend_live_tail(read_live_tail(before), after) is None
    assert extend_live_tail(read_live_tail(before), before[:1]) is None


def test_results_of_a_replaced_answer_stay_out_of_a_tail_that_grew():
    entries = path(u("x"), a("", [call("read", "k")], extra=RECOVERED), state("label"), t("1", "k"))
    grown = extend_live_tail(read_live_tail(entries[:3]), entries) or read_live_tail(entries)
    assert grown.items[3].message is None
