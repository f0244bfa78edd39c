"""Chat Completions and compatibles: requests (providers 2.1, 2.5)."""

import json
from collections.abc import Sequence
from typing import Any

from musepi_tui.providers.compat import Compat, compat_of
from musepi_tui.providers.draft import clean_surrogates
from musepi_tui.providers.output_limit import estimate_input, output_limit
from musepi_tui.providers.protocol import WireRequest, merge_headers
from musepi_tui.providers.replay import NO_OUTPUT, ReplayRules, prepare_history
from musepi_tui.providers.thinking import clamp_level, vendor_word
from musepi_tui.providers.types import Credentials, Model, Request, ThinkingLevel, ToolSpec
from musepi_tui.providers.wire.openai_chat_decode import REASONING_FIELDS
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
    text_of,
)

API = "openai-completions"
TOOL_IMAGES_LABEL = "Images from the tool results above:"
TOOL_IMAGE_PLACEHOLDER = "(see the image below)"
BRIDGE = "Done."
"""The assistant text between tool results and a user message where the server insists on one."""

Json = dict[str, Any]


def encode_request(model: Model, credentials: Credentials, request: Request) -> WireRequest:
    """The request for ``POST {base}/chat/completions``."""
    compat = compat_of(model)
    body = _build_body(model, compat, request)
    url = f"{model.base_url.rstrip('/')}/chat/completions"
    return WireRequest(url, _build_headers(model, compat, credentials, request), body)


def _build_headers(
    model: Model, compat: Compat, credentials: Credentials, request: Request
) -> dict[str, str]:
    defaults: dict[str, str | None] = {"content-type": "application/json", "accept": "text/event-stream"}
    if credentials.key is not None:
        if compat.api_key_header and not credentials.bearer:
            defaults[compat.api_key_header] = credentials.key
        else:
            defaults["authorization"] = f"Bearer {credentials.key}"
    if compat.session_affinity and request.session_id:
        names = {"default": ("session_id", "x-client-request-id", "x-session-affinity")}
        for name in names.get(compat.session_affinity, (compat.session_affinity,)):
            defaults[name] = request.session_id
    return merge_headers(defaults, model.headers)


def _build_body(model: Model, compat: Compat, request: Request) -> Json:
    rules = ReplayRules(compat.tool_call_id_style, keep_unsigned_thinking=True)
    history = prepare_history(request.messages, model, rules)
    messages = _Messages(model, compat)
    messages.add_system(request.system)
    for message in history:
        messages.add(message)
    body: Json = {"model": model.id, "messages": messages.finish(), "stream": True}
    if compat.supports_usage_in_streaming:
        body["stream_options"] = {"include_usage": True}
    if compat.supports_store:
        body["store"] = False
    cache_key = request.cache_key or request.session_id
    if compat.supports_prompt_cache_key and cache_key and request.cache_retention != "none":
        body["prompt_cache_key"] = cache_key[:64]
        if request.cache_retention == "long" and compat.supports_long_cache:
            body["prompt_cache_retention"] = "24h"
    body.update(_tool_fields(compat, request, has_calls=messages.has_calls))
    body[compat.max_tokens_field] = output_limit(model, request, estimate_input(request))
    body.update(_thinking_fields(model, compat, request))
    if compat.cache_control_format == "anthropic" and request.cache_retention != "none":
        _mark_cache(body)
    body.update(compat.extra_body)
    return body


def _tool_fields(compat: Compat, request: Request, *, has_calls: bool) -> Json:
    if request.tools:
        fields: Json = {"tools": [_encode_tool(tool, compat) for tool in request.tools]}
        # The tools stay where no choice can be made: without them the cached prefix would be lost.
        if request.tool_choice == "none" and compat.supports_tool_choice:
            fields["tool_choice"] = "none"
        if compat.tool_stream:
            fields["tool_stream"] = True
        return fields
    return {"tools": []} if has_calls and compat.supports_empty_tools else {}


def _encode_tool(tool: ToolSpec, compat: Compat) -> Json:
    function: Json = {
        "name": tool.name,
        "description": tool.description,
        "parameters": {"type": "object", "properties": {}, **tool.parameters},
    }
    if compat.supports_strict_mode:
        function["strict"] = False
    return {"type": "function", "function": function}


def _thinking_fields(model: Model, compat: Compat, request: Request) -> Json:
    """The fields of the second table of 2.5 for the model's ``thinkingFormat``."""
    if not model.reasoning:
        return {}
    level = clamp_level(model, request.thinking)
    word = vendor_word(model, level)
    is_on = level is not ThinkingLevel.OFF
    effort: Json = {"reasoning_effort": word} if word and compat.supports_reasoning_effort else {}
    enabled: Json = {"type": "enabled" if is_on else "disabled"}
    preserving: Json = {"clear_thinking": False} if is_on else {}
    formats: dict[str, Json] = {
        "openrouter": {"reasoning": {"effort": word or "none"}},
        "deepseek": {"thinking": enabled, **(effort if is_on else {})},
        "zai": {"thinking": {**enabled, **preserving}, **(effort if is_on else {})},
        "qwen": {"enable_thinking": is_on},
        "qwen-chat-template": {"chat_template_kwargs": {"enable_thinking": is_on, "preserve_thinking": True}},
        "chat-template": {"chat_template_kwargs": dict(compat.chat_template_kwargs)},
        "together": {"reasoning": {"enabled": is_on}, **(effort if is_on else {})},
        "string-thinking": {"thinking": word or "none"},
    }
    return formats.get(compat.thinking_format, effort)


class _Messages:
    """Builds the message list in order; tool images wait until all results of the turn are there."""

    def __init__(self, model: Model, compat: Compat) -> None:
        self._model = model
        self._compat = compat
        self._list: list[Json] = []
        self._images: list[Json] = []
        self.has_calls = False

    def add_system(self, text: str) -> None:
        """The system prompt, under the role the model listens to."""
        if text.strip():
            role = "developer" if self._uses_developer_role else "system"
            self._list.append({"role": role, "content": clean_surrogates(text)})

    def add(self, message: Message) -> None:
        """One message of the prepared history."""
        match message:
            case ToolResultMessage():
                self._add_result(message)
            case AssistantMessage():
                self._flush_images()
                self._add_answer(message)
            case UserMessage():
                self._flush_images()
                self._add_user(_encode_parts(blocks_of(message.content)))
            case DeveloperMessage():
                self._flush_images()
                if self._uses_developer_role:
                    self._list.append(
                        {"role": "developer", "content": clean_surrogates(text_of(message.content))}
                    )
                else:
                    self._add_user(_encode_parts(blocks_of(message.content)))
            case _:
                pass

    def finish(self) -> list[Json]:
        """The finished list."""
        self._flush_images()
        return self._list

    @property
    def _uses_developer_role(self) -> bool:
        return self._compat.supports_developer_role and self._model.reasoning

    def _add_user(self, parts: list[Json]) -> None:
        if not parts:
            return
        last_role = self._list[-1]["role"] if self._list else ""
        if last_role == "tool" and self._compat.requires_assistant_after_tool_result:
            self._list.append({"role": "assistant", "content": BRIDGE})
        if last_role == "user" and self._compat.merge_user_messages:
            parts = [*_as_parts(self._list.pop()["content"]), *parts]
        self._list.append({"role": "user", "content": _simplest(parts)})

    def _add_result(self, message: ToolResultMessage) -> None:
        images = [block for block in message.content if isinstance(block, ImageBlock)]
        text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
        if not text.strip():
            text = TOOL_IMAGE_PLACEHOLDER if images else NO_OUTPUT
        result: Json = {
            "role": "tool",
            "tool_call_id": message.tool_call_id,
            "content": clean_surrogates(text),
        }
        if self._compat.requires_tool_result_name:
            result["name"] = message.tool_name
        self._list.append(result)
        self._images.extend(_encode_parts(images))

    def _flush_images(self) -> None:
        if self._images:
            images, self._images = self._images, []
            self._add_user([{"type": "text", "text": TOOL_IMAGES_LABEL}, *images])

    def _add_answer(self, message: AssistantMessage) -> None:
        text = "\n\n".join(block.text for block in message.content if isinstance(block, TextBlock))
        thinking = [
            block for block in message.content if isinstance(block, ThinkingBlock) and not block.redacted
        ]
        if self._compat.requires_thinking_as_text and thinking:
            text = "\n\n".join([*(block.thinking for block in thinking), text]).strip()
        calls = [_encode_call(block) for block in message.content if isinstance(block, ToolCallBlock)]
        if not text.strip() and not calls:
            return
        empty = "" if self._compat.requires_assistant_after_tool_result or not calls else None
        answer: Json = {"role": "assistant", "content": clean_surrogates(text) if text.strip() else empty}
        if not self._compat.requires_thinking_as_text:
            answer.update(self._reasoning_fields(message, thinking))
        if calls:
            answer["tool_calls"] = calls
            self.has_calls = True
        self._list.append(answer)

    def _reasoning_fields(self, message: AssistantMessage, thinking: Sequence[ThinkingBlock]) -> Json:
        """The reasoning under the name it came in, and OpenRouter's details as they were."""
        fields: Json = {}
        for name in REASONING_FIELDS:
            own = [block.thinking for block in thinking if block.signature == name]
            if own:
                fields[name] = clean_surrogates("".join(own))
        if self._compat.requires_reasoning_content and "reasoning_content" not in fields:
            fields = {"reasoning_content": "".join(block.thinking for block in thinking)}
        details = (message.provider_payload or {}).get("reasoning_details")
        if isinstance(details, list) and details:
            fields["reasoning_details"] = details
        return fields


def _encode_call(block: ToolCallBlock) -> Json:
    arguments = clean_surrogates(json.dumps(dict(block.arguments), ensure_ascii=False))
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _encode_parts(blocks: Sequence[Block]) -> list[Json]:
    parts: list[Json] = []
    for block in blocks:
        match block:
            case TextBlock() if block.text.strip():
                parts.append({"type": "text", "text": clean_surrogates(block.text)})
            case ImageBlock():
                url = f"data:{block.mime_type};base64,{block.data}"
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    return parts


def _simplest(parts: list[Json]) -> str | list[Json]:
    """One string when there is only text: every server reads that."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _as_parts(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _mark_cache(body: Json) -> None:
    """Anthropic's cache marks on the system text, the last tool and the last message with text."""
    mark = {"type": "ephemeral"}
    messages: list[Json] = body["messages"]
    if messages and messages[0]["role"] in ("system", "developer"):
        messages[0]["content"] = [{**_as_parts(messages[0]["content"])[0], "cache_control": mark}]
    if body.get("tools"):
        body["tools"][-1] = {**body["tools"][-1], "cache_control": mark}
    for message in reversed(messages):
        if message["role"] in ("user", "assistant") and message["content"]:
            parts = _as_parts(message["content"])
            if parts[-1]["type"] == "text":
                message["content"] = [*parts[:-1], {**parts[-1], "cache_control": mark}]
                return
