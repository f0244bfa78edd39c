"""What the importer must know of each record of Claude Code before it can put them in order. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.fields import as_list, as_object, as_text
from musepi_tui.storage.importers.source import Place

_LOCAL_MARKS = (
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
)
"""How texts begin that Claude Code wrote about its own commands; the model never answered them."""


class RecordKind(Enum):
    """What becomes of a record. ``PASSED`` ones only link others."""

    PROMPT = auto()
    ANSWER = auto()
    RESULTS = auto()
    BOUNDARY = auto()
    SUMMARY = auto()
    PASSED = auto()


@dataclass(frozen=True, slots=True)
class Sketch:
    """A record without its body.

    ``reason`` says under what name a passed record is counted. ``calls`` are ids of tool calls it makes,
    ``answers`` the blocks that are results and the calls they answer,
    ``kept`` the uuids a compaction kept. ``has_words``: a record of
    results that holds text or images of the person as well.
    """

    kind: RecordKind
    uuid: str | None
    parent: str | None
    place: Place
    reason: str = ""
    message_id: str | None = None
    calls: tuple[str, ...] = ()
    answers: tuple[tuple[int, str], ...] = ()
    kept: tuple[str, ...] = ()
    has_words: bool = False
    is_side: bool = False


@dataclass(frozen=True, slots=True)
class ClaudeRecord:
    """A parsed record, its message and the content blocks of that; a string is one text block."""

    fields: Mapping[str, Any]
    message: Mapping[str, Any]
    blocks: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "ClaudeRecord":
        """The record of a parsed line; what has another shape is left out."""
        message = as_object(fields.get("message")) or {}
        content = message.get("content")
        if isinstance(content, str):
            return cls(fields, message, [{"type": "text", "text": content}])
        blocks = (as_object(item) for item in as_list(content) or ())
        return cls(fields, message, [block for block in blocks if block is not None])


def sketch_record(fields: Mapping[str, Any], place: Place) -> Sketch:
    """The sketch of a parsed record; one that is not carried over comes back as passed."""
    kind = as_text(fields.get("type")) or "record without a type"
    uuid, parent = as_text(fields.get("uuid")), as_text(fields.get("parentUuid"))
    is_side = fields.get("isSidechain") is True
    if uuid is None:
        return Sketch(RecordKind.PASSED, None, None, place, kind)
    match kind:
        case "assistant":
            record = ClaudeRecord.of(fields)
            message_id = as_text(record.message.get("id"))
            calls = tuple(call_id for _, call_id in _named(record.blocks, "tool_use", "id"))
            return Sketch(
                RecordKind.ANSWER, uuid, parent, place, message_id=message_id, calls=calls, is_side=is_side
            )
        case "user":
            return _sketch_user(fields, Sketch(RecordKind.PROMPT, uuid, parent, place, is_side=is_side))
        case "system" if fields.get("subtype") == "compact_boundary":
            before = as_text(fields.get("logicalParentUuid")) or parent
            kept = tuple(_kept_uuids(fields))
            return Sketch(RecordKind.BOUNDARY, uuid, before, place, kept=kept, is_side=is_side)
        case "system":
            return Sketch(
                RecordKind.PASSED, uuid, parent, place, f"system/{as_text(fields.get('subtype')) or '?'}"
            )
        case _:
            return Sketch(RecordKind.PASSED, uuid, parent, place, kind)


def _sketch_user(fields: Mapping[str, Any], plain: Sketch) -> Sketch:
    """What a ``user`` record is: a prompt, results, a summary, or words of the program about itself."""
    kind, reason = RecordKind.PROMPT, ""
    blocks = ClaudeRecord.of(fields).blocks
    answers = tuple(_named(blocks, "tool_result", "tool_use_id"))
    others = [block for block in blocks if block.get("type") != "tool_result"]
    if fields.get("isCompactSummary") is True:
        has_text = any((as_text(block.get("text")) or "").strip() for block in blocks)
        kind = RecordKind.SUMMARY if has_text else RecordKind.PASSED
        reason = "" if has_text else "user/empty"
    elif fields.get("isMeta") is True:
        kind, reason = RecordKind.PASSED, "user/meta"
    elif len(others) < len(blocks):
        kind = RecordKind.RESULTS
    elif _is_local(others):
        kind, reason = RecordKind.PASSED, "user/local command"
    elif not others:
        kind, reason = RecordKind.PASSED, "user/empty"
    return Sketch(
        kind,
        plain.uuid,
        plain.parent,
        plain.place,
        reason,
        answers=answers if kind is RecordKind.RESULTS else (),
        has_words=bool(others) and not _is_local(others),
        is_side=plain.is_side,
    )


def _is_local(blocks: Sequence[Mapping[str, Any]]) -> bool:
    texts = [as_text(block.get("text")) for block in blocks]
    return bool(texts) and all(text is not None and text.lstrip().startswith(_LOCAL_MARKS) for text in texts)


def _kept_uuids(fields: Mapping[str, Any]) -> Iterator[str]:
    """The messages a compaction kept, first one first."""
    preserved = (as_object(fields.get("compactMetadata")) or {}).get("preservedMessages")
    listed = as_list(preserved)
    if listed is None:
        listed = as_list((as_object(preserved) or {}).get("uuids")) or []
    yield from (uuid for uuid in listed if isinstance(uuid, str))


def _named(blocks: Sequence[Mapping[str, Any]], kind: str, key: str) -> Iterator[tuple[int, str]]:
    """Indexes of the blocks of a kind that have a text under ``key``, and that text."""
    for index, block in enumerate(blocks):
        found = as_text(block.get(key))
        if block.get("type") == kind and found:
            yield index, found
