import json
from dataclasses import replace

import pytest

from musepi_tui.providers.protocol import build_message
from musepi_tui.providers.reader import ResponseReader
from musepi_tui.providers.registry import ModelRegistry
from musepi_tui.providers.types import Credentials, Model, Request, ThinkingLevel, ToolSpec
from musepi_tui.providers.wire.anthropic_decode import AnthropicDecoder
from musepi_tui.providers.wire.anthropic_encode import encode_request
from musepi_tui.session.messages import (
    AssistantMessage,
    DeveloperMessage,
    ImageBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from tests.support.server import anthropic_reply

MODEL = Model(
    "proxy",
    "claude-x",
    "anthropic-messages",
    "https://proxy.example/v1/",
    input=("text", "image"),
    reasoning=False,
)
KEY = Credentials("sk-ant-api-1", "--api-key")
TOOLS = (
    ToolSpec(
        "read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    ),
    ToolSpec("ls", "Lists.", {"type": "object"}),
)
MARK = {"type": "ephemeral"}


def encode(*messages, model=MODEL, credentials=KEY, **fields):
    request = Request(fields.pop("system", "You help."), messages or (UserMessage("hi"),), **fields)
    return encode_request(model, credentials, request)


def body(*messages, **fields):
    return encode(*messages, **fields).body


def builtin(model_id, tmp_path):
    registry = ModelRegistry.load(tmp_path, {"ANTHROPIC_API_KEY": "k"})
    return registry.find("anthropic", model_id)


def answer(*content, **fields):
    return AssistantMessage(
        tuple(content), MODEL.api, MODEL.provider, MODEL.id, StopReason.TOOL_USE, **fields
    )


def test_url_drops_a_version_at_the_end_of_the_base():
    assert encode().url == "https://proxy.example/v1/messages"
    assert encode(model=replace(MODEL, base_url="https://a.example")).url == "https://a.example/v1/messages"


@pytest.mark.parametrize(
    ("credentials", "name", "value"),
    [
        (KEY, "x-api-key", "sk-ant-api-1"),
        (Credentials("sk-ant-oat-1", "x"), "authorization", "Bearer sk-ant-oat-1"),
        (Credentials("abc", "x", bearer=True), "authorization", "Bearer abc"),
    ],
)
def test_key_stands_in_the_right_header(credentials, name, value):
    headers = encode(credentials=credentials).headers
    assert headers[name] == value
    assert ("x-api-key" in headers) is (name == "x-api-key")
    assert headers["anthropic-version"] == "2023-06-01"
    assert "anthropic-beta" not in headers


def test_headers_of_the_row_override_and_remove():
    model = replace(MODEL, headers={"Anthropic-Version": "2099-01-01", "accept": None, "x-extra": "1"})
    headers = encode(model=model).headers
    assert headers["anthropic-version"] == "2099-01-01"
    assert headers["x-extra"] == "1"
    assert "accept" not in headers


def test_cache_marks_stand_on_tools_system_and_the_last_two_messages():
    sent = body(UserMessage("a"), answer(TextBlock("b")), UserMessage("c"), tools=TOOLS)
    assert sent["tools"][-1]["cache_control"] == MARK
    assert "cache_control" not in sent["tools"][0]
    assert sent["system"] == [{"type": "text", "text": "You help.", "cache_control": MARK}]
    marked = [message["content"][-1].get("cache_control") for message in sent["messages"]]
    assert marked == [None, MARK, MARK]
    assert json.dumps(sent).count("cache_control") == 4


def test_cache_mark_never_stands_on_thinking():
    sent = body(UserMessage("a"), answer(TextBlock("b"), ThinkingBlock("t", "sig")), UserMessage("c"))
    thinking = sent["messages"][1]["content"]
    assert thinking[1] == {"type": "thinking", "thinking": "t", "signature": "sig"}
    assert thinking[0]["cache_control"] == MARK


def test_long_last_message_gets_a_second_mark_inside():
    calls = [ToolCallBlock(f"c{number}", "ls", {}) for number in range(30)]
    results = [ToolResultMessage(f"c{number}", "ls", (TextBlock("x"),)) for number in range(30)]
    sent = body(UserMessage("a"), answer(*calls), *results, tools=TOOLS)
    marks = ["cache_control" in block for block in sent["messages"][-1]["content"]]
    assert [index for index, is_marked in enumerate(marks) if is_marked] == [11, 29]
    assert json.dumps(sent).count("cache_control") == 4


def test_cache_retention_changes_the_marks(tmp_path):
    assert "cache_control" not in json.dumps(body(tools=TOOLS, cache_retention="none"))
    long = body(model=builtin("claude-sonnet-5", tmp_path), cache_retention="long")
    assert long["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert body(cache_retention="long")["system"][0]["cache_control"] == MARK


def test_results_of_a_turn_stand_in_one_user_message_before_the_text():
    sent = body(
        UserMessage("a"),
        answer(ToolCallBlock("x|1", "read", {"path": "p"}), ToolCallBlock("y", "ls", {})),
        ToolResultMessage("y", "ls", (TextBlock(""),)),
        ToolResultMessage(
            "x|1", "read", (TextBlock("no"),), is_error=True, details={"secret": 1}, useless=True
        ),
        UserMessage("b"),
        cache_retention="none",
    )
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][1]["content"] == [
        {"type": "tool_use", "id": "x_1", "name": "read", "input": {"path": "p"}},
        {"type": "tool_use", "id": "y", "name": "ls", "input": {}},
    ]
    assert sent["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "x_1", "content": "no", "is_error": True},
        {"type": "tool_result", "tool_use_id": "y", "content": "(no tool output)"},
        {"type": "text", "text": "b"},
    ]


def test_no_internal_field_is_ever_sent():
    sent = body(
        UserMessage("a", timestamp_ms=5, extra={"inner": 1}),
        answer(
            TextBlock("b", signature="s", extra={"inner": 1}),
            ToolCallBlock("c", "ls", {}, "sig"),
            timestamp_ms=7,
        ),
        ToolResultMessage("c", "ls", (TextBlock("x"),), details={"d": 1}, useless=True, pruned_at_ms=4),
        tools=TOOLS,
    )
    text = json.dumps(sent)
    for name in ("inner", "useless", "pruned", "details", "timestamp", "provider", "thought"):
        assert name not in text


def test_images_are_sent_in_messages_and_results():
    image = ImageBlock("QUJD", "image/png")
    sent = body(UserMessage((TextBlock("look"), image)), answer(ToolCallBlock("c", "read", {})),
                ToolResultMessage("c", "read", (image,)), cache_retention="none")  # fmt: skip
    source = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    assert sent["messages"][0]["content"][1] == source
    assert sent["messages"][2]["content"][0]["content"] == [source]


def test_developer_messages_and_blank_texts():
    sent = body(UserMessage((TextBlock(" "), TextBlock("a"))), DeveloperMessage("note"), system=" ")
    assert "system" not in sent
    assert [block["text"] for block in sent["messages"][0]["content"]] == ["a", "note"]


def test_tool_choice_none_keeps_the_tools():
    sent = body(tools=TOOLS, tool_choice="none")
    assert sent["tool_choice"] == {"type": "none"}
    assert len(sent["tools"]) == 2
    assert sent["tools"][1]["input_schema"] == {"type": "object", "properties": {}}
    assert "tool_choice" not in body(tools=TOOLS)
    assert "temperature" not in sent


@pytest.mark.parametrize(
    ("window", "max_tokens", "asked", "text", "expected"),
    [
        (200_000, 64_000, None, "hi", 64_000),
        (200_000, 64_000, 500, "hi", 500),
        (200_000, 64_000, None, "x" * 600_000, 200_000 - 150_003 - 4_096),
        (200_000, 64_000, None, "x" * 900_000, 1),
        (100_000, 100_000, None, "hi", 32_768),
        (None, 64_000, None, "x" * 900_000, 64_000),
    ],
)
def test_max_tokens_fits_the_window(window, max_tokens, asked, text, expected):
    model = replace(MODEL, context_window=window, max_tokens=max_tokens)
    assert body(UserMessage(text), model=model, max_tokens=asked)["max_tokens"] == expected


@pytest.mark.parametrize(
    ("model_id", "level", "expected"),
    [
        ("claude-haiku-4-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("claude-haiku-4-5", "max", {"thinking": {"type": "enabled", "budget_tokens": 16384}}),
        (
            "claude-sonnet-4-6",
            "minimal",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "claude-sonnet-4-6",
            "xhigh",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        ),
        (
            "claude-opus-4-8",
            "xhigh",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
        ),
        ("claude-opus-4-8", "off", {"thinking": {"type": "disabled"}}),
        ("claude-fable-5", "off", {}),
    ],
)
def test_thinking_takes_the_form_of_the_family(tmp_path, model_id, level, expected):
    sent = body(model=builtin(model_id, tmp_path), thinking=ThinkingLevel(level))
    found = {name: sent[name] for name in ("thinking", "output_config") if name in sent}
    assert found == expected


def test_budget_is_added_to_the_asked_limit_and_shrinks_when_there_is_no_room(tmp_path):
    haiku = builtin("claude-haiku-4-5", tmp_path)
    sent = body(model=haiku, thinking=ThinkingLevel.MEDIUM, max_tokens=2000)
    assert (sent["max_tokens"], sent["thinking"]["budget_tokens"]) == (10_192, 8_192)
    small = replace(haiku, max_tokens=4000)
    sent = body(model=small, thinking=ThinkingLevel.HIGH)
    assert (sent["max_tokens"], sent["thinking"]["budget_tokens"]) == (4000, 2976)
    tiny = replace(haiku, max_tokens=1500)
    assert body(model=tiny, thinking=ThinkingLevel.HIGH)["thinking"] == {"type": "disabled"}


def test_interleaved_thinking_is_asked_for_only_where_it_needs_a_beta(tmp_path):
    haiku = builtin("claude-haiku-4-5", tmp_path)
    with_tools = encode(model=haiku, thinking=ThinkingLevel.LOW, tools=TOOLS)
    assert with_tools.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert "anthropic-beta" not in encode(model=haiku, thinking=ThinkingLevel.LOW).headers
    adaptive = builtin("claude-opus-4-8", tmp_path)
    assert "anthropic-beta" not in encode(model=adaptive, thinking=ThinkingLevel.LOW, tools=TOOLS).headers


def test_lone_surrogates_are_not_sent():
    sent = body(
        UserMessage("a\ud800b"), answer(ToolCallBlock("c", "ls", {"p": "x\udc00"})), cache_retention="none"
    )
    json.dumps(sent, ensure_ascii=False).encode("utf-8", "replace")
    assert sent["messages"][0]["content"][0]["text"] == "a\ufffdb"


def test_answer_comes_back_as_the_blocks_that_were_received():
    reply = anthropic_reply("Here.", thinking="Let me see.", tools=[("read", {"path": "a"})])
    reader = ResponseReader(AnthropicDecoder(MODEL))
    reader.feed(reply.body)
    reader.finish()
    message = build_message(reader.decoder.draft, MODEL, 0)
    sent = body(UserMessage("a"), message, cache_retention="none")
    assert sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Here."},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
    ]
