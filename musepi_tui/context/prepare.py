"""What a compaction will do, decided before anything is changed (compaction 4)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from musepi_tui.context.cutpoint import Cut, Estimate, KeepFacts, Span, adapt_keep_recent, find_cut_point
from musepi_tui.context.elide import Elision, plan_elisions
from musepi_tui.context.fileops import FileHistory, FileOps, collect_file_ops, resolve_file_history
from musepi_tui.context.threshold import Threshold
from musepi_tui.context.usage import calculate_context_tokens, calculate_prompt_tokens, last_assistant_usage
from musepi_tui.context.window import PathItem, path_items
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, Entry, MessageEntry
from musepi_tui.session.messages import Message
from musepi_tui.session.rebuild import boundary_index

MINIMUM_MESSAGES = 2
"""Message entries a session needs before a summary of it can be shorter than itself (TUI-4.64)."""

_FOREIGN_KEYS = frozenset({"remoteCompaction", "openaiRemoteCompaction"})


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """Sizes in tokens; None is unknown. ``other_tokens``: system prompt and tool schemas."""

    keep_recent_tokens: int
    window: int | None = None
    threshold: Threshold | None = None
    other_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PartTokens:
    """Estimated tokens of the three parts."""

    history: int
    prefix: int
    kept: int


@dataclass(frozen=True, slots=True)
class Preparation:
    """A compaction that can be produced and committed.

    ``history`` is summarised, ``prefix`` too (the start of the turn the cut goes through), ``kept`` stays;
    together they are the messages of the window, in order. ``carried`` are messages an older program stored
    inside its divider; they come before ``history`` and are summarised with it.
    ``elisions`` are the large tool results of the kept tail to replace, in the order of replacement.
    ``file_ops`` are all files of history and prefix, ``file_history`` those of earlier compactions.
    """

    first_kept_entry_id: str
    cut_index: int
    history: tuple[PathItem, ...]
    prefix: tuple[PathItem, ...]
    kept: tuple[PathItem, ...]
    carried: tuple[Message, ...]
    previous: CompactionEntry | None
    elisions: tuple[Elision, ...]
    file_ops: FileOps
    file_history: FileHistory
    tokens_before: int
    keep_recent_tokens: int
    tokens: PartTokens

    @property
    def is_split_turn(self) -> bool:
        """Whether the cut goes through a turn."""
        return bool(self.prefix)

    @property
    def previous_summary(self) -> str | None:
        """The text of the summary this one continues."""
        return None if self.previous is None else self.previous.summary.strip()

    @property
    def history_messages(self) -> tuple[Message, ...]:
        """What the history summary is made from."""
        return (*self.carried, *messages_of(self.history))

    @property
    def prefix_messages(self) -> tuple[Message, ...]:
        """What the turn summary is made from."""
        return messages_of(self.prefix)


@dataclass(frozen=True, slots=True)
class _Window:
    items: tuple[PathItem, ...]
    start: int
    cut_start: int
    previous: CompactionEntry | None

    @property
    def end(self) -> int:
        return len(self.items)

    @property
    def span(self) -> Span:
        return Span(self.cut_start, self.end, self.start)

    @property
    def carried(self) -> tuple[Message, ...]:
        """Messages stored inside the previous divider instead of before it (newer pi files)."""
        return () if self.previous is None else self.previous.retained_tail or ()


def prepare_compaction(
    path: Sequence[Entry], options: PrepareOptions, estimate: Estimate
) -> Preparation | None:
    """The compaction of this path, or None when there is nothing to summarise. Changes nothing."""
    if (
        not has_new_messages(path)
        or sum(isinstance(entry, MessageEntry) for entry in path) < MINIMUM_MESSAGES
    ):
        return None
    window = _find_window(path)
    keep_tokens, cut = plan_cut(path, options, estimate)
    history, prefix = _summarised(window, cut)
    if not history and not prefix:
        return None
    kept = _with_message(window.items[cut.index :])
    new_ops = collect_file_ops((*window.carried, *messages_of(history), *messages_of(prefix)))
    return Preparation(
        first_kept_entry_id=KEEP_NOTHING if cut.index == window.end else window.items[cut.index].id,
        cut_index=cut.index,
        history=history,
        prefix=prefix,
        kept=kept,
        carried=window.carried,
        previous=window.previous,
        elisions=plan_elisions(window.items, kept, keep_tokens, estimate),
        file_ops=new_ops,
        file_history=resolve_file_history(path, window.previous),
        tokens_before=context_tokens_of(path),
        keep_recent_tokens=keep_tokens,
        tokens=PartTokens(
            _total(window.carried, estimate) + _total(messages_of(history), estimate),
            _total(messages_of(prefix), estimate),
            _total(messages_of(kept), estimate),
        ),
    )


def plan_cut(path: Sequence[Entry], options: PrepareOptions, estimate: Estimate) -> tuple[int, Cut]:
    """The adapted size of the kept tail and where it begins, also where there is nothing to summarise."""
    window = _find_window(path)
    keep_tokens = _kept_size(path, window, options, estimate)
    return keep_tokens, find_cut_point(window.items, window.span, keep_tokens, estimate)


def context_tokens_of(path: Sequence[Entry]) -> int:
    """Context tokens the newest usable answer of the path was billed for; 0 without one."""
    usage = last_assistant_usage(path)
    return 0 if usage is None else calculate_context_tokens(usage)


def has_new_messages(path: Sequence[Entry]) -> bool:
    """Whether a message follows the newest compaction of the path; True without one."""
    items = path_items(path)
    newest = next((i for i in range(len(items) - 1, -1, -1) if items[i].is_compaction), None)
    return newest is None or any(item.message is not None for item in items[newest + 1 :])


def messages_of(items: Iterable[PathItem]) -> tuple[Message, ...]:
    """The messages of these items, without those that have none."""
    return tuple(item.message for item in items if item.message is not None)


def _find_window(path: Sequence[Entry]) -> _Window:
    """The entries since the start of what the previous compaction kept, that compaction included."""
    reset = _last_index(path, lambda entry: entry.type == "reset_boundary")
    start = cut_start = reset + 1
    previous: CompactionEntry | None = None
    for index in range(len(path) - 1, reset, -1):
        entry = path[index]
        if not isinstance(entry, CompactionEntry):
            continue
        kept_start = max(reset + 1, _kept_start(path, index, entry))
        if _is_readable(entry):
            previous, start = entry, kept_start
            break
        if entry.preserve_data and "remoteCompaction" in entry.preserve_data:
            cut_start = max(cut_start, kept_start)
    return _Window(path_items(path), start, max(start, cut_start), previous)


def _kept_start(path: Sequence[Entry], index: int, compaction: CompactionEntry) -> int:
    if compaction.first_kept_entry_id == KEEP_NOTHING or compaction.retained_tail:
        return index + 1
    return min(boundary_index(path, compaction.first_kept_entry_id), index + 1)


def _is_readable(compaction: CompactionEntry) -> bool:
    """Whether its summary is text that may be shown to any model."""
    keys = set(compaction.preserve_data or {})
    return bool(compaction.summary.strip()) and not keys & _FOREIGN_KEYS


def _kept_size(path: Sequence[Entry], window: _Window, options: PrepareOptions, estimate: Estimate) -> int:
    since_compaction = path[_last_index(path, lambda entry: isinstance(entry, CompactionEntry)) + 1 :]
    usage = last_assistant_usage(since_compaction)
    facts = KeepFacts(
        window=options.window,
        threshold=options.threshold,
        other_tokens=options.other_tokens,
        prompt=None if usage is None else calculate_prompt_tokens(usage),
        estimated=_total(messages_of(window.items[window.start :]), estimate),
    )
    return adapt_keep_recent(options.keep_recent_tokens, facts)


def _summarised(window: _Window, cut: Cut) -> tuple[tuple[PathItem, ...], tuple[PathItem, ...]]:
    turn_start = cut.index if cut.turn_start is None else cut.turn_start
    items = window.items
    return _with_message(items[window.start : turn_start]), _with_message(items[turn_start : cut.index])


def _with_message(items: Iterable[PathItem]) -> tuple[PathItem, ...]:
    return tuple(item for item in items if item.message is not None)


def _total(messages: Iterable[Message], estimate: Estimate) -> int:
    return sum(estimate(message) for message in messages)


def _last_index(path: Sequence[Entry], matches: Callable[[Entry], bool]) -> int:
    """The index of the last entry that matches, -1 when none does."""
    return next((i for i in range(len(path) - 1, -1, -1) if matches(path[i])), -1)
