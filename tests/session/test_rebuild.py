import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.session.codec import decode_entry
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, EntryHead, MessageEntry
from musepi_tui.session.messages import (
    AssistantMessage,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)
from musepi_tui.session.rebuild import (
    boundary_index,
    build_session_context,
    effective_compaction,
    kept_range,
    read_state,
)
from musepi_tui.session.tree import SessionTree
from tests.support.builders import a, branch_summary, call, compaction, custom, edit, path, state, t, u
from tests.support.lines import answer_record, record, user_record

WINDOW = {
    "version": 1,
    "provider": "openai",
    "api": "openai-responses",
    "model": "gpt",
    "window": [{"type": "compaction", "encrypted_content": "x"}],
}


def remote(first: str) -> CompactionEntry:
    return compaction("", first, preserve_data={"remoteCompaction": WINDOW})


def shown(context) -> list[str]:
    """Each message by its entry id, summaries marked."""
    return [
        f"summary({entry_id})" if isinstance(message, CompactionSummary) else entry_id
        for entry_id, message in zip(context.entry_ids, context.messages, strict=True)
    ]


def turns(*names: str) -> list:
    return [u(name) if name.startswith("u") else a(name) for name in names]


def test_context_is_the_whole_path_without_a_compaction():
    entries = path(u("hi"), a("there"), state("label", targetId="e1"), ids=["u1", "a1"])
    assert shown(build_session_context(entries)) == ["u1", "a1"]


def test_context_starts_with_the_summary_and_the_kept_run():
    entries = path(
        *turns("u1", "a1", "u2", "a2"),
        compaction("S", "u2", tokens_before=7),
        *turns("u3", "a3"),
        ids=["u1", "a1", "u2", "a2", "c", "u3", "a3"],
    )
    context = build_session_context(entries)
    assert shown(context) == ["summary(c)", "u2", "a2", "u3", "a3"]
    assert context.compaction_id == "c"
    summary = context.messages[0]
    assert isinstance(summary, CompactionSummary)
    assert (summary.summary, summary.tokens_before, summary.timestamp_ms) == ("S", 7, 1_750_000_004_000)


def test_second_compaction_keeps_what_it_names_and_the_first_gives_nothing():
    entries = path(
        *turns("u1", "a1"),
        compaction("1", "u1"),
        *turns("u2", "b", "u3", "c"),
        compaction("2", "u3"),
        u("u4"),
        ids=["u1", "a1", "C1", "u2", "b", "u3", "c", "C2", "u4"],
    )
    assert shown(build_session_context(entries)) == ["summary(C2)", "u3", "c", "u4"]


def test_older_compaction_inside_the_kept_run_gives_no_message():
    entries = path(
        u("u1"), compaction("1", "u1"), u("u2"), compaction("2", "u1"), ids=["u1", "C1", "u2", "C2"]
    )
    assert shown(build_session_context(entries)) == ["summary(C2)", "u1", "u2"]


@pytest.mark.parametrize("first", [KEEP_NOTHING, "C"])
def test_compaction_that_keeps_nothing(first):
    entries = path(*turns("u1", "a1"), compaction("S", first), u("u2"), ids=["u1", "a1", "C", "u2"])
    context = build_session_context(entries)
    assert shown(context) == ["summary(C)", "u2"]
    assert context.warnings == ()


def test_unknown_first_kept_entry_sends_everything_and_warns_once():
    entries = path(*turns("u1", "a1"), compaction("S", "gone"), u("u2"), ids=["u1", "a1", "C", "u2"])
    context = build_session_context(entries)
    assert shown(context) == ["summary(C)", "u1", "a1", "u2"]
    assert len(context.warnings) == 1
    assert "gone" in context.warnings[0]


def test_missing_first_kept_entry_sends_everything():
    entries = path(*turns("u1", "a1"), compaction("S", None), u("u2"), ids=["u1", "a1", "C", "u2"])
    assert shown(build_session_context(entries)) == ["summary(C)", "u1", "a1", "u2"]


def test_first_kept_entry_behind_the_compaction_keeps_nothing():
    entries = path(*turns("u1", "a1"), compaction("S", "u2"), u("u2"), ids=["u1", "a1", "C", "u2"])
    assert shown(build_session_context(entries)) == ["summary(C)", "u2"]


def switched():
    return path(
        *turns("u1", "a1"),
        compaction("text", "u1"),
        *turns("u2", "a2"),
        remote("u2"),
        u("u3"),
        ids=["u1", "a1", "C1", "u2", "a2", "C2", "u3"],
    )


def test_remote_compaction_of_another_provider_is_passed_over():
    context = build_session_context(switched(), active_provider="anthropic", replay_apis={"openai-responses"})
    assert shown(context) == ["summary(C1)", "u1", "a1", "u2", "a2", "u3"]


def test_remote_compaction_of_the_active_provider_counts():
    context = build_session_context(switched(), active_provider="openai", replay_apis={"openai-responses"})
    assert shown(context) == ["summary(C2)", "u2", "a2", "u3"]


def test_remote_compaction_is_passed_over_when_its_api_cannot_replay_it():
    assert effective_compaction(switched(), "openai") == 2


def test_active_provider_is_that_of_the_model_in_use():
    entries = path(state("model_change", model="openai/gpt"), u("hi"), remote("e2"))
    assert effective_compaction(entries, replay_apis={"openai-responses"}) == 2


@pytest.mark.parametrize(
    "entry",
    [
        compaction("placeholder", "e1", preserve_data={"openaiRemoteCompaction": {}}),
        compaction(" \n", "e1"),
        compaction("", "e1", preserve_data={"remoteCompaction": WINDOW | {"version": 2}}),
        compaction("", "e1", preserve_data={"remoteCompaction": {"provider": "openai"}}),
    ],
    ids=["retired", "blank", "other version", "incomplete"],
)
def test_unusable_compaction_hides_nothing(entry):
    entries = path(u("1"), a("2"), entry)
    assert effective_compaction(entries, "openai", {"openai-responses"}) is None
    assert shown(build_session_context(entries)) == ["e1", "e2"]


def test_reset_boundary_starts_the_context_after_it():
    entries = path(u("1"), compaction("S", "e1"), u("2"), state("reset_boundary"), u("3"))
    context = build_session_context(entries)
    assert shown(context) == ["e5"]
    assert context.compaction_id is None


def test_compaction_after_a_reset_boundary_counts():
    entries = path(u("1"), state("reset_boundary"), u("2"), compaction("S", "e3"), u("3"))
    assert shown(build_session_context(entries)) == ["summary(e4)", "e3", "e5"]


def test_retained_tail_takes_the_place_of_the_kept_run():
    entries = path(u("1"), compaction("S", None, retained_tail=(u("kept"),)), u("2"))
    context = build_session_context(entries)
    assert shown(context) == ["summary(e2)", "e2", "e3"]
    assert context.messages[1] == u("kept")


def test_each_kind_of_entry_gives_its_message():
    entries = path(
        u("1"),
        custom("note", details={"x": 1}),
        branch_summary("B", "e1"),
        branch_summary(""),
        state("label"),
    )
    context = build_session_context(entries)
    assert context.messages[1:] == (
        CustomMessage("test", "note", details={"x": 1}, timestamp_ms=1_750_000_001_000),
        BranchSummary("B", "e1", 1_750_000_002_000),
    )


def test_answer_a_retry_replaced_is_left_out_with_its_results():
    recovered = a(calls=[call("read", "c1")], extra={"retryRecovery": {"status": "recovered"}})
    entries = path(u("1"), recovered, t("x", "c1"), a(calls=[call("read", "c1")]), t("y", "c1"))
    assert shown(build_session_context(entries)) == ["e1", "e4", "e5"]


def test_last_edit_behind_its_target_counts():
    entries = path(
        u("1"),
        a(calls=[call("read")]),
        t("long"),
        edit("e3", "first"),
        edit("e3", "second"),
        edit("e9", "none"),
    )
    replaced = build_session_context(entries).messages[2]
    assert isinstance(replaced, ToolResultMessage)
    assert text_of(replaced.content) == "second"


def test_edit_in_front_of_its_target_does_nothing():
    entries = path(edit("e2", "changed"), u("1"))
    assert build_session_context(entries).messages == (replace(u("1"), timestamp_ms=1_750_000_001_000),)


def test_edit_without_replacement_drops_the_message_and_its_call():
    entries = path(u("1"), a("text", calls=[call("read")]), t("x"), edit("e3", None))
    context = build_session_context(entries)
    assert shown(context) == ["e1", "e2"]
    assert not tool_calls_of(context.messages[1])


def test_edit_marks_a_result_as_pruned():
    cut = replace(edit("e2", "cut"), pruned_at_ms=5)
    message = build_session_context(path(a(calls=[call("read")]), t("x"), cut)).messages[1]
    assert isinstance(message, ToolResultMessage)
    assert message.pruned_at_ms == 5


def test_call_without_result_is_removed_from_its_answer():
    signed = ThinkingBlock("hm", "sig")
    answer = replace(
        a("text"),
        content=(
            signed,
            ThinkingBlock("", "blob", redacted=True),
            TextBlock("text"),
            ToolCallBlock("lost", "read", {}),
            ToolCallBlock("found", "read", {}),
        ),
    )
    message = build_session_context(path(u("1"), answer, t("x", "found"))).messages[1]
    assert isinstance(message, AssistantMessage)
    assert message.content == (ThinkingBlock("hm"), TextBlock("text"), ToolCallBlock("found", "read", {}))


def test_answer_that_only_called_in_vain_is_dropped():
    assert shown(build_session_context(path(u("1"), a(calls=[call("read")]), u("2")))) == ["e1", "e3"]


def test_signatures_of_an_unchanged_answer_stay():
    answer = replace(a(), content=(ThinkingBlock("hm", "sig"), ToolCallBlock("c", "read", {})))
    message = build_session_context(path(answer, t("x", "c"))).messages[0]
    assert isinstance(message, AssistantMessage)
    assert message.content == answer.content


def test_result_without_a_call_before_it_is_dropped():
    entries = path(t("early", "c"), a(calls=[call("read", "c")]), t("ok", "c"), t("odd", "x"))
    assert shown(build_session_context(entries)) == ["e2", "e3"]


def test_call_id_used_in_every_turn_is_matched_in_order():
    entries = path(
        a("1", calls=[call("read", "c")]), u("no"), a("2", calls=[call("read", "c")]), t("ok", "c")
    )
    context = build_session_context(entries)
    assert [len(tool_calls_of(m)) for m in context.messages if isinstance(m, AssistantMessage)] == [0, 1]


def test_settings_are_read_from_the_whole_path():
    entries = path(
        state("model_change", provider="anthropic", modelId="claude"),
        state("thinking_level_change", thinkingLevel="high"),
        state("mode_change", mode="plan"),
        u("1"),
        compaction("S", KEEP_NOTHING),
        a("on a fallback model"),
    )
    context = build_session_context(entries)
    assert (context.model, context.thinking_level, context.mode) == (("anthropic", "claude"), "high", "plan")


def test_answer_sets_the_model_only_while_nothing_was_chosen():
    assert read_state(path(u("1"), a("2"))).model == ("test", "model")
    chosen = read_state(path(state("model_change", model="openai/org/gpt"), a("2")))
    assert chosen.model == ("openai", "org/gpt")


def test_model_of_another_role_is_not_the_model():
    assert read_state(path(state("model_change", model="a/b", role="smol"))).model is None


def test_empty_path_has_nothing():
    context = build_session_context(())
    assert (context.messages, context.model, context.thinking_level) == ((), None, None)


def test_boundary_of_keep_nothing_is_behind_the_last_compaction():
    entries = path(u("1"), compaction("1", KEEP_NOTHING), u("2"), compaction("2", KEEP_NOTHING), u("3"))
    assert boundary_index(entries, KEEP_NOTHING) == 4
    assert boundary_index(entries, "e3") == 2
    assert boundary_index(entries, "gone") == 0
    assert boundary_index(entries, None) == 0
    assert kept_range(entries, 1) == range(1, 1)


def example(lines) -> tuple[SessionTree, dict]:
    entries = [decode_entry(line) for line in lines]
    heads = [EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp) for entry in entries]
    return SessionTree.from_heads(heads), {entry.id: entry for entry in entries}


def texts(context) -> list[str]:
    return [getattr(m, "summary", None) or text_of(m.content) for m in context.messages]


def example_a():
    return example(
        [
            record("model_change", "m1", None, 1, provider="anthropic", modelId="claude-sonnet-4-5"),
            user_record("u1", "m1", "one", 2),
            answer_record("a1", "u1", "two", 3),
            record("label", "l1", "a1", 4, targetId="a1", label="base"),
            user_record("u2", "l1", "try A", 5),
            record("branch_summary", "b1", "a1", 6, fromId="a1", summary="A failed"),
            user_record("u3", "b1", "try B", 7),
            record("compaction", "c1", "u3", 8, summary="S", firstKeptEntryId="u3", tokensBefore=9000),
            user_record("u4", "c1", "next", 9),
        ]
    )


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        ("u4", ["S", "try B", "next"]),
        ("u2", ["one", "two", "try A"]),
        ("u3", ["one", "two", "A failed", "try B"]),
    ],
)
def test_worked_example_a(leaf, expected):
    tree, entries = example_a()
    assert texts(build_session_context([entries[head.id] for head in tree.path(leaf)])) == expected


def test_worked_example_a_has_the_counts_of_the_page():
    tree, _ = example_a()
    assert (len(tree), tree.roots, tree.leaves, tree.longest_path) == (9, ("m1",), ("u2", "u4"), 7)
    assert tree.children("a1") == ("l1", "b1")


def test_worked_example_e():
    tree, entries = example(
        [
            user_record("u1", None, "one"),
            record("thinking_level_change", "t1", "u1", 2, thinkingLevel="high"),
            answer_record("a1", "t1", "two", 3),
            user_record("u9", None, "again", 4),
        ]
    )
    assert len(tree.roots) == 2
    context = build_session_context([entries[head.id] for head in tree.path()])
    assert texts(context) == ["again"]
    assert context.thinking_level is None
    assert [head.id for head in tree.path("a1")] == ["u1", "t1", "a1"]


call_ids = st.sampled_from(["c1", "c2", "c3"])
parts = st.one_of(
    st.just(u("user")),
    st.builds(
        lambda calls: a("text", calls=[call("read", call_id) for call_id in calls]),
        st.lists(call_ids, max_size=3),
    ),
    st.builds(lambda call_id: t("result", call_id), call_ids),
    st.just(custom("note")),
    st.just(branch_summary("B")),
    st.builds(
        compaction,
        st.sampled_from(["S", ""]),
        st.sampled_from(["e1", "e3", "e9", "gone", KEEP_NOTHING, None]),
    ),
    st.builds(edit, st.sampled_from(["e1", "e2", "e4"]), st.sampled_from(["new", None])),
    st.just(state("reset_boundary")),
    st.just(state("model_change", model="a/b")),
)
paths = st.lists(parts, max_size=14).map(lambda items: path(*items))


@given(paths)
def test_rebuilding_gives_the_same_again_and_changes_nothing(entries):
    before = copy.deepcopy(entries)
    assert build_session_context(entries) == build_session_context(entries)
    assert entries == before


@given(paths)
def test_every_call_has_its_result_and_every_result_its_call(entries):
    messages = build_session_context(entries).messages
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            later = [m.tool_call_id for m in messages[index:] if isinstance(m, ToolResultMessage)]
            assert all(item.id in later for item in tool_calls_of(message))
        if isinstance(message, ToolResultMessage):
            earlier = [
                c.id for m in messages[:index] if isinstance(m, AssistantMessage) for c in tool_calls_of(m)
            ]
            assert message.tool_call_id in earlier


@given(paths)
def test_at_most_one_summary_and_it_comes_first(entries):
    places = [
        i for i, m in enumerate(build_session_context(entries).messages) if isinstance(m, CompactionSummary)
    ]
    assert places in ([], [0])


@given(paths)
def test_ids_stay_parallel_and_are_on_the_path(entries):
    context = build_session_context(entries)
    assert len(context.entry_ids) == len(context.messages)
    assert set(context.entry_ids) <= {entry.id for entry in entries}


@given(paths)
def test_no_user_message_after_the_boundary_is_lost(entries):
    index = effective_compaction(entries)
    resets = [i for i, entry in enumerate(entries) if entry.type == "reset_boundary"]
    dropped = {e.target_id for e in entries if e.type == "context_edit" and e.replacement is None}
    start = max([-1 if index is None else index, *resets])
    expected = [
        entry.id
        for entry in entries[start + 1 :]
        if isinstance(entry, MessageEntry)
        and isinstance(entry.message, UserMessage)
        and entry.id not in dropped
    ]
    context = build_session_context(entries)
    users = [
        i for i, m in zip(context.entry_ids, context.messages, strict=True) if isinstance(m, UserMessage)
    ]
    assert users[len(users) - len(expected) :] == expected


def test_stop_reason_of_answers_does_not_matter():
    entries = path(u("1"), a("half", stop=StopReason.ABORTED), u("2"))
    assert shown(build_session_context(entries)) == ["e1", "e2", "e3"]


def test_edited_answer_loses_the_data_that_repeats_what_it_said():
    entries = path(u("hi"), a("long", provider_payload={"items": ["long"]}), edit("e2", "short"))
    answer = build_session_context(entries).messages[1]
    assert (answer.content, answer.provider_payload) == ((TextBlock("short"),), None)
