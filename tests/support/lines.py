"""Lines of session files, for tests that read what is on the disk."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CWD = "/p"

SLOT_LINE = {"type": "title", "v": 1, "title": "Slot", "updatedAt": "2026-01-01T00:10:00Z", "pad": ""}
"""A title slot of other tools; only its length is not theirs."""


def header_line(version: int | None = 3, **fields: Any) -> dict[str, Any]:
    """A header record; ``version`` None leaves the field out."""
    head: dict[str, Any] = {"type": "session"}
    if version is not None:
        head["version"] = version
    return head | {"id": "s-1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": CWD} | fields


def record(kind: str, entry_id: str, parent_id: str | None, second: int = 1, **fields: Any) -> dict[str, Any]:
    """An entry record."""
    timestamp = f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}.000Z"
    return {"type": kind, "id": entry_id, "parentId": parent_id, "timestamp": timestamp} | fields


def user_record(entry_id: str, parent_id: str | None, text: str, second: int = 1) -> dict[str, Any]:
    """A stored user message."""
    message = {"role": "user", "content": text, "timestamp": second}
    return record("message", entry_id, parent_id, second, message=message)


def answer_record(
    entry_id: str, parent_id: str | None, text: str, second: int = 1, **fields: Any
) -> dict[str, Any]:
    """A stored answer."""
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "api": "x",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0},
        "stopReason": "stop",
        "timestamp": second,
    }
    return record("message", entry_id, parent_id, second, message=message | fields)


def chain(*texts: str, prefix: str = "e") -> list[dict[str, Any]]:
    """User messages one under the other: ``e1, e2, …``."""
    return [
        user_record(f"{prefix}{index}", f"{prefix}{index - 1}" if index > 1 else None, text, index)
        for index, text in enumerate(texts, 1)
    ]


def dump(obj: Mapping[str, Any]) -> bytes:
    """One line, LF included."""
    return json.dumps(obj, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write_lines(path: Path, *lines: Mapping[str, Any] | bytes) -> Path:
    """A file of records and raw bytes."""
    path.write_bytes(b"".join(line if isinstance(line, bytes) else dump(line) for line in lines))
    return path
