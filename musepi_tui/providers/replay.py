"""A stored history made fit for one model (providers 8): a pure copy, the stored one is never changed.

After this every call is followed directly by exactly its results, ids have the form the server wants, and
nothing is left that only another model could read.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from musepi_tui.providers.compat import ToolIdStyle
from musepi_tui.providers.types import Model
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    Content,
    DeveloperMessage,
    ImageBlock,
    Message,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)

NO_RESULT = "No result provided"
NO_OUTPUT = "(no tool output)"
IMAGE_OMITTED = "(image omitted: model does not support images)"
TOOL_IMAGE_OMITTED = "(tool image omitted: model does not support images)"

_ID_LIMITS: Mapping[ToolIdStyle, int] = {"any": 256, "anthropic": 64, "openai40": 40, "mistral9": 9}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class ReplayRules:
    """What one wire format needs. ``keep_unsigned_thinking``: Chat Completions has no signatures to check."""

    id_style: ToolIdStyle = "any"
    keep_unsigned_thinking: bool = False


def prepare_history(messages: Sequence[Message], model: Model, rules: ReplayRules) -> tuple[Message, ...]:
    """``messages`` as ``model`` may be sent them, oldest first.

    Answers that ended in an error or were aborted are left out with their results; a call without a result
    gets an error result; a result without its call is dropped; empty messages are dropped last.
    """
    renamer = _Renamer(rules.id_style)
    ready: list[Message] = []
    for turn in _split_at_answers(messages):
        answer, rest = turn
        if answer is None:
            ready.extend(_inputs(rest, model))
            continue
        if answer.stop_reason in (StopReason.ERROR, StopReason.ABORTED):
            ready.extend(_inputs(rest, model))
            continue
        prepared = _prepare_answer(answer, model, rules)
        calls = [block for block in prepared.content if isinstance(block, ToolCallBlock)]
        new_ids = [renamer.rename(call.id) for call in calls]
        results = _results_in_order(calls, new_ids, rest, model)
        if prepared.content:
            ready.append(_with_call_ids(prepared, new_ids))
        ready.extend(results)
        ready.extend(_inputs(rest, model))
    return tuple(ready)


def _split_at_answers(
    messages: Sequence[Message],
) -> list[tuple[AssistantMessage | None, list[Message]]]:
    """Each answer with everything up to the next one; the first part has no answer."""
    parts: list[tuple[AssistantMessage | None, list[Message]]] = [(None, [])]
    for message in messages:
        if isinstance(message, AssistantMessage):
            parts.append((message, []))
        else:
            parts[-1][1].append(message)
    return parts


def _inputs(messages: Sequence[Message], model: Model) -> list[Message]:
    """The user and developer messages, images replaced where the model reads none, empty ones left out."""
    found: list[Message] = []
    for message in messages:
        if isinstance(message, UserMessage | DeveloperMessage):
            content = _fit_images(message.content, model, IMAGE_OMITTED)
            if content:
                found.append(replace(message, content=content))
    return found


def _results_in_order(
    calls: Sequence[ToolCallBlock], new_ids: Sequence[str], rest: Sequence[Message], model: Model
) -> list[ToolResultMessage]:
    """One result a call, in call order; a call nobody answered gets an error."""
    waiting: dict[str, list[ToolResultMessage]] = {}
    for message in rest:
        if isinstance(message, ToolResultMessage):
            waiting.setdefault(message.tool_call_id, []).append(message)
    results: list[ToolResultMessage] = []
    for call, new_id in zip(calls, new_ids, strict=True):
        own = waiting.get(call.id)
        if own:
            result = own.pop(0)
            content = tuple(blocks_of(_fit_images(result.content, model, TOOL_IMAGE_OMITTED)))
            results.append(replace(result, tool_call_id=new_id, tool_name=call.name, content=content))
        else:
            results.append(ToolResultMessage(new_id, call.name, (TextBlock(NO_RESULT),), is_error=True))
    return results


def _prepare_answer(answer: AssistantMessage, model: Model, rules: ReplayRules) -> AssistantMessage:
    same = (answer.provider, answer.api, answer.model) == (model.provider, model.api, model.id)
    blocks: list[Block] = []
    for block in answer.content:
        kept = _prepare_block(block, rules, is_same_model=same)
        if kept is not None:
            blocks.append(kept)
    only_thinking = all(isinstance(block, ThinkingBlock) for block in blocks)
    if only_thinking and answer.stop_reason is StopReason.LENGTH:
        blocks = []
    payload = answer.provider_payload if same else None
    return replace(answer, content=tuple(blocks), provider_payload=payload)


def _prepare_block(block: Block, rules: ReplayRules, *, is_same_model: bool) -> Block | None:
    match block:
        case TextBlock():
            return block if block.text.strip() else None
        case ThinkingBlock():
            return _prepare_thinking(block, rules, is_same_model=is_same_model)
        case ToolCallBlock():
            if not block.id.strip() or not block.name.strip():
                return None
            return block if is_same_model else replace(block, thought_signature=None)
        case ImageBlock() | OpaqueBlock():
            return None


def _prepare_thinking(block: ThinkingBlock, rules: ReplayRules, *, is_same_model: bool) -> Block | None:
    if is_same_model and (block.signature or rules.keep_unsigned_thinking):
        return block
    if block.redacted or not block.thinking.strip():
        return None
    return TextBlock(block.thinking)


def _with_call_ids(answer: AssistantMessage, new_ids: Sequence[str]) -> AssistantMessage:
    ids = iter(new_ids)
    content = tuple(
        replace(block, id=next(ids)) if isinstance(block, ToolCallBlock) else block
        for block in answer.content
    )
    return replace(answer, content=content)


def _fit_images(content: Content, model: Model, instead: str) -> Content:
    """``content`` without what cannot be sent: unknown blocks, and images for a model that reads none."""
    if isinstance(content, str):
        return content
    kept: list[Block] = []
    for block in content:
        if isinstance(block, ImageBlock) and not model.reads_images:
            if not (kept and kept[-1] == TextBlock(instead)):
                kept.append(TextBlock(instead))
        elif isinstance(block, ImageBlock) or isinstance(block, TextBlock) and block.text:
            kept.append(block)
    return tuple(kept)


class _Renamer:
    """Gives every call an id in the target's form, unique in the history."""

    def __init__(self, style: ToolIdStyle) -> None:
        self._style: ToolIdStyle = style
        self._limit_chars = _ID_LIMITS[style]
        self._taken: set[str] = set()

    def rename(self, call_id: str) -> str:
        """The id to send for the next call with ``call_id``."""
        wanted = shape_call_id(call_id, self._style)
        found, number = wanted, 0
        while found in self._taken:
            number += 1
            if self._style == "mistral9":
                found = shape_call_id(f"{call_id}#{number}", self._style)
            else:
                suffix = f"_dup{number}"
                found = wanted[: self._limit_chars - len(suffix)] + suffix
        self._taken.add(found)
        return found


def shape_call_id(call_id: str, style: ToolIdStyle) -> str:
    """``call_id`` in the form of ``style`` (table of providers 8); the same input gives the same output."""
    match style:
        case "any":
            return call_id
        case "anthropic":
            return _UNSAFE.sub("_", call_id)[:64]
        case "openai40":
            return _openai_id(call_id)
        case "mistral9":
            plain = _NOT_ALPHANUMERIC.sub("", call_id)
            return plain if len(plain) == 9 and plain == call_id else _digest(call_id, 9)


def _openai_id(call_id: str) -> str:
    if "|" not in call_id and len(call_id) <= 40:
        return call_id
    parts = [_UNSAFE.sub("_", part) for part in call_id.split("|")]
    joined = "_".join(part for part in parts if part)
    return joined if len(joined) <= 40 else f"{joined[:31]}_{_digest(call_id, 8)}"


def _digest(text: str, chars: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:chars]
