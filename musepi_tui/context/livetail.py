"""The part of a path the model still sees word for word, ready for pruning (compaction 5.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from musepi_tui.context.cutpoint import Estimate
from musepi_tui.context.selectors import READ_TOOL, split_selector
from musepi_tui.context.window import PathItem, path_items
from musepi_tui.session.entries import CompactionEntry, Entry, MessageEntry, StateEntry
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
from musepi_tui.session.rebuild import effective_compaction, kept_range

SKILL_TOOL = "skill"
SKILL_SCHEME = "skill://"


@dataclass(frozen=True, slots=True)
class LiveTail:
    """A path with what pruning asks about it. ``items`` is the whole of it, oldest first.

    ``start`` is the index of the first item the model still sees. ``calls`` maps the index of a result to the
    call it answers. ``protected`` are indexes of results that no pass may shorten.
    """

    items: tuple[PathItem, ...]
    start: int
    calls: Mapping[int, ToolCallBlock]
    protected: frozenset[int]

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


def read_live_tail(path: Sequence[Entry], protected_paths: Collection[str] = ()) -> LiveTail:
    """The live tail of a path, or of the part of one that holds its effective compaction and all behind it.

    ``protected_paths`` are files whose reads stay whole, spelled as the model spells them: the active plan.
    """
    return _tail_of(path_items(path), _live_start(path), protected_paths)


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
    return _tail_of(tuple(items), 0, ())


def _tail_of(items: tuple[PathItem, ...], start: int, protected_paths: Collection[str]) -> LiveTail:
    calls = paired_calls(items)
    protected = {
        index
        for index, item in enumerate(items)
        if isinstance(item.message, ToolResultMessage)
        and is_protected(item.message, calls.get(index), protected_paths)
    }
    return LiveTail(items, start, calls, frozenset(protected))


def _stand_in(entry_id: str, message: Message) -> Entry:
    """An entry of the kind the message comes from, as far as ``stored_size`` tells kinds apart."""
    if isinstance(message, CustomMessage | BranchSummary):
        return StateEntry(entry_id, None, "", "")
    return MessageEntry(entry_id, None, "", message)


def paired_calls(items: Sequence[PathItem]) -> dict[int, ToolCallBlock]:
    """The call that each tool result answers: the newest one before it with that id."""
    newest: dict[str, ToolCallBlock] = {}
    found: dict[int, ToolCallBlock] = {}
    for index, item in enumerate(items):
        message = item.message
        if isinstance(message, AssistantMessage):
            newest.update((call.id, call) for call in tool_calls_of(message))
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in newest:
            found[index] = newest[message.tool_call_id]
    return found


def is_protected(
    message: ToolResultMessage, call: ToolCallBlock | None, protected_paths: Collection[str] = ()
) -> bool:
    """Whether the result must stay whole: skills, which the model follows, and the active plan."""
    if message.tool_name == SKILL_TOOL or (call is not None and call.name == SKILL_TOOL):
        return True
    path: object = None if call is None or call.name != READ_TOOL else call.arguments.get("path")
    if not isinstance(path, str):
        return False
    return path.startswith(SKILL_SCHEME) or split_selector(path)[0] in protected_paths


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
    reset = next((i for i in range(len(path) - 1, -1, -1) if path[i].type == "reset_boundary"), -1)
    compaction = effective_compaction(path)
    if compaction is None or compaction < reset:
        return reset + 1
    entry = path[compaction]
    if isinstance(entry, CompactionEntry) and entry.retained_tail is not None:
        return compaction + 1
    return kept_range(path, compaction).start
