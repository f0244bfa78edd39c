"""A conversation as plain text for the model that summarises it (compaction 6.1)."""

import re
from collections.abc import Callable, Iterator, Sequence

from musepi_tui.context.estimate import compact_json
from musepi_tui.session.messages import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)

RESULT_CHARS = 2000
"""Characters of one tool result a summary request gets (compaction 6.1). Whole results would make it as
long as the context that is already too long; what matters is in the first lines or in the answer after it."""

_CONTROL_TOKEN = re.compile(r"<\|(start|end|message|channel|constrain|return|call)\|>")
_CLOSING_TAG = re.compile(r"</(conversation)>", re.IGNORECASE)


def serialize_conversation(messages: Sequence[Message], *, harmony: bool = False) -> str:
    """The messages as labelled parts with a blank line between them; "" when nothing is left."""
    return "\n\n".join(filter(None, serialize_messages(messages, harmony=harmony)))


def serialize_messages(messages: Sequence[Message], *, harmony: bool = False) -> tuple[str, ...]:
    """Each message as labelled parts, in order; "" for one that gives nothing.

    ``messages`` are converted ones (user, developer, assistant, toolResult); other roles give nothing. Calls
    whose result said nothing (``useless``) are left out together with it. ``harmony`` also defuses the
    control tokens of that model family. Text cannot close the ``<conversation>`` it is put in.
    """
    dropped = _useless_calls(messages)
    texts = ("\n\n".join(_parts(message, index, dropped)) for index, message in enumerate(messages))
    return tuple(_defused(text, harmony=harmony) for text in texts)


def _defused(text: str, *, harmony: bool) -> str:
    text = _CLOSING_TAG.sub(r"<\\/\1>", text)
    return _CONTROL_TOKEN.sub(r"<\\|\1\\|>", text) if harmony else text


def truncate_result(text: str) -> str:
    """The first 2,000 characters, and how many more there were."""
    if len(text) <= RESULT_CHARS:
        return text
    return f"{text[:RESULT_CHARS]}\n\n[... {len(text) - RESULT_CHARS} more characters truncated]"


def _useless_calls(messages: Sequence[Message]) -> frozenset[tuple[int, str]]:
    """``(message index, call id)`` of the calls and results to leave out.

    Some servers use an id again; a result answers the newest call before it.
    """
    asked: dict[str, int] = {}
    dropped: set[tuple[int, str]] = set()
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            asked.update((call.id, index) for call in tool_calls_of(message))
        elif isinstance(message, ToolResultMessage) and message.useless and not message.is_error:
            dropped.add((index, message.tool_call_id))
            if message.tool_call_id in asked:
                dropped.add((asked[message.tool_call_id], message.tool_call_id))
    return frozenset(dropped)


def _parts(message: Message, index: int, dropped: frozenset[tuple[int, str]]) -> Iterator[str]:
    match message:
        case UserMessage() if text := text_of(message.content):
            yield f"[User]: {text}"
        case DeveloperMessage() if text := text_of(message.content):
            yield f"[Developer]: {text}"
        case AssistantMessage():
            yield from _assistant_parts(message, lambda call: (index, call.id) not in dropped)
        case ToolResultMessage() if (index, message.tool_call_id) not in dropped:
            if text := text_of(message.content):
                yield f"[Tool Result]: {truncate_result(text)}"
        case _:
            return


def _assistant_parts(message: AssistantMessage, keep: Callable[[ToolCallBlock], bool]) -> Iterator[str]:
    thinking = [block.thinking for block in message.content if isinstance(block, ThinkingBlock)]
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    calls = [_call(call) for call in tool_calls_of(message) if keep(call)]
    for label, joined in (
        ("Think", "\n".join(filter(None, thinking))),
        ("Assistant", "\n".join(filter(None, texts))),
        ("Tool Call", "; ".join(calls)),
    ):
        if joined:
            yield f"[{label}]: {joined}"


def _call(call: ToolCallBlock) -> str:
    arguments = ", ".join(f"{key}={compact_json(value)}" for key, value in call.arguments.items())
    return f"{call.name}({arguments})"
