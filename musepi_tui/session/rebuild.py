"""What a path means: the model's context and the display transcript (compaction 1.2-1.6, session-format 6).

Everything here takes the entries of one path, root first, and changes none of them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from musepi_tui.session.dangling import strip_dangling
from musepi_tui.session.entries import (
    KEEP_NOTHING,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.session.messages import (
    AssistantMessage,
    BashExecution,
    BranchSummary,
    CompactionSummary,
    Content,
    CustomMessage,
    DeveloperMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
    tool_calls_of,
)
from musepi_tui.session.times import unix_ms

__all__ = [
    "SessionContext",
    "SessionState",
    "boundary_index",
    "build_session_context",
    "effective_compaction",
    "holds_usable_summary",
    "is_retired",
    "is_usable",
    "kept_range",
    "last_edits",
    "message_of",
    "read_state",
    "strip_dangling",
    "summary_message",
    "with_content",
    "without_recovered",
]

_RETIRED_KEYS = frozenset({"openaiRemoteCompaction"})
"""Keys of ``preserve_data`` whose compactions hold a placeholder for a summary (compaction 1.2)."""

_Pair = tuple[str, Message]


@dataclass(frozen=True, slots=True)
class SessionState:
    """Settings of a path; None where no entry sets one. ``model`` is provider and model id."""

    model: tuple[str, str] | None
    thinking_level: str | None
    mode: str | None


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What the model is sent, before the conversion to its roles.

    ``entry_ids`` is parallel to ``messages``: the entry each came from. ``compaction_id`` is the compaction
    whose summary comes first, if any. ``warnings`` are sentences about what the path lacks.
    """

    messages: tuple[Message, ...]
    entry_ids: tuple[str, ...]
    model: tuple[str, str] | None = None
    thinking_level: str | None = None
    mode: str | None = None
    compaction_id: str | None = None
    warnings: tuple[str, ...] = ()


def boundary_index(path: Sequence[Entry], entry_id: str | None) -> int:
    """Where the kept run that starts at ``entry_id`` begins on the path; 0 for None and unknown ids.

    ``KEEP_NOTHING`` is the place behind the last compaction.
    """
    if entry_id is None:
        return 0
    if entry_id == KEEP_NOTHING:
        compactions = (i for i in range(len(path) - 1, -1, -1) if isinstance(path[i], CompactionEntry))
        return next(compactions, -1) + 1
    return next((index for index, entry in enumerate(path) if entry.id == entry_id), 0)


def kept_range(path: Sequence[Entry], index: int) -> range:
    """Indexes of the entries kept in front of the compaction at ``index``; empty when it kept none."""
    compaction = path[index]
    if not isinstance(compaction, CompactionEntry):
        return range(0)
    return range(min(boundary_index(path, compaction.first_kept_entry_id), index), index)


def effective_compaction(
    path: Sequence[Entry], active_provider: str | None = None, replay_apis: Collection[str] = ()
) -> int | None:
    """The index of the newest usable compaction, or None.

    One made by a provider, without a summary text, is usable only while ``active_provider`` is that provider
    and its api is among ``replay_apis``, those that can send the stored window again.
    """
    if active_provider is None:
        active_provider = _provider_of(path)
    for index in range(len(path) - 1, -1, -1):
        entry = path[index]
        if isinstance(entry, CompactionEntry) and is_usable(entry, active_provider, replay_apis):
            return index
    return None


def is_retired(entry: CompactionEntry) -> bool:
    """Whether the compaction holds only data that no program can use any more."""
    return not _RETIRED_KEYS.isdisjoint(entry.preserve_data or ())


def is_usable(
    entry: CompactionEntry, active_provider: str | None = None, replay_apis: Collection[str] = ()
) -> bool:
    """Whether the compaction can stand for the history before it (compaction 1.2)."""
    if is_retired(entry):
        return False
    remote = _window_of(entry)
    if remote is not None and remote["provider"] == active_provider and remote["api"] in replay_apis:
        return True
    return bool(entry.summary.strip())


def holds_usable_summary(entry: CompactionEntry) -> bool:
    """Whether the compaction has a summary, or a stored window of its provider in place of one."""
    return bool(entry.summary.strip()) or _window_of(entry) is not None


def read_state(path: Sequence[Entry]) -> SessionState:
    """Model, thinking level and mode at the end of the path, hidden entries included.

    The last model change for the default role decides; answers count only while there is none, so that a
    retry on another model does not change the person's choice.
    """
    chosen: tuple[str, str] | None = None
    answered: tuple[str, str] | None = None
    level: str | None = None
    mode: str | None = None
    for entry in path:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            answered = (entry.message.provider, entry.message.model)
        elif not isinstance(entry, StateEntry):
            continue
        elif entry.type == "model_change":
            chosen = changed_model(entry.fields) or chosen
        elif entry.type == "thinking_level_change":
            level = as_text(entry.fields.get("thinkingLevel")) or "off"
        elif entry.type == "mode_change":
            mode = as_text(entry.fields.get("mode")) or "none"
    return SessionState(chosen or answered, level, mode)


def build_session_context(
    path: Sequence[Entry], *, active_provider: str | None = None, replay_apis: Collection[str] = ()
) -> SessionContext:
    """The messages the model gets for this path: summary, kept run, everything after (compaction 1.3)."""
    state = read_state(path)
    compaction = effective_compaction(path, active_provider, replay_apis)
    reset = _last_reset(path)
    warnings: list[str] = []
    if reset is not None and (compaction is None or reset > compaction):
        compaction = None
        pairs = _emit(path, range(reset + 1, len(path)))
    elif compaction is None:
        pairs = _emit(path, range(len(path)))
    else:
        pairs = _emit_compacted(path, compaction, warnings)
    pairs = _apply_edits(path, without_recovered(pairs))
    messages, entry_ids = strip_dangling(
        [message for _, message in pairs], [entry_id for entry_id, _ in pairs]
    )
    return SessionContext(
        messages=messages,
        entry_ids=entry_ids,
        model=state.model,
        thinking_level=state.thinking_level,
        mode=state.mode,
        compaction_id=None if compaction is None else path[compaction].id,
        warnings=tuple(warnings),
    )


def summary_message(entry: CompactionEntry) -> CompactionSummary:
    """The message that stands for what the compaction hides."""
    return CompactionSummary(
        summary=entry.summary,
        tokens_before=entry.tokens_before,
        short_summary=entry.short_summary,
        timestamp_ms=unix_ms(entry.timestamp) or 0,
    )


def message_of(entry: Entry) -> Message | None:
    """The message an entry gives to the context by itself; None for state entries and compactions."""
    match entry:
        case MessageEntry():
            return entry.message
        case CustomMessageEntry():
            return CustomMessage(
                custom_type=entry.custom_type,
                content=entry.content,
                display=entry.display,
                details=entry.details,
                attribution=entry.attribution,
                timestamp_ms=unix_ms(entry.timestamp) or 0,
            )
        case BranchSummaryEntry():
            if not entry.summary:
                return None
            return BranchSummary(entry.summary, entry.from_id, unix_ms(entry.timestamp) or 0)
        case CompactionEntry() | ContextEditEntry() | StateEntry():
            return None
        case _:
            assert_never(entry)


def last_edits(path: Sequence[Entry]) -> dict[str, ContextEditEntry]:
    """The edit that counts for each edited entry: the last one behind its target (compaction 1.6)."""
    edits: dict[str, ContextEditEntry] = {}
    seen: set[str] = set()
    for entry in path:
        if isinstance(entry, ContextEditEntry) and entry.target_id in seen:
            edits[entry.target_id] = entry
        seen.add(entry.id)
    return edits


def with_content(message: Message, content: Content, pruned_at_ms: int | None) -> Message:
    """A new message object with the content of an edit; messages that have none of their own stay.

    An edited answer loses the data its provider wants back, which repeats the unedited content.
    """
    match message:
        case ToolResultMessage():
            return replace(message, content=blocks_of(content), pruned_at_ms=pruned_at_ms)
        case AssistantMessage():
            return replace(message, content=blocks_of(content), provider_payload=None)
        case UserMessage() | DeveloperMessage() | CustomMessage():
            return replace(message, content=content)
        case BashExecution():
            return replace(message, output=text_of(content))
        case BranchSummary():
            return replace(message, summary=text_of(content))
        case _:
            return message


def without_recovered(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The pairs of entry id and message without answers a retry replaced and the results behind those."""
    kept: list[_Pair] = []
    dropped_calls: set[str] = set()
    for pair in pairs:
        message = pair[1]
        if isinstance(message, AssistantMessage):
            recovery = as_object(message.extra.get("retryRecovery")) or {}
            if recovery.get("status") == "recovered":
                dropped_calls = {call.id for call in tool_calls_of(message)}
                continue
        if isinstance(message, ToolResultMessage) and message.tool_call_id in dropped_calls:
            continue
        dropped_calls = set()
        kept.append(pair)
    return kept


def _emit(path: Sequence[Entry], indexes: range) -> list[_Pair]:
    found = ((path[index].id, message_of(path[index])) for index in indexes)
    return [(entry_id, message) for entry_id, message in found if message is not None]


def _emit_compacted(path: Sequence[Entry], index: int, warnings: list[str]) -> list[_Pair]:
    """Summary, kept run and the rest; a compaction whose kept run cannot be found keeps everything."""
    compaction = path[index]
    assert isinstance(compaction, CompactionEntry)
    pairs: list[_Pair] = [(compaction.id, summary_message(compaction))]
    first_id = compaction.first_kept_entry_id
    if compaction.retained_tail is not None:
        pairs += [(compaction.id, message) for message in compaction.retained_tail]
    else:
        if first_id not in (None, KEEP_NOTHING) and all(entry.id != first_id for entry in path):
            warnings.append(
                f"Compaction {compaction.id} names a first kept entry {first_id} that is not on this branch; "
                "the whole history before it is sent again."
            )
        pairs += _emit(path, kept_range(path, index))
    return pairs + _emit(path, range(index + 1, len(path)))


def _apply_edits(path: Sequence[Entry], pairs: Sequence[_Pair]) -> list[_Pair]:
    edits = last_edits(path)
    return list(_edited(edits, pairs)) if edits else list(pairs)


def _edited(edits: Mapping[str, ContextEditEntry], pairs: Sequence[_Pair]) -> Iterator[_Pair]:
    for entry_id, message in pairs:
        edit = edits.get(entry_id)
        if edit is None:
            yield entry_id, message
        elif edit.replacement is not None:
            yield entry_id, with_content(message, edit.replacement, edit.pruned_at_ms)


def _window_of(entry: CompactionEntry) -> Mapping[str, Any] | None:
    """The window a provider stored, if it has all its fields (compaction 6.9)."""
    remote = as_object((entry.preserve_data or {}).get("remoteCompaction"))
    if remote is None:
        return None
    words = all(as_text(remote.get(key)) for key in ("provider", "api", "model"))
    is_valid = words and remote.get("version") == 1 and as_list(remote.get("window")) is not None
    return remote if is_valid else None


def _provider_of(path: Sequence[Entry]) -> str | None:
    model = read_state(path).model
    return None if model is None else model[0]


def _last_reset(path: Sequence[Entry]) -> int | None:
    places = (index for index in range(len(path) - 1, -1, -1) if path[index].type == "reset_boundary")
    return next(places, None)


def changed_model(fields: Mapping[str, Any]) -> tuple[str, str] | None:
    """The default model a change names, in either dialect; None when it is about another role."""
    if (as_text(fields.get("role")) or "default") != "default":
        return None
    provider, model_id = as_text(fields.get("provider")), as_text(fields.get("modelId"))
    if provider and model_id:
        return provider, model_id
    name = as_text(fields.get("model")) or ""
    provider, slash, model_id = name.partition("/")
    return (provider, model_id) if slash and provider and model_id else None
