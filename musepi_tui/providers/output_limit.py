"""How many tokens an answer may have (providers 1.2, 9.4)."""

import json
from collections.abc import Iterable

from musepi_tui.base.tokenizer import byte_estimate
from musepi_tui.providers.types import Model, Request
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

MARGIN_TOKENS = 4096
"""Room for what the estimate missed. Small windows keep an eighth, or nothing would be left for an answer."""
WIDE_LIMIT_TOKENS = 32_768
"""Asked for at most when the row's limit is the whole window: there input + output must fit the window."""
IMAGE_TOKENS = 1600


def output_limit(model: Model, request: Request, input_tokens: int) -> int:
    """``max_tokens`` for the request, at least 1, so that input and answer fit the window."""
    limit = model.max_tokens
    if model.context_window is not None and limit >= model.context_window:
        limit = min(limit, WIDE_LIMIT_TOKENS)
    if request.max_tokens is not None:
        limit = min(limit, request.max_tokens)
    if model.context_window is not None:
        margin = min(MARGIN_TOKENS, model.context_window // 8)
        limit = min(limit, model.context_window - input_tokens - margin)
    return max(1, limit)


def estimate_input(request: Request) -> int:
    """Tokens of everything that is sent: UTF-8 bytes / 4, a fixed figure for an image."""
    tools = sum(
        byte_estimate(tool.name + tool.description + json.dumps(tool.parameters)) for tool in request.tools
    )
    return byte_estimate(request.system) + tools + sum(_message_tokens(item) for item in request.messages)


def _message_tokens(message: Message) -> int:
    match message:
        case UserMessage() | DeveloperMessage():
            return _block_tokens(blocks_of(message.content))
        case AssistantMessage() | ToolResultMessage():
            return _block_tokens(message.content)
        case _:
            return 0


def _block_tokens(blocks: Iterable[Block]) -> int:
    total = 0
    for block in blocks:
        match block:
            case TextBlock():
                total += byte_estimate(block.text)
            case ThinkingBlock():
                total += byte_estimate(block.thinking) + byte_estimate(block.signature or "")
            case ToolCallBlock():
                total += byte_estimate(block.name + json.dumps(dict(block.arguments), default=str))
            case ImageBlock():
                total += IMAGE_TOKENS
            case _:
                pass
    return total
