"""Slots become items when they are looked at: calls joined with results, kept while they are near. Pure."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.runtime.events import Phase, SessionView
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.messages import ToolCallBlock, ToolResultMessage, text_of
from musepi_tui.tui.transcript.blocks import (
    CustomBlock,
    ErrorBlock,
    HeaderBlock,
    Item,
    ItemKind,
    NoticeBlock,
    ToolBlock,
    ToolState,
)
from musepi_tui.tui.transcript.facts import image_captions
from musepi_tui.tui.transcript.items import STATE_TYPES, items_of_entry
from musepi_tui.tui.transcript.joins import (
    answer_behind,
    failed_last,
    failure_at,
    late_warning,
    owner_of,
    results_of,
)
from musepi_tui.tui.transcript.live import LiveAnswer, LiveCalls
from musepi_tui.tui.transcript.path import SlotPath
from musepi_tui.tui.transcript.slots import LocalSlot
from musepi_tui.tui.transcript.titles import view_of_call, view_of_details

_KEPT_SLOTS = 600
"""Slots whose items stay in memory: some screenfuls around the reader."""


class ItemBuilder:
    """The items of each slot of a path."""

    def __init__(self, path: SlotPath, calls: LiveCalls) -> None:
        self.turn_open = False
        self.shows_model_changes = True
        self.thinking_s: dict[str, float] = {}
        """Seconds of reasoning by item id, as far as they were watched."""
        self.result_s: dict[str, float] = {}
        """Seconds a call took, by the entry id of its result."""
        self.explained: dict[str, tuple[str, str]] = {}
        """Cause and remedy of a failed answer as the runtime told them, by its entry id."""
        self.path = path
        self.calls = calls
        self._kept: OrderedDict[str, tuple[Item, ...]] = OrderedDict()
        self._revisions: dict[str, int] = {}
        self._before: dict[str, tuple[Item, ...]] = {}
        self._first_revision = 0
        self._was_loading = False

    def items_at(self, index: int) -> tuple[Item, ...]:
        """The items of a slot; reads its entry when it is not at hand."""
        slot = self.path[index]
        known = self._kept.get(slot.id)
        if known is not None:
            self._kept.move_to_end(slot.id)
            return known
        if isinstance(slot, LocalSlot):
            items = self._local_items(slot)
        else:
            items = self._as_before(slot.id, self._entry_items(slot, index))
        self._kept[slot.id] = items
        if len(self._kept) > _KEPT_SLOTS:
            self._kept.popitem(last=False)
        return items

    def explain(self, index: int, text: str) -> bool:
        """Takes what the runtime says about the failed answer in a slot; false when it is about another."""
        words = " ".join((failure_at(self.path, index) or "").split())
        if not words or words not in text:
            return False
        before, _, behind = text.partition(words)
        self.explained[self.path[index].id] = (before + words, behind.lstrip(". "))
        return True

    def kept(self, slot_id: str) -> tuple[Item, ...] | None:
        """The items of a slot when they are in memory."""
        return self._kept.get(slot_id)

    def touch(self, slot_id: str) -> None:
        """The items of a slot differ now."""
        self._revisions[slot_id] = self._revision(slot_id) + 1
        self._kept.pop(slot_id, None)

    def restart(self, view: SessionView, *, is_same: bool) -> None:
        """Builds all items anew, those of a view; ``is_same``: it shows the session that was shown before.

        They count as changed, because entries keep their ids in a copy and results may have come meanwhile;
        only the first screen was drawn a moment ago from the same entries.
        """
        self.forget()
        if not self._was_loading or view.can_wait:
            self._change_all()
        self._was_loading = view.phase is Phase.LOADING
        if not is_same:
            self.thinking_s.clear()
            self.result_s.clear()
            self.explained.clear()
        # Of a session that another process works on nobody tells whether a turn is open there: it may be.
        self.turn_open = view.turn_open or view.can_wait

    def forget(self) -> None:
        """Builds all items anew when they are looked at."""
        self._kept.clear()
        self._before.clear()

    def change_path(self) -> None:
        """Builds all items anew, for another branch. Those that come out as they were keep their drawings."""
        before = dict(self._kept)
        self.forget()
        self._before = before
        self._change_all()

    def _change_all(self) -> None:
        self._first_revision = max((*self._revisions.values(), self._first_revision)) + 1
        self._revisions.clear()

    def _as_before(self, slot_id: str, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items as they were on the branch before when nothing about them differs."""
        before = self._before.pop(slot_id, ())
        if not before or tuple(replace(item, revision=before[0].revision) for item in items) != before:
            return items
        self._revisions[slot_id] = before[0].revision
        return before

    def _revision(self, slot_id: str) -> int:
        return self._revisions.get(slot_id, self._first_revision)

    def tool_block(self, call: ToolCallBlock, index: int) -> ToolBlock:
        """The call of the answer in slot ``index``, joined with what is known about its result."""
        result = results_of(self.path, index).get(call.id)
        if result is not None:
            return self._finished(call, *result, index=index)
        live = self.calls.get(call.id)
        is_open = live is not None or (self.turn_open and self._is_newest_answer(index))
        return self._unfinished(call, ToolState.PENDING if is_open else ToolState.CANCELLED)

    def _local_items(self, slot: LocalSlot) -> tuple[Item, ...]:
        if slot.hidden:
            return ()
        revision = self._revision(slot.id)
        match slot.content:
            case HeaderBlock():
                return (Item(slot.id, ItemKind.HEADER, slot.content, revision),)
            case NoticeBlock():
                return (Item(slot.id, ItemKind.NOTICE, slot.content, revision),)
            case LiveAnswer():
                return slot.content.items(
                    lambda item_id, call: Item(
                        item_id, ItemKind.TOOL, self._unfinished(call, ToolState.PENDING), revision
                    )
                )

    def _entry_items(self, slot: EntryHead, index: int) -> tuple[Item, ...]:
        entry = self.path.entry(slot.id)
        revision = self._revision(slot.id)
        if isinstance(entry, SessionError):
            return (Item(slot.id, ItemKind.CUSTOM, CustomBlock("unreadable entry", str(entry)), revision),)
        items = items_of_entry(entry, _Around(self, index), revision)
        if items and isinstance(items[-1].block, ErrorBlock):
            return (*items[:-1], *self._failure(items, items[-1].block, slot.id, index))
        return items

    def _failure(
        self, items: tuple[Item, ...], block: ErrorBlock, entry_id: str, index: int
    ) -> tuple[Item, ...]:
        """How a failed answer ends. One that was tried again is a quiet line; without text of its own it is
        nothing at all when the next try failed alike: ten retries are one error. There is no remedy while it
        may still be tried again."""
        item = items[-1]
        following = answer_behind(self.path, index)
        if following is not None:
            if len(items) == 1 and failure_at(self.path, following) == failure_at(self.path, index):
                return ()
            notice = NoticeBlock("info", f"{block.cause} · tried again", block.raw)
            return (Item(item.id, ItemKind.NOTICE, notice, item.revision),)
        told = self.explained.get(entry_id)
        if told is not None:
            block = ErrorBlock(told[0], told[1] or None, block.raw)
        elif self.turn_open and failed_last(self.path) == index:
            block = ErrorBlock(block.cause, None, block.raw)
        return (Item(item.id, ItemKind.ERROR, block, item.revision),)

    def _finished(
        self, call: ToolCallBlock, entry_id: str, result: ToolResultMessage, *, index: int
    ) -> ToolBlock:
        text = text_of(result.content)
        placeholder = self.path.placeholder(entry_id, index)
        if placeholder is None and result.pruned_at_ms is not None:
            placeholder = text
        return ToolBlock(
            call.name,
            ToolState.ERROR if result.is_error else ToolState.OK,
            view_of_details(result.details) or view_of_call(call.name, call.arguments),
            text,
            call.arguments,
            image_captions(result.content),
            self.result_s.get(entry_id, _stored_seconds(result.details)),
            placeholder,
        )

    def _unfinished(self, call: ToolCallBlock, state: ToolState) -> ToolBlock:
        live = self.calls.get(call.id)
        if live is None:
            return ToolBlock(
                call.name, state, view_of_call(call.name, call.arguments), arguments=call.arguments
            )
        return ToolBlock(call.name, live.state, live.view, live.text, call.arguments, seconds=live.seconds)

    def _is_newest_answer(self, index: int) -> bool:
        return not any(
            isinstance(slot := self.path[later], EntryHead) and slot.role in ("assistant", "user")
            for later in range(index + 1, len(self.path))
        )


@dataclass(frozen=True, slots=True)
class _Around:
    """``Surroundings`` of the entry in one slot."""

    builder: ItemBuilder
    index: int

    def tool_block(self, call: ToolCallBlock) -> ToolBlock:
        return self.builder.tool_block(call, self.index)

    def has_call(self, call_id: str) -> bool:
        return owner_of(self.builder.path, self.index, call_id) is not None

    def late_warning(self) -> str | None:
        return late_warning(self.builder.path, self.index)

    def thinking_seconds(self, item_id: str) -> float | None:
        return self.builder.thinking_s.get(item_id)

    @property
    def shows_model_changes(self) -> bool:
        return self.builder.shows_model_changes and self._follows_message()

    def _follows_message(self) -> bool:
        """What a session begins with stands in header and footer; only a change of it is worth a row."""
        before = (self.builder.path[place] for place in range(self.index - 1, -1, -1))
        return any(isinstance(slot, EntryHead) and slot.type not in STATE_TYPES for slot in before)


def _stored_seconds(details: object) -> float | None:
    value = cast("Mapping[str, Any]", details).get("durationMs") if isinstance(details, Mapping) else None
    return value / 1000 if isinstance(value, int | float) else None
