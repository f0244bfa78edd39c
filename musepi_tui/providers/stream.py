"""One answer over HTTP, whatever the format: sending, time limits, retries, cancelling (providers 7, 11).

The bytes are read in the task of whoever iterates; nothing is started in the background. Closing from another
task moves the deadline of the wait that is going on to now, so it takes effect whatever the socket does.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from musepi_tui.base.clock import Clock, SystemClock
from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.http import HttpResponse, check_plain_http, current_policy, shared_client
from musepi_tui.base.secrets import mask
from musepi_tui.providers.auth import forget_command, resolve_credentials
from musepi_tui.providers.classify import classify_exception, classify_http
from musepi_tui.providers.compat import compat_of
from musepi_tui.providers.draft import Draft
from musepi_tui.providers.output_limit import estimate_input
from musepi_tui.providers.protocol import Wire, WireRequest, build_message, merge_headers
from musepi_tui.providers.reader import ResponseReader
from musepi_tui.providers.retry import limits_of, over_cap, rebuilt, request_delay_s, shrunk_request
from musepi_tui.providers.types import (
    AssistantStream,
    BlockEvent,
    Credentials,
    Model,
    ProviderSpec,
    Request,
    StreamDone,
    StreamError,
    StreamEvent,
    StreamStart,
)
from musepi_tui.session.messages import AssistantMessage, StopReason, TextBlock, ToolCallBlock, Usage

CLOSE_LIMIT_S = 2.0
"""Longest wait for a connection to be given back (providers 7.6)."""
END_GRACE_S = 0.25
"""How long the end of a complete answer's body may take; a connection read to its end is used again."""
NEARLY_FULL = 0.99

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StreamCall:
    """What one stream is asked to do."""

    wire: Wire
    model: Model
    credentials: Credentials
    request: Request


def provider_of(wire: Wire) -> ProviderSpec:
    """The provider of a wire format."""

    def stream(model: Model, credentials: Credentials, request: Request) -> AssistantStream:
        return WireStream(StreamCall(wire, model, credentials, request))

    def decode(
        status: int, headers: Mapping[str, str], chunks: tuple[bytes, ...]
    ) -> StreamDone | StreamError:
        return decode_recorded(wire, status, headers, chunks)

    return ProviderSpec(wire.api, stream, decode=decode)


def decode_recorded(
    wire: Wire, status: int, headers: Mapping[str, str], chunks: tuple[bytes, ...]
) -> StreamDone | StreamError:
    """The end of a recorded response, read by the decoder of live streams."""
    model = Model(provider="recorded", id="recorded", api=wire.api, base_url="")
    reader = ResponseReader(wire.decoder(model))
    failure: ProviderError | None = None
    try:
        if status != 200:
            raise classify_http(status, headers, b"".join(chunks), wire.api)
        for chunk in chunks:
            reader.feed(chunk)
        reader.finish()
    except ProviderError as error:
        failure = error
    message = build_message(reader.decoder.draft, model, 0, error=failure)
    return StreamDone(message) if failure is None else StreamError(message, failure)


class WireStream:
    """An answer in the making (``AssistantStream``)."""

    def __init__(self, call: StreamCall, clock: Clock | None = None) -> None:
        self._wire, self._model, self._request = call.wire, call.model, call.request
        self._credentials = call.credentials
        self._clock = clock or SystemClock()
        self._limits = limits_of(call.model, compat_of(call.model), call.request.timeouts)
        self._started_ms = self._clock.now_ms()
        self._input_tokens = 0
        self._draft = Draft()
        self._deadline: float | None = None
        self._limit_setting, self._limit_s = "", 0.0
        self._scope: asyncio.Timeout | None = None
        self._has_started = False
        self._is_reading = False
        self._is_cancelled = False
        self._is_over = False
        self._freed = asyncio.Event()
        self._events = self._run()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        """The next event; after the final one StopAsyncIteration. Raises nothing else but CancelledError."""
        if self._is_over:
            raise StopAsyncIteration
        self._is_reading = True
        try:
            event = await anext(self._events, None)
        except asyncio.CancelledError:
            self._is_cancelled = True
            raise
        finally:
            self._is_reading = False
        if event is None:
            event = self._failed(_aborted())
        if isinstance(event, StreamDone | StreamError):
            self._is_over = True
        return event

    async def aclose(self) -> None:
        """Cancels the request and frees its connection. May be called by any task, and again."""
        if self._is_over:
            return
        self._is_cancelled = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_LIMIT_S):
                if not self._is_reading:
                    await self._events.aclose()
                    return
                if self._scope is not None:
                    self._scope.reschedule(asyncio.get_running_loop().time())
                await self._freed.wait()

    def partial(self) -> AssistantMessage:
        """What was received so far, as an aborted message."""
        return self._failed(_aborted()).message

    async def _run(self) -> AsyncGenerator[StreamEvent, None]:
        """All attempts until one ends; the final event comes after the connection was given back."""
        retries = 0
        while True:
            self._freed.clear()
            try:
                async with contextlib.aclosing(self._attempt()) as events:
                    async for event in events:
                        yield event
                outcome = self._finished()
            except (ProviderError, OSError) as error:
                outcome = classify_exception(error)
            finally:
                self._freed.set()
            if isinstance(outcome, AssistantMessage):
                yield StreamDone(outcome)
                return
            for event in self._draft.take_events():
                yield event
            if not await self._may_retry(outcome, retries):
                yield self._refused(outcome)
                return
            retries += 1

    async def _attempt(self) -> AsyncGenerator[StreamEvent, None]:
        """One request. Raises ProviderError when it fails; after the last event the draft is complete."""
        self._draft = Draft()
        self._watch("firstEventTimeoutSeconds", self._limits.first_event_s)
        sent = await self._guarded(self._prepare)
        async with contextlib.AsyncExitStack() as stack:
            response = await self._guarded(lambda: self._send(stack, sent))
            if response.status != 200:
                body = await self._guarded(response.read_limited)
                raise classify_http(response.status, response.headers, body, self._wire.api)
            reader = ResponseReader(self._wire.decoder(self._model))
            self._draft = reader.decoder.draft
            if not self._has_started:
                self._has_started = True
                yield StreamStart()
            async with contextlib.aclosing(self._read(response, reader)) as events:
                async for event in events:
                    yield event

    async def _read(self, response: HttpResponse, reader: ResponseReader) -> AsyncGenerator[BlockEvent, None]:
        seen_events = 0
        while True:
            chunk = await self._next_chunk(response, reader)
            if chunk is None:
                for event in reader.finish():
                    yield event
                return
            events = reader.feed(chunk)
            if events or (seen_events == 0 and reader.event_count):
                self._watch("idleTimeoutSeconds", self._limits.idle_s)
            seen_events = reader.event_count
            for event in events:
                yield event

    async def _next_chunk(self, response: HttpResponse, reader: ResponseReader) -> bytes | None:
        if not reader.decoder.is_over:
            return await self._guarded(response.next_chunk)
        self._watch("", END_GRACE_S)
        try:
            return await self._guarded(response.next_chunk)
        except ProviderError:
            if self._is_cancelled:
                raise
            return None

    async def _prepare(self) -> "_Sent":
        """The request as bytes; made in a thread, since a long history takes a while."""
        self._credentials = await resolve_credentials(self._credentials)
        if self._credentials.key is not None:
            check_plain_http(self._model.base_url, current_policy())
        sent, self._input_tokens = await asyncio.to_thread(self._encode)
        return sent

    def _encode(self) -> "tuple[_Sent, int]":
        encoded: WireRequest = self._wire.encode(self._model, self._credentials, self._request)
        headers = merge_headers(encoded.headers, self._credentials.headers)
        body = json.dumps(encoded.body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        return _Sent(encoded.url, headers, body), estimate_input(self._request)

    async def _send(self, stack: contextlib.AsyncExitStack, sent: "_Sent") -> HttpResponse:
        request = shared_client().post_stream(
            sent.url, sent.headers, sent.body, connect_s=self._limits.connect_s
        )
        return await stack.enter_async_context(request)

    async def _guarded(self, start: Callable[[], Awaitable[_T]]) -> _T:
        """Awaits ``start()`` until the deadline. Raises ProviderError when it passes, or on closing."""
        if self._is_cancelled:
            raise _aborted()
        try:
            async with asyncio.timeout_at(self._deadline) as scope:
                self._scope = scope
                return await start()
        except TimeoutError as error:
            raise (_aborted() if self._is_cancelled else self._timed_out()) from error
        finally:
            self._scope = None

    def _watch(self, setting: str, limit_s: float) -> None:
        """From now on something must come within ``limit_s`` (0: no limit), which ``setting`` sets."""
        self._limit_setting, self._limit_s = setting, limit_s
        self._deadline = asyncio.get_running_loop().time() + limit_s if limit_s else None

    def _timed_out(self) -> ProviderError:
        error = ProviderError(
            f"Nothing came from {self._model.key} for {self._limit_s:g} s (network.{self._limit_setting})",
            kind=ErrorKind.TRANSPORT,
            retryable=True,
        )
        error.cause = "timeout"
        return error

    async def _may_retry(self, failure: ProviderError, retries: int) -> bool:
        """Whether the request is sent again; waits for the delay, which may be cut short by closing."""
        if self._is_cancelled or self._draft.has_content:
            return False
        shrunk = shrunk_request(failure, self._request)
        if shrunk is not None and shrunk.max_tokens != self._request.max_tokens and retries == 0:
            self._request = shrunk
            return True
        if failure.kind is ErrorKind.AUTH and retries == 0 and forget_command(self._credentials):
            return True
        if not failure.retryable or retries >= self._request.request_retries:
            return False
        if over_cap(failure, self._request.retry_after_cap_s) is not None:
            return False
        delay_s = request_delay_s(retries + 1, self._request.request_base_delay_s, failure.retry_after_s)
        self._deadline = None
        with contextlib.suppress(ProviderError):
            await self._guarded(lambda: self._clock.sleep(delay_s))
        return True

    def _refused(self, failure: ProviderError) -> StreamError:
        """The final event of a failure that is not retried, or of a stream closed meanwhile."""
        if self._is_cancelled:
            return self._failed(_aborted())
        return self._failed(over_cap(failure, self._request.retry_after_cap_s) or failure)

    def _failed(self, error: ProviderError) -> StreamError:
        key = self._credentials.key
        shown = rebuilt(error, mask(str(error), [key] if key else []))
        message = self._message(shown)
        return StreamError(message, shown)

    def _finished(self) -> AssistantMessage:
        """The complete message. Raises ProviderError for an answer that says nothing (providers 6.3, 7.3)."""
        draft, window = self._draft, self._model.context_window
        message = self._message(None)
        if draft.stop_reason is StopReason.STOP and not draft.has_content and draft.usage is None:
            raise ProviderError("The server sent an empty answer", kind=ErrorKind.TRANSPORT, retryable=True)
        usage = draft.usage
        if draft.stop_reason is StopReason.LENGTH and usage is not None and window is not None:
            fill = usage.input + usage.cache_read + usage.cache_write
            visible = any(isinstance(block, TextBlock | ToolCallBlock) for block in message.content)
            if fill >= NEARLY_FULL * window and (usage.output == 0 or not visible):
                raise ProviderError(
                    f"The context window is full: {fill} of {window} tokens, nothing left for an answer",
                    kind=ErrorKind.OVERFLOW,
                )
        return message

    def _message(self, error: ProviderError | None) -> AssistantMessage:
        draft = self._draft
        if draft.usage is None and self._input_tokens and (draft.has_content or error is None):
            output = (draft.characters() + 3) // 4
            total = self._input_tokens + output
            usage = Usage(input=self._input_tokens, output=output, total_tokens=total, estimated=True)
        else:
            usage = draft.usage
        message = build_message(draft, self._model, self._started_ms, error=error, usage=usage)
        return replace(message, duration_ms=self._clock.now_ms() - self._started_ms)


@dataclass(frozen=True, slots=True)
class _Sent:
    url: str
    headers: Mapping[str, str]
    body: bytes


def _aborted() -> ProviderError:
    return ProviderError("Aborted", kind=ErrorKind.ABORTED)
