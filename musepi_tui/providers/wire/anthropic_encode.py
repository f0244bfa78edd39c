"""Anthropic Messages: requests (providers 1.1 to 1.4)."""

from collections.abc import Mapping, Sequence
from typing import Any

from musepi_tui.providers.compat import Compat, compat_of
from musepi_tui.providers.draft import clean_surrogates
from musepi_tui.providers.output_limit import estimate_input, output_limit
from musepi_tui.providers.protocol import WireRequest, merge_headers
from musepi_tui.providers.replay import NO_OUTPUT, ReplayRules, prepare_history
from musepi_tui.providers.thinking import BUDGET_TOKENS, clamp_level, vendor_word
from musepi_tui.providers.types import Credentials, Model, Request, ThinkingLevel
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    DeveloperMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)

API = "anthropic-messages"
VERSION = "2023-06-01"
INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"
OAUTH_MARK = "sk-ant-oat"
LOOK_BACK_BLOCKS = 18
"""A cache mark finds earlier entries about 20 blocks back (providers 1.3): longer messages get one inside."""
MIN_BUDGET_TOKENS = 1024
_MARKABLE = frozenset({"text", "image", "tool_use", "tool_result"})

Json = dict[str, Any]


def encode_request(model: Model, credentials: Credentials, request: Request) -> WireRequest:
    """The request for ``POST {base}/v1/messages``."""
    compat = compat_of(model)
    body = _build_body(model, compat, request)
    base = model.base_url.rstrip("/").removesuffix("/v1")
    return WireRequest(f"{base}/v1/messages", _build_headers(model, compat, credentials, body), body)


def _build_headers(model: Model, compat: Compat, credentials: Credentials, body: Json) -> dict[str, str]:
    defaults: dict[str, str | None] = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "anthropic-version": VERSION,
    }
    if credentials.key is not None:
        if credentials.bearer or OAUTH_MARK in credentials.key:
            defaults["authorization"] = f"Bearer {credentials.key}"
        else:
            defaults["x-api-key"] = credentials.key
    betas = list(compat.betas)
    if body.get("thinking", {}).get("type") == "enabled" and body.get("tools"):
        betas.append(INTERLEAVED_BETA)
    if betas:
        defaults["anthropic-beta"] = ",".join(dict.fromkeys(betas))
    return merge_headers(defaults, model.headers)


def _build_body(model: Model, compat: Compat, request: Request) -> Json:
    history = prepare_history(request.messages, model, ReplayRules("anthropic"))
    mark = _cache_mark(compat, request)
    body: Json = {"model": model.id, "stream": True}
    if request.system.strip():
        body["system"] = [_marked({"type": "text", "text": clean_surrogates(request.system)}, mark)]
    body["messages"] = _encode_messages(history)
    if mark is not None:
        _mark_messages(body["messages"], mark)
    if request.tools:
        tools = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": _object_schema(tool.parameters),
            }
            for tool in request.tools
        ]
        tools[-1] = _marked(tools[-1], mark)
        body["tools"] = tools
        if request.tool_choice == "none":
            body["tool_choice"] = {"type": "none"}
    limit_tokens = output_limit(model, request, estimate_input(request))
    body["max_tokens"] = limit_tokens
    body.update(_thinking_fields(model, compat, request, limit_tokens))
    body.update(compat.extra_body)
    return body


def _object_schema(parameters: Mapping[str, Any]) -> Json:
    return {"type": "object", "properties": {}, **parameters}


def _cache_mark(compat: Compat, request: Request) -> Json | None:
    match request.cache_retention:
        case "none":
            return None
        case "long" if compat.supports_long_cache:
            return {"type": "ephemeral", "ttl": "1h"}
        case _:
            return {"type": "ephemeral"}


def _marked(block: Json, mark: Json | None) -> Json:
    return {**block, "cache_control": dict(mark)} if mark is not None else block


def _mark_messages(messages: list[Json], mark: Json) -> None:
    """Marks the last block of the last two messages; in a very long last message two blocks of that one."""
    if not messages:
        return
    last: list[Json] = messages[-1]["content"]
    _mark_block(last, len(last) - 1, mark)
    if len(last) > LOOK_BACK_BLOCKS:
        _mark_block(last, len(last) - 1 - LOOK_BACK_BLOCKS, mark)
    elif len(messages) > 1:
        previous: list[Json] = messages[-2]["content"]
        _mark_block(previous, len(previous) - 1, mark)


def _mark_block(blocks: list[Json], index: int, mark: Json) -> None:
    """Marks the block at ``index`` or the nearest one before it that may carry a mark (not thinking)."""
    for position in range(index, -1, -1):
        if blocks[position]["type"] in _MARKABLE and "cache_control" not in blocks[position]:
            blocks[position] = _marked(blocks[position], mark)
            return


def _encode_messages(history: Sequence[Message]) -> list[Json]:
    """The messages with neighbours of the same role merged, tool results before everything else."""
    messages: list[Json] = []
    for message in history:
        role, blocks = _encode_message(message)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _encode_message(message: Message) -> tuple[str, list[Json]]:
    match message:
        case AssistantMessage():
            blocks = [_encode_answer_block(block) for block in message.content]
            return "assistant", [block for block in blocks if block is not None]
        case ToolResultMessage():
            return "user", [_encode_result(message)]
        case UserMessage() | DeveloperMessage():
            return "user", _encode_input(blocks_of(message.content))
        case _:
            return "user", []


def _encode_answer_block(block: Block) -> Json | None:
    match block:
        case TextBlock():
            return _text(block.text)
        case ThinkingBlock() if block.redacted:
            return {"type": "redacted_thinking", "data": block.signature or ""}
        case ThinkingBlock():
            return {"type": "thinking", "thinking": block.thinking, "signature": block.signature or ""}
        case ToolCallBlock():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.arguments)}
        case _:
            return None


def _encode_result(message: ToolResultMessage) -> Json:
    blocks = _encode_input(message.content)
    content: str | list[Json] = blocks
    if all(block["type"] == "text" for block in blocks):
        content = "\n".join(block["text"] for block in blocks) or NO_OUTPUT
    result: Json = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": content}
    if message.is_error:
        result["is_error"] = True
    return result


def _encode_input(blocks: Sequence[Block]) -> list[Json]:
    found: list[Json] = []
    for block in blocks:
        match block:
            case TextBlock() if block.text.strip():
                found.append(_text(block.text))
            case ImageBlock():
                source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
                found.append({"type": "image", "source": source})
            case _:
                pass
    return found


def _text(text: str) -> Json:
    return {"type": "text", "text": clean_surrogates(text)}


def _thinking_fields(model: Model, compat: Compat, request: Request, limit_tokens: int) -> Json:
    """The fields of table 1.4 for the model's family, and ``max_tokens`` again where a budget adds to it."""
    if not model.reasoning:
        return {}
    level = clamp_level(model, request.thinking)
    if level is ThinkingLevel.OFF:
        return {} if compat.thinking_off == "omit" else {"thinking": {"type": "disabled"}}
    if compat.thinking_format == "adaptive":
        thinking: Json = {"type": "adaptive"}
        if compat.thinking_display:
            thinking["display"] = compat.thinking_display
        return {"thinking": thinking, "output_config": {"effort": vendor_word(model, level)}}
    return _budget_fields(model, level, limit_tokens, is_capped=request.max_tokens is not None)


def _budget_fields(model: Model, level: ThinkingLevel, limit_tokens: int, *, is_capped: bool) -> Json:
    budget = BUDGET_TOKENS[level]
    # The answer's own limit stays: the budget comes on top as far as the model allows.
    max_tokens = min(limit_tokens + budget, model.max_tokens) if is_capped else limit_tokens
    if max_tokens <= budget:
        budget = max(0, max_tokens - MIN_BUDGET_TOKENS)
    if budget < MIN_BUDGET_TOKENS:
        return {"thinking": {"type": "disabled"}}
    return {"max_tokens": max_tokens, "thinking": {"type": "enabled", "budget_tokens": budget}}
