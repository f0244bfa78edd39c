"""Records of other programs, and importing a file of them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from musepi_tui.session.entries import Entry, MessageEntry
from musepi_tui.session.invariants import find_breaches
from musepi_tui.session.messages import Message
from musepi_tui.storage.importers import Imported, import_session
from musepi_tui.storage.loading import LoadedSession, load_session
from musepi_tui.storage.paths import Paths
from tests.support.lines import write_lines
from tests.support.shared import shared_path


def paths_in(folder: Path) -> Paths:
    return Paths(config=folder / "config", data=folder / "data", state=folder / "state")


def claude(kind: str, uuid: str, parent: str | None, second: int = 0, **fields: Any) -> dict[str, Any]:
    """A record of Claude Code that is part of the chain."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "cwd": "/srv/p",
        "sessionId": "c-1",
        "type": kind,
        "uuid": uuid,
        "timestamp": f"2026-02-01T00:00:{second:02d}.000Z",
    } | fields


def said(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    """A ``user`` record of Claude Code."""
    return claude("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def answered(
    uuid: str, parent: str | None, block: dict[str, Any], message_id: str, **message: Any
) -> dict[str, Any]:
    """One block of an answer of Claude Code."""
    body = {"id": message_id, "role": "assistant", "model": "claude-x", "content": [block]} | message
    return claude("assistant", uuid, parent, message=body)


def tool_use(call_id: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"command": call_id}}


def tool_result(call_id: str, content: Any = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | fields


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    """A record of a rollout in its envelope; ``inner`` is the type of the payload."""
    if "inner" in payload:
        payload["type"] = payload.pop("inner")
    return {"timestamp": "2026-02-01T00:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    """A response item of a rollout."""
    return codex("response_item", inner=kind, **payload)


def codex_text(role: str, words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": words}])


def marked(words: str, **fields: Any) -> dict[str, Any]:
    """The event that says what the person wrote."""
    return codex("event_msg", inner="user_message", message=words, **fields)


def tokens(given: int, cached: int, made: int, total: int) -> dict[str, Any]:
    """A token count: the last request, and the total of the session."""
    last = {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "output_tokens": made,
        "total_tokens": given + made,
    }
    info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
    return codex("event_msg", inner="token_count", info=info)


META = codex(
    "session_meta", id="x-1", cwd="/srv/p", timestamp="2026-02-01T00:00:00.000Z", model_provider="openai"
)


class Import:
    """A file written, imported and loaded again."""

    def __init__(self, folder: Path, *lines: Any, name: str = "source.jsonl", salvage: bool = False) -> None:
        self.source = write_lines(folder / name, *lines)
        self.done = import_session(self.source, paths_in(folder), salvage=salvage)
        self.loaded = load_session(self.done.path, thorough=True)
        self.entries = [self.loaded.bodies.get(head) for head in self.loaded.heads]

    @property
    def messages(self) -> list[Message]:
        return messages_of(self.entries)

    @property
    def roles(self) -> list[str]:
        return [head.role or head.type for head in self.loaded.heads[:-1]]

    @property
    def path_roles(self) -> list[str]:
        """The path to the leaf, without the entry that tells of the import."""
        return [head.role or head.type for head in self.loaded.tree.path()[:-1]]


def messages_of(entries: list[Entry]) -> list[Message]:
    return [entry.message for entry in entries if isinstance(entry, MessageEntry)]


def role_counts(loaded: LoadedSession) -> Counter[str]:
    return Counter(head.role for head in loaded.heads if head.role)


def assert_sound(imported: Imported) -> None:
    """The result keeps the rules of the product and of the independent checker."""
    loaded = load_session(imported.path, thorough=True)
    assert [issue for issue in loaded.issues if issue.kind not in ("bad_utf8",)] == []
    assert [breach.text for breach in find_breaches(loaded.tree, loaded.bodies.get)] == []
    checker = shared_path("tools", "make_session.py")
    result = subprocess.run(
        [sys.executable, str(checker), "--check", str(imported.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(result.stdout)["problems"] == []
