import json
from dataclasses import replace

import pytest

from musepi_tui.providers.types import Credentials, Model, Request, ThinkingLevel, ToolSpec
from musepi_tui.providers.wire.openai_chat_encode import encode_request
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

PLAIN = Model("proxy", "m", "openai-completions", "https://proxy.example/v1/")
OPENAI = Model("openai", "gpt-x", "openai-completions", "https://api.openai.com/v1", reasoning=True)
TOOLS = (ToolSpec("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
KEY = Credentials("k", "--api-key")
IMAGE = ImageBlock("QUJD", "image/png")


def encode(*messages, model=PLAIN, credentials=KEY, **fields):
    request = Request(fields.pop("system", "You help."), messages or (UserMessage("hi"),), **fields)
    return encode_request(model, credentials, request)


def body(*messages, **fields):
    return encode(*messages, **fields).body


def vendor(name, base_url="https://x.example/v1", **fields):
    return Model(name, fields.pop("id", "m"), "openai-completions", base_url, **fields)


def answer(*content, model=PLAIN, **fields):
    return AssistantMessage(
        tuple(content), model.api, model.provider, model.id, StopReason.TOOL_USE, **fields
    )


def turn(model=PLAIN):
    call = ToolCallBlock("call_1", "read", {"path": "é"})
    return UserMessage("a"), answer(call, model=model), ToolResultMessage("call_1", "read", (TextBlock("x"),))


def test_unknown_server_gets_the_plain_form():
    sent = encode(tools=TOOLS)
    assert sent.url == "https://proxy.example/v1/chat/completions"
    assert sent.headers["authorization"] == "Bearer k"
    assert set(sent.body) == {"model", "messages", "stream", "stream_options", "tools", "max_tokens"}
    assert sent.body["messages"] == [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "hi"},
    ]
    assert "strict" not in sent.body["tools"][0]["function"]


def test_openai_gets_its_own_fields():
    sent = body(model=OPENAI, tools=TOOLS, thinking=ThinkingLevel.HIGH, session_id="s" * 80)
    assert sent["messages"][0]["role"] == "developer"
    assert sent["store"] is False
    assert "max_completion_tokens" in sent
    assert "max_tokens" not in sent
    assert sent["reasoning_effort"] == "high"
    assert sent["prompt_cache_key"] == "s" * 64
    assert sent["tools"][0]["function"]["strict"] is False
    assert body(model=replace(OPENAI, reasoning=False))["messages"][0]["role"] == "system"


def test_key_may_stand_in_another_header():
    azure = vendor("azure", "https://x.openai.azure.com/openai/v1")
    assert encode(model=azure).headers["api-key"] == "k"
    assert "authorization" not in encode(model=azure).headers
    assert "authorization" not in encode(credentials=Credentials(None, "none needed")).headers


def test_calls_and_results_are_paired():
    messages = body(*turn())["messages"]
    assert messages[2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "é"}'}}
        ],
    }
    assert messages[3] == {"role": "tool", "tool_call_id": "call_1", "content": "x"}


def test_images_of_results_follow_all_results_as_one_user_message():
    model = replace(PLAIN, input=("text", "image"))
    calls = [ToolCallBlock(name, "read", {}) for name in ("a", "b")]
    sent = body(
        UserMessage((TextBlock("look"), IMAGE)),
        answer(*calls),
        ToolResultMessage("a", "read", (IMAGE,)),
        ToolResultMessage("b", "read", (TextBlock(""),)),
        model=model,
    )["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "user"]
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert sent[1]["content"] == [{"type": "text", "text": "look"}, part]
    assert sent[4]["content"] == "(no tool output)"
    assert sent[5]["content"][1:] == [part]


def test_answer_without_text_and_calls_is_dropped():
    sent = body(UserMessage("a"), answer(ThinkingBlock("t", "reasoning")), UserMessage("b"))["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "user"]


def test_reasoning_goes_back_under_the_name_it_came_in():
    details = [{"type": "reasoning.text", "text": "t", "index": 0, "signature": "s"}]
    message = answer(
        ThinkingBlock("t", "reasoning"), TextBlock("b"), provider_payload={"reasoning_details": details}
    )
    sent = body(UserMessage("a"), message)["messages"][2]
    assert sent == {"role": "assistant", "content": "b", "reasoning": "t", "reasoning_details": details}
    foreign = body(UserMessage("a"), message, model=replace(PLAIN, id="other"))["messages"][2]
    assert foreign == {"role": "assistant", "content": "t\n\nb"}


def test_deepseek_always_gets_reasoning_content_back():
    model = vendor("deepseek", reasoning=True)
    sent = body(UserMessage("a"), answer(TextBlock("b"), model=model), model=model)["messages"][2]
    assert sent["reasoning_content"] == ""
    message = answer(ThinkingBlock("t", "reasoning_content"), TextBlock("b"), model=model)
    assert body(UserMessage("a"), message, model=model)["messages"][2]["reasoning_content"] == "t"


def test_mistral_gets_names_short_ids_and_a_bridge():
    model = vendor("mistral")
    sent = body(*turn(model), UserMessage("b"), model=model)["messages"]
    assert [message["role"] for message in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert sent[2]["content"] == ""
    assert sent[3]["name"] == "read"
    assert len(sent[3]["tool_call_id"]) == 9
    assert sent[3]["tool_call_id"] == sent[2]["tool_calls"][0]["id"]


@pytest.mark.parametrize(
    ("model", "level", "expected"),
    [
        (OPENAI, "off", {}),
        (replace(OPENAI, thinking_levels={"off": "none"}), "off", {"reasoning_effort": "none"}),
        (replace(OPENAI, thinking_levels={"minimal": None}), "minimal", {"reasoning_effort": "low"}),
        (replace(OPENAI, reasoning=False), "high", {}),
        (vendor("openrouter", reasoning=True), "low", {"reasoning": {"effort": "low"}}),
        (vendor("openrouter", reasoning=True), "off", {"reasoning": {"effort": "none"}}),
        (
            vendor("deepseek", reasoning=True),
            "high",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
        (vendor("deepseek", reasoning=True), "off", {"thinking": {"type": "disabled"}}),
        (vendor("moonshot", reasoning=True), "high", {"thinking": {"type": "enabled"}}),
        (
            vendor("zai", reasoning=True),
            "high",
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "high"},
        ),
        (vendor("zai", reasoning=True), "off", {"thinking": {"type": "disabled"}}),
        (vendor("qwen", reasoning=True), "high", {"enable_thinking": True}),
        (vendor("together", reasoning=True), "off", {"reasoning": {"enabled": False}}),
        (
            replace(PLAIN, reasoning=True, compat={"thinkingFormat": "qwen-chat-template"}),
            "off",
            {"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}},
        ),
        (
            replace(PLAIN, reasoning=True, compat={"thinkingFormat": "string-thinking"}),
            "low",
            {"thinking": "low"},
        ),
        (replace(PLAIN, reasoning=True, compat={"supportsReasoningEffort": False}), "low", {}),
    ],
)
def test_thinking_takes_the_form_of_the_vendor(model, level, expected):
    names = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs")
    sent = body(model=model, thinking=ThinkingLevel(level))
    assert {name: sent[name] for name in names if name in sent} == expected


def test_tools_stay_where_none_cannot_be_said():
    assert body(tools=TOOLS, tool_choice="none")["tool_choice"] == "none"
    model = vendor("deepseek")
    sent = body(*turn(model), model=model, tools=TOOLS, tool_choice="none")
    assert "tool_choice" not in sent
    assert sent["tools"] == body(*turn(model), model=model, tools=TOOLS)["tools"]


def test_a_request_on_the_side_uses_the_cache_of_its_session_under_an_id_of_its_own():
    model = replace(PLAIN, compat={"supportsPromptCacheKey": True, "sessionAffinity": "default"})
    sent = encode(model=model, session_id="side", cache_key="live")
    assert sent.body["prompt_cache_key"] == "live"
    assert sent.headers["x-session-affinity"] == "side"


@pytest.mark.parametrize(
    ("name", "expected"), [("proxy", []), ("qwen", None), ("vllm", None), ("openai", None)]
)
def test_history_with_calls_but_no_tools_sends_an_empty_list_where_allowed(name, expected):
    model = vendor(name)
    assert body(*turn(model), model=model).get("tools") == expected


def test_developer_message_becomes_a_user_message_where_the_role_is_unknown():
    assert body(UserMessage("a"), DeveloperMessage("note"))["messages"][-1] == {
        "role": "user",
        "content": "note",
    }
    assert body(DeveloperMessage("note"), model=OPENAI)["messages"][-1]["role"] == "developer"


def test_strict_templates_get_neighbouring_user_messages_as_one():
    model = vendor("llamacpp", "http://127.0.0.1:8080/v1")
    sent = body(UserMessage("a"), UserMessage("b"), model=model)["messages"]
    assert sent[1:] == [{"role": "user", "content": "a\n\nb"}]


def test_openrouter_marks_the_cache_for_anthropic_models_only():
    model = vendor("openrouter", id="anthropic/claude-x")
    sent = body(UserMessage("a"), UserMessage("b"), model=model, tools=TOOLS, session_id="s1")
    mark = {"type": "ephemeral"}
    assert sent["messages"][0]["content"][0]["cache_control"] == mark
    assert sent["tools"][-1]["cache_control"] == mark
    assert sent["messages"][-1]["content"][-1]["cache_control"] == mark
    assert json.dumps(sent).count("cache_control") == 3
    assert encode(model=model, session_id="s1").headers["x-session-id"] == "s1"
    assert "cache_control" not in json.dumps(body(model=vendor("openrouter", id="z-ai/glm"), tools=TOOLS))


def test_no_internal_field_is_ever_sent():
    sent = body(
        UserMessage("a", extra={"inner": 1}),
        answer(TextBlock("b", signature="s"), ToolCallBlock("c", "read", {}, "sig"), timestamp_ms=4),
        ToolResultMessage("c", "read", (TextBlock("x"),), details={"d": 1}, useless=True, pruned_at_ms=4),
    )
    text = json.dumps(sent)
    for name in ("inner", "useless", "pruned", "details", "timestamp", "thought", "signature"):
        assert name not in text
