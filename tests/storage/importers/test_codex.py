import json

import pytest

from musepi_tui.session.entries import KEEP_NOTHING
from musepi_tui.session.messages import ImageBlock, StopReason, TextBlock, ThinkingBlock, Usage
from musepi_tui.session.rebuild import read_state
from tests.support.imports import META, Import, assert_sound, codex, codex_text, item, marked, tokens

PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="


def call(call_id, arguments='{"cmd":"ls"}'):
    return item("function_call", name="shell", arguments=arguments, call_id=call_id)


def output(call_id, value="listed"):
    return item("function_call_output", call_id=call_id, output=value)


def turn(model, effort):
    return codex("turn_context", model=model, effort=effort, cwd="/p")


def test_items_up_to_the_next_output_are_one_answer(tmp_path):
    done = Import(
        tmp_path,
        META,
        codex_text("user", "hello"),
        marked("hello"),
        turn("gpt-x", "high"),
        item(
            "reasoning", summary=[{"type": "summary_text", "text": "hm"}], content=None, encrypted_content="E"
        ),
        codex_text("assistant", "looking"),
        call("c1"),
        call("c2"),
        tokens(100, 60, 7, 107),
        output("c2", "two"),
        output("c1", "one"),
        codex_text("assistant", "found it"),
        tokens(200, 150, 9, 316),
    )
    assert done.path_roles == [
        "user",
        "model_change",
        "thinking_level_change",
        "assistant",
        "toolResult",
        "toolResult",
        "assistant",
    ]
    _, first, two, one, last = done.messages
    thinking, said, *calls = first.content
    assert (thinking.thinking, json.loads(thinking.signature)["encrypted_content"]) == ("hm", "E")
    assert json.loads(thinking.signature)["type"] == "reasoning"
    assert said == TextBlock("looking")
    assert [(block.id, block.name, block.arguments) for block in calls] == [
        ("c1", "shell", {"cmd": "ls"}),
        ("c2", "shell", {"cmd": "ls"}),
    ]
    assert (first.api, first.provider, first.model) == ("openai-responses", "openai", "gpt-x")
    assert (first.stop_reason, last.stop_reason) == (StopReason.TOOL_USE, StopReason.STOP)
    assert (two.tool_call_id, two.tool_name, two.content) == ("c2", "shell", (TextBlock("two"),))
    assert one.tool_call_id == "c1"
    assert first.usage == Usage(40, 7, 60, 0, 107)
    assert last.usage == Usage(50, 9, 150, 0, 209)
    assert_sound(done.done)


def test_usage_that_comes_behind_the_results_still_finds_its_answer(tmp_path):
    done = Import(tmp_path, META, call("c"), output("c"), tokens(10, 0, 1, 11), codex_text("assistant", "ok"))
    assert done.messages[0].usage == Usage(10, 1, 0, 0, 11)
    assert done.messages[2].usage.total_tokens == 0


def test_equal_totals_count_once_and_empty_counts_not_at_all(tmp_path):
    nothing = codex("event_msg", inner="token_count", info=None)
    lines = (
        call("c"),
        tokens(10, 0, 1, 11),
        output("c"),
        codex_text("assistant", "ok"),
        nothing,
        tokens(10, 0, 1, 11),
    )
    done = Import(tmp_path, META, *lines)
    assert [message.usage.total_tokens for message in done.messages[::2]] == [11, 0]


def test_preambles_are_left_out_by_the_marks(tmp_path):
    done = Import(
        tmp_path,
        META,
        codex_text("user", "<environment_context>x</environment_context>"),
        codex_text("user", "something the program added"),
        codex_text("developer", "rules"),
        codex_text("user", "the question"),
        marked("the question"),
        codex_text("user", "added behind it"),
        codex_text("assistant", "yes"),
    )
    assert [message.content for message in done.messages] == [
        (TextBlock("the question"),),
        (TextBlock("yes"),),
    ]
    assert done.done.skipped == {"preamble": 3, "message/developer": 1}


def test_without_marks_only_known_preambles_are_left_out(tmp_path):
    texts = ("# AGENTS.md instructions", "<user_instructions>x", " <environment_context>x", "the question")
    done = Import(tmp_path, META, *(codex_text("user", words) for words in texts))
    assert [message.content for message in done.messages] == [(TextBlock("the question"),)]


def test_mark_without_its_item_is_the_prompt_once(tmp_path):
    done = Import(
        tmp_path,
        META,
        marked("first", images=[PNG]),
        codex_text("user", "first"),
        codex_text("assistant", "ok"),
    )
    assert (done.roles, done.done.skipped) == (["user", "assistant"], {})
    assert done.messages[0].content[1] == ImageBlock(PNG.partition(",")[2], "image/png")


def test_pictures_lose_their_tags_and_foreign_addresses_are_not_fetched(tmp_path):
    parts = [
        {"type": "input_text", "text": "see"},
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": PNG},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_image", "image_url": "https://127.0.0.1/x.png"},
    ]
    done = Import(tmp_path, META, item("message", role="user", content=parts), marked("see"))
    shown = done.messages[0].content
    assert shown[0] == TextBlock("see")
    assert shown[1].mime_type == "image/png"
    assert shown[2:] == (TextBlock("[image not imported]"),)
    assert (done.done.counts["image"], done.done.skipped["image"]) == (1, 1)


@pytest.mark.parametrize(
    ("record", "name", "arguments"),
    [
        (call("c", "{broken"), "shell", {"arguments": "{broken"}),
        (call("c", "[1]"), "shell", {"arguments": "[1]"}),
        (call("c", ""), "shell", {}),
        (call("c", '{"a":' + "[" * 300 + "]" * 300 + "}"), "shell", None),
        (
            item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c"),
            "apply_patch",
            {"input": "*** Begin"},
        ),
        (
            item("web_search_call", action={"type": "search", "query": "q"}),
            "web_search",
            {"type": "search", "query": "q"},
        ),
        (
            item("local_shell_call", call_id="c", action={"command": ["ls"]}),
            "local_shell",
            {"command": ["ls"]},
        ),
    ],
    ids=["broken", "a list", "empty", "too deep", "custom", "web search", "local shell"],
)
def test_calls(tmp_path, record, name, arguments):
    done = Import(tmp_path, META, record)
    (block,) = done.messages[0].content
    assert block.name == name
    assert block.id
    if arguments is not None:
        assert block.arguments == arguments
    assert_sound(done.done)


@pytest.mark.parametrize(
    ("value", "content", "is_error"),
    [
        ("text", (TextBlock("text"),), False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "x"}], None, False),
        ({"content": "no", "success": False}, (TextBlock("no"),), True),
        (None, (), False),
    ],
    ids=["text", "list", "object", "nothing"],
)
def test_outputs(tmp_path, value, content, is_error):
    result = Import(tmp_path, META, call("c"), output("c", value)).messages[1]
    assert result.content == (
        content if content is not None else (TextBlock("a"), TextBlock("[image not imported]"))
    )
    assert result.is_error is is_error


def test_call_without_output_stays_and_output_without_call_is_left_out(tmp_path):
    done = Import(tmp_path, META, output("nobody"), call("c"))
    assert done.roles == ["assistant"]
    assert done.done.skipped == {"tool result without a call": 1}


def test_settings_change_where_they_change(tmp_path):
    done = Import(
        tmp_path,
        META,
        turn("a", "low"),
        codex_text("assistant", "x"),
        turn("a", "low"),
        turn("a", "none"),
        turn("b", None),
    )
    assert done.roles == [
        "model_change",
        "thinking_level_change",
        "assistant",
        "thinking_level_change",
        "model_change",
    ]
    state = read_state(done.entries)
    assert (state.model, state.thinking_level) == (("openai", "b"), "off")


def test_compaction_keeps_nothing_and_stores_the_new_history(tmp_path):
    history = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": PNG + "A" * 5000}],
        },
        {"type": "compaction", "encrypted_content": "E"},
    ]
    done = Import(
        tmp_path,
        META,
        codex_text("assistant", "one"),
        tokens(90, 0, 10, 100),
        codex("compacted", message="the summary", replacement_history=history),
        codex_text("assistant", "two"),
    )
    assert done.path_roles == ["assistant", "compaction", "assistant"]
    compaction = done.entries[1]
    assert (compaction.summary, compaction.first_kept_entry_id) == ("the summary", KEEP_NOTHING)
    assert compaction.tokens_before == 100
    stored = compaction.preserve_data["codexReplacementHistory"]
    assert stored[1] == history[1]
    assert stored[0]["content"] == [{"type": "input_text", "text": "[image]"}]
    assert_sound(done.done)


def test_compaction_without_a_message_tells_the_new_history(tmp_path):
    history = [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}
        for role, words in (
            ("user", "q"),
            ("assistant", "a"),
            ("user", "<environment_context>"),
            ("developer", "d"),
        )
    ]
    done = Import(
        tmp_path,
        META,
        codex("compacted", message="", replacement_history=history),
        codex("compacted", message=" "),
    )
    assert done.entries[0].summary == "[user] q\n\n[assistant] a"
    assert done.done.skipped == {"compaction without a summary": 1}


def test_bare_items_of_older_rollouts(tmp_path):
    done = Import(
        tmp_path,
        {"id": "old", "timestamp": "2025-05-01T00:00:00.000Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    )
    assert done.roles == ["user", "assistant", "toolResult", "assistant"]
    assert done.done.skipped == {"state": 1}
    assert done.loaded.heads[0].timestamp == "2025-05-01T00:00:00.000Z"
    assert_sound(done.done)


def test_thinking_without_a_signature_is_text(tmp_path):
    done = Import(tmp_path, META, item("reasoning", summary=[{"text": "a"}, {"text": "b"}]))
    assert done.messages[0].content == (ThinkingBlock("a\n\nb"),)
