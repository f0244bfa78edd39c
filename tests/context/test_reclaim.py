from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.livetail import LiveTail, read_live_tail, tail_of_context
from musepi_tui.context.prune import PruneOptions, stale_edits
from musepi_tui.context.reclaim import find_reclaimable
from musepi_tui.context.shake import AGGRESSIVE, shake_plan
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import START_MS, a, compaction, custom, u, words
from tests.support.tails import ESTIMATE, answered, flat, read, with_edits


def found(tail: LiveTail, options: PruneOptions | None = None):
    rows = find_reclaimable(tail, ESTIMATE, options or PruneOptions(now_ms=START_MS))
    return {row.name: (row.tokens, row.rested) for row in rows}


def as_context(entries) -> LiveTail:
    context = build_session_context(entries)
    return tail_of_context(context.messages, context.entry_ids, context.compaction_id)


def test_each_way_tells_what_its_pass_would_free():
    entries = flat(
        u("x", images=1),
        read("a.py", 1_200),
        answered("find", 100, useless=True),
        read("a.py", 3_000),
        [u("go on")],
    )
    ways = found(as_context(entries))
    assert ways["superseded"] == (1_189, 1_189)
    assert ways["useless"] == (93, 93)
    assert ways["threshold"] == (0, 0)
    shaken = shake_plan(read_live_tail(entries), ESTIMATE, AGGRESSIVE).tokens_saved
    assert ways["shake"] == (shaken, shaken)
    assert shaken > 4_000
    assert ways["images"][0] > 1_000


def test_what_the_cache_holds_back_is_told_apart():
    entries = flat(u("x"), read("a.py", 1_200), [a(words(9_000))], read("a.py", 100))
    assert found(as_context(entries))["superseded"] == (0, 1_189)


def test_what_the_settings_leave_alone_is_not_reclaimable():
    entries = flat(u("x"), read("a.py", 1_200), read("a.py", 100))
    options = PruneOptions(supersede_reads=False, now_ms=START_MS)
    assert found(as_context(entries), options)["superseded"] == (0, 0)


_GROUPS = {
    "u": lambda: [u(words(30))],
    "long": lambda: [a(words(9_000))],
    "read": lambda: read("a.py", 700),
    "other": lambda: read("b.py", 90),
    "find": lambda: answered("find", 60, useless=True),
    "custom": lambda: [custom(words(4_500))],
    "compact": lambda: [compaction("sum", "e1")],
}


@given(st.lists(st.sampled_from(sorted(_GROUPS)), max_size=10), st.booleans())
def test_a_context_reclaims_what_the_path_it_comes_from_does(names, is_edited):
    entries = flat([u("go")], *(_GROUPS[name]() for name in names))
    options = PruneOptions(now_ms=START_MS)
    if is_edited:
        entries = with_edits(entries, stale_edits(read_live_tail(entries), ESTIMATE, options))
    assert found(as_context(entries), options) == found(read_live_tail(entries), options)
