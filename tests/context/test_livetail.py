import pytest

from musepi_tui.context.livetail import read_live_tail, stored_size, tokens_behind
from musepi_tui.session.entries import KEEP_NOTHING
from tests.support.builders import a, branch_summary, call, compaction, custom, path, state, t, u, words
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
