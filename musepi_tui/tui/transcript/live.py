"""An answer while it is being received, and calls while they run. Pure; time comes as an argument."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.providers.types import BlockDelta, BlockEnd, BlockEvent, BlockStart
from musepi_tui.runtime.events import ApprovalAsked, ToolEnded, ToolStarted
from musepi_tui.session.messages import ToolCallBlock
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.transcript.blocks import AnswerBlock, Item, ItemKind, ThinkingBlock, ToolState


@dataclass(slots=True)
class _LiveBlock:
    kind: str
    started_s: float
    chunks: list[str] = field(default_factory=list[str])
    call: ToolCallBlock | None = None
    ended_s: float | None = None
    revision: int = 0

    @property
    def text(self) -> str:
        if len(self.chunks) > 1:
            self.chunks = ["".join(self.chunks)]
        return self.chunks[0] if self.chunks else ""


class LiveAnswer:
    """The blocks received so far, in the order of their content index."""

    def __init__(self, live_id: str, now: Callable[[], float]) -> None:
        self.live_id = live_id
        self._now = now
        self._blocks: dict[int, _LiveBlock] = {}

    def take(self, event: BlockEvent) -> str | None:
        """Adds what an event brought; returns the id of the call it belongs to, if to one."""
        block = self._blocks.get(event.content_index)
        if block is None:
            block = self._blocks[event.content_index] = _LiveBlock(event.kind, self._now())
        block.revision += 1
        match event:
            case BlockStart():
                if event.kind == "toolcall":
                    block.call = ToolCallBlock(event.call_id, event.name, {})
            case BlockDelta():
                if event.kind != "toolcall":
                    block.chunks.append(event.delta)
                elif event.arguments is not None and block.call is not None:
                    block.call = replace(block.call, arguments=event.arguments)
            case BlockEnd():
                block.ended_s = self._now()
                if event.tool_call is not None:
                    block.call = event.tool_call
                elif event.content:
                    block.chunks = [event.content]
        return block.call.id if block.call is not None else None

    def calls(self) -> Iterator[ToolCallBlock]:
        """The calls received so far."""
        return (block.call for block in self._blocks.values() if block.call is not None)

    def thinking_seconds(self) -> Iterator[tuple[int, float]]:
        """Content index and duration of every block of reasoning."""
        for index, block in self._blocks.items():
            if block.kind == "thinking":
                yield index, (block.ended_s or self._now()) - block.started_s

    def items(self, tool_item: Callable[[str, ToolCallBlock], Item]) -> tuple[Item, ...]:
        """The items to draw now; ``tool_item(item_id, call)`` makes those of calls."""
        found: list[Item] = []
        for index, block in sorted(self._blocks.items()):
            item_id = f"{self.live_id}/{index}"
            is_open = block.ended_s is None
            if block.call is not None:
                found.append(tool_item(item_id, block.call))
            elif block.kind == "thinking" and (is_open or block.text.strip()):
                seconds = None if block.ended_s is None else block.ended_s - block.started_s
                thought = ThinkingBlock(block.text, live=is_open, seconds=seconds)
                found.append(Item(item_id, ItemKind.THINKING, thought, block.revision))
            elif block.kind == "text" and block.text.strip():
                # stays live until its entry is there: the last drawing is then made from the stored text
                found.append(
                    Item(item_id, ItemKind.ASSISTANT, AnswerBlock(block.text, live=True), block.revision)
                )
        return tuple(found)


@dataclass(frozen=True, slots=True)
class LiveCall:
    """What the runtime told about a call whose result is not stored yet."""

    view: ToolView
    state: ToolState
    text: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seconds: float | None = None


class LiveCalls:
    """Calls between approval and stored result, by call id."""

    def __init__(self) -> None:
        self._calls: dict[str, LiveCall] = {}
        self._requests: dict[str, str] = {}

    def get(self, call_id: str) -> LiveCall | None:
        """What is known about a call."""
        return self._calls.get(call_id)

    def asked(self, event: ApprovalAsked) -> None:
        """A call waits for a person."""
        self._requests[event.request_id] = event.call_id
        self._calls[event.call_id] = LiveCall(event.view, ToolState.WAITING, arguments=event.arguments)

    def answered(self, request_id: str) -> str | None:
        """The question is closed; returns the id of its call."""
        call_id = self._requests.pop(request_id, None)
        call = self._calls.get(call_id) if call_id else None
        if call_id and call is not None and call.state is ToolState.WAITING:
            self._calls[call_id] = replace(call, state=ToolState.PENDING)
        return call_id

    def started(self, event: ToolStarted) -> None:
        """A call runs."""
        self._calls[event.call_id] = LiveCall(event.view, ToolState.RUNNING, arguments=event.arguments)

    def progressed(self, call_id: str, text: str) -> None:
        """A running call has this output so far."""
        if call := self._calls.get(call_id):
            self._calls[call_id] = replace(call, text=text)

    def ended(self, event: ToolEnded) -> None:
        """A call is over; its stored result follows."""
        known = self._calls.get(event.call_id)
        self._calls[event.call_id] = LiveCall(
            event.view,
            ToolState.ERROR if event.is_error else ToolState.OK,
            event.text,
            known.arguments if known else {},
            event.duration_ms / 1000,
        )

    def stored(self, call_id: str) -> float | None:
        """The result is stored: forgets the call, returns how long it took when that was told."""
        call = self._calls.pop(call_id, None)
        return call.seconds if call else None

    def clear(self) -> None:
        """Forgets everything: another session, or the turn is over."""
        self._calls.clear()
        self._requests.clear()
