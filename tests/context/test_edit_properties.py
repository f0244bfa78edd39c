"""Invariants 21 to 28 of the specification, over random conversations and every pass that edits."""

from dataclasses import replace
from itertools import count

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
every_pass = pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)

TEXTS = st.sampled_from(["short", words(30), words(900), f"x\n```\n{words(500)}\n```\ny", words(25_000)])
TOOLS = st.sampled_from(
    [
        ("read", {"path": "a.py"}),
        ("read", {"path": "a.py:1-5"}),
        ("read", {"path": "skill://x"}),
        ("skill", {"name": "x"}),
        ("bash", {"command": "ls"}),
    ]
)


@st.composite
def exchanges(draw):
    """An answer with a few calls, and their results; ids come later."""
    made = []
    for tool, arguments in draw(st.lists(TOOLS, min_size=1, max_size=3)):
        blocks = (TextBlock(draw(TEXTS)), *([PICTURE] if draw(st.booleans()) else []))
        error, useless = draw(st.sampled_from([(False, False), (False, True), (True, False), (True, True)]))
        pruned = draw(st.sampled_from([None, None, None, 5]))
        made.append((tool, arguments, blocks, error, useless, pruned))
    return made


@st.composite
def conversations(draw):
    """A path of messages, commands, exchanges and perhaps a compaction that keeps from some entry on."""
    ids = count(1)
    parts = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["user", "picture", "command", "custom", "state", "tools", "tools"]))
        match kind:
            case "user":
                parts.append(u(draw(TEXTS)))
            case "picture":
                parts.append(u(draw(st.sampled_from(["", "look"])), images=1))
            case "command":
                parts.append(BashExecution("ls", draw(TEXTS)))
            case "custom":
                parts.append(custom(draw(TEXTS)))
            case "state":
                parts.append(state("label", label="x"))
            case _:
                exchange = draw(exchanges())
                numbers = [f"c{next(ids)}" for _ in exchange]
                calls = [
                    call(made[0], number, **made[1]) for number, made in zip(numbers, exchange, strict=True)
                ]
                parts.append(a(draw(st.sampled_from(["", "ok"])), calls))
                parts += [
                    replace(
                        t("", number, tool, error=error, useless=useless, pruned_at_ms=pruned), content=blocks
                    )
                    for number, (tool, _, blocks, error, useless, pruned) in zip(
                        numbers, exchange, strict=True
                    )
                ]
    if draw(st.booleans()):
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


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_an_edit_changes_no_number_order_id_or_role(run, entries):
    before, after = context(entries), context(edited(entries, run(entries)))
    assert after.entry_ids == before.entry_ids
    assert [type(message) for message in after.messages] == [type(message) for message in before.messages]
    for old_one, new_one in zip(before.messages, after.messages, strict=True):
        if isinstance(old_one, ToolResultMessage) and isinstance(new_one, ToolResultMessage):
            assert new_one.tool_call_id == old_one.tool_call_id
            assert new_one.is_error is old_one.is_error


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_a_second_pass_at_once_changes_nothing(run, entries):
    assert not run(edited(entries, run(entries)))


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


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_nothing_before_the_kept_part_changes(run, entries):
    tail = read_live_tail(entries)
    live = {tail.items[index].id for index in tail.live}
    edits = run(entries)
    assert {change.target_id for change in edits.changes} <= live
    first = next((entry.id for entry in entries if entry.id in {c.target_id for c in edits.changes}), None)
    assert edits.earliest_entry_id == first


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_protected_results_stay_whole(run, entries):
    protected = read_live_tail(entries).protected
    changed = {change.target_id for change in run(entries).changes}
    assert not changed & {entries[index].id for index in protected}


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


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_savings_are_not_negative_and_the_context_never_grows(run, entries):
    edits = run(entries)
    assert edits.tokens_saved >= 0
    assert edits.tokens_saved == sum(row.tokens for row in edits.counts)
    assert len(edits.changes) == sum(row.entries for row in edits.counts)
    assert size(edited(entries, edits)) <= size(entries)


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_a_reloaded_path_gives_the_same_context(run, entries):
    stored = edited(reloaded(entries), run(entries))
    assert context(reloaded(stored)).messages == context(stored).messages


def reloaded(entries):
    return tuple(decode_entry(encode_entry(entry)) for entry in entries)


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_edits_written_into_the_entries_give_the_same_context(run, entries):
    edits = run(entries)
    contents = {change.target_id: change.replacement for change in edits.changes}
    rewritten = tuple(
        rewrite(entry, contents[entry.id]) if entry.id in contents else entry for entry in entries
    )
    assert context(rewritten).messages == context(edited(entries, edits)).messages


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


@every_pass
@settings(max_examples=60, deadline=None)
@given(entries=conversations())
def test_the_live_tail_is_what_the_model_sees(run, entries):
    entries = edited(entries, run(entries))
    tail, shown = read_live_tail(entries), context(entries)
    live = [tail.items[index] for index in tail.live if tail.items[index].message is not None]
    pairs = [
        (entry_id, message)
        for entry_id, message in zip(shown.entry_ids, shown.messages, strict=True)
        if entry_id != shown.compaction_id
    ]
    assert pairs == [(item.id, item.message) for item in live]
