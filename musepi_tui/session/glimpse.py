"""What lines of messages say in short, without decoding them whole: for lists of very many entries.

A glimpse is exact or it is None; then the entry has to be read.
"""

import json
import re
from typing import NamedTuple

from musepi_tui.session.block_codec import decode_blocks
from musepi_tui.session.fields import as_object, as_text
from musepi_tui.session.messages import AssistantMessage, StopReason
from musepi_tui.session.payload import TEXT_PREFIX, holds_reference
from musepi_tui.session.records import Unreadable, parse_record

START_BYTES = 2048
"""How much of a line is looked at: enough for its head and some hundred characters of text in any script."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_THINKING = rb'\{"type":"thinking","thinking":' + _STRING + rb'(?:,"thinkingSignature":' + _STRING + rb")?\},"
_START = re.compile(
    rb'\{"type":"message","id":"([^"\\]+)","parentId":(?:null|"[^"\\]*"),"timestamp":"[^"\\]*",'
    rb'"message":\{"role":"(?:user"|assistant"|toolResult","toolCallId":"([^"\\]*)","toolName":"([^"\\]*)"),'
    rb'"content":(?:(\[)(?:' + _THINKING + rb')*+\{"type":"text","text":)?"'
)
"""Up to the first character of the text, where nothing but thinking stands before it."""

_REFERENCE = TEXT_PREFIX.encode()
_WHOLE_ESCAPES = re.compile(rb'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+')


class Glimpse(NamedTuple):
    """The beginning of a message's text. ``is_enough``: it is as long as asked for, or all there is.

    ``call_id`` and ``tool_name`` are those of a tool result.
    """

    text: str
    is_enough: bool
    call_id: str | None
    tool_name: str | None


def glimpse(start: bytes, entry_id: str, chars: int) -> Glimpse | None:
    """What a prompt, an answer or a tool result begins with; ``chars`` behind blanks in front are enough.

    ``start`` are the first bytes of its line. None when they do not tell, or tell of another entry.
    """
    match = _START.match(start)
    if match is None or match[1] != entry_id.encode():
        return None
    found = _beginning(start, match.end(), b'"}]' if match[4] else b'"', chars)
    if found is None:
        return None
    call_id, name = match[2], match[3]
    if call_id is None or name is None:
        return Glimpse(*found, None, None)
    return Glimpse(*found, call_id.decode("utf-8", "replace"), name.decode("utf-8", "replace"))


def glimpse_answer(line: bytes, entry_id: str) -> AssistantMessage | None:
    """The answer in a whole line with its content and how it ended, and nothing else of it.

    None for other entries, for damaged lines and where a text lies outside the file.
    """
    if holds_reference(line):
        return None
    record = parse_record(line)
    if isinstance(record, Unreadable) or record.fields.get("id") != entry_id:
        return None
    message = as_object(record.fields.get("message")) or {}
    if message.get("role") != "assistant":
        return None
    stop = as_text(message.get("stopReason")) or ""
    return AssistantMessage(
        content=decode_blocks(message.get("content")),
        api="",
        provider="",
        model="",
        stop_reason=StopReason(stop) if stop in _STOPS else StopReason.STOP,
        error_message=as_text(message.get("errorMessage")),
    )


_STOPS = frozenset(StopReason)


def _beginning(start: bytes, begin: int, end: bytes, chars: int) -> tuple[str, bool] | None:
    """The text from ``begin`` on and whether it is enough; before ``end`` it is whole."""
    text, is_enough = "", False
    # Most texts need few bytes; those in other scripts or full of escapes need all there are.
    for stop in (begin + 2 * chars, len(start)):
        piece = _WHOLE_ESCAPES.match(start, begin, stop)
        if piece is None or piece[0].startswith(_REFERENCE):
            return None
        found = _unescape(piece[0])
        if found is None:
            return None
        # One more than wanted: the last one may be half of a pair.
        text, is_enough = found, start.startswith(end, piece.end()) or len(found.lstrip()) > chars
        if is_enough:
            break
    return text, is_enough


def _unescape(piece: bytes) -> str | None:
    """The text of a JSON string without its quotes; None when it is none."""
    # A character cut at the end of the bytes is left out.
    text = piece.decode("utf-8", "ignore")
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except json.JSONDecodeError:
        return None
