"""What a compaction would do, for somebody who wants to see it first (contract 3.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from musepi_tui.base.types import Tokenizer
from musepi_tui.context.cutpoint import Estimate
from musepi_tui.context.fileops import FileOps, render_files
from musepi_tui.context.llm import LlmTemplates, convert_with_ids
from musepi_tui.context.prepare import (
    PartTokens,
    Preparation,
    PrepareOptions,
    context_tokens_of,
    plan_cut,
    prepare_compaction,
)
from musepi_tui.context.serialize import serialize_messages
from musepi_tui.context.stages import (
    RequestSize,
    SerialMessage,
    Way,
    answer_limits,
    find_way,
    plan_segments,
    segment_budget,
)
from musepi_tui.context.window import PathItem
from musepi_tui.session.entries import Entry
from musepi_tui.session.messages import Message, ToolResultMessage

Overhead: TypeAlias = Callable[[str, str | None], int]
"""Piece (``history`` or ``prefix``) and the summary it continues -> tokens of its request besides the
conversation."""

NO_TOKENS = PartTokens(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Summarizer:
    """The model that would write the summary; ``window`` and ``max_tokens`` in tokens, None is not known.

    ``harmony``: its control tokens have to be defused.
    """

    window: int | None = None
    max_tokens: int | None = None
    harmony: bool = False


@dataclass(frozen=True, slots=True)
class PreviewOptions:
    """``reserve_tokens``: what output limits are shares of (``R`` of compaction 6.2)."""

    prepare: PrepareOptions
    reserve_tokens: int
    templates: LlmTemplates
    count: Tokenizer
    overhead: Overhead
    summarizer: Summarizer = Summarizer()


@dataclass(frozen=True, slots=True)
class Preview:
    """The facts of a compaction that was not made. Without one (``is_empty``) the lists are empty.

    ``segments`` are entry ids, one tuple a request; None where one request does.
    """

    keep_recent_tokens: int
    tokens_before: int
    cut_index: int
    history_limit: int
    prefix_limit: int
    is_empty: bool = True
    tokens: PartTokens = NO_TOKENS
    first_kept_entry_id: str | None = None
    is_split: bool = False
    turn_start_entry_id: str | None = None
    history_entry_ids: tuple[str, ...] = ()
    prefix_entry_ids: tuple[str, ...] = ()
    kept_entry_ids: tuple[str, ...] = ()
    elide_entry_ids: tuple[str, ...] = ()
    previous_summary: str | None = None
    previous_compaction_id: str | None = None
    files: FileOps = FileOps()
    conversation: str = ""
    prefix_conversation: str = ""
    segments: tuple[tuple[str, ...], ...] | None = None

    @property
    def files_block(self) -> str:
        """The ``<files>`` block the summary would end with; "" without files."""
        return render_files(self.files)


@dataclass(frozen=True, slots=True)
class _Serial:
    """A part as text, and the entry each of its messages came from; "" for one without an entry."""

    messages: tuple[SerialMessage, ...] = ()
    entry_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n\n".join(message.text for message in self.messages)


def empty_preview(path: Sequence[Entry], options: PreviewOptions, estimate: Estimate) -> Preview:
    """The numbers of a path of which nothing is summarised."""
    keep_tokens, cut = plan_cut(path, options.prepare, estimate)
    history_limit, prefix_limit = _limits(options)
    return Preview(keep_tokens, context_tokens_of(path), cut.index, history_limit, prefix_limit)


def preview_compaction(path: Sequence[Entry], options: PreviewOptions, estimate: Estimate) -> Preview:
    """What a compaction of this path would do. Changes nothing and asks nobody."""
    empty = empty_preview(path, options, estimate)
    preparation = prepare_compaction(path, options.prepare, estimate)
    if preparation is None:
        return empty
    history = _serial((*(("", each) for each in preparation.carried), *_pairs(preparation.history)), options)
    prefix = _serial(_pairs(preparation.prefix), options)
    previous = preparation.previous
    return replace(
        empty,
        is_empty=False,
        tokens=preparation.tokens,
        first_kept_entry_id=preparation.first_kept_entry_id,
        is_split=preparation.is_split_turn,
        turn_start_entry_id=preparation.prefix[0].id if preparation.prefix else None,
        history_entry_ids=_ids(preparation.history),
        prefix_entry_ids=_ids(preparation.prefix),
        kept_entry_ids=_ids(preparation.kept),
        elide_entry_ids=tuple(elision.entry_id for elision in preparation.elisions),
        previous_summary=preparation.previous_summary,
        previous_compaction_id=None if previous is None else previous.id,
        files=preparation.file_history.ops | preparation.file_ops,
        conversation=history.text,
        prefix_conversation=prefix.text,
        segments=_segments(preparation, history, prefix, options),
    )


def _ids(items: Sequence[PathItem]) -> tuple[str, ...]:
    return tuple(item.id for item in items)


def _pairs(items: Sequence[PathItem]) -> list[tuple[str, Message]]:
    return [(item.id, item.message) for item in items if item.message is not None]


def _serial(pairs: Sequence[tuple[str, Message]], options: PreviewOptions) -> _Serial:
    ids, messages = [entry_id for entry_id, _ in pairs], [message for _, message in pairs]
    converted = convert_with_ids(messages, ids, options.templates)
    harmony = options.summarizer.harmony
    texts = serialize_messages([message for _, message in converted], harmony=harmony)
    found = [
        (entry_id, SerialMessage(text, options.count(text), isinstance(message, ToolResultMessage)))
        for (entry_id, message), text in zip(converted, texts, strict=True)
        if text
    ]
    return _Serial(tuple(message for _, message in found), tuple(entry_id for entry_id, _ in found))


def _segments(
    preparation: Preparation, history: _Serial, prefix: _Serial, options: PreviewOptions
) -> tuple[tuple[str, ...], ...] | None:
    """The segments of the history, and of the prefix, where they do not go in one request."""
    found: list[tuple[str, ...]] = []
    whole, start = _limits(options)
    for name, part, limit, previous in (
        ("history", history, whole, preparation.previous_summary),
        ("prefix", prefix, start, None),
    ):
        size = RequestSize(options.overhead(name, previous), limit, start)
        if part.messages and find_way(part.messages, size, options.summarizer.window) is not Way.SINGLE:
            planned = plan_segments(part.messages, segment_budget(options.summarizer.window))
            found += [_entries(part, segment.indexes) for segment in planned]
    return tuple(found) or None


def _entries(part: _Serial, indexes: range) -> tuple[str, ...]:
    return tuple(part.entry_ids[index] for index in indexes if part.entry_ids[index])


def _limits(options: PreviewOptions) -> tuple[int, int]:
    """Output limits of history and prefix, as far as the model allows them."""
    history, prefix = answer_limits(options.reserve_tokens)
    most = options.summarizer.max_tokens
    return (history, prefix) if most is None else (min(history, most), min(prefix, most))
