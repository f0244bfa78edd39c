"""A scripted model server on loopback: both supported APIs, over real HTTP, standard library only.

It runs in a thread of its own with its own event loop, so it works for asyncio tests, for child processes and
for benchmarks alike::

    with ModelServer() as server:
        server.script(anthropic_reply(text="Hello"), status_reply(429, headers={"retry-after": "0"}))
        ...                                  # point a client at server.base_url
        assert server.requests[0].body["model"] == "m"

``script`` appends replies; each request takes the next one, whatever its path. When the list is empty the
server answers with what ``choose`` makes of the request, and without that with ``fallback`` (HTTP 500 unless
set). ``server.requests`` holds what came in, in order:
method, path, headers (lower-case names) and body (JSON). ``server.disconnects`` counts clients that went away
before their reply was complete.

Replies:

- ``anthropic_reply(text=, thinking=, tools=, usage=, stop=, rate=)``: a Messages event stream
- ``openai_reply(text=, thinking=, tools=, usage=, stop=, rate=)``: a Chat Completions event stream
- ``status_reply(status, body, headers)``: an answer without a stream; ``json_reply(body)`` the same with 200
- ``hang_reply()``: takes the request and never answers
- ``drop_reply()``: closes the connection without a byte
- any ``Reply`` of your own; ``reply.cut(n)`` closes the connection after ``n`` chunks, ``reply.stall(n)``
  goes silent after ``n`` chunks, ``reply.slow(seconds)`` waits before every chunk, ``reply.packed(n)`` sends
  ``n`` chunks at once

``rate`` is pieces of text (about tokens) per second, 0 for as fast as possible. Text is cut into pieces at
blanks. ``tools`` is a list of ``(name, arguments)`` or ``(name, arguments, id)``.
"""

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

JSON_TYPE = {"content-type": "application/json"}
SSE_TYPE = {"content-type": "text/event-stream"}


@dataclass(frozen=True)
class Reply:
    """One answer: ``chunks`` are sent one by one with ``delay_s`` before each.

    ``end`` is what happens after the last chunk: ``close`` ends the body properly, ``cut`` drops the
    connection, ``hang`` keeps it open and silent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    delay_s: float = 0.0
    end: str = "close"
    sends_head: bool = True

    def cut(self, chunks: int) -> "Reply":
        return replace(self, chunks=self.chunks[:chunks], end="cut")

    def stall(self, chunks: int) -> "Reply":
        return replace(self, chunks=self.chunks[:chunks], end="hang")

    def slow(self, delay_s: float) -> "Reply":
        return replace(self, delay_s=delay_s)

    def packed(self, count: int) -> "Reply":
        starts = range(0, len(self.chunks), count)
        return replace(self, chunks=tuple(b"".join(self.chunks[at : at + count]) for at in starts))

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


@dataclass(frozen=True)
class SeenRequest:
    """What a client sent. ``body`` is the parsed JSON, None when it was none."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    connection: int


def status_reply(
    status: int, body: Any = None, headers: Mapping[str, str] | None = None, content_type: str = ""
) -> Reply:
    raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = {"content-type": content_type} if content_type else JSON_TYPE
    return Reply(status, {**kind, **(headers or {})}, (raw,) if raw else ())


def json_reply(body: Any) -> Reply:
    return status_reply(200, body)


def hang_reply() -> Reply:
    return Reply(sends_head=False, end="hang")


def drop_reply() -> Reply:
    return Reply(sends_head=False, end="cut")


def anthropic_reply(
    text: str = "",
    *,
    thinking: str = "",
    tools: Sequence[tuple[Any, ...]] = (),
    usage: Mapping[str, int] | None = None,
    stop: str | None = None,
    rate: float = 0.0,
) -> Reply:
    figures = {"input_tokens": 10, "output_tokens": 5, **(usage or {})}
    start = {"type": "message_start", "message": {"id": "msg_1", "model": "scripted", "role": "assistant"}}
    start["message"]["usage"] = {**figures, "output_tokens": 1}
    events: list[dict[str, Any]] = [start, {"type": "ping"}]
    index = 0
    for kind, content in (("thinking", thinking), ("text", text)):
        if not content:
            continue
        events.append(_block_start(index, {"type": kind, kind: ""}))
        events += [
            _block_delta(index, {"type": f"{kind}_delta", kind: piece}) for piece in pieces_of(content)
        ]
        if kind == "thinking":
            events.append(_block_delta(index, {"type": "signature_delta", "signature": "c2lnbmF0dXJl"}))
        events.append({"type": "content_block_stop", "index": index})
        index += 1
    for number, tool in enumerate(tools):
        name, arguments, call_id = _tool(tool, f"toolu_{number + 1}")
        events.append(_block_start(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}))
        for piece in _halves(json.dumps(arguments)):
            events.append(_block_delta(index, {"type": "input_json_delta", "partial_json": piece}))
        events.append({"type": "content_block_stop", "index": index})
        index += 1
    stop_reason = stop or ("tool_use" if tools else "end_turn")
    events.append({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": figures})
    events.append({"type": "message_stop"})
    chunks = tuple(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    return Reply(200, SSE_TYPE, chunks, 1 / rate if rate else 0.0)


def openai_reply(
    text: str = "",
    *,
    thinking: str = "",
    tools: Sequence[tuple[Any, ...]] = (),
    usage: Mapping[str, int] | None = None,
    stop: str | None = None,
    rate: float = 0.0,
    thinking_field: str = "reasoning_content",
) -> Reply:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{thinking_field: piece} for piece in pieces_of(thinking)]
    deltas += [{"content": piece} for piece in pieces_of(text)]
    for number, tool in enumerate(tools):
        name, arguments, call_id = _tool(tool, f"call_{number + 1}")
        first, second = _halves(json.dumps(arguments))
        call = {"index": number, "id": call_id, "type": "function"}
        deltas.append({"tool_calls": [{**call, "function": {"name": name, "arguments": first}}]})
        deltas.append({"tool_calls": [{"index": number, "function": {"arguments": second}}]})
    chunks = [_chunk({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
    chunks.append(
        _chunk({"index": 0, "delta": {}, "finish_reason": stop or ("tool_calls" if tools else "stop")})
    )
    figures = {"prompt_tokens": 10, "completion_tokens": 5, **(usage or {})}
    figures.setdefault("total_tokens", figures["prompt_tokens"] + figures["completion_tokens"])
    chunks.append(_sse({"id": "chatcmpl-1", "model": "scripted", "choices": [], "usage": figures}))
    chunks.append(b"data: [DONE]\n\n")
    return Reply(200, SSE_TYPE, tuple(chunks), 1 / rate if rate else 0.0)


def pieces_of(text: str) -> list[str]:
    """The text cut before every blank: joined it is the text again."""
    return re.findall(r"\s*\S+|\s+$", text)


def _tool(tool: tuple[Any, ...], default_id: str) -> tuple[str, Any, str]:
    name, arguments = tool[0], tool[1]
    return name, arguments, tool[2] if len(tool) > 2 else default_id


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


def _block_start(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _block_delta(index: int, delta: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _chunk(choice: Mapping[str, Any]) -> bytes:
    return _sse({"id": "chatcmpl-1", "model": "scripted", "choices": [choice], "usage": None})


def _sse(value: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


class ModelServer:
    """The server; a context manager. All methods may be called from any thread."""

    def __init__(self, *replies: Reply) -> None:
        self.requests: list[SeenRequest] = []
        self.disconnects = 0
        self.connections = 0
        self.fallback = status_reply(
            500, {"error": {"message": "the script is over", "type": "server_error"}}
        )
        self.choose: Callable[[SeenRequest], Reply] = lambda _: self.fallback
        self.port = 0
        self._replies: list[Reply] = list(replies)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="model-server", daemon=True)
        self._stop: asyncio.Event | None = None

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the model server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def base_url(self) -> str:
        """For Anthropic; clients of Chat Completions use ``base_url + "/v1"``."""
        return f"http://127.0.0.1:{self.port}"

    def script(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        current = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        try:
            while await self._handle_request(reader, writer, connection):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnects += 1
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> bool:
        line = await reader.readline()
        if not line.strip():
            return False
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers: dict[str, str] = {}
        while (line := await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = None
        seen = SeenRequest(method, path, headers, body, raw, connection)
        self.requests.append(seen)
        reply = self._replies.pop(0) if self._replies else self.choose(seen)
        return await self._answer(reply, reader, writer)

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if reply.sends_head:
            phrase = (
                HTTPStatus(reply.status).phrase if reply.status in HTTPStatus._value2member_map_ else "Odd"
            )
            head = {"transfer-encoding": "chunked", "connection": "keep-alive", **reply.headers}
            lines = [
                f"HTTP/1.1 {reply.status} {phrase}",
                *(f"{name}: {value}" for name, value in head.items()),
            ]
            writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
            await writer.drain()
        next_at = asyncio.get_running_loop().time()
        for chunk in reply.chunks:
            if reply.delay_s:
                next_at += reply.delay_s
                await asyncio.sleep(max(0.0, next_at - asyncio.get_running_loop().time()))
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            if reader.at_eof():
                raise ConnectionResetError
        if reply.end == "hang":
            await reader.read(1)
            raise ConnectionResetError
        if reply.end == "cut":
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
