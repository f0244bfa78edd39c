import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry
from musepi_tui.session.messages import ImageBlock, StopReason, TextBlock, ThinkingBlock, ToolCallBlock, Usage
from musepi_tui.storage.importers.claude_order import arrange
from musepi_tui.storage.importers.claude_records import RecordKind, Sketch
from musepi_tui.storage.importers.source import Place
from musepi_tui.storage.importers.tally import Tally
from tests.support.imports import Import, answered, assert_sound, claude, said, text, tool_result, tool_use

PNG = "iVBORw0KGgoAAAANSUhEUg=="


def progress(uuid, parent):
    return claude("progress", uuid, parent, data={"type": "hook_progress"})


def boundary(uuid, before, **metadata):
    fields = {"subtype": "compact_boundary", "logicalParentUuid": before, "compactMetadata": metadata}
    return claude("system", uuid, None, **fields)


def summary(uuid, parent, words="what happened"):
    return said(uuid, parent, words, isCompactSummary=True)


def test_records_of_one_message_become_one_answer(tmp_path):
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    done = Import(
        tmp_path,
        said("u", None, "hello"),
        answered("a1", "u", thinking, "m", usage={"input_tokens": 3, "output_tokens": 1}),
        answered(
            "a2", "a1", text("hi"), "m", usage={"input_tokens": 3, "output_tokens": 9}, stop_reason="end_turn"
        ),
    )
    user, answer = done.messages
    assert user.content == "hello"
    assert answer.content == (ThinkingBlock("hm", "sig"), TextBlock("hi"))
    assert (answer.api, answer.provider, answer.model) == ("anthropic-messages", "anthropic", "claude-x")
    assert (answer.usage.input, answer.usage.output, answer.usage.total_tokens) == (3, 9, 12)
    assert (answer.stop_reason, answer.response_id) == (StopReason.STOP, "m")
    assert_sound(done.done)


def test_usage_is_mapped_and_never_invented(tmp_path):
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 8,
        "cache_creation": {"ephemeral_1h_input_tokens": 5},
    }
    done = Import(
        tmp_path,
        answered("a", None, text("x"), "m", usage=usage),
        said("u", "a", "more"),
        answered("b", "u", text("y"), "n"),
    )
    first, _, second = done.messages
    assert first.usage == Usage(1, 2, 4, 8, 15, cache_write_1h=5)
    assert (second.usage.input, second.usage.output, second.usage.total_tokens) == (0, 0, 0)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ("end_turn", StopReason.STOP),
        ("stop_sequence", StopReason.STOP),
        ("max_tokens", StopReason.LENGTH),
        ("tool_use", StopReason.TOOL_USE),
        (None, StopReason.STOP),
        ("something new", StopReason.STOP),
    ],
)
def test_stop_reason(tmp_path, stored, expected):
    assert (
        Import(tmp_path, answered("a", None, text("x"), "m", stop_reason=stored)).messages[0].stop_reason
        is expected
    )


def test_results_of_parallel_calls_follow_their_answer_in_file_order(tmp_path):
    done = Import(
        tmp_path,
        said("u", None, "go"),
        answered("a1", "u", tool_use("c1"), "m"),
        progress("p1", "a1"),
        said("r1", "a1", [tool_result("c1", "one")]),
        answered("a2", "p1", tool_use("c2", "Read"), "m"),
        said("r2", "a2", [tool_result("c2", "two", is_error=True)]),
        answered("b", "r1", text("done"), "n"),
    )
    assert done.path_roles == ["user", "assistant", "toolResult", "toolResult", "assistant"]
    _, answer, first, second, _ = done.messages
    assert [block.id for block in answer.content] == ["c1", "c2"]
    assert (first.tool_call_id, first.tool_name, first.content) == ("c1", "Bash", (TextBlock("one"),))
    assert (second.tool_call_id, second.tool_name, second.is_error) == ("c2", "Read", True)
    assert answer.content[0] == ToolCallBlock("c1", "Bash", {"command": "c1"})
    assert done.done.skipped == {"progress": 1}
    assert_sound(done.done)


def test_passed_records_are_taken_out_of_the_chain(tmp_path):
    done = Import(
        tmp_path,
        said("u", None, "one"),
        progress("p1", "u"),
        progress("p2", "p1"),
        answered("a", "p2", text("two"), "m"),
        claude("system", "s", "a", subtype="turn_duration"),
        said("v", "s", "three"),
    )
    assert done.path_roles == ["user", "assistant", "user"]
    assert done.done.skipped == {"progress": 2, "system/turn_duration": 1}


def test_result_blocks_of_one_record_are_several_results(tmp_path):
    done = Import(
        tmp_path,
        answered("a1", None, tool_use("c1"), "m"),
        answered("a2", "a1", tool_use("c2"), "m"),
        said("r", "a2", [tool_result("c2"), tool_result("c1", [text("x")]), text("and now")]),
    )
    assert done.path_roles == ["assistant", "toolResult", "toolResult", "user"]
    assert [message.tool_call_id for message in done.messages[1:3]] == ["c2", "c1"]
    assert done.messages[3].content == (TextBlock("and now"),)


def test_images_of_prompts_and_results_are_carried_over(tmp_path):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no base64!"}}
    linked = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/x.png"}}
    done = Import(
        tmp_path,
        said("u", None, [text("see"), image, broken, linked]),
        answered("a", "u", tool_use("c"), "m"),
        said("r", "a", [tool_result("c", [image])]),
    )
    shown = (TextBlock("see"), ImageBlock(PNG, "image/png"), *[TextBlock("[image not imported]")] * 2)
    assert done.messages[0].content == shown
    assert done.messages[2].content == (ImageBlock(PNG, "image/png"),)
    assert (done.done.counts["image"], done.done.skipped["image"]) == (2, 2)


def test_meta_and_local_commands_are_left_out(tmp_path):
    done = Import(
        tmp_path,
        said("m", None, "<local-command-caveat>x", isMeta=True),
        said("c", "m", "<command-name>/mcp</command-name>"),
        said("o", "c", "<local-command-stdout>ok</local-command-stdout>"),
        claude("system", "s", "o", subtype="local_command", content="x"),
        said("u", "s", "the question"),
    )
    assert done.roles == ["user"]
    assert done.loaded.tree.roots == (done.loaded.heads[0].id,)
    assert done.done.skipped == {"user/meta": 1, "user/local command": 2, "system/local_command": 1}


def test_compaction_has_the_summary_and_hangs_under_the_logical_parent(tmp_path):
    done = Import(
        tmp_path,
        said("u", None, "one"),
        answered("a", "u", text("two"), "m"),
        progress("p", "a"),
        boundary("b", "p", preTokens=4321, trigger="auto"),
        summary("s", "b"),
        said("v", "s", "three"),
    )
    assert done.path_roles == ["user", "assistant", "compaction", "user"]
    compaction = done.entries[2]
    assert isinstance(compaction, CompactionEntry)
    assert (compaction.summary, compaction.tokens_before) == ("what happened", 4321)
    assert (compaction.first_kept_entry_id, compaction.method) == (KEEP_NOTHING, None)
    assert_sound(done.done)


def test_messages_a_compaction_preserved_stay_in_the_context(tmp_path):
    done = Import(
        tmp_path,
        said("u", None, "one"),
        answered("a", "u", text("two"), "m"),
        boundary("b", "a", preTokens=1, preservedMessages={"uuids": ["gone", "a"]}),
        summary("s", "b"),
    )
    assert done.entries[2].first_kept_entry_id == done.entries[1].id
    assert_sound(done.done)


def test_compaction_right_after_another_and_one_without_summary(tmp_path):
    done = Import(
        tmp_path,
        said("u", None, "one"),
        boundary("b1", "u", preTokens=1),
        summary("s1", "b1", "first"),
        boundary("b2", "s1", preTokens=2),
        summary("s2", "b2", "second"),
        said("v", "s2", "two"),
        boundary("b3", "v", preTokens=3),
        said("w", "b3", "three"),
    )
    assert done.path_roles == ["user", "compaction", "compaction", "user", "user"]
    assert done.done.skipped == {"compaction without a summary": 1}
    assert_sound(done.done)


def test_summary_without_a_boundary_is_a_compaction_too(tmp_path):
    done = Import(tmp_path, said("u", None, "one"), summary("s", None, "so far"), said("v", "s", "two"))
    assert done.path_roles == ["user", "compaction", "user"]


def test_true_branches_stay_and_the_last_prompt_names_the_leaf(tmp_path):
    lines = (
        said("u", None, "one"),
        answered("a", "u", text("two"), "m"),
        said("v", "a", "this way"),
        said("w", "a", "that way"),
    )
    note = {"type": "last-prompt", "leafUuid": "v", "sessionId": "c-1"}
    for name, more, expected in (("last", (), "that way"), ("named", (note,), "this way")):
        done = Import(tmp_path, *lines, *more, name=f"{name}.jsonl")
        assert done.path_roles == ["user", "assistant", "user"]
        assert done.loaded.bodies.get(done.loaded.tree.path()[-2]).message.content == expected
        assert len(done.loaded.tree.leaves) == 2


@pytest.mark.parametrize(
    ("notes", "title", "source", "named"),
    [
        ([{"type": "summary", "summary": "S", "leafUuid": "u"}], "S", "auto", False),
        ([{"type": "summary", "summary": "S", "leafUuid": "elsewhere"}], None, None, False),
        (
            [{"type": "ai-title", "aiTitle": "A"}, {"type": "summary", "summary": "S", "leafUuid": "u"}],
            "A",
            "auto",
            False,
        ),
        (
            [{"type": "custom-title", "customTitle": "C"}, {"type": "ai-title", "aiTitle": "A"}],
            "C",
            "user",
            True,
        ),
    ],
    ids=["summary", "summary of another session", "made up", "the person's"],
)
def test_title(tmp_path, notes, title, source, named):
    done = Import(tmp_path, said("u", None, "one"), *({"sessionId": "c-1"} | note for note in notes))
    assert (done.loaded.name, done.loaded.header.title_source) == (title, source)
    assert ("session_info" in done.path_roles) is named


def test_sub_agents_are_left_out_unless_they_are_all_there_is(tmp_path):
    side = said("s", "u", "task", isSidechain=True)
    done = Import(tmp_path, said("u", None, "one"), side)
    assert (done.roles, done.done.skipped) == (["user"], {"sub-agent": 1})
    assert Import(tmp_path, side, name="agent.jsonl").roles == ["user"]


def test_files_beside_the_session_are_counted(tmp_path):
    for name in ("subagents/agent-1.jsonl", "subagents/agent-2.jsonl", "tool-results/x.txt"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(b"x")
    done = Import(tmp_path, said("u", None, "one"))
    assert done.done.skipped == {"subagents file": 2, "tool-results file": 1}
    assert not done.done.path.with_suffix("").exists()


def test_odd_records_are_counted_and_never_fatal(tmp_path):
    done = Import(
        tmp_path,
        b"not json\n",
        said("u", None, "one"),
        said("u", None, "one again"),
        said("e", "u", []),
        claude("attachment", "t", "u", attachment={"type": "x"}),
        {"type": "brand-new", "sessionId": "c-1"},
        said("r", "u", [tool_result("nobody asked")]),
        answered("a", "t", {"type": "server_tool_use", "id": "x"}, "m"),
        said("z", "a", [{"type": "document", "source": {}}]),
        claude("assistant", "n", "z", message=None),
        b'{"type":"user","uuid":"torn',
    )
    assert done.roles == ["user", "assistant", "user", "assistant"]
    assert done.done.skipped == {
        "unreadable line": 2,
        "repeated record": 1,
        "user/empty": 1,
        "attachment": 1,
        "brand-new": 1,
        "tool result without a call": 1,
        "assistant/server_tool_use": 1,
        "document": 1,
    }
    assert_sound(done.done)


def test_failed_request_is_a_failed_answer(tmp_path):
    failed = answered("a", None, text("API Error: 529"), "m") | {"isApiErrorMessage": True}
    message = Import(tmp_path, failed).messages[0]
    assert (message.stop_reason, message.error_message) == (StopReason.ERROR, "API Error: 529")


names = st.sampled_from([f"r{index}" for index in range(8)])


@st.composite
def sketches(draw):
    kind = draw(st.sampled_from(RecordKind))
    return Sketch(
        kind,
        draw(names),
        draw(st.none() | names | st.just("gone")),
        Place(draw(st.integers(0, 99)), 1),
        "x",
        message_id=draw(st.none() | st.sampled_from(["m", "n"])),
        calls=tuple(draw(st.lists(st.sampled_from("cd"), max_size=2))) if kind is RecordKind.ANSWER else (),
        answers=tuple(enumerate(draw(st.lists(st.sampled_from("cd"), max_size=2)))),
        kept=tuple(draw(st.lists(names, max_size=2))),
        has_words=draw(st.booleans()),
    )


@given(st.lists(sketches(), max_size=14), st.none() | names)
@settings(max_examples=300)
def test_every_unit_comes_once_and_after_its_parent(records, active):
    found = arrange(records, active, Tally())
    seen = set()
    for unit in found.units:
        assert id(unit) not in seen
        assert unit.parent is None or id(unit.parent) in seen
        seen.add(id(unit))
    assert found.leaf is None or id(found.leaf) in seen
    answered_calls = sum(len(unit.results) for unit in found.units)
    assert answered_calls <= len("cd")
