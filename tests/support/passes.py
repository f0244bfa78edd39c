"""Maintenance as those outside see it: JSON events, stored lines, and what a request holds, for both APIs."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from musepi_tui.runtime.event_json import JsonEvent, to_json
from musepi_tui.runtime.events import AgentSettled
from musepi_tui.session.entries import (
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    StateEntry,
)
from musepi_tui.storage.loading import load_session
from tests.support.harness import WAIT_S, Harness
from tests.support.server import ModelServer, Reply, SeenRequest, anthropic_reply, openai_reply, status_reply

SUMMARY = "## Goal\nKeep counting.\n\n## Next Steps\n1. Count on."
DOCUMENT = "## Goal\nKeep counting.\n\n## Next Steps\n1. Count on from seven."
HANDOFF_PROMPT = "Write the handoff document"
INTERNAL = ("useless", "prunedAt", "preserveData", "firstKeptEntryId", "entryId", "musepiRequest")
"""Keys of our own that no provider may see (compaction 15, 59)."""

Answer: TypeAlias = Callable[[SeenRequest], Reply]
"""What is answered to a request."""

TURNING_POINTS = ("agent_start", "agent_end", "agent_settled", "model_promoted")
TURN = ["agent_start", "agent_end"]
PASS = ["auto_compaction_start", "auto_compaction_end"]
"""A turn and an automatic pass in a ``course``."""

WINDOW = {"contextWindow": 20_000}
"""A row of ``models.json``: a pass starts at 17,000 tokens and has to get below 13,600."""


@dataclass(frozen=True)
class Said:
    """One message of a request, whatever the API: its texts joined, calls and results by their ids.

    Anthropic wants user messages that follow one another in one: here each is one again.
    """

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)


class FakeModel:
    """Answers turns from a list, every request for a summary with ``summary``, and every one for a handoff
    document with ``document``.

    A request for a summary is one without tools; one for a handoff ends with its prompt. ``turns`` are what
    becomes of the next ordinary requests; once they are used up ``ending`` is the answer.
    """

    def __init__(self, server: ModelServer, api: str) -> None:
        self.api = api
        self.turns: list[Answer | Reply] = []
        self.ending: Answer | Reply = self.says("done")
        self.summary: Answer | Reply = self.says(SUMMARY)
        self.document: Answer | Reply = self.says(DOCUMENT)
        self.asked: list[SeenRequest] = []
        self.handed_off: list[SeenRequest] = []
        self.summarised: list[SeenRequest] = []
        server.choose = self._choose

    def says(self, text: str | int = "", *, used: tuple[int, int] | None = None, **fields: Any) -> Answer:
        """An answer; a number is that many tokens. ``used``: tokens of prompt and answer as billed, by
        default a quarter of what was sent and of what is said."""
        body = solid(text) if isinstance(text, int) else text
        make = anthropic_reply if self.api == "anthropic-messages" else openai_reply

        def answer(request: SeenRequest) -> Reply:
            figures = used or (len(request.raw) // 4, len(body) // 4 + 1)
            return make(text=body, usage=billed(self.api, *figures), **fields)

        return answer

    def cut_off(self, text: str = "", *, used: tuple[int, int] = (100, 50), **fields: Any) -> Answer:
        """An answer that reached its output limit."""
        stop = "max_tokens" if self.api == "anthropic-messages" else "length"
        return self.says(text, used=used, stop=stop, **fields)

    def overflows(self) -> Reply:
        """A refusal because the context is too long."""
        if self.api == "anthropic-messages":
            error = {
                "type": "invalid_request_error",
                "message": "prompt is too long: 30000 tokens > 20000 maximum",
            }
            return status_reply(400, {"type": "error", "error": error})
        text = "This model's maximum context length is 20000 tokens; your messages resulted in 30000."
        error = {"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"}
        return status_reply(400, {"error": error})

    def too_large(self, text: str = "Request exceeds the maximum size") -> Reply:
        """A refusal because the request has too many bytes or pictures."""
        if self.api == "anthropic-messages":
            return status_reply(
                413, {"type": "error", "error": {"type": "request_too_large", "message": text}}
            )
        return status_reply(413, {"error": {"message": text, "type": "invalid_request_error"}})

    def breaks_off(self, text: str, code: str, *, said: str = "", prompt: int = 10) -> Reply:
        """An answer that ends with an error in mid-stream; ``prompt`` tokens were billed until then."""
        events = _begun_anthropic if self.api == "anthropic-messages" else _begun_openai
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events(text, code, said, prompt))
        return status_reply(200, lines, content_type="text/event-stream")

    def _choose(self, request: SeenRequest) -> Reply:
        if not request.body.get("tools"):
            self.summarised.append(request)
            return _made(self.summary, request)
        if HANDOFF_PROMPT in conversation(request)[-1].text:
            self.handed_off.append(request)
            return _made(self.document, request)
        self.asked.append(request)
        return _made(self.turns.pop(0) if self.turns else self.ending, request)


def solid(tokens: int) -> str:
    """Text of so many tokens without a blank: the server sends it in one piece, so that it costs no time."""
    return "abc-" * tokens


def billed(api: str, prompt: int, answer: int) -> dict[str, int]:
    """Usage as the API spells it."""
    if api == "anthropic-messages":
        return {"input_tokens": prompt, "output_tokens": answer}
    return {"prompt_tokens": prompt, "completion_tokens": answer}


def conversation(request: SeenRequest) -> list[Said]:
    """The messages of a request, the system prompt left out."""
    read = _read_anthropic if request.path.endswith("/messages") else _read_openai
    return [said for message in request.body["messages"] if not _is_system(message) for said in read(message)]


def texts(request: SeenRequest) -> str:
    """Everything a request says, in order."""
    parts = [part for each in conversation(request) for part in (each.text, *each.results.values())]
    return "\n".join(parts)


def check_request(request: SeenRequest) -> list[Said]:
    """The conversation of a request that is well formed: each call has one result behind it, each result a
    call before it, and nothing of our own is in it."""
    said = conversation(request)
    opened: list[str] = []
    answered: list[str] = []
    for message in said:
        opened += message.calls
        answered += message.results
        assert set(answered) <= set(opened), "a result without its call"
    assert sorted(opened) == sorted(answered), "a call without its result"
    assert len(set(opened)) == len(opened), "a call that comes twice"
    keys = _keys(request.body["messages"])
    assert keys.isdisjoint(INTERNAL), f"internal fields {keys & set(INTERNAL)}"
    return said


def summary_of(request: SeenRequest) -> str | None:
    """The summary a request begins with; None without one. There is never a second one."""
    first, *others = conversation(request)
    assert not any("\n<summary>\n" in message.text for message in others if message.role == "user")
    if "\n<summary>\n" not in first.text:
        return None
    assert first.role == "user"
    return first.text.partition("<summary>\n")[2].rpartition("\n</summary>")[0]


def told(harness: Harness, after: int = 0) -> list[JsonEvent]:
    """What JSON mode prints of the events from index ``after`` on."""
    read = harness.runtime.read_entry
    return [line for event in harness.events[after:] for line in to_json(event, read)]


def course(harness: Harness, after: int = 0, *, also: Sequence[str] = ()) -> list[str]:
    """The types of the JSON events that say how turns and passes follow one another."""
    kept = (*TURNING_POINTS, *also)
    types = [line["type"] for line in told(harness, after)]
    return [name for name in types if name in kept or name.endswith(("compaction_start", "compaction_end"))]


def passes(harness: Harness, after: int = 0) -> list[tuple[JsonEvent, JsonEvent]]:
    """Start and end of every pass. Raises when they do not alternate."""
    names = ("compaction_start", "compaction_end")
    found = [line for line in told(harness, after) if line["type"].endswith(names)]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    for start, end in pairs:
        assert start["type"].replace("_start", "_end") == end["type"], "a pass without its end"
    return pairs


async def wait_for_requests(model: FakeModel, count: int) -> None:
    """Waits until the server has so many ordinary requests."""
    async with asyncio.timeout(WAIT_S):
        while len(model.asked) < count:  # noqa: ASYNC110 - the server runs in a thread of its own
            await asyncio.sleep(0.005)


async def all_done(harness: Harness, after: int) -> None:
    """Waits until everything is done that began behind event ``after``."""
    await harness.wait_for(AgentSettled, after=after)


def notices(harness: Harness, level: str | None = None) -> list[str]:
    """What people are told about maintenance."""
    return [
        line["message"]
        for line in told(harness)
        if line["type"] == "notice" and line["source"] == "compaction" and level in (None, line["level"])
    ]


@dataclass(frozen=True)
class Stored:
    """A session file as it is on disk: the entries of the path, and those beside it."""

    path: tuple[Entry, ...]
    beside: tuple[Entry, ...]

    @property
    def compactions(self) -> list[CompactionEntry]:
        """The dividers of the path."""
        return [entry for entry in self.path if isinstance(entry, CompactionEntry)]

    @property
    def edits(self) -> list[ContextEditEntry]:
        """The edits of the path."""
        return [entry for entry in self.path if isinstance(entry, ContextEditEntry)]

    @property
    def messages(self) -> list[MessageEntry]:
        """The messages of the path."""
        return [entry for entry in self.path if isinstance(entry, MessageEntry)]

    def customs(self, custom_type: str) -> list[CustomMessageEntry]:
        """The messages of the program of that type."""
        found = [entry for entry in self.path if isinstance(entry, CustomMessageEntry)]
        return [entry for entry in found if entry.custom_type == custom_type]

    def states(self, entry_type: str) -> list[Mapping[str, Any]]:
        """The fields of the state entries of that type."""
        return [
            entry.fields for entry in self.path if isinstance(entry, StateEntry) and entry.type == entry_type
        ]


def stored(path: Path) -> Stored:
    """Reads a session file anew."""
    loaded = load_session(path, thorough=True)
    on_path = [head.id for head in loaded.tree.path()]
    entries = {head.id: loaded.bodies.get(head) for head in loaded.heads}
    beside = tuple(entry for entry_id, entry in entries.items() if entry_id not in on_path)
    loaded.bodies.close()
    return Stored(tuple(entries[entry_id] for entry_id in on_path), beside)


def write_rows(home: Path, api: str, base_url: str, *rows: Mapping[str, Any]) -> None:
    """A ``models.json`` with the provider ``local`` and these models."""
    usual = {"maxTokens": 1000, "input": ["text"], "reasoning": False}
    address = base_url if api == "anthropic-messages" else f"{base_url}/v1"
    provider = {"baseUrl": address, "api": api, "apiKey": "k", "models": [{**usual, **row} for row in rows]}
    (home / "models.json").write_text(json.dumps({"providers": {"local": provider}}), encoding="utf-8")


def _begun_anthropic(text: str, code: str, said: str, prompt: int) -> list[dict[str, Any]]:
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": said}
    return [
        {
            "type": "message_start",
            "message": {"id": "m", "role": "assistant", "usage": {"input_tokens": prompt}},
        },
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "error", "error": {"type": code, "message": text}},
    ]


def _begun_openai(text: str, code: str, said: str, prompt: int) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
    delta = {"role": "assistant", "content": said}
    return [
        {"id": "c", "choices": [{"index": 0, "delta": delta}], "usage": usage},
        {"error": {"message": text, "code": code, "type": code}},
    ]


def _made(reply: Reply | Answer, request: SeenRequest) -> Reply:
    return reply if isinstance(reply, Reply) else reply(request)


def _is_system(message: Mapping[str, Any]) -> bool:
    return message["role"] == "system" and "You are musepi" in str(message["content"])


def _read_anthropic(message: Mapping[str, Any]) -> list[Said]:
    role, content = message["role"], message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    calls = tuple(block["id"] for block in blocks if block["type"] == "tool_use")
    results = {
        block["tool_use_id"]: _text(block["content"]) for block in blocks if block["type"] == "tool_result"
    }
    if role == "assistant":
        return [Said(role, _text(blocks), calls)]
    said = [Said(role, block["text"]) for block in blocks if block["type"] == "text"]
    return [Said(role, results=results), *said] if results else said


def _read_openai(message: Mapping[str, Any]) -> list[Said]:
    text = _text(message.get("content") or "")
    if message["role"] == "tool":
        return [Said("tool", "", (), {message["tool_call_id"]: text})]
    return [Said(message["role"], text, tuple(call["id"] for call in message.get("tool_calls", ())))]


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(_keys(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(_keys(each) for each in value))
    return set()
