"""The part of a path the model still sees word for word, ready for pruning (compaction 5.1)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import is_

from musepi_tui.context.cutpoint import Estimate
from musepi_tui.context.selectors import READ_TOOL, split_selector
from musepi_tui.context.window import PathItem, path_items
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.messages import (
    AssistantMessage,
    BranchSummary,
    CustomMessage,
    Message,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    tool_calls_of,
)
from musepi_tui.session.rebuild import effective_compaction, kept_range, message_of

SKILL_TOOL = "skill"
SKILL_SCHEME = "skill://"

RESET = "reset_boundary"
"""The type of the entry behind which a conversation starts over."""

_ADDING = (MessageEntry, CustomMessageEntry, BranchSummaryEntry, StateEntry)
"""Entries that change nothing of what stands before them."""


@dataclass(frozen=True, slots=True)
class LiveTail:
    """A path with what pruning asks about it. ``items`` is the whole of it, oldest first.

    ``start`` is the index of the first item the model still sees. ``calls`` maps the index of a result to the
    call it answers. ``protected`` are indexes of results that no pass may shorten. ``newest_calls`` has the
    newest call of each id.
    """

    items: tuple[PathItem, ...]
    start: int
    calls: Mapping[int, ToolCallBlock]
    protected: frozenset[int]
    newest_calls: Mapping[str, ToolCallBlock]

    @property
    def live(self) -> range:
        """The indexes of the tail."""
        return range(self.start, len(self.items))

    def result_at(self, index: int) -> ToolResultMessage | None:
        """The tool result there, or None."""
        message = self.items[index].message
        return message if isinstance(message, ToolResultMessage) else None

    def newest_user_index(self) -> int | None:
        """Where the newest message of the person is."""
        return next((i for i in reversed(self.live) if isinstance(self.items[i].message, UserMessage)), None)


NO_TAIL = LiveTail((), 0, {}, frozenset(), {})


def read_live_tail(path: Sequence[Entry], protected_paths: Collection[str] = ()) -> LiveTail:
    """The live tail of a path, or of the part of one that holds its effective compaction and all behind it.

    ``protected_paths`` are files whose reads stay whole, spelled as the model spells them: the active plan.
    """
    return _grown(NO_TAIL, path_items(path), _live_start(path), protected_paths)


def extend_live_tail(
    tail: LiveTail, path: Sequence[Entry], protected_paths: Collection[str] = ()
) -> LiveTail | None:
    """What ``read_live_tail`` gives for ``path``, from the tail of its beginning; None where that cannot be
    had so: the path began otherwise, or what came since changes what was there.

    A path grows by a few entries a step, and maintenance asks for its tail at every one.
    """
    known = len(tail.items)
    began = len(path) >= known and all(map(is_, (item.entry for item in tail.items), path))
    added = path[known:]
    if not began or not all(isinstance(entry, _ADDING) and entry.type != RESET for entry in added):
        return None
    last = next((item for item in reversed(tail.items) if message_of(item.entry) is not None), None)
    if last is not None and last.message is None:
        return None  # an answer a retry replaced: the results that follow it are out as well
    return _grown(tail, path_items(added), tail.start, protected_paths)


def tail_of_context(
    messages: Sequence[Message], entry_ids: Sequence[str], compaction_id: str | None
) -> LiveTail:
    """The live tail of a context as it stands, for what only looks: no entry of it has to be read.

    ``entry_ids`` are parallel to ``messages``. What comes from the entry of the compaction is left out.
    """
    items = [
        PathItem(_stand_in(entry_id, message), message)
        for entry_id, message in zip(entry_ids, messages, strict=True)
        if entry_id != compaction_id
    ]
    return _grown(NO_TAIL, tuple(items), 0, ())


def _grown(
    tail: LiveTail, added: tuple[PathItem, ...], start: int, protected_paths: Collection[str]
) -> LiveTail:
    """The tail with more items behind it."""
    newest = dict(tail.newest_calls)
    found = {len(tail.items) + index: call for index, call in _pair(added, newest)}
    protected = {
        index
        for index, item in enumerate(added, start=len(tail.items))
        if isinstance(item.message, ToolResultMessage)
        and is_protected(item.message, found.get(index), protected_paths)
    }
    return LiveTail(tail.items + added, start, {**tail.calls, **found}, tail.protected | protected, newest)


def _stand_in(entry_id: str, message: Message) -> Entry:
    """An entry of the kind the message comes from, as far as ``stored_size`` tells kinds apart."""
    if isinstance(message, CustomMessage | BranchSummary):
        return StateEntry(entry_id, None, "", "")
    return MessageEntry(entry_id, None, "", message)


def paired_calls(items: Sequence[PathItem]) -> dict[int, ToolCallBlock]:
    """The call that each tool result answers: the newest one before it with that id."""
    return dict(_pair(items, {}))


def _pair(items: Sequence[PathItem], newest: dict[str, ToolCallBlock]) -> Iterator[tuple[int, ToolCallBlock]]:
    """The index of each result that answers a call, and the call; ``newest`` gets the calls by their id."""
    for index, item in enumerate(items):
        message = item.message
        if isinstance(message, AssistantMessage):
            newest.update((call.id, call) for call in tool_calls_of(message))
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in newest:
            yield index, newest[message.tool_call_id]


def is_protected(
    message: ToolResultMessage, call: ToolCallBlock | None, protected_paths: Collection[str] = ()
) -> bool:
    """Whether the result must stay whole: skills, which the model follows, and the active plan."""
    if message.tool_name == SKILL_TOOL or (call is not None and call.name == SKILL_TOOL):
        return True
    path: object = None if call is None or call.name != READ_TOOL else call.arguments.get("path")
    if not isinstance(path, str):
        return False
    if path.startswith(SKILL_SCHEME):
        return True
    return bool(protected_paths) and split_selector(path)[0] in protected_paths


def tokens_behind(items: Sequence[PathItem], estimate: Estimate) -> list[int]:
    """For each item the estimated tokens of all messages after it."""
    sizes = [_size(item, estimate) for item in reversed(items)]
    return list(accumulate(sizes, initial=0))[-2::-1] if sizes else []


def stored_size(item: PathItem, estimate: Estimate) -> int:
    """Tokens of a ``message`` entry; 0 for custom messages, branch summaries and entries without one."""
    return _size(item, estimate) if isinstance(item.entry, MessageEntry) else 0


def _size(item: PathItem, estimate: Estimate) -> int:
    return 0 if item.message is None else estimate(item.message)


def _live_start(path: Sequence[Entry]) -> int:
    reset = next((i for i in range(len(path) - 1, -1, -1) if path[i].type == RESET), -1)
    compaction = effective_compaction(path)
    if compaction is None or compaction < reset:
        return reset + 1
    entry = path[compaction]
    if isinstance(entry, CompactionEntry) and entry.retained_tail is not None:
        return compaction + 1
    return kept_range(path, compaction).start
