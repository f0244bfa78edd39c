"""Records of a Codex rollout in one shape, with and without their envelope (session-format 17)."""

from collections.abc import Mapping
from typing import Any

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.fields import as_object, as_text

_ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """One record: ``kind`` is its outer type, ``inner`` the type of the payload, empty where it has none."""

    kind: str
    inner: str
    payload: Mapping[str, Any]
    timestamp: str

    @property
    def name(self) -> str:
        """What the record is called where it is counted."""
        return f"{self.kind}/{self.inner}" if self.inner else self.kind


def open_envelope(fields: Mapping[str, Any]) -> Envelope:
    """The record in one shape. Older rollouts have bare items: known by the missing ``payload``."""
    timestamp = as_text(fields.get("timestamp")) or ""
    payload = as_object(fields.get("payload"))
    if payload is not None:
        kind = as_text(fields.get("type")) or ""
        return Envelope(kind, as_text(payload.get("type")) or "", payload, timestamp)
    if is_bare_meta(fields):
        return Envelope("session_meta", "", fields, timestamp)
    if is_bare_item(fields):
        return Envelope("response_item", as_text(fields.get("type")) or "", fields, timestamp)
    named = as_text(fields.get("record_type")) or as_text(fields.get("type")) or "record"
    return Envelope(named, "", fields, timestamp)


def is_envelope(fields: Mapping[str, Any]) -> bool:
    """Whether a record is ``{timestamp, type, payload}`` with a type of Codex."""
    return as_text(fields.get("type")) in _ENVELOPES and as_object(fields.get("payload")) is not None


def is_bare_meta(fields: Mapping[str, Any]) -> bool:
    """Whether a record is the first line of an older rollout."""
    has_names = all(as_text(fields.get(key)) is not None for key in ("id", "timestamp"))
    return "type" not in fields and has_names and ("instructions" in fields or "git" in fields)


def is_bare_item(fields: Mapping[str, Any]) -> bool:
    """Whether a record is an item without an envelope."""
    kind = as_text(fields.get("type")) or ""
    if "payload" in fields or "parentId" in fields or "uuid" in fields:
        return False
    if kind == "message":
        return as_text(fields.get("role")) is not None and "content" in fields
    if kind == "reasoning":
        return "summary" in fields
    return kind.endswith(("_call", "_call_output")) and ("call_id" in fields or "action" in fields)
