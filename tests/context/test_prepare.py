import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.estimate import Estimator
from musepi_tui.context.prepare import PrepareOptions, has_new_messages, prepare_compaction
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, MessageEntry
from musepi_tui.session.messages import Usage
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import a, compaction, edit, path, state, stub_count, u, words
from tests.support.sketch import parts, sketch

LONG = "u100 a200 t4000 a300 u50 a6000 t3000 a100"


def prepare(entries, keep=5_000, **options):
    return prepare_compaction(entries, PrepareOptions(keep, **options), Estimator(stub_count))


def ids(items):
    return [item.id for item in items]


@pytest.mark.parametrize(
    ("keep", "history", "prefix", "kept"),
    [
        (9_500, [], ["e1", "e2", "e3"], ["e4", "e5", "e6", "e7", "e8"]),
        (5_000, ["e1", "e2", "e3", "e4"], ["e5"], ["e6", "e7", "e8"]),
        (2_500, ["e1", "e2", "e3", "e4"], ["e5", "e6", "e7"], ["e8"]),
    ],
)
def test_preparation_parts(keep, history, prefix, kept):
    found = prepare(sketch(LONG), keep)
    assert (ids(found.history), ids(found.prefix), ids(found.kept)) == (history, prefix, kept)
    assert found.is_split_turn
    assert found.first_kept_entry_id == kept[0]


def test_nothing_is_prepared_when_everything_is_recent():
    assert prepare(sketch(LONG), 20_000) is None


@pytest.mark.parametrize("text", ["", "u9000", "m m"])
def test_nothing_is_prepared_for_fewer_than_two_messages(text):
    assert prepare(sketch(text), 10) is None


def test_nothing_is_prepared_right_after_a_compaction():
    entries = path(*parts("u900 a900"), compaction("s", "e2"), state("label", label="x"))
    assert not has_new_messages(entries)
    assert prepare(entries, 10) is None


def test_second_compaction_starts_at_what_the_first_one_kept():
    entries = path(*parts("u500 a500"), compaction("first", "e2"), *parts("u500 a500 u500 a500"))
    found = prepare(entries, 900)
    assert (ids(found.history), ids(found.kept)) == (["e2", "e4", "e5"], ["e6", "e7"])
    assert found.previous_summary == "first"


def test_second_compaction_starts_behind_one_that_kept_nothing():
    entries = path(*parts("u500 a500"), compaction("first", KEEP_NOTHING), *parts("u500 a500 u500 a500"))
    assert ids(prepare(entries, 900).history) == ["e4", "e5"]


def test_unknown_boundary_summarises_from_the_first_entry():
    entries = path(*parts("u500 a500"), compaction("first", "gone"), *parts("u500 a500 u500 a500"))
    assert ids(prepare(entries, 900).history) == ["e1", "e2", "e4", "e5"]


@pytest.mark.parametrize("data", [{"openaiRemoteCompaction": {}}, {"remoteCompaction": {}}])
def test_a_compaction_without_readable_text_is_no_previous_one(data):
    entries = path(
        *parts("u500 a500"), compaction("placeholder", "e2", preserve_data=data), *parts("u500 a500")
    )
    found = prepare(entries, 100)
    assert found.previous is None
    assert ids(found.history)[0] == "e1"


def test_a_provider_window_bounds_the_cut_but_not_the_history():
    data = {"remoteCompaction": {}}
    entries = path(
        *parts("u500 a500 u500 a500"), compaction("", "e3", preserve_data=data), *parts("u500 a500")
    )
    found = prepare(entries, 9_000)
    assert ids(found.history) == ["e1", "e2"]
    assert found.first_kept_entry_id == "e3"


def test_messages_stored_inside_a_divider_are_summarised():
    tail = (u("stored tail"),)
    entries = path(
        *parts("u500 a500"), compaction("first", None, retained_tail=tail), *parts("u500 a500 u9 a900")
    )
    found = prepare(entries, 900)
    assert found.history_messages[0] == tail[0]
    assert ids(found.history) == ["e4", "e5"]


def test_nothing_before_a_reset_is_summarised():
    entries = path(
        *parts("u500 a500"), compaction("old", "e1"), state("reset_boundary"), *parts("u500 a500 u9 a900")
    )
    found = prepare(entries, 900)
    assert ids(found.history) == ["e5", "e6"]
    assert found.previous is None


def test_keep_nothing_when_no_entry_after_the_budget_can_be_cut():
    found = prepare(sketch("u10 d9000"), 10)
    assert (found.first_kept_entry_id, found.kept, found.is_split_turn) == (KEEP_NOTHING, (), False)


def test_history_holds_edited_messages_and_no_dropped_ones():
    entries = path(*parts("u500 a500 t500 a500 u500"), edit("e3", "[gone]"), edit("e1"), *parts("a500 u900"))
    found = prepare(entries, 100)
    assert ids(found.history)[:2] == ["e2", "e3"]
    assert found.history_messages[1].content[0].text == "[gone]"


def test_tokens_before_is_the_newest_bill():
    entries = path(u(words(500)), a(words(500), usage=Usage(input=4_000, output=50)), *parts("u500 a500"))
    entries = (
        *entries[:-1],
        MessageEntry("last", "e3", "", a(words(500), usage=Usage(input=7_000, output=100))),
    )
    assert prepare(entries, 100).tokens_before == 7_100


def test_a_bill_larger_than_the_estimate_shrinks_the_kept_tail():
    entries = path(*parts("u2000 a2000 u2000"), a(words(2000), usage=Usage(input=17_000, output=0)))
    found = prepare(entries, 4_000, window=200_000, other_tokens=1_000)
    assert found.keep_recent_tokens == 2_000


def test_a_bill_from_before_the_compaction_shrinks_nothing():
    old = a(words(500), usage=Usage(input=90_000, output=0))
    entries = path(u(words(500)), old, compaction("s", "e2"), *parts("u500 u500"))
    assert prepare(entries, 900, window=200_000, other_tokens=1_000).keep_recent_tokens == 900


sizes = st.integers(4, 900)
turns = st.lists(
    st.tuples(sizes, st.lists(st.tuples(sizes, st.lists(sizes, max_size=3)), min_size=1, max_size=3)),
    min_size=1,
    max_size=6,
)


def conversation(drawn):
    tokens = []
    for user, answers in drawn:
        tokens.append(f"u{user}")
        for answer, results in answers:
            tokens.append(f"a{answer + 6}")
            tokens += [f"t{size}" for size in results]
    return parts(" ".join(tokens))


def commit(entries, found, name):
    """The path after the pass, without elisions."""
    divider = CompactionEntry(name, entries[-1].id, "", f"summary {name}", found.first_kept_entry_id)
    return (*entries, divider)


@given(turns, st.integers(1, 4_000))
def test_parts_are_a_partition_of_the_window(drawn, keep):
    entries = path(*conversation(drawn))
    found = prepare(entries, keep)
    if found is None:
        return
    assert ids((*found.history, *found.prefix, *found.kept)) == [entry.id for entry in entries]
    assert all(item.message is not None for item in (*found.history, *found.prefix, *found.kept))


@given(turns, turns, st.integers(1, 2_000), st.integers(1, 2_000))
def test_every_message_is_summarised_or_kept_over_two_compactions(first, second, keep, keep_again):
    entries = path(*conversation(first))
    found = prepare(entries, keep)
    if found is None:
        return
    summarised = {*ids(found.history), *ids(found.prefix)}
    entries = commit(entries, found, "C1")
    more = path(*conversation(second), ids=[f"n{number}" for number in range(80)])
    entries = (*entries, *more)
    again = prepare(entries, keep_again)
    if again is None:
        return
    summarised |= {*ids(again.history), *ids(again.prefix)}
    after = build_session_context(commit(entries, again, "C2"))
    shown = set(after.entry_ids) - {"C2"}
    assert {entry.id for entry in entries if isinstance(entry, MessageEntry)} == summarised | shown
    assert after.compaction_id == "C2"
    assert sum(type(message).__name__ == "CompactionSummary" for message in after.messages) == 1


@given(turns, st.integers(1, 2_000))
def test_a_second_compaction_without_new_messages_is_refused(drawn, keep):
    entries = path(*conversation(drawn))
    found = prepare(entries, keep)
    if found is not None:
        assert prepare(commit(entries, found, "C1"), keep) is None


@given(turns, st.integers(1, 2_000))
def test_kept_calls_keep_their_results(drawn, keep):
    entries = path(*conversation(drawn))
    found = prepare(entries, keep)
    if found is None:
        return
    kept = build_session_context(commit(entries, found, "C1"))
    assert [entry_id for entry_id in kept.entry_ids if entry_id != "C1"] == ids(found.kept)


@given(turns, st.integers(1, 2_000))
def test_preparing_changes_no_entry(drawn, keep):
    entries = path(*conversation(drawn))
    before = repr(entries)
    prepare(entries, keep)
    assert repr(entries) == before


@given(st.lists(st.tuples(turns, st.integers(1, 2_000)), min_size=1, max_size=5))
def test_no_message_vanishes_over_any_number_of_compactions(rounds):
    entries, summarised = (), set()
    for number, (drawn, keep) in enumerate(rounds):
        more = conversation(drawn)
        entries += path(*more, ids=[f"r{number}m{index}" for index in range(len(more))])
        found = prepare(entries, keep)
        if found is None:
            continue
        summarised |= {*ids(found.history), *ids(found.prefix)}
        entries = commit(entries, found, f"C{number}")
    shown = set(build_session_context(entries).entry_ids)
    assert {entry.id for entry in entries if isinstance(entry, MessageEntry)} <= summarised | shown


def test_an_answer_a_retry_replaced_is_not_summarised():
    replaced = a(words(500), extra={"retryRecovery": {"status": "recovered"}})
    found = prepare(path(u(words(500)), replaced, *parts("a500 u9 a900")), 900)
    assert ids(found.history) == ["e1", "e3"]
