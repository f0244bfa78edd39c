"""Moving to another entry of a session, and what a summary of the branch that is left is made from
(compaction 10)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from musepi_tui.context.fileops import FileOps, collect_file_ops, recorded_file_ops
from musepi_tui.context.serialize import truncate_result
from musepi_tui.context.window import PathItem, path_items
from musepi_tui.session.columns import HeadList
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    EntryHead,
    MessageEntry,
)
from musepi_tui.session.messages import (
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from musepi_tui.session.rebuild import summary_message
from musepi_tui.session.tree import SessionTree

DEFAULT_WINDOW = 128_000
"""Tokens a model whose context window is not known is taken to hold (compaction 10.2)."""

SUMMARY_SHARE = 0.9
"""A summary that does not fit any more is still taken while less than this share of the budget is used
(compaction 10.2): it stands for everything before it. Above it hardly any room is left for the answer."""

INJECTED_TYPES = frozenset({"handoff", "auto-continue"})
"""Custom messages that no person wrote, also in files that do not say who did."""

Estimate = Callable[[Message], int]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the session goes on for a chosen entry: the new leaf, None before the first entry, and the text
    that comes back to be edited."""

    leaf_id: str | None
    editor_text: str | None = None


@dataclass(frozen=True, slots=True)
class LeftBranch:
    """The entries of the old path that the new one does not share, oldest first."""

    ancestor_id: str | None
    heads: Sequence[EntryHead]


@dataclass(frozen=True, slots=True)
class BranchMaterial:
    """What is summarised: the messages that fit, oldest first, and every file that is known of.

    ``left_out`` messages are older and did not fit.
    """

    messages: tuple[Message, ...]
    file_ops: FileOps
    tokens: int
    left_out: int = 0


def find_destination(tree: SessionTree, target: Entry) -> Destination:
    """Where a move to ``target`` ends (tui 5.7): before what a person wrote, else at the entry itself."""
    text = _written_text(target)
    leaf_id = target.id if text is None else tree.parent(target.id)
    return Destination(tree.with_leaf(leaf_id).display_leaf, text)


def collect_entries_for_branch_summary(
    tree: SessionTree, old_leaf_id: str | None, target_id: str
) -> LeftBranch:
    """What is left behind on the way from one entry to another; compactions do not end it.

    Raises ``EntryNotFoundError``.
    """
    if old_leaf_id is None:
        return LeftBranch(None, ())
    ancestor_id = tree.common_ancestor(old_leaf_id, target_id)
    path: HeadList = tree.path(old_leaf_id)
    shared = None if ancestor_id is None else path.index_of(ancestor_id)
    return LeftBranch(ancestor_id, path if shared is None else path[shared + 1 :])


def branch_budget(window: int | None, reserve_tokens: int) -> int:
    """Tokens of a branch that one request takes. A reserve that leaves nothing counts as 15 % of the
    window."""
    known = window or DEFAULT_WINDOW
    return known - (reserve_tokens if reserve_tokens < known else max(1, known * 15 // 100))


def prepare_branch_entries(
    entries: Sequence[Entry], budget_tokens: int, estimate: Estimate
) -> BranchMaterial:
    """The newest messages of a branch that fit into the budget (0: no limit) and the files it worked on.

    ``entries`` are oldest first. Of messages before the first one that does not fit, files are known only
    where an earlier branch summary recorded them.
    """
    candidates = [message for item in path_items(entries) if (message := _message_of(item)) is not None]
    start = oldest_seen = len(candidates)
    tokens = 0
    for index in range(len(candidates) - 1, -1, -1):
        oldest_seen = index
        size = estimate(_as_sent(candidates[index]))
        fits = budget_tokens <= 0 or tokens + size <= budget_tokens
        if fits or (_is_summary(candidates[index]) and tokens < SUMMARY_SHARE * budget_tokens):
            start, tokens = index, tokens + size
        if not fits:
            break
    ops = _recorded(entries) | collect_file_ops(candidates[oldest_seen:])
    return BranchMaterial(tuple(candidates[start:]), ops, tokens, left_out=start)


def _written_text(entry: Entry) -> str | None:
    """The text of a message somebody wrote; None for every other entry."""
    match entry:
        case MessageEntry(message=UserMessage(content=content)):
            return text_of(content)
        case MessageEntry(message=CustomMessage() as message):
            return (
                None if _is_injected(message.custom_type, message.attribution) else text_of(message.content)
            )
        case CustomMessageEntry():
            return None if _is_injected(entry.custom_type, entry.attribution) else text_of(entry.content)
        case _:
            return None


def _is_injected(custom_type: str, attribution: str | None) -> bool:
    return attribution == "agent" or custom_type in INJECTED_TYPES


def _recorded(entries: Iterable[Entry]) -> FileOps:
    """The files earlier branch summaries recorded; the lists of extensions mean nothing here."""
    ops = FileOps()
    for entry in entries:
        if isinstance(entry, BranchSummaryEntry) and not entry.from_extension:
            ops |= recorded_file_ops(entry.details)
    return ops


def _message_of(item: PathItem) -> Message | None:
    """What an entry gives to the summary; None for what no model is sent."""
    if isinstance(item.entry, CompactionEntry):
        return summary_message(item.entry) if item.entry.summary.strip() else None
    match item.message:
        case ToolResultMessage(useless=True, is_error=False):
            return None
        case BashExecution(excluded=True):
            return None
        case _:
            return item.message


def _as_sent(message: Message) -> Message:
    """The message as long as it is in the request: tool results are cut there."""
    if not isinstance(message, ToolResultMessage):
        return message
    return replace(message, content=(TextBlock(truncate_result(text_of(message.content))),))


def _is_summary(message: Message) -> bool:
    return isinstance(message, CompactionSummary | BranchSummary)
