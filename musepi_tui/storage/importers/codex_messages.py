"""Items of a Codex rollout as blocks and messages of a session. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from musepi_tui.session.codec import dump_json
from musepi_tui.session.fields import Fields, as_list, as_object, as_text
from musepi_tui.session.messages import (
    Block,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from musepi_tui.session.records import is_too_deep
from musepi_tui.storage.importers.content import image_of_url, is_shown, left_out
from musepi_tui.storage.importers.tally import Tally

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_IMAGE_TAG = re.compile(r"</?image(?: name=[^<>]*)?>")
"""What Codex writes before and after a picture of a prompt."""

_PREAMBLES = (
    "<environment_context",
    "<user_instructions",
    "<permissions",
    "<collaboration_mode",
    "<skill",
    "<turn_aborted",
    "<INSTRUCTIONS",
    "# AGENTS.md",
)
"""How texts begin that Codex adds in the name of the user."""

MAX_KEPT_CHARS = 4096
"""Data URLs in a replaced history are left out above this: their pictures stand in the messages before."""


def item_blocks(item: Mapping[str, Any], tally: Tally) -> tuple[TextBlock | ImageBlock, ...]:
    """The texts and images of a message item or of the output of a call."""
    return tuple(filter(is_shown, (_content_block(part, tally) for part in _parts(item.get("content")))))


def item_text(item: Mapping[str, Any]) -> str:
    """The texts of a message item, joined; the tags around pictures left out."""
    texts = (as_text(part.get("text")) for part in _parts(item.get("content")))
    return "".join(text for text in texts if text is not None and _IMAGE_TAG.fullmatch(text) is None)


def is_preamble(item: Mapping[str, Any]) -> bool:
    """Whether a message item in the name of the user was written by the program."""
    return item_text(item).lstrip().startswith(_PREAMBLES)


def thinking_block(item: Mapping[str, Any]) -> ThinkingBlock | None:
    """The thinking of a reasoning item; signed by the whole item where it holds encrypted content."""
    texts = [as_text(part.get("text")) for key in ("summary", "content") for part in _parts(item.get(key))]
    text = "\n\n".join(found for found in texts if found)
    is_signed = as_text(item.get("encrypted_content")) is not None
    kept = {key: value for key, value in item.items() if key != "timestamp"}
    signature = dump_json(kept).decode("utf-8") if is_signed else None
    return ThinkingBlock(text, signature) if text or signature else None


def call_block(kind: str, item: Mapping[str, Any], number: int) -> ToolCallBlock:
    """The tool call of a call item; ``number`` makes an id for one that has none."""
    call_id = as_text(item.get("call_id")) or as_text(item.get("id")) or f"{kind}_{number}"
    name = as_text(item.get("name")) or kind.removesuffix("_call")
    return ToolCallBlock(call_id, name, _arguments(item))


def output_content(output: object, tally: Tally) -> tuple[tuple[Block, ...], bool]:
    """The content of a call's output, and whether it says itself that the call failed."""
    fields = as_object(output)
    if fields is not None:
        inner = as_text(fields.get("content"))
        blocks = (TextBlock(inner),) if inner else item_blocks(fields, tally)
        return blocks, fields.get("success") is False
    if isinstance(output, str):
        return ((TextBlock(output),) if output else ()), False
    return item_blocks({"content": output}, tally), False


def read_usage(stored: object) -> Usage | None:
    """The usage of one request; Codex counts cached tokens into the input, which is undone."""
    obj = as_object(stored)
    if obj is None:
        return None
    fields = Fields(obj)
    given, cached = fields.take_int("input_tokens"), fields.take_int("cached_input_tokens") or 0
    output = fields.take_int("output_tokens")
    if given is None and output is None:
        return None
    cached = max(0, min(cached, given or 0))
    return Usage(
        input=max(0, given or 0) - cached,
        output=max(0, output or 0),
        cache_read=cached,
        total_tokens=max(0, fields.take_int("total_tokens") or 0),
        reasoning=fields.take_int("reasoning_output_tokens"),
    )


def history_summary(payload: Mapping[str, Any]) -> str:
    """What a compaction says: its message, else the texts of the history that took the old one's place."""
    message = as_text(payload.get("message")) or ""
    if message.strip():
        return message
    items = (as_object(item) or {} for item in as_list(payload.get("replacement_history")) or ())
    told = (
        (as_text(item.get("role")), item_text(item).strip())
        for item in items
        if item.get("role") in ("user", "assistant") and not is_preamble(item)
    )
    return "\n\n".join(f"[{role}] {text}" for role, text in told if text)


def kept_history(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """The new history of a compaction as it is stored; large pictures are left out."""
    items = as_list(payload.get("replacement_history"))
    return None if items is None else {"codexReplacementHistory": [_kept_item(item) for item in items]}


def _kept_item(item: object) -> object:
    fields = as_object(item)
    parts = None if fields is None else as_list(fields.get("content"))
    if fields is None or parts is None:
        return item
    return {**fields, "content": [_kept_part(part) for part in parts]}


def _kept_part(part: object) -> object:
    url = as_text((as_object(part) or {}).get("image_url"))
    is_large = url is not None and url.startswith("data:") and len(url) > MAX_KEPT_CHARS
    return {"type": "input_text", "text": "[image]"} if is_large else part


def _content_block(part: Mapping[str, Any], tally: Tally) -> TextBlock | ImageBlock:
    kind, text = as_text(part.get("type")) or "block", as_text(part.get("text"))
    if kind in _TEXTS and text is not None:
        return TextBlock("" if _IMAGE_TAG.fullmatch(text) else text)
    if kind == "input_image":
        return image_of_url(as_text(part.get("image_url")), tally)
    return left_out(kind, tally)


def _parts(content: object) -> Sequence[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = (as_object(part) for part in as_list(content) or ())
    return [part for part in parts if part is not None]


def _arguments(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call: a JSON text, a free text, or the object of an action."""
    text = as_text(item.get("arguments"))
    if text is not None:
        try:
            parsed = as_object(json.loads(text))
        except (ValueError, RecursionError):
            parsed = None
        is_usable = parsed is not None and not is_too_deep(parsed)
        return parsed if parsed is not None and is_usable else {"arguments": text} if text else {}
    given = as_text(item.get("input"))
    if given is not None:
        return {"input": given}
    return as_object(item.get("arguments")) or as_object(item.get("action")) or {}
