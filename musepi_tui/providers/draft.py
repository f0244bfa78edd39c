"""The answer in the making: what the decoders fill and the stream reads (providers 11).

Blocks are opened in arrival order. A text or thinking block ends when another kind starts; tool calls stay
open until the wire says so or the answer is over, because some servers interleave them.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from musepi_tui.providers.partial_json import ArgumentsError, parse_complete, parse_partial
from musepi_tui.providers.types import BlockDelta, BlockEnd, BlockEvent, BlockStart
from musepi_tui.session.messages import (
    Block,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)

Kind = Literal["text", "thinking", "toolcall"]

PARSE_GROWTH = 1.1
"""Arguments are read again when their text grew by this factor (providers 11). Smaller: quadratic time."""
PARSE_STEP_CHARS = 64


@dataclass(slots=True)
class OpenBlock:
    """One block while it grows. ``pieces`` is text, thinking text or argument JSON."""

    kind: Kind
    index: int
    pieces: list[str] = field(default_factory=list[str])
    chars: int = 0
    call_id: str = ""
    name: str = ""
    signature: str | None = None
    redacted: bool = False
    held: str = ""
    next_parse_chars: int = PARSE_STEP_CHARS
    ended: bool = False
    parsed: ToolCallBlock | None = None
    raw: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """Everything received so far."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class Draft:
    """Collects blocks, usage and the end of one answer; ``take_events`` hands out what happened since."""

    def __init__(self) -> None:
        self.blocks: list[OpenBlock] = []
        self.usage: Usage | None = None
        self.stop_reason: StopReason | None = None
        self.response_id: str | None = None
        self.response_model: str | None = None
        self.payload: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self._current: OpenBlock | None = None
        self._events: list[BlockEvent] = []
        self._ids: set[str] = set()

    def take_events(self) -> list[BlockEvent]:
        """The block events since the last call, oldest first."""
        events, self._events = self._events, []
        return events

    @property
    def has_content(self) -> bool:
        """Whether any block was opened: from then on nothing may be retried silently."""
        return bool(self.blocks)

    def add_text(self, delta: str) -> None:
        """Appends to the open text block, or opens one. Nothing happens for an empty delta."""
        if delta:
            self.grow(self._ensure("text"), delta)

    def add_thinking(self, delta: str, signature: str | None = None) -> None:
        """Appends to the open thinking block, or opens one; ``signature`` is set when given."""
        if not delta and not signature:
            return
        block = self._ensure("thinking")
        if signature:
            block.signature = signature
        if delta:
            self.grow(block, delta)

    def open(self, kind: Kind, *, call_id: str = "", name: str = "") -> OpenBlock:
        """A new block after the ones there; an open text or thinking block ends."""
        self._end_current()
        block = OpenBlock(kind, len(self.blocks), name=name)
        if kind == "toolcall":
            block.call_id = self._unique_id(call_id)
        else:
            self._current = block
        self.blocks.append(block)
        self._events.append(BlockStart(kind, block.index, block.name, block.call_id))
        return block

    def add_opaque(self, raw: Mapping[str, Any]) -> OpenBlock:
        """A block nobody draws; it takes its place in the content."""
        self._end_current()
        block = OpenBlock("text", len(self.blocks), ended=True, raw=raw)
        self.blocks.append(block)
        return block

    def grow(self, block: OpenBlock, delta: str) -> None:
        """More of ``block``. Half a surrogate pair at the end waits for its other half."""
        delta, block.held = _whole_characters(block.held + delta)
        if not delta:
            return
        block.pieces.append(delta)
        block.chars += len(delta)
        arguments = None
        if block.kind == "toolcall" and block.chars >= block.next_parse_chars:
            arguments = parse_partial(block.text)
            block.next_parse_chars = max(int(block.chars * PARSE_GROWTH), block.chars + PARSE_STEP_CHARS)
        self._events.append(BlockDelta(block.kind, block.index, delta, arguments))

    def end(self, block: OpenBlock) -> None:
        """Closes ``block``. A call whose arguments cannot be read yet stays open until ``finish``."""
        if block.ended:
            return
        if block.kind == "toolcall":
            call = _read_call(block)
            if not block.text or call.parse_error is not None:
                return
            block.parsed = call
        self._close(block)

    def finish(self, stop_reason: StopReason) -> None:
        """Ends every block. After a length stop a call is dropped when its arguments are incomplete."""
        self.stop_reason = stop_reason
        dropped: OpenBlock | None = None
        for block in self.blocks:
            if block.ended:
                continue
            if block.kind == "toolcall":
                block.parsed = _read_call(block)
                incomplete = not block.text or block.parsed.parse_error is not None
                if stop_reason is StopReason.LENGTH and incomplete:
                    block.parsed = None
                    dropped = block
            self._close(block)
        if dropped is not None:
            self.blocks.remove(dropped)

    def content(self) -> tuple[Block, ...]:
        """The blocks so far; a tool call that is not whole is left out (providers 7.6)."""
        found: list[Block] = []
        for block in self.blocks:
            built = _build(block)
            if built is not None:
                found.append(built)
        return tuple(found)

    def characters(self) -> int:
        """Length of everything received, for an estimate when no usage comes."""
        return sum(block.chars for block in self.blocks)

    def _ensure(self, kind: Kind) -> OpenBlock:
        current = self._current
        return current if current is not None and current.kind == kind else self.open(kind)

    def _end_current(self) -> None:
        if self._current is not None:
            self._close(self._current)

    def _close(self, block: OpenBlock) -> None:
        if block.ended:
            return
        block.ended = True
        if block is self._current:
            self._current = None
        content = block.text if block.kind != "toolcall" else ""
        self._events.append(BlockEnd(block.kind, block.index, content, block.parsed))

    def _unique_id(self, wanted: str) -> str:
        call_id = wanted or f"call_{uuid.uuid4().hex[:12]}"
        number = 0
        while call_id in self._ids:
            number += 1
            call_id = f"{wanted}_dup{number}"
        self._ids.add(call_id)
        return call_id


def _build(block: OpenBlock) -> Block | None:
    if block.raw is not None:
        return OpaqueBlock(block.raw)
    if block.kind == "text":
        return TextBlock(block.text) if block.text else None
    if block.kind == "thinking":
        return ThinkingBlock(block.text, block.signature, block.redacted)
    if block.parsed is not None or block.ended:
        return block.parsed
    call = _read_call(block)
    return call if block.text and call.parse_error is None else None


def _read_call(block: OpenBlock) -> ToolCallBlock:
    call = ToolCallBlock(block.call_id, block.name, {}, thought_signature=block.signature)
    try:
        return replace(call, arguments=parse_complete(block.text))
    except ArgumentsError as error:
        return replace(call, parse_error=str(error))


def _whole_characters(text: str) -> tuple[str, str]:
    """``text`` without lone surrogates, and a half pair at its end that may still be completed."""
    try:
        text.encode()
    except UnicodeEncodeError:
        held = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return clean_surrogates(text.removesuffix(held)), held
    return text, ""


def clean_surrogates(text: str) -> str:
    """``text`` with surrogate pairs joined and lone ones replaced by U+FFFD: it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
