"""A second reader of session files, written from the pages of the format and from nothing of the product.

It shares no code with ``musepi_tui`` and does everything the plain way, so that what both say about a file
can be compared: the tree, the leaf, the labels, and the messages of the context.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Fields = dict[str, Any]
Emitted = tuple[str, Fields]
"""The id of the entry a message of the context came from, and the message as stored."""

KEEP_NOTHING = "compaction:keep-nothing"


class Reading:
    """What a file holds: ``entries`` in file order, orphans linked; ``by_id`` has the last of equal ids."""

    def __init__(self, data: bytes) -> None:
        records = [fields for line in data.split(b"\n") if (fields := _parse(line)) is not None]
        if records and records[0].get("type") == "title":
            records = records[1:]
        if not records or records[0].get("type") != "session" or not isinstance(records[0].get("id"), str):
            raise ValueError("the first record is no session header")
        self.header = records[0]
        rest = [fields for fields in records[1:] if fields.get("type") != "session"]
        if self.header.get("version", 1) < 2:
            _add_ids(self.header["id"], rest)
        self.entries = [fields for fields in rest if isinstance(fields.get("id"), str) and fields["id"]]
        for fields in self.entries:
            if self.header.get("version", 1) < 3 and _message(fields).get("role") == "hookMessage":
                fields["message"]["role"] = "custom"
        _link_orphans(self.entries)
        self.by_id = {fields["id"]: fields for fields in self.entries}
        self.order = list(dict.fromkeys(fields["id"] for fields in self.entries))
        self.leaf = self.entries[-1]["id"] if self.entries else None

    def parents(self) -> dict[str, str | None]:
        """The parent of each entry in the tree, None for a root."""
        first_of_rings = {min(ring, key=self.order.index) for ring in self._rings()}
        return {
            entry_id: None if entry_id in first_of_rings else self.by_id[entry_id].get("parentId")
            for entry_id in self.order
        }

    def labels(self) -> dict[str, str]:
        """The label of each labelled entry: the last one in the file counts, an empty one clears."""
        found = {e["targetId"]: e.get("label") or "" for e in self.entries if e.get("type") == "label"}
        return {target: label for target, label in found.items() if label and target in self.by_id}

    def path(self, leaf: str | None) -> list[Fields]:
        """The entries from the root to ``leaf``."""
        way: list[Fields] = []
        seen: set[str] = set()
        while leaf is not None and leaf in self.by_id and leaf not in seen:
            seen.add(leaf)
            way.insert(0, self.by_id[leaf])
            leaf = way[0].get("parentId")
        return way

    def context(self, leaf: str | None) -> list[Emitted]:
        """The messages a model is sent for the path to ``leaf``, before any conversion."""
        path = self.path(leaf)
        last = max((i for i, entry in enumerate(path) if _is_usable(entry)), default=-1)
        reset = max((i for i, entry in enumerate(path) if entry.get("type") == "reset_boundary"), default=-1)
        emitted = [] if reset >= last else _summary_and_kept(path, last)
        for entry in path[max(reset, last) + 1 :]:
            emitted += _emit(entry)
        return _without_dangling(_edited(path, _without_recovered(emitted)))

    def _rings(self) -> Iterator[list[str]]:
        """The rings of parents, but for entries that are their own."""
        seen: set[str] = set()
        for start in self.order:
            way: list[str] = []
            current = start
            while current in self.by_id and current not in seen:
                seen.add(current)
                way.append(current)
                current = self.by_id[current].get("parentId")
            ring = way[way.index(current) :] if current in way else []
            if len(ring) > 1:
                yield ring


def read_session(path: Path) -> Reading:
    """The session in a file. Raises ``ValueError`` when it does not begin with a header."""
    return Reading(path.read_bytes())


def shape_of(emitted: Emitted) -> tuple[Any, ...]:
    """What two readers must agree on: entry, role, text, calls, and which call a result answers."""
    entry_id, message = emitted
    content = message.get("content", message.get("summary", message.get("output")))
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    texts = [block.get("text") or block.get("thinking") or "" for block in blocks]
    calls = [
        (block["id"], block["name"], block["arguments"])
        for block in blocks
        if block.get("type") == "toolCall"
    ]
    return entry_id, message["role"], [text for text in texts if text], calls, message.get("toolCallId")


def _parse(line: bytes) -> Fields | None:
    try:
        value = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _depth(value) <= 200 else None


def _depth(value: object) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(_depth, children), default=0)


def _message(entry: Mapping[str, Any]) -> Fields:
    message = entry.get("message") if entry.get("type") == "message" else None
    return message if isinstance(message, dict) else {}


def _add_ids(session_id: str, records: list[Fields]) -> None:
    """Version 1: ids from a hash of session id and record number, a chain, kept indexes as ids."""
    ids: list[str] = []
    for number, fields in enumerate(records, 1):
        digest = hashlib.sha256(f"{session_id}:{number}".encode()).hexdigest()
        eights = [digest[start : start + 8] for start in range(0, 64, 8)]
        fields["id"] = next(eight for eight in eights if eight not in ids)
        fields["parentId"] = ids[-1] if ids else None
        ids.append(fields["id"])
    for fields in records:
        if "firstKeptEntryIndex" in fields:
            index = fields.pop("firstKeptEntryIndex")
            fields["firstKeptEntryId"] = ids[index - 1] if 1 <= index <= len(ids) else KEEP_NOTHING


def _link_orphans(entries: list[Fields]) -> None:
    ids = {fields["id"] for fields in entries}
    for index, fields in enumerate(entries):
        parent = fields.get("parentId")
        if parent is not None and parent not in ids:
            before = [entry["id"] for entry in entries[:index] if entry["id"] != fields["id"]]
            fields["parentId"] = before[-1] if before else None
        elif parent == fields["id"]:
            fields["parentId"] = None


def _is_usable(entry: Fields) -> bool:
    retired = "openaiRemoteCompaction" in (entry.get("preserveData") or {})
    return entry.get("type") == "compaction" and bool(entry.get("summary", "").strip()) and not retired


def _summary_and_kept(path: list[Fields], index: int) -> list[Emitted]:
    compaction = path[index]
    own_id, first = compaction["id"], compaction.get("firstKeptEntryId")
    head = {"role": "compactionSummary", "summary": compaction["summary"]}
    if compaction.get("retainedTail") is not None:
        return [(own_id, message) for message in (head, *compaction["retainedTail"])]
    ids = [entry["id"] for entry in path[:index]]
    start = index if first in (KEEP_NOTHING, own_id) else ids.index(first) if first in ids else 0
    return [(own_id, head), *(pair for entry in path[start:index] for pair in _emit(entry))]


def _emit(entry: Fields) -> list[Emitted]:
    if _message(entry).get("role"):
        return [(entry["id"], _message(entry))]
    if entry.get("type") == "custom_message":
        return [(entry["id"], {"role": "custom", "content": entry.get("content")})]
    if entry.get("type") == "branch_summary" and entry.get("summary"):
        return [(entry["id"], {"role": "branchSummary", "summary": entry["summary"]})]
    return []


def _without_recovered(emitted: list[Emitted]) -> list[Emitted]:
    return [pair for pair in emitted if (pair[1].get("retryRecovery") or {}).get("status") != "recovered"]


def _edited(path: list[Fields], emitted: list[Emitted]) -> list[Emitted]:
    edits: dict[str, Any] = {}
    seen: set[str] = set()
    for entry in path:
        if entry.get("type") == "context_edit" and entry["targetId"] in seen:
            edits[entry["targetId"]] = entry.get("replacement")
        seen.add(entry["id"])
    kept: list[Emitted] = []
    for entry_id, message in emitted:
        if edits.get(entry_id, message) is None:
            continue
        is_plain = entry_id not in edits or message["role"] == "compactionSummary"
        kept.append((entry_id, message if is_plain else _replaced(message, edits[entry_id]["content"])))
    return kept


def _replaced(message: Fields, content: Any) -> Fields:
    key = {"branchSummary": "summary", "bashExecution": "output"}.get(message["role"], "content")
    if message["role"] == "assistant" and isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return message | {key: content}


def _without_dangling(emitted: list[Emitted]) -> list[Emitted]:
    called: set[str] = set()
    answered = {message.get("toolCallId") for _, message in emitted if message["role"] == "toolResult"}
    kept: list[Emitted] = []
    for entry_id, message in emitted:
        if message["role"] == "toolResult" and message.get("toolCallId") not in called:
            continue
        if message["role"] != "assistant":
            kept.append((entry_id, message))
            continue
        blocks = message.get("content") or []
        whole = [block for block in blocks if block.get("type") != "toolCall" or block.get("id") in answered]
        called.update(block["id"] for block in whole if block.get("type") == "toolCall")
        if len(whole) != len(blocks):
            whole = [block for block in whole if block.get("type") != "redactedThinking"]
            whole = [block for block in whole if not block.get("redacted")]
        if whole or len(whole) == len(blocks):
            kept.append((entry_id, message | {"content": whole}))
    return kept
