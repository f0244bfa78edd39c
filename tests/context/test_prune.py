import pytest

from musepi_tui.context.edits import Edit, EditReason
from musepi_tui.context.livetail import read_live_tail
from musepi_tui.context.prune import (
    SUPERSEDED_NOTICE,
    USELESS_NOTICE,
    PruneOptions,
    stale_edits,
    threshold_edits,
    truncated_notice,
)
from tests.support.builders import START_MS, a, compaction, u, words
from tests.support.tails import ESTIMATE, answered, flat, read, with_edits

MINUTE_MS = 60_000
GUARD_OFF = PruneOptions(warm_suffix_tokens=None)


def stale(entries, options=None, **protected):
    return stale_edits(read_live_tail(entries, **protected), ESTIMATE, options or PruneOptions())


def old(entries, options=None):
    return threshold_edits(read_live_tail(entries), ESTIMATE, options or GUARD_OFF)


def targets(edits):
    return [change.target_id for change in edits.changes]


def superseded(behind, size=1_200):
    """A read of that size that a later one of no tokens supersedes, with ``behind`` tokens after it."""
    return flat(u("x"), read("a.py", size), [a(words(behind - CALL))], read("a.py", ""))


CALL = 5
"""Tokens of the call of ``read("a.py", …)``: name and arguments."""


def after_ms(entries, minutes):
    return PruneOptions(now_ms=entries[-1].message.timestamp_ms + minutes * MINUTE_MS)


@pytest.mark.parametrize(
    ("behind", "minutes", "pruned"),
    [(7_900, 0, True), (8_000, 0, True), (8_001, 89, False), (8_001, 90, True), (50_000, 90, True)],
)
def test_superseded_read_is_blanked_near_the_end_or_when_the_cache_is_cold(behind, minutes, pruned):
    entries = superseded(behind)
    edits = stale(entries, after_ms(entries, minutes))
    assert targets(edits) == (["e3"] if pruned else [])
    if pruned:
        assert edits.changes[0].replacement == SUPERSEDED_NOTICE
        assert edits.tokens_saved == 1_189


@pytest.mark.parametrize(
    ("size", "fields", "expected"),
    [
        (6, {"useless": True}, []),
        (7, {"useless": True}, []),
        (8, {"useless": True}, ["e3"]),
        (40, {"useless": True}, ["e3"]),
        (40, {"useless": True, "error": True}, []),
        (40, {}, []),
    ],
)
def test_useless_results(size, fields, expected):
    edits = stale(flat(u("x"), answered("grep", size, **fields)))
    assert targets(edits) == expected
    if expected:
        assert edits.changes[0].replacement == USELESS_NOTICE
        assert edits.tokens_saved == size - 7


def test_superseded_wins_over_useless():
    edits = stale(flat(read("a.py", 100, useless=True), read("a.py", 100)))
    assert [change.reason for change in edits.changes] == [EditReason.SUPERSEDED]


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("a.py", "a.py", True),
        ("a.py:1-5", "a.py", True),
        ("a.py:1-5", "a.py:1-5", True),
        ("a.py", "a.py:1-5", False),
        ("a.py:1-5", "a.py:1-6", False),
        ("a.py", "b.py", False),
        ("memory://x", "memory://x", False),
        ("skill://x", "skill://x", False),
    ],
)
def test_what_supersedes_what(older, newer, expected):
    assert bool(stale(flat(read(older, 500), read(newer, 500)))) is expected


def test_a_failed_read_neither_supersedes_nor_is_superseded():
    assert not stale(flat(read("a.py", 500), read("a.py", 500, error=True)))
    assert not stale(flat(read("a.py", 500, error=True), read("a.py", 500)))


def test_a_read_without_its_call_is_left_alone():
    lost = answered("read", 500)[1]
    assert not stale(flat([lost], read("a.py", 500)))


def test_reads_of_the_plan_stay():
    assert not stale(flat(read("plan.md", 500), read("plan.md", 500)), protected_paths={"plan.md"})


def test_a_superseded_read_smaller_than_the_notice_stays():
    assert not stale(flat(read("a.py", 11), read("a.py", 500)))
    assert stale(flat(read("a.py", 12), read("a.py", 500))).tokens_saved == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PruneOptions(supersede_reads=False), ["e4"]),
        (PruneOptions(drop_useless=False), ["e2"]),
        (PruneOptions(supersede_reads=False, drop_useless=False), []),
    ],
)
def test_each_kind_can_be_switched_off(options, expected):
    entries = flat(read("a.py", 500), answered("grep", 40, useless=True), read("a.py", 500))
    assert targets(stale(entries, options)) == expected


def test_nothing_before_the_kept_part_changes():
    entries = flat(read("a.py", 500), [compaction("s", "e4")], read("a.py", 500), read("a.py", 500))
    assert targets(stale(entries)) == ["e5"]


def test_a_pruned_read_does_not_supersede():
    entries = flat(read("a.py", 500), read("a.py", 500))
    blanked = Edit("e4", "[Output truncated - 500 tokens]", EditReason.THRESHOLD)
    assert targets(stale(entries)) == ["e2"]
    assert not stale(with_edits(entries, [blanked]))


def test_the_newest_message_tells_the_time():
    entries = superseded(9_000)
    assert not stale(entries, PruneOptions(now_ms=START_MS))
    assert not stale(entries, PruneOptions(now_ms=None))


def results(*sizes):
    return flat(u("x"), *(answered(f"tool{index}", size) for index, size in enumerate(sizes)))


def test_old_results_are_blanked_where_that_frees_enough():
    edits = old(results(12_000, 9_000, 30, 25_000, 18_000))
    assert targets(edits) == ["e3", "e5"]
    assert edits.tokens_saved == 20_983
    assert [change.replacement for change in edits.changes] == [
        "[Output truncated - 12000 tokens]",
        "[Output truncated - 9000 tokens]",
    ]


def test_old_results_stay_where_that_frees_too_little():
    assert not old(results(12_000, 7_000, 30, 25_000, 18_000))


def test_the_guard_leaves_results_far_from_the_end():
    assert not old(results(12_000, 9_000, 30, 25_000, 18_000), PruneOptions())


def test_the_guard_lets_stale_results_near_the_end_go():
    entries = flat(answered("grep", 30_000, useless=True), answered("bash", 7_000))
    edits = old(entries, PruneOptions())
    assert targets(edits) == ["e2"]
    assert edits.changes[0].reason is EditReason.USELESS


def test_stale_results_do_not_use_up_the_protected_window():
    entries = flat(
        answered("bash", 25_000),
        read("a.py", 30_000),
        read("a.py", 39_999),
    )
    assert [change.reason for change in old(entries).changes] == [EditReason.SUPERSEDED]
    entries = flat(answered("bash", 25_000), read("a.py", 30_000), read("a.py", 40_000))
    assert [change.reason for change in old(entries).changes] == [
        EditReason.THRESHOLD,
        EditReason.SUPERSEDED,
    ]


def test_pruned_results_use_up_the_protected_window():
    entries = results(25_000, 24_000, 39_990)
    first = old(entries)
    assert targets(first) == ["e3"]
    assert not old(with_edits(entries, first))


def test_notice_of_an_old_result():
    assert truncated_notice(1234) == "[Output truncated - 1234 tokens]"


@pytest.mark.parametrize("edits_of", [stale, old])
def test_an_empty_path_has_nothing_to_prune(edits_of):
    assert not edits_of(())


def test_what_is_blanked_no_longer_counts_as_text_behind_older_results():
    entries = flat(
        answered("grep", 500, useless=True), answered("grep", 5_000, useless=True), [a(words(7_000))]
    )
    assert targets(stale(entries)) == ["e2", "e4"]
