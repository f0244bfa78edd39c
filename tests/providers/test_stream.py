import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from musepi_tui.base.errors import ErrorKind
from musepi_tui.base.http import HttpPolicy, close_shared_client, configure
from musepi_tui.providers.apis import load_provider
from musepi_tui.providers.types import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    Credentials,
    Model,
    Request,
    StreamDone,
    StreamError,
    StreamEvent,
    StreamStart,
    Timeouts,
    ToolSpec,
)
from musepi_tui.session.messages import (
    StopReason,
    TextBlock,
    ThinkingBlock,
    UserMessage,
    text_of,
    tool_calls_of,
)
from tests.support.server import (
    ModelServer,
    Reply,
    anthropic_reply,
    drop_reply,
    hang_reply,
    json_reply,
    openai_reply,
    status_reply,
)

APIS = ["anthropic-messages", "openai-completions"]
KEY = Credentials("sk-test-0123456789abcdef", "--api-key")
READ = ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})

pytestmark = pytest.mark.usefixtures("http")


def model_at(server: ModelServer, api: str, **changes) -> Model:
    base = server.base_url if api == "anthropic-messages" else server.base_url + "/v1"
    return replace(Model("scripted", "m", api, base, context_window=100_000), **changes)


def request_of(text: str = "hi", **changes) -> Request:
    defaults = {"request_base_delay_s": 0.01, "timeouts": Timeouts(2.0, 5.0, 5.0)}
    return Request("You help.", (UserMessage(text),), (READ,), **{**defaults, **changes})


def reply_in(api: str, *args, **kwargs) -> Reply:
    return (anthropic_reply if api == "anthropic-messages" else openai_reply)(*args, **kwargs)


def open_stream(model: Model, request: Request, credentials: Credentials = KEY):
    return load_provider(model.api).stream(model, credentials, request)


async def collect(model: Model, request: Request, credentials: Credentials = KEY) -> list[StreamEvent]:
    return [event async for event in open_stream(model, request, credentials)]


@pytest.mark.parametrize("api", APIS)
async def test_stream_gives_thinking_text_and_parallel_calls_in_order(server, api):
    tools = [("read", {"path": "a.py"}), ("read", {"path": "b.py"})]
    server.script(reply_in(api, "It is here.", thinking="Let me see.", tools=tools))
    events = await collect(model_at(server, api), request_of())

    assert isinstance(events[0], StreamStart)
    final = events[-1]
    assert isinstance(final, StreamDone)
    message = final.message
    assert message.stop_reason is StopReason.TOOL_USE
    assert [type(block).__name__ for block in message.content] == [
        "ThinkingBlock",
        "TextBlock",
        "ToolCallBlock",
        "ToolCallBlock",
    ]
    assert [call.arguments for call in tool_calls_of(message)] == [{"path": "a.py"}, {"path": "b.py"}]
    assert (message.usage.input, message.usage.output) == (10, 5)
    assert (message.provider, message.model, message.api) == ("scripted", "m", api)


@pytest.mark.parametrize("api", APIS)
async def test_stream_events_agree_with_the_final_message(server, api):
    server.script(reply_in(api, "One two three.", thinking="Hm, so.", tools=[("read", {"path": "x"})]))
    events = await collect(model_at(server, api), request_of())
    message = events[-1].message
    opened: dict[int, str] = {}
    grown: dict[int, str] = {}
    for event in events:
        if isinstance(event, BlockStart):
            opened[event.content_index] = event.kind
        elif isinstance(event, BlockDelta):
            assert event.content_index in opened
            grown[event.content_index] = grown.get(event.content_index, "") + event.delta
        elif isinstance(event, BlockEnd):
            block = message.content[event.content_index]
            assert opened.pop(event.content_index) == event.kind
            if isinstance(block, TextBlock):
                assert event.content == block.text == grown[event.content_index]
            elif isinstance(block, ThinkingBlock):
                assert event.content == block.thinking == grown[event.content_index]
            else:
                assert event.tool_call == block
    assert opened == {}
    assert sum(isinstance(event, StreamDone | StreamError) for event in events) == 1


@pytest.mark.parametrize("api", APIS)
async def test_request_is_sent_to_the_right_path_with_the_key_and_our_name(server, api):
    server.script(reply_in(api, "ok"))
    await collect(model_at(server, api), request_of())
    seen = server.requests[0]
    assert seen.method == "POST"
    assert seen.headers["user-agent"].startswith("musepi/")
    if api == "anthropic-messages":
        assert seen.path == "/v1/messages"
        assert seen.headers["x-api-key"] == KEY.key
        assert seen.headers["anthropic-version"] == "2023-06-01"
    else:
        assert seen.path == "/v1/chat/completions"
        assert seen.headers["authorization"] == f"Bearer {KEY.key}"


@pytest.mark.parametrize("api", APIS)
async def test_request_is_repeated_after_429_and_the_answer_looks_like_one(server, api):
    server.script(
        status_reply(
            429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, {"retry-after": "0.05"}
        ),
        reply_in(api, "Hello"),
    )
    started = time.monotonic()
    events = await collect(model_at(server, api), request_of())
    assert text_of(events[-1].message.content) == "Hello"
    assert sum(isinstance(event, StreamStart) for event in events) == 1
    assert time.monotonic() - started >= 0.05
    assert len(server.requests) == 2


async def test_retries_end_after_the_set_number(server):
    server.script(*[status_reply(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}})] * 5)
    events = await collect(model_at(server, APIS[0]), request_of(request_retries=2))
    assert isinstance(events[-1], StreamError)
    assert events[-1].error.kind is ErrorKind.OVERLOADED
    assert len(server.requests) == 3


async def test_hint_over_the_cap_fails_at_once_and_names_both_figures(server):
    server.script(
        status_reply(429, {"error": {"message": "later", "type": "rate_limit_error"}}, {"retry-after": "90"})
    )
    events = await collect(model_at(server, APIS[0]), request_of())
    error = events[-1].error
    assert "Server requested 90s retry delay (max: 60s)" in str(error)
    assert "later" in str(error)
    assert not error.retryable
    assert error.retry_after_s == 90


@pytest.mark.parametrize("api", APIS)
async def test_stream_cut_in_the_middle_keeps_what_came(server, api):
    server.script(reply_in(api, "one two three four").cut(6))
    events = await collect(model_at(server, api), request_of())
    final = events[-1]
    assert isinstance(final, StreamError)
    assert final.error.kind is ErrorKind.TRANSPORT
    assert final.error.retryable
    assert final.message.stop_reason is StopReason.ERROR
    assert text_of(final.message.content).startswith("one two")
    assert len(server.requests) == 1


@pytest.mark.parametrize("api", APIS)
async def test_call_that_was_not_whole_is_dropped_when_the_stream_is_cut(server, api):
    reply = reply_in(
        api, "Reading.", tools=[("read", {"path": "a.py"}), ("read", {"path": "a_long_name.py"})]
    )
    last_piece = max(i for i, chunk in enumerate(reply.chunks) if b"ong_name" in chunk)
    server.script(reply.cut(last_piece))
    final = (await collect(model_at(server, api), request_of()))[-1]
    assert [call.arguments for call in tool_calls_of(final.message)] == [{"path": "a.py"}]


async def test_connection_dropped_before_any_byte_is_retried(server):
    server.script(drop_reply(), openai_reply("Hello"))
    events = await collect(model_at(server, APIS[1]), request_of())
    assert text_of(events[-1].message.content) == "Hello"


async def test_empty_answer_is_retried(server):
    empty = Reply(
        200, {}, (b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', b"data: [DONE]\n\n")
    )
    server.script(empty, openai_reply("Hello"))
    events = await collect(model_at(server, APIS[1]), request_of())
    assert text_of(events[-1].message.content) == "Hello"


@pytest.mark.parametrize("api", APIS)
async def test_silent_server_ends_in_a_timeout_that_names_the_setting(server, api):
    server.script(hang_reply())
    request = request_of(timeouts=Timeouts(2.0, 0.15, 0.5), request_retries=0)
    final = (await collect(model_at(server, api), request))[-1]
    assert final.error.kind is ErrorKind.TRANSPORT
    assert final.error.cause == "timeout"
    assert "network.firstEventTimeoutSeconds" in str(final.error)


@pytest.mark.parametrize("api", APIS)
async def test_stalled_stream_ends_in_an_idle_timeout_and_keeps_the_text(server, api):
    server.script(reply_in(api, "one two three four").stall(6))
    request = request_of(timeouts=Timeouts(2.0, 5.0, 0.2))
    final = (await collect(model_at(server, api), request))[-1]
    assert final.error.cause == "timeout"
    assert "network.idleTimeoutSeconds" in str(final.error)
    assert text_of(final.message.content).startswith("one")


async def test_pings_and_comments_do_not_hold_off_the_idle_timeout(server):
    start = anthropic_reply("one two").chunks[:4]
    pings = (b'event: ping\ndata: {"type": "ping"}\n\n', b": still here\n\n") * 40
    server.script(Reply(200, {}, (*start, *pings), 0.02, "hang"))
    request = request_of(timeouts=Timeouts(2.0, 5.0, 0.25))
    started = time.monotonic()
    final = (await collect(model_at(server, APIS[0]), request))[-1]
    assert final.error.cause == "timeout"
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize("moment", ["before the first byte", "during text", "during arguments"])
@pytest.mark.parametrize("api", APIS)
async def test_close_from_another_task_ends_the_stream_within_100_ms(server, api, moment):
    reply = reply_in(api, "one two three", tools=[("read", {"path": "a_long_name.py"})])
    stops = {"before the first byte": 0, "during text": 4, "during arguments": len(reply.chunks) - 4}
    server.script(hang_reply() if stops[moment] == 0 else reply.stall(stops[moment]))
    stream = open_stream(model_at(server, api), request_of())
    events: list[StreamEvent] = []

    async def read() -> None:
        events.extend([event async for event in stream])

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        await asyncio.sleep(0.4)
        started = time.monotonic()
        await stream.aclose()
        closed_after = time.monotonic() - started
    assert closed_after < 0.1
    final = events[-1]
    assert isinstance(final, StreamError)
    assert final.error.kind is ErrorKind.ABORTED
    assert final.message.stop_reason is StopReason.ABORTED
    assert tool_calls_of(final.message) == ()
    assert sum(isinstance(event, StreamDone | StreamError) for event in events) == 1


async def test_cancelling_the_reading_task_is_quick_and_leaves_a_partial_message(server):
    server.script(anthropic_reply("one two three").stall(6))
    stream = open_stream(model_at(server, APIS[0]), request_of())

    async def read() -> None:
        async for _ in stream:
            pass

    task = asyncio.ensure_future(read())
    await asyncio.sleep(0.3)
    started = time.monotonic()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 0.1
    assert task.cancelled()
    assert text_of(stream.partial().content).startswith("one")
    assert stream.partial().stop_reason is StopReason.ABORTED
    await asyncio.sleep(0.05)
    assert server.disconnects == 1


async def test_close_between_events_gives_one_aborted_event_and_is_idempotent(server):
    server.script(openai_reply("one two three"))
    stream = open_stream(model_at(server, APIS[1]), request_of())
    assert isinstance(await anext(aiter(stream)), StreamStart)
    await stream.aclose()
    await stream.aclose()
    rest = [event async for event in stream]
    assert [type(event) for event in rest] == [StreamError]
    assert rest[0].error.kind is ErrorKind.ABORTED
    await stream.aclose()


async def test_close_before_the_first_iteration_sends_nothing(server):
    stream = open_stream(model_at(server, APIS[1]), request_of())
    await stream.aclose()
    rest = [event async for event in stream]
    assert rest[-1].error.kind is ErrorKind.ABORTED
    assert server.requests == []


async def test_close_during_the_wait_for_a_retry_ends_it(server):
    server.script(status_reply(503, {"error": {"message": "busy"}}, {"retry-after": "30"}))
    stream = open_stream(model_at(server, APIS[1]), request_of())
    events: list[StreamEvent] = []

    async def read() -> None:
        events.extend([event async for event in stream])

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        await asyncio.sleep(0.3)
        started = time.monotonic()
        await stream.aclose()
    assert time.monotonic() - started < 0.1
    assert events[-1].error.kind is ErrorKind.ABORTED


async def test_refused_connection_says_so():
    model = Model("scripted", "m", APIS[1], "http://127.0.0.1:9/v1")
    final = (await collect(model, request_of(request_retries=0)))[-1]
    assert final.error.kind is ErrorKind.TRANSPORT
    assert final.error.cause == "refused"
    assert "127.0.0.1:9" in str(final.error)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (
            status_reply(401, {"error": {"message": "invalid x-api-key", "type": "authentication_error"}}),
            ErrorKind.AUTH,
        ),
        (
            status_reply(404, {"error": {"message": "model: m", "type": "not_found_error"}}),
            ErrorKind.NOT_FOUND,
        ),
        (
            status_reply(404, "<html><title>Nope</title></html>", content_type="text/html"),
            ErrorKind.NOT_FOUND,
        ),
        (
            status_reply(200, "<!doctype html><title>Login</title>", content_type="text/html"),
            ErrorKind.INVALID_REQUEST,
        ),
        (status_reply(500, {"error": {"message": "boom", "type": "api_error"}}), ErrorKind.SERVER),
        (status_reply(302, "", {"location": "https://elsewhere.example/"}), ErrorKind.INVALID_REQUEST),
        (
            json_reply({"error": {"message": "bad", "type": "invalid_request_error"}}),
            ErrorKind.INVALID_REQUEST,
        ),
        (json_reply({"status": "ok"}), ErrorKind.INVALID_REQUEST),
    ],
    ids=[
        "401",
        "404 model",
        "404 page",
        "200 page",
        "500",
        "redirect",
        "200 with error",
        "200 of something else",
    ],
)
@pytest.mark.parametrize("api", APIS)
async def test_failure_is_classed(server, api, reply, kind):
    server.script(reply)
    final = (await collect(model_at(server, api), request_of(request_retries=0)))[-1]
    assert isinstance(final, StreamError)
    assert final.error.kind is kind
    assert "<" not in str(final.error)
    assert final.message.error_message == str(final.error)


async def test_non_streaming_answer_is_read_too(server):
    whole = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
    server.script(json_reply(whole))
    final = (await collect(model_at(server, APIS[1]), request_of()))[-1]
    assert text_of(final.message.content) == "Hello"


async def test_missing_usage_is_estimated_and_marked(server):
    reply = openai_reply("one two three four")
    server.script(
        replace(reply, chunks=tuple(chunk for chunk in reply.chunks if b"prompt_tokens" not in chunk))
    )
    usage = (await collect(model_at(server, APIS[1]), request_of()))[-1].message.usage
    assert usage.estimated
    assert usage.input > 0
    assert usage.output == 5


async def test_request_with_too_large_max_tokens_is_repeated_once_with_what_fits(server):
    text = "input length and `max_tokens` exceed context limit: 50000 + 20000 > 60000, decrease input length"
    error = {"error": {"type": "invalid_request_error", "message": text}}
    server.script(status_reply(400, error), anthropic_reply("Hello"))
    events = await collect(model_at(server, APIS[0]), request_of(max_tokens=20_000))
    assert text_of(events[-1].message.content) == "Hello"
    assert [seen.body["max_tokens"] for seen in server.requests] == [16_384, 8_976]


async def test_answer_at_the_limit_of_a_full_window_is_an_overflow(server):
    server.script(openai_reply("", stop="length", usage={"prompt_tokens": 99_900, "completion_tokens": 0}))
    final = (await collect(model_at(server, APIS[1]), request_of()))[-1]
    assert final.error.kind is ErrorKind.OVERFLOW


async def test_key_is_masked_in_what_the_server_echoes(server):
    server.script(status_reply(401, {"error": {"message": f"wrong key {KEY.key}"}}))
    final = (await collect(model_at(server, APIS[1]), request_of()))[-1]
    assert KEY.key not in str(final.error)
    assert KEY.key not in final.message.error_message


async def test_connection_is_kept_between_requests(server):
    server.script(anthropic_reply("a"), anthropic_reply("b"))
    for _ in range(2):
        await collect(model_at(server, APIS[0]), request_of())
    assert [seen.connection for seen in server.requests] == [1, 1]


async def test_offline_reaches_loopback_and_nothing_else(server, monkeypatch):
    monkeypatch.setenv("MUSEPI_OFFLINE", "1")
    server.script(openai_reply("Hello"))
    assert isinstance((await collect(model_at(server, APIS[1]), request_of()))[-1], StreamDone)
    far = Model("x", "m", APIS[1], "https://api.example.com/v1")
    error = (await collect(far, request_of()))[-1].error
    assert (error.cause, error.retryable) == ("offline", False)
    assert "MUSEPI_OFFLINE" in str(error)


@pytest.mark.parametrize(
    ("base_url", "cause"),
    [("http://api.example.com/v1", "plain_http"), ("ftp://x/v1", "address"), ("nonsense", "address")],
)
async def test_unsafe_or_unusable_address_is_refused_without_a_connection(base_url, cause):
    final = (await collect(Model("x", "m", APIS[1], base_url), request_of()))[-1]
    assert final.error.cause == cause
    assert not final.error.retryable


async def test_unreadable_authority_file_is_told(tmp_path):
    configure(HttpPolicy(ca_file=tmp_path / "missing.pem"))
    try:
        final = (await collect(Model("x", "m", APIS[1], "https://127.0.0.1:9/v1"), request_of()))[-1]
    finally:
        configure(HttpPolicy())
        await close_shared_client()
    assert final.error.cause == "tls"
    assert "network.caFile" in str(final.error)


async def test_output_of_a_key_command_is_sent_and_read_anew_after_401(server, tmp_path):
    counter = tmp_path / "count"
    counter.write_text("")
    command = f"sh -c 'printf x >> {counter}; printf key-; wc -c < {counter}'"
    credentials = Credentials(None, "models.json", commands={"": command})
    server.script(status_reply(401, {"error": {"message": "expired"}}), openai_reply("Hello"))
    final = (await collect(model_at(server, APIS[1]), request_of(), credentials))[-1]
    assert isinstance(final, StreamDone)
    assert [seen.headers["authorization"] for seen in server.requests] == ["Bearer key-1", "Bearer key-2"]


async def test_failing_key_command_is_an_auth_failure(server):
    credentials = Credentials(None, "models.json", commands={"": "false"})
    final = (await collect(model_at(server, APIS[1]), request_of(), credentials))[-1]
    assert final.error.kind is ErrorKind.AUTH
    assert server.requests == []
