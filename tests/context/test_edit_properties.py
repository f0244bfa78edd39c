"""Invariants 21 to 28 of the specification, over random conversations and every pass that edits."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.context.edits import Edits
from musepi_tui.context.elide import plan_elisions
from musepi_tui.context.livetail import read_live_tail
from musepi_tui.context.offload import content_of
from musepi_tui.context.prune import PruneOptions, stale_edits, threshold_edits
from musepi_tui.context.rescue import drop_images, truncation_plan
from musepi_tui.context.shake import AGGRESSIVE, dedup_plan, shake_plan
from musepi_tui.session.codec import decode_entry, encode_entry
from musepi_tui.session.messages import (
    BashExecution,
    ImageBlock,
    TextBlock,
    ToolResultMessage,
    text_of,
)
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import PIXEL, START_MS, a, call, compaction, custom, path, state, t, u, words
from tests.support.tails import ESTIMATE, with_edits

PICTURE = ImageBlock(PIXEL, "image/png")
HOUR_MS = 3_600_000


def stale(entries):
    now_ms = START_MS + 1_000 * len(entries) + 2 * HOUR_MS
    return stale_edits(read_live_tail(entries), ESTIMATE, PruneOptions(now_ms=now_ms))


def stale_warm(entries):
    return stale_edits(read_live_tail(entries), ESTIMATE, PruneOptions())


def old(entries):
    return threshold_edits(read_live_tail(entries), ESTIMATE, PruneOptions(warm_suffix_tokens=None))


def old_warm(entries):
    return threshold_edits(read_live_tail(entries), ESTIMATE, PruneOptions())


def dedup(entries):
    return dedup_plan(read_live_tail(entries), ESTIMATE).edits("1")


def shake(entries):
    return shake_plan(read_live_tail(entries), ESTIMATE, AGGRESSIVE).edits("1")


def images(entries):
    return drop_images(read_live_tail(entries)).edits


def truncate(entries):
    return truncation_plan(read_live_tail(entries), ESTIMATE, 10**9).edits("1")


PASSES = [stale, stale_warm, old, old_warm, dedup, shake, images, truncate]

TEXTS = ("short", words(30), words(900), f"x\n```\n{words(500)}\n```\ny", words(25_000))
TOOLS = (
    ("read", {"path": "a.py"}),
    ("read", {"path": "a.py:1-5"}),
    ("read", {"path": "skill://x"}),
    ("skill", {"name": "x"}),
    ("bash", {"command": "ls"}),
)
FLAGS = (False, True)
PRUNED = (None, None, None, 5)
# Strategies made once and much in one draw: making a conversation takes longer than what is done with it.
NUMBERS = st.integers(1, 6)
BOOLEANS = st.booleans()
PARTS = st.sampled_from(
    [
        *product(["user", "user", "command", "command", "custom", "custom"], TEXTS),
        *[("picture", text) for text in ("", "look")] * 5,
        *[("state", "")] * 10,
        *[("tools", text) for text in ("", "ok")] * 10,
    ]
)
EXCHANGES = st.lists(
    st.sampled_from(list(product(TOOLS, TEXTS, FLAGS, FLAGS, FLAGS, PRUNED))), min_size=1, max_size=3
)


def exchange(text, made, ids):
    """An answer with a few calls, and their results."""
    calls, results = [], []
    for (tool, arguments), result, picture, error, useless, pruned in made:
        number = f"c{next(ids)}"
        calls.append(call(tool, number, **arguments))
        blocks = (TextBlock(result), PICTURE) if picture else (TextBlock(result),)
        bare = t("", number, tool, error=error, useless=useless, pruned_at_ms=pruned)
        results.append(replace(bare, content=blocks))
    return [a(text, calls), *results]


@st.composite
def conversations(draw):
    """A path of messages, commands, exchanges and perhaps a compaction that keeps from some entry on."""
    ids = count(1)
    parts = []
    for _ in range(draw(NUMBERS)):
        kind, text = draw(PARTS)
        match kind:
            case "user":
                parts.append(u(text))
            case "picture":
                parts.append(u(text, images=1))
            case "command":
                parts.append(BashExecution("ls", text))
            case "custom":
                parts.append(custom(text))
            case "state":
                parts.append(state("label", label="x"))
            case _:
                parts += exchange(text, draw(EXCHANGES), ids)
    if draw(BOOLEANS):
        at = draw(st.integers(1, len(parts)))
        starts = [index for index in range(at) if not isinstance(parts[index], ToolResultMessage)]
        parts.insert(at, compaction("summary", f"e{draw(st.sampled_from(starts)) + 1}"))
        if at < len(parts) - 1 and isinstance(parts[at + 1], ToolResultMessage):
            del parts[at]
    return path(*parts)


def context(entries):
    return build_session_context(entries)


def edited(entries, edits: Edits):
    return with_edits(entries, edits, START_MS)


def size(entries):
    return sum(map(ESTIMATE, context(entries).messages))


def reloaded(entries):
    return tuple(decode_entry(encode_entry(entry)) for entry in entries)


def rewrite(entry, content):
    if entry.type == "custom_message":
        return replace(entry, content=content)
    message = entry.message
    if isinstance(message, BashExecution):
        return replace(entry, message=replace(message, output=text_of(content)))
    if isinstance(message, ToolResultMessage):
        blocks = (TextBlock(content),) if isinstance(content, str) else content
        return replace(entry, message=replace(message, content=blocks, pruned_at_ms=START_MS))
    return replace(entry, message=replace(message, content=content))


@dataclass(frozen=True)
class Case:
    """What a pass does with a path: its edits, and the path with them stored."""

    run: Callable
    before: tuple
    edits: Edits
    after: tuple


RULES = []
"""What holds of every pass over every path. Making a path costs more than all of them do."""


def rule(check):
    RULES.append(check)
    return check


@rule
def an_edit_changes_no_number_order_id_or_role(case):
    before, after = context(case.before), context(case.after)
    assert after.entry_ids == before.entry_ids
    assert [type(message) for message in after.messages] == [type(message) for message in before.messages]
    for old_one, new_one in zip(before.messages, after.messages, strict=True):
        if isinstance(old_one, ToolResultMessage) and isinstance(new_one, ToolResultMessage):
            assert new_one.tool_call_id == old_one.tool_call_id
            assert new_one.is_error is old_one.is_error


@rule
def a_second_pass_at_once_changes_nothing(case):
    assert not case.run(case.after)


@rule
def nothing_before_the_kept_part_changes(case):
    tail = read_live_tail(case.before)
    live = {tail.items[index].id for index in tail.live}
    changed = {change.target_id for change in case.edits.changes}
    assert changed <= live
    first = next((entry.id for entry in case.before if entry.id in changed), None)
    assert case.edits.earliest_entry_id == first


@rule
def protected_results_stay_whole(case):
    protected = read_live_tail(case.before).protected
    changed = {change.target_id for change in case.edits.changes}
    assert not changed & {case.before[index].id for index in protected}


@rule
def savings_are_not_negative_and_the_context_never_grows(case):
    edits = case.edits
    assert edits.tokens_saved >= 0
    assert edits.tokens_saved == sum(row.tokens for row in edits.counts)
    assert len(edits.changes) == sum(row.entries for row in edits.counts)
    assert size(case.after) <= size(case.before)


@rule
def a_reloaded_path_gives_the_same_context(case):
    stored = edited(reloaded(case.before), case.edits)
    assert context(reloaded(stored)).messages == context(stored).messages


@rule
def edits_written_into_the_entries_give_the_same_context(case):
    contents = {change.target_id: change.replacement for change in case.edits.changes}
    rewritten = tuple(
        rewrite(entry, contents[entry.id]) if entry.id in contents else entry for entry in case.before
    )
    assert context(rewritten).messages == context(case.after).messages


@rule
def the_live_tail_is_what_the_model_sees(case):
    tail, shown = read_live_tail(case.after), context(case.after)
    live = [tail.items[index] for index in tail.live if tail.items[index].message is not None]
    pairs = [
        (entry_id, message)
        for entry_id, message in zip(shown.entry_ids, shown.messages, strict=True)
        if entry_id != shown.compaction_id
    ]
    assert pairs == [(item.id, item.message) for item in live]


@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
@settings(max_examples=80, deadline=None)
@given(entries=conversations())
def test_every_pass_keeps_every_rule(run, entries):
    edits = run(entries)
    for keep in RULES:
        keep(Case(run, entries, edits, edited(entries, edits)))


@settings(max_examples=60, deadline=None)
@given(conversations(), st.permutations(range(len(PASSES))))
def test_a_pruned_result_is_never_blanked_again(entries, order):
    for number in order:
        edits = PASSES[number](entries)
        pruned = {
            item.id
            for item in read_live_tail(entries).items
            if isinstance(item.message, ToolResultMessage) and item.message.pruned_at_ms is not None
        }
        if PASSES[number] not in (images, truncate):
            assert not pruned & {change.target_id for change in edits.changes}
        entries = edited(entries, edits)


@pytest.mark.parametrize("run", [stale, stale_warm], ids=["cold", "warm"])
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_a_useless_result_that_failed_is_never_blanked(run, entries):
    failed = {
        entry.id
        for entry in entries
        if entry.type == "message" and isinstance(entry.message, ToolResultMessage) and entry.message.is_error
    }
    assert not failed & {change.target_id for change in run(entries).changes}


@settings(max_examples=60, deadline=None)
@given(conversations())
def test_the_newest_read_of_a_path_is_never_superseded(entries):
    tail = read_live_tail(entries)
    newest = {}
    for index in tail.live:
        result = tail.result_at(index)
        if (
            result
            and not result.is_error
            and result.pruned_at_ms is None
            and tail.calls[index].name == "read"
        ):
            newest[tail.calls[index].arguments["path"].partition(":")[0]] = tail.items[index].id
    superseded = {
        change.target_id for change in stale(entries).changes if change.reason.value == "superseded"
    }
    assert not superseded & set(newest.values())


@settings(max_examples=60, deadline=None)
@given(conversations(), st.integers(1, 20_000))
def test_offloaded_text_can_be_read_back(entries, needed):
    for plan in (
        dedup_plan(read_live_tail(entries), ESTIMATE),
        shake_plan(read_live_tail(entries), ESTIMATE, AGGRESSIVE),
        truncation_plan(read_live_tail(entries), ESTIMATE, needed),
    ):
        artifact = plan.artifact_text()
        after = {item.id: item.message for item in read_live_tail(edited(entries, plan.edits("9"))).items}
        for number, region in enumerate(plan.regions, start=1):
            assert (
                f"### region {number} ({region.label}, ~{region.tokens} tok)\n\n{region.text}\n\n" in artifact
            )
            left = content_of(after[entries[region.index].id])
            assert f"recover: artifact://9 (region {number})]" in text_of(left)


@settings(max_examples=60, deadline=None)
@given(conversations(), st.integers(1, 30_000))
def test_tail_elision_touches_no_text_call_or_error(entries, budget):
    tail = read_live_tail(entries)
    kept = [tail.items[index] for index in tail.live]
    by_id = {item.id: item.message for item in kept}
    for elision in plan_elisions(tail.items, kept, budget, ESTIMATE):
        message = by_id[elision.entry_id]
        assert isinstance(message, ToolResultMessage)
        assert not message.is_error
        assert message.pruned_at_ms is None
