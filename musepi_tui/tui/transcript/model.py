"""What the transcript holds, from a session view and from events: the same items either way. Pure.

Items are never stored here for long: a slot's entry is read when the slot comes near the screen.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

from musepi_tui.runtime.events import (
    AgentEnded,
    AgentSettled,
    AgentStarted,
    ApprovalAsked,
    ApprovalClosed,
    AssistantDelta,
    AssistantEnded,
    AssistantStarted,
    EntryAppended,
    Event,
    Notice,
    Phase,
    RuntimeFault,
    SessionReady,
    SessionView,
    ToolEnded,
    ToolProgress,
    ToolStarted,
)
from musepi_tui.runtime.tree_events import BranchSummaryEnded, BranchSummaryStarted, LeafMoved
from musepi_tui.session.entries import Entry, MessageEntry
from musepi_tui.session.messages import ToolResultMessage
from musepi_tui.tui.transcript.blocks import HeaderBlock, Item, ItemKind, NoticeBlock, ThinkingBlock
from musepi_tui.tui.transcript.builder import ItemBuilder
from musepi_tui.tui.transcript.fold import Shown
from musepi_tui.tui.transcript.joins import failed_last
from musepi_tui.tui.transcript.live import LiveAnswer, LiveCalls
from musepi_tui.tui.transcript.path import PathTo, SlotPath, is_move, is_recent, live_index
from musepi_tui.tui.transcript.redraw import Redraw
from musepi_tui.tui.transcript.slots import Changes, LocalSlot, head_of

_KEPT_LIVE_NAMES = 64
"""Finished answers whose live id is remembered: a drawing made while it streamed is found by it."""

HEADER_ID = "local:header"

Level = Literal["info", "warning", "error"]


class TranscriptModel:
    """Slots and their items. ``read`` gives an entry by id, ``now`` seconds that never go back.

    ``path_to`` gives the way to an entry of the session; without it entries are read to find one. One view
    follows the model: ``take_changes`` tells what happened since it was last called.
    """

    def __init__(
        self,
        read: Callable[[str], Entry],
        *,
        path_to: PathTo | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.expanded = False
        """Whether everything that can be opened is open, unless toggled by itself."""
        self.shows_thinking = True
        self._now = now
        self._path = SlotPath(read, path_to)
        self._calls = LiveCalls()
        self._builder = ItemBuilder(self._path, self._calls)
        self._overrides: dict[str, bool] = {}
        self._live_names: OrderedDict[str, str] = OrderedDict()
        self._shown = Shown(self._path, self._builder)
        self._redraw = Redraw(self._path, self._shown)
        self._session_id: str | None = None
        self._notices = 0
        self._turn_after: str | None = None
        self._told_before_summary: set[str] | None = None

    def __len__(self) -> int:
        """How many slots are shown; folded ones count as one."""
        return len(self._shown)

    @property
    def items(self) -> tuple[Item, ...]:
        """All items, oldest first. Reads every entry: for copies, tests and short sessions."""
        return tuple(item for index in range(len(self)) for item in self.items_at(index))

    def slot_id(self, index: int) -> str:
        """The entry id, or local name, of a slot."""
        return self._shown.slot_id(index)

    def index_of(self, slot_id: str) -> int | None:
        """The slot of that id. Answers keep their place when their entry comes, not their id."""
        return self._shown.index_of(slot_id)

    def live_name(self, item_id: str) -> str | None:
        """The id an item of a finished answer had while it was received."""
        entry_id, slash, index = item_id.partition("/")
        name = self._live_names.get(entry_id)
        return f"{name}{slash}{index}" if name is not None else None

    def items_at(self, index: int) -> tuple[Item, ...]:
        """The items of a slot; reads its entry when it is not at hand."""
        return self._shown.items_at(index)

    def estimates(self, width_cells: int, start: int = 0, stop: int | None = None) -> list[int]:
        """Rows the slots from ``start`` to ``stop`` will take, guessed without reading anything."""
        return self._shown.estimates(width_cells, start, stop)

    def take_changes(self) -> Changes:
        """What happened since the last call."""
        return self._shown.take_changes()

    def is_expanded(self, item: Item) -> bool:
        """Whether an item is drawn in full."""
        is_thinking = isinstance(item.block, ThinkingBlock)
        return self._overrides.get(item.id, self.shows_thinking if is_thinking else self.expanded)

    def toggle(self, item: Item) -> None:
        """Opens or closes one item. The caller draws its slot again. A fold is opened for good."""
        if item.kind is ItemKind.FOLD:
            self._shown.open_fold()
        else:
            self._overrides[item.id] = not self.is_expanded(item)

    def toggle_expanded(self) -> None:
        """Opens or closes everything but thinking. The caller draws everything again."""
        self.expanded = not self.expanded
        self._overrides.clear()

    def toggle_thinking(self) -> None:
        """Shows or hides what the model thought. The caller draws everything again."""
        self.shows_thinking = not self.shows_thinking
        self._overrides.clear()

    def notice(self, level: Level, text: str, detail: str | None = None) -> None:
        """A line for the person; the same line again is counted."""
        last = self._path[len(self._path) - 1] if len(self._path) else None
        known = last.content if isinstance(last, LocalSlot) else None
        if isinstance(last, LocalSlot) and isinstance(known, NoticeBlock) and known.says(level, text):
            last.content = NoticeBlock(level, text, detail or known.detail, known.count + 1)
            self._shown.touch(len(self._path) - 1)
            return
        self._notices += 1
        slot = LocalSlot(f"local:notice-{self._notices}", NoticeBlock(level, text, detail))
        self._shown.inserted(self._path.append_local(slot))

    def set_header(self, lines: tuple[str, ...]) -> None:
        """The welcome at the top of the transcript; no lines take it away."""
        if not len(self._path) or self._path[0].id != HEADER_ID:
            self._path.insert_first(LocalSlot(HEADER_ID, HeaderBlock(lines), hidden=not lines))
            self._shown.inserted(0)
            return
        slot = self._path[0]
        assert isinstance(slot, LocalSlot)
        slot.content, slot.hidden = HeaderBlock(lines), not lines
        self._shown.touch(0)

    def show_model_changes(self, *, shown: bool) -> None:
        """Whether changes of model and level are told (``display.showModelChanges``)."""
        self._builder.shows_model_changes = shown
        self._builder.forget()
        self._shown.reset()

    @property
    def collapses(self) -> bool:
        """Whether what lies before the newest compaction is folded."""
        return self._shown.collapses

    def collapse_compacted(self, *, on: bool) -> None:
        """Whether what lies before the newest compaction is folded (``display.collapseCompacted``)."""
        self._shown.collapse(on=on)

    def reset(self, view: SessionView) -> None:
        """The session as ``view`` shows it. Header and, in the same session, notices and toggles stay."""
        same = view.header.id == self._session_id
        self._session_id = view.header.id
        kept = [slot for slot in self._path.local_slots() if same or slot.id == HEADER_ID]
        if not same:
            self._overrides.clear()
        self._builder.restart(view, is_same=same)
        self._calls.clear()
        for entry in view.tail:
            self._path.remember(entry)
        if view.phase is Phase.LOADING:
            heads = [view.tree.heads.get(entry.id) or head_of(entry) for entry in view.tail]
        else:
            heads = view.tree.path()
        self._path.replace_all(heads, [slot for slot in kept if not isinstance(slot.content, LiveAnswer)])
        self._shown.reset(is_whole=view.phase is not Phase.LOADING or view.tail_is_whole)

    def apply(self, event: Event) -> bool:
        """Takes an event in; true when something on the screen may differ."""
        match event:
            case SessionReady():
                self.reset(event.view)
            case EntryAppended():
                self._append(event)
            case AssistantStarted() | AssistantDelta() | AssistantEnded():
                self._apply_answer(event)
            case ToolStarted() | ToolProgress() | ToolEnded() | ApprovalAsked() | ApprovalClosed():
                self._apply_call(event)
            case AgentStarted() | AgentEnded() | AgentSettled():
                return self._apply_turn(is_open=isinstance(event, AgentStarted))
            case BranchSummaryStarted() | BranchSummaryEnded() | LeafMoved():
                return self._apply_move(event)
            case Notice() | RuntimeFault():
                self._tell(event)
            case _:
                return False
        return True

    def _tell(self, event: Notice | RuntimeFault) -> None:
        """What the runtime says, where no failed answer takes it."""
        if isinstance(event, RuntimeFault):
            self.notice("error", f"Something went wrong in {event.where}: {event.text}")
        elif event.source != "provider" or not self._explain(event.text):
            self.notice(event.level, event.text, event.detail)

    def _explain(self, text: str) -> bool:
        """Whether a failed answer could take what the runtime says about it, so that it is told once."""
        index = failed_last(self._path)
        return index is not None and self._builder.explain(index, text) and self._redraw.failure()

    def _append(self, event: EntryAppended) -> None:
        entry = event.entry
        if is_recent(self._path, entry.id):
            return
        self._redraw.failure()
        self._follow(entry.parent_id, is_move=is_move(entry))
        place = live_index(self._path, event.live_id) if event.live_id else None
        if place is None:
            self._shown.inserted(self._path.append_entry(entry))
        else:
            self._settle(place, entry)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            seconds = self._calls.stored(entry.message.tool_call_id)
            if seconds is not None:
                self._builder.result_s[entry.id] = seconds
        self._redraw.said_of(entry)

    def _apply_move(self, event: BranchSummaryStarted | BranchSummaryEnded | LeafMoved) -> bool:
        """The session goes on from another place, or will: what is told while the branch that is left is
        summarised belongs to the move, not to that branch. Mostly the entry of the move was here before."""
        match event:
            case BranchSummaryStarted():
                self._told_before_summary = {slot.id for slot in self._path.local_slots()}
            case BranchSummaryEnded():
                if event.entry_id is None:
                    self._told_before_summary = None
            case LeafMoved():
                if not self._path.stands_at(event.new_leaf_id):
                    self._follow(event.new_leaf_id, is_move=True)
                self._told_before_summary = None
                return True
        return False

    def _follow(self, leaf_id: str | None, *, is_move: bool) -> None:
        """Shows the branch that ends with an entry.

        A failed answer is taken off the path before it is asked for again: what was told about it stays.
        """
        told = self._told_before_summary

        def stays(slot: LocalSlot) -> bool:
            return not is_move or (told is not None and slot.id not in told)

        if self._path.go_to(leaf_id, stays):
            self._builder.change_path()
            self._shown.reset()

    def _settle(self, index: int, entry: Entry) -> None:
        """The answer in slot ``index`` is stored now: it becomes an entry where it stands."""
        slot = self._path[index]
        if isinstance(slot, LocalSlot) and isinstance(slot.content, LiveAnswer):
            for block, seconds in slot.content.thinking_seconds():
                self._builder.thinking_s[f"{entry.id}/{block}"] = seconds
        self._live_names[entry.id] = slot.id
        if len(self._live_names) > _KEPT_LIVE_NAMES:
            self._live_names.popitem(last=False)
        for item in self._builder.kept(slot.id) or ():
            if item.id in self._overrides:
                self._overrides[item.id.replace(slot.id, entry.id, 1)] = self._overrides.pop(item.id)
        self._path.settle(index, entry)
        self._shown.redraw(index)

    def _apply_answer(self, event: AssistantStarted | AssistantDelta | AssistantEnded) -> None:
        if isinstance(event, AssistantStarted):
            self._redraw.failure()
            slot = LocalSlot(event.live_id, LiveAnswer(event.live_id, self._now))
            self._shown.inserted(self._path.append_local(slot))
            return
        index = live_index(self._path, event.live_id)
        if index is None:
            return
        slot = self._path[index]
        assert isinstance(slot, LocalSlot)
        if isinstance(event, AssistantEnded):
            slot.hidden = True
        elif isinstance(slot.content, LiveAnswer):
            slot.content.take(event.event)
        self._shown.touch(index)

    def _apply_call(
        self, event: ToolStarted | ToolProgress | ToolEnded | ApprovalAsked | ApprovalClosed
    ) -> None:
        match event:
            case ToolStarted():
                self._calls.started(event)
            case ToolProgress():
                self._calls.progressed(event.call_id, event.text)
            case ToolEnded():
                self._calls.ended(event)
            case ApprovalAsked():
                self._calls.asked(event)
            case ApprovalClosed():
                call_id = self._calls.answered(event.request_id)
                if call_id is not None:
                    self._redraw.call(call_id)
                return
        self._redraw.call(event.call_id)

    def _apply_turn(self, *, is_open: bool) -> bool:
        """A turn began or ended: calls nobody answered are cancelled then."""
        if is_open == self._builder.turn_open:
            return False
        self._builder.turn_open = is_open
        if is_open:
            self._turn_after = self._path.last_entry_id()
            return False
        self._calls.clear()
        has_failed = self._redraw.failure()
        return self._redraw.unanswered(self._turn_after) or has_failed
