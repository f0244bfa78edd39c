"""Entries and headers to JSON objects and lines, and back (session-format 2-4).

An entry that was read is written again from its parsed object: fields nobody changed keep their stored form
and place. New entries start with ``type, id, parentId, timestamp``, the order a fast reader relies on.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from musepi_tui.session.block_codec import decode_content, decode_usage, encode_content, encode_usage
from musepi_tui.session.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    EntryBase,
    MessageEntry,
    SessionHeader,
    StateEntry,
)
from musepi_tui.session.fields import Fields, as_list, as_object, as_text, overlay, put, with_rest
from musepi_tui.session.message_codec import decode_message, encode_message
from musepi_tui.session.messages import Message
from musepi_tui.session.payload import with_references

__all__ = [
    "decode_entry",
    "decode_header",
    "decode_message",
    "decode_usage",
    "dump_json",
    "dump_line",
    "encode_entry",
    "encode_header",
    "encode_message",
    "encode_usage",
    "is_header",
    "record_id",
]

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

_BASE_KEYS = ("type", "id", "parentId", "timestamp")


def decode_entry(obj: Mapping[str, Any], *, index: int = 0) -> Entry:
    """The entry of a parsed line. ``index`` (place in the file) names a record that has no id.

    Never raises: a record whose shape does not fit its type becomes a ``StateEntry``, which takes part in the
    tree and gives no message.
    """
    kind = as_text(obj.get("type")) or ""
    entry_id = as_text(obj.get("id")) or f"record-{index}"
    parent_id, timestamp = as_text(obj.get("parentId")), as_text(obj.get("timestamp")) or ""
    if parent_id is not None or obj.get("parentId") is None:  # else its place is unknown: it has no say
        if kind == "message":
            message = as_object(obj.get("message")) or {}
            if isinstance(message.get("role"), str):
                return MessageEntry(entry_id, parent_id, timestamp, decode_message(message), obj)
        decoded = _decode_known(kind, EntryBase(entry_id, parent_id, timestamp), Fields(obj))
        if decoded is not None:
            return replace(decoded, raw=obj)
    rest = {key: value for key, value in obj.items() if key not in _BASE_KEYS}
    return StateEntry(entry_id, parent_id, timestamp, kind, rest, obj)


def encode_entry(entry: Entry) -> dict[str, Any]:
    """The JSON object of an entry. What was read from a blob is written as the reference to it."""
    written = with_references(_encode_fresh(entry))
    if entry.raw is None:
        return written
    return overlay(entry.raw, _encode_fresh(decode_entry(entry.raw)), written)


def dump_line(entry: Entry) -> bytes:
    """The line of an entry as UTF-8, without its LF."""
    return dump_json(encode_entry(entry))


def dump_json(obj: object) -> bytes:
    """Compact UTF-8 JSON: key order as given, lone surrogates escaped, NaN and infinities as null."""
    try:
        text = _ENCODER.encode(obj)
    except ValueError:
        text = _ENCODER.encode(_without_nan(obj))
    # Only lone surrogates cannot be encoded, and "backslashreplace" spells them exactly as JSON escapes them.
    return text.encode("utf-8", "backslashreplace")


def is_header(obj: Mapping[str, Any]) -> bool:
    """Whether a parsed record is a session header: type ``session`` and an id that is a non-empty string."""
    return obj.get("type") == "session" and bool(as_text(obj.get("id")))


def header_version(obj: Mapping[str, Any]) -> int | None:
    """The version a header names, 1 when it names none; None for what is no whole number from 1 up.

    Such a file is nobody's: read as version 1 it would get new ids in a plain chain, and keep them.
    """
    version = obj.get("version")
    if version is None:
        return 1
    if isinstance(version, float) and version.is_integer():
        version = int(version)  # JSON has one kind of number
    return version if type(version) is int and version >= 1 else None


def decode_header(obj: Mapping[str, Any]) -> SessionHeader:
    """The header of a parsed record for which ``is_header`` holds and that has a ``header_version``."""
    fields = Fields(obj)
    fields.rest.pop("type", None)
    fields.rest.pop("version", None)
    parent = fields.take_text("parentSession")
    return SessionHeader(
        id=fields.take_text("id") or "",
        timestamp=fields.take_text("timestamp") or "",
        cwd=fields.take_text("cwd") or "",
        version=header_version(obj) or 1,
        parent_session=parent if parent is not None else as_text(fields.rest.get("branchedFrom")),
        title=fields.take_text("title"),
        title_source=fields.take_text("titleSource"),
        extra=fields.rest,
    )


def encode_header(header: SessionHeader) -> dict[str, Any]:
    """The JSON object of a header."""
    out: dict[str, Any] = {
        "type": "session",
        "version": header.version,
        "id": header.id,
        "timestamp": header.timestamp,
        "cwd": header.cwd,
    }
    if header.parent_session is not None:
        out["parentSession"] = header.parent_session
    if header.title is not None:
        out["title"] = header.title
    if header.title_source is not None:
        out["titleSource"] = header.title_source
    return with_rest(out, header.extra)


def record_id(obj: Mapping[str, Any]) -> str | None:
    """The id by which a parsed record takes part in the tree; None when it has none."""
    return as_text(obj.get("id")) or None


def _decode_known(kind: str, base: EntryBase, fields: Fields) -> Entry | None:
    """The entry of a type that musepi interprets, None for all others and for unfit shapes."""
    match kind:
        case "compaction":
            return _decode_compaction(base, fields)
        case "branch_summary":
            return _decode_branch_summary(base, fields)
        case "custom_message":
            return _decode_custom_message(base, fields)
        case "context_edit":
            return _decode_edit(base, fields)
        case _:
            return None


def _decode_branch_summary(base: EntryBase, fields: Fields) -> BranchSummaryEntry:
    return BranchSummaryEntry(
        base.id,
        base.parent_id,
        base.timestamp,
        from_id=fields.take_text("fromId"),
        summary=fields.take_text("summary") or "",
        details=fields.take_any("details"),
        from_extension=_from_extension(fields),
        usage=decode_usage(fields.rest.get("usage")),
    )


def _decode_custom_message(base: EntryBase, fields: Fields) -> CustomMessageEntry:
    return CustomMessageEntry(
        base.id,
        base.parent_id,
        base.timestamp,
        custom_type=fields.take_text("customType") or "",
        content=decode_content(fields.rest.get("content")),
        display=fields.take_bool("display", default=True),
        details=fields.take_any("details"),
        attribution=fields.take_text("attribution"),
    )


def _decode_compaction(base: EntryBase, fields: Fields) -> CompactionEntry:
    tail = fields.take_list("retainedTail")
    before = fields.take_number("tokensBefore")
    duration = fields.take_number("durationMs")
    return CompactionEntry(
        base.id,
        base.parent_id,
        base.timestamp,
        summary=fields.take_text("summary") or "",
        first_kept_entry_id=fields.take_text("firstKeptEntryId"),
        tokens_before=int(before or 0),
        tokens_after=fields.take_int("tokensAfter"),
        short_summary=fields.take_text("shortSummary"),
        details=fields.take_any("details"),
        preserve_data=fields.take_object("preserveData"),
        from_extension=_from_extension(fields),
        warning=fields.take_text("warning"),
        method=fields.take_text("method"),
        reason=fields.take_text("reason"),
        mid_turn=fields.take_true("midTurn"),
        model=fields.take_text("model"),
        duration_ms=None if duration is None else int(duration),
        usage=decode_usage(fields.rest.get("usage")),
        retained_tail=None if tail is None else _decode_tail(tail),
    )


def _decode_tail(tail: list[Any]) -> tuple[Message, ...]:
    stored = (as_object(item) for item in tail)
    return tuple(decode_message(obj) for obj in stored if obj is not None)


def _decode_edit(base: EntryBase, fields: Fields) -> ContextEditEntry | None:
    target_id = fields.take_text("targetId")
    stored = fields.rest.get("replacement")
    replacement = as_object(stored)
    if target_id is None or (stored is not None and replacement is None):
        return None
    return ContextEditEntry(
        base.id,
        base.parent_id,
        base.timestamp,
        target_id=target_id,
        replacement=None if replacement is None else decode_content(replacement.get("content")),
        reason=fields.take_text("reason"),
        pruned_at_ms=fields.take_int("prunedAt"),
    )


def _encode_fresh(entry: Entry) -> dict[str, Any]:
    """The object of an entry from its attributes alone."""
    out: dict[str, Any] = {
        "type": entry.type,
        "id": entry.id,
        "parentId": entry.parent_id,
        "timestamp": entry.timestamp,
    }
    match entry:
        case MessageEntry():
            out["message"] = encode_message(entry.message)
        case CompactionEntry():
            out |= _encode_compaction(entry)
        case BranchSummaryEntry():
            out["fromId"] = entry.from_id if entry.from_id is not None else "root"
            out["summary"] = entry.summary
            put(out, "details", entry.details)
            _put_origin(out, from_extension=entry.from_extension)
            put(out, "usage", None if entry.usage is None else encode_usage(entry.usage))
        case CustomMessageEntry():
            out["customType"] = entry.custom_type
            out["content"] = encode_content(entry.content)
            out["display"] = entry.display
            put(out, "details", entry.details)
            put(out, "attribution", entry.attribution)
        case ContextEditEntry():
            content = None if entry.replacement is None else encode_content(entry.replacement)
            out["targetId"] = entry.target_id
            out["replacement"] = None if content is None else {"content": content}
            put(out, "reason", entry.reason)
            put(out, "prunedAt", entry.pruned_at_ms)
        case StateEntry():
            with_rest(out, _with_both_dialects(entry))
        case _:
            assert_never(entry)
    return out


def _encode_compaction(entry: CompactionEntry) -> dict[str, Any]:
    out: dict[str, Any] = {"summary": entry.summary}
    put(out, "firstKeptEntryId", entry.first_kept_entry_id)
    out["tokensBefore"] = entry.tokens_before
    put(out, "tokensAfter", entry.tokens_after)
    put(out, "shortSummary", entry.short_summary)
    put(out, "details", entry.details)
    put(out, "preserveData", entry.preserve_data)
    _put_origin(out, from_extension=entry.from_extension)
    put(out, "warning", entry.warning)
    put(out, "method", entry.method)
    put(out, "reason", entry.reason)
    put(out, "midTurn", entry.mid_turn or None)
    put(out, "model", entry.model)
    put(out, "durationMs", entry.duration_ms)
    put(out, "usage", None if entry.usage is None else encode_usage(entry.usage))
    return out


def _with_both_dialects(entry: StateEntry) -> Mapping[str, Any]:
    """The fields of a state entry; a model change names its model in the words of both families of tools."""
    fields = entry.fields
    if entry.type != "model_change" or entry.raw is not None:
        return fields
    provider, model_id, model = fields.get("provider"), fields.get("modelId"), fields.get("model")
    if isinstance(model, str) and "/" in model and provider is None:
        provider, model_id = model.split("/", 1)
    known = {"provider": provider, "modelId": model_id, "model": f"{provider}/{model_id}"}
    return with_rest(known, fields) if provider is not None and model_id is not None else fields


def _put_origin(out: dict[str, Any], *, from_extension: bool) -> None:
    """Both spellings of "made by an extension", or neither."""
    if from_extension:
        out["fromExtension"] = True
        out["fromHook"] = True


def _from_extension(fields: Fields) -> bool:
    return fields.rest.get("fromExtension") is True or fields.rest.get("fromHook") is True


def _without_nan(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    obj, items = as_object(value), as_list(value)
    if obj is not None:
        return {key: _without_nan(item) for key, item in obj.items()}
    return value if items is None else [_without_nan(item) for item in items]
