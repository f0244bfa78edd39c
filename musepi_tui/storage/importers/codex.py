"""Rollouts of the Codex CLI (session-format 17)."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, Entry, MessageEntry, StateEntry
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.session.messages import (
    AssistantMessage,
    Block,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from musepi_tui.session.records import Record, parse_record
from musepi_tui.storage.importers.codex_items import Envelope, open_envelope
from musepi_tui.storage.importers.codex_messages import (
    call_block,
    history_summary,
    is_preamble,
    item_blocks,
    item_text,
    kept_history,
    output_content,
    read_usage,
    thinking_block,
)
from musepi_tui.storage.importers.content import Timestamps, image_of_url
from musepi_tui.storage.importers.source import Place, SourceFile, is_too_long
from musepi_tui.storage.importers.tally import Tally
from musepi_tui.storage.importers.target import SessionWriter, SourceFacts

API = "openai-responses"
_PROMPT_MARK = b'"user_message"'
_LEVELS = {"none": "off"}


class CodexReading:
    """A rollout, read once for its head; ``write`` reads it again, one record at a time."""

    def __init__(self, source: SourceFile, tally: Tally) -> None:
        self._source = source
        self._tally = tally
        self._meta: Mapping[str, Any] = {}
        self._has_marks = False
        cwd = ""
        for place in source.places():
            line = b"" if is_too_long(place) else source.read(place)
            self._has_marks = self._has_marks or _PROMPT_MARK in line
            if self._meta and cwd:
                if self._has_marks:
                    break
                continue
            envelope = self._envelope(line)
            if envelope is not None and envelope.kind == "session_meta" and not self._meta:
                self._meta = envelope.payload
            if envelope is not None and envelope.kind in ("session_meta", "turn_context"):
                cwd = cwd or as_text(envelope.payload.get("cwd")) or ""
        self.facts = SourceFacts(as_text(self._meta.get("id")) or "", cwd)

    def write(self, writer: SessionWriter) -> str | None:
        """Writes all entries; the id of the leaf. Raises ``SessionError``, ``OSError``."""
        converter = CodexConverter(self._meta, self._tally, has_marks=self._has_marks)
        for place in self._source.places():
            envelope = self._envelope(self._line(place))
            if envelope is None:
                self._tally.skip("unreadable line")
                continue
            for entry in converter.feed(envelope):
                writer.follow(entry)
        for entry in converter.finish():
            writer.follow(entry)
        return writer.leaf_id

    def _line(self, place: Place) -> bytes:
        return b"" if is_too_long(place) else self._source.read(place)

    @staticmethod
    def _envelope(line: bytes) -> Envelope | None:
        record = parse_record(line)
        return open_envelope(record.fields) if isinstance(record, Record) else None


@dataclass(slots=True)
class _OpenAnswer:
    """An answer of which more may come."""

    timestamp: str
    time_ms: int
    blocks: list[Block] = field(default_factory=list[Block])
    usage: Usage | None = None


class CodexConverter:
    """Turns records into entries, one after the other, each the child of the one before. Pure.

    An answer stays open until something follows that is not part of it, because the usage of its request
    comes behind it, sometimes behind the results too. ``has_marks``: the file tells which user items are
    prompts; without it all that do not look like a preamble are.
    """

    def __init__(self, meta: Mapping[str, Any], tally: Tally, *, has_marks: bool) -> None:
        self._provider = as_text(meta.get("model_provider")) or "openai"
        self._timestamps = Timestamps(as_text(meta.get("timestamp")) or "")
        self._tally = tally
        self._has_marks = has_marks
        self._model = as_text(meta.get("model")) or ""
        self._level: str | None = None
        self._answer: _OpenAnswer | None = None
        self._results: list[Entry] = []
        self._unmarked: list[Envelope] = []
        self._echo: str | None = None
        self._calls: dict[str, str] = {}
        self._last_total: object = None
        self._context_tokens = 0

    def feed(self, record: Envelope) -> Iterator[Entry]:
        """The entries that are complete once this record is known."""
        match record.kind:
            case "response_item":
                yield from self._take_item(record)
            case "event_msg" if record.inner == "user_message":
                yield from self._take_mark(record)
            case "event_msg" if record.inner == "token_count":
                self._take_usage(record.payload)
            case "turn_context":
                yield from self._take_settings(record)
            case "compacted":
                yield from self._take_compaction(record)
            case "session_meta":
                pass
            case _:
                self._tally.skip(record.name)

    def finish(self) -> Iterator[Entry]:
        """What is still open at the end of the file."""
        self._drop_unmarked()
        yield from self._close()

    def _take_item(self, record: Envelope) -> Iterator[Entry]:
        item, kind = record.payload, record.inner
        if kind == "message" and item.get("role") == "user":
            yield from self._take_user(record)
        elif kind == "message" and item.get("role") == "assistant":
            yield from self._add_to_answer(record, item_blocks(item, self._tally))
        elif kind == "message":
            self._tally.skip(f"message/{as_text(item.get('role')) or '?'}")
        elif kind == "reasoning":
            block = thinking_block(item)
            if block is not None:
                self._tally.carry("thinking")
                yield from self._add_to_answer(record, (block,))
        elif kind.endswith("_call"):
            call = call_block(kind, item, len(self._calls))
            self._calls[call.id] = call.name
            self._tally.carry("toolCall")
            yield from self._add_to_answer(record, (call,))
        elif kind.endswith("_output"):
            self._take_output(record)
        else:
            self._tally.skip(record.name)

    def _take_user(self, record: Envelope) -> Iterator[Entry]:
        """A user item: with marks in the file it waits for its own, else it is one unless it looks odd."""
        if self._has_marks:
            if self._echo is not None and item_text(record.payload) == self._echo:
                self._echo = None
                return
            self._unmarked.append(record)
        elif is_preamble(record.payload):
            self._tally.skip("preamble")
        else:
            yield from self._prompt(record.timestamp, item_blocks(record.payload, self._tally))

    def _take_mark(self, record: Envelope) -> Iterator[Entry]:
        """What the person really wrote: the waiting item with that text, else the last one, else the mark."""
        text = as_text(record.payload.get("message")) or ""
        same = [item for item in self._unmarked if item_text(item.payload) == text]
        chosen = (same or self._unmarked)[-1] if self._unmarked else None
        if chosen is not None:
            self._unmarked.remove(chosen)
            self._drop_unmarked()
            yield from self._prompt(chosen.timestamp, item_blocks(chosen.payload, self._tally))
            return
        images = (as_text(url) for url in as_list(record.payload.get("images")) or ())
        shown = [image_of_url(url, self._tally) for url in images]
        self._echo = text
        yield from self._prompt(record.timestamp, (*((TextBlock(text),) if text else ()), *shown))

    def _prompt(self, timestamp: str, blocks: tuple[Block, ...]) -> Iterator[Entry]:
        yield from self._close()
        if not blocks:
            self._tally.skip("message/empty")
            return
        stamp, time_ms = self._timestamps.read(timestamp)
        self._tally.carry("user")
        yield MessageEntry("", None, stamp, UserMessage(blocks, time_ms))

    def _drop_unmarked(self) -> None:
        for _ in self._unmarked:
            self._tally.skip("preamble")
        self._unmarked.clear()

    def _add_to_answer(self, record: Envelope, blocks: tuple[Block, ...]) -> Iterator[Entry]:
        """More of an answer; after results it is the next one."""
        self._echo = None
        if self._results:
            yield from self._close()
        if self._answer is None:
            self._answer = _OpenAnswer(*self._timestamps.read(record.timestamp))
        self._answer.blocks.extend(blocks)

    def _take_output(self, record: Envelope) -> None:
        call_id = as_text(record.payload.get("call_id")) or ""
        if call_id not in self._calls:
            self._tally.skip("tool result without a call")
            return
        blocks, is_error = output_content(record.payload.get("output"), self._tally)
        timestamp, time_ms = self._timestamps.read(record.timestamp)
        result = ToolResultMessage(
            call_id, self._calls[call_id], blocks, is_error=is_error, timestamp_ms=time_ms
        )
        self._tally.carry("toolResult")
        self._results.append(MessageEntry("", None, timestamp, result))

    def _take_usage(self, payload: Mapping[str, Any]) -> None:
        """Usage of the request behind the open answer. The same totals again say nothing new."""
        info = as_object(payload.get("info")) or {}
        total = info.get("total_token_usage")
        usage = read_usage(info.get("last_token_usage"))
        if usage is None or (total is not None and total == self._last_total):
            return
        self._last_total = total
        self._context_tokens = usage.total_tokens or usage.input + usage.cache_read + usage.output
        if self._answer is not None:
            self._answer.usage = usage

    def _take_settings(self, record: Envelope) -> Iterator[Entry]:
        """Model and thinking level where they change."""
        model = as_text(record.payload.get("model")) or self._model
        effort = as_text(record.payload.get("effort")) or self._level
        level = None if effort is None else _LEVELS.get(effort, effort)
        changes: list[tuple[str, dict[str, Any]]] = []
        if model and model != self._model:
            changes.append(("model_change", {"provider": self._provider, "modelId": model}))
        if level is not None and level != self._level:
            changes.append(("thinking_level_change", {"thinkingLevel": level}))
        if not changes:
            return
        yield from self._close()
        self._model, self._level = model, level
        timestamp, _ = self._timestamps.read(record.timestamp)
        for kind, fields in changes:
            self._tally.carry(kind)
            yield StateEntry("", None, timestamp, kind, fields)

    def _take_compaction(self, record: Envelope) -> Iterator[Entry]:
        self._drop_unmarked()
        yield from self._close()
        summary = history_summary(record.payload)
        if not summary:
            self._tally.skip("compaction without a summary")
            return
        timestamp, _ = self._timestamps.read(record.timestamp)
        self._tally.carry("compaction")
        yield CompactionEntry(
            "",
            None,
            timestamp,
            summary=summary,
            first_kept_entry_id=KEEP_NOTHING,
            tokens_before=self._context_tokens,
            preserve_data=kept_history(record.payload),
        )

    def _close(self) -> Iterator[Entry]:
        """The open answer and its results, in order."""
        if self._answer is not None:
            answer, self._answer = self._answer, None
            has_calls = any(isinstance(block, ToolCallBlock) for block in answer.blocks)
            message = AssistantMessage(
                content=tuple(answer.blocks),
                api=API,
                provider=self._provider,
                model=self._model,
                stop_reason=StopReason.TOOL_USE if has_calls else StopReason.STOP,
                usage=answer.usage or Usage(),
                timestamp_ms=answer.time_ms,
            )
            self._tally.carry("assistant")
            yield MessageEntry("", None, answer.timestamp, message)
        yield from self._results
        self._results = []
