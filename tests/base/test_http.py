import asyncio
import socket
import ssl
import time

import httpx
import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.http import (
    GATHER_S,
    HttpPolicy,
    HttpResponse,
    check_plain_http,
    check_reachable,
    is_loopback_host,
    is_private_host,
    translate_error,
)

URL = "https://api.example.com:444/v1"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1", "[::1]", "a.localhost"]
)
def test_loopback_host_is_known(host):
    assert is_loopback_host(host)
    assert is_private_host(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1.evil.example", "localhost.evil.example", "8.8.8.8", "", "0.0.0.0"]
)
def test_other_host_is_not_loopback(host):
    assert not is_loopback_host(host)


@pytest.mark.parametrize(("host", "private"), [("192.168.1.5", True), ("10.0.0.1", True), ("fd00::1", True),
                                               ("box", True), ("box.local", True), ("example.com", False),
                                               ("8.8.8.8", False)])  # fmt: skip
def test_private_host_is_known(host, private):
    assert is_private_host(host) is private


def test_listed_host_may_be_reached_without_tls():
    policy = HttpPolicy(plain_http_hosts=("api.example.com",))
    check_plain_http("http://api.example.com/v1", policy)
    with pytest.raises(ProviderError, match=r"network\.allowPlainHttp"):
        check_plain_http("http://other.example.com/v1", policy)


@pytest.mark.parametrize(
    ("value", "offline"), [("1", True), ("true", True), ("0", False), ("", False), ("no", False)]
)
def test_offline_follows_the_environment_unless_it_is_set(monkeypatch, value, offline):
    monkeypatch.setenv("MUSEPI_OFFLINE", value)
    assert HttpPolicy().is_offline is offline
    assert HttpPolicy(offline=not offline).is_offline is not offline


def test_offline_names_no_host_before_it_refuses():
    with pytest.raises(ProviderError, match=r"Offline: no connection to api\.example\.com"):
        check_reachable(URL, HttpPolicy(offline=True))


def chained(error, cause):
    error.__cause__ = cause
    return error


def certificate_error():
    error = ssl.SSLCertVerificationError("bad")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "cause", "words"),
    [
        (chained(httpx.ConnectError("x"), ConnectionRefusedError()), "refused", "refused the connection"),
        (chained(httpx.ConnectError("x"), socket.gaierror(-2, "unknown")), "dns", "cannot be resolved"),
        (chained(httpx.ConnectError("x"), certificate_error()), "tls", "self-signed certificate"),
        (httpx.ConnectTimeout("x"), "timeout", "network.connectTimeoutSeconds"),
        (httpx.WriteTimeout("x"), "timeout", "in time"),
        (httpx.ProxyError("x"), "proxy", "proxy"),
        (httpx.RemoteProtocolError("gone"), "cut", "gone"),
        (httpx.LocalProtocolError("bad header"), "address", "bad header"),
    ],
)
def test_transport_failure_names_its_cause_and_the_host(error, cause, words):
    found = translate_error(error, URL)
    assert found.cause == cause
    assert words in str(found)
    assert "api.example.com:444" in str(found)
    assert found.kind is (ErrorKind.INVALID_REQUEST if cause == "address" else ErrorKind.TRANSPORT)
    assert found.retryable is (cause not in ("tls", "address"))


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999/v1", "http://127.0.0.1:x/v1"])
def test_address_that_cannot_be_read_is_refused(url):
    with pytest.raises(ProviderError, match="no usable address"):
        check_reachable(url, HttpPolicy(offline=True))


async def _read_all(response):
    chunks = []
    while (chunk := await response.next_chunk()) is not None:
        chunks.append(chunk)
    return chunks


async def test_bytes_that_are_there_are_fetched_without_a_pause():
    async def chunks():
        for _ in range(300):
            yield b"x"

    started = time.monotonic()
    assert len(await _read_all(HttpResponse(200, {}, chunks()))) == 300
    assert time.monotonic() - started < 300 * GATHER_S / 4


async def test_fast_stream_is_fetched_in_few_steps_and_whole():
    arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
    waits = 0

    async def chunks():
        nonlocal waits
        while True:
            waits += arrived.empty()
            chunk = await arrived.get()
            if chunk is None:
                return
            yield chunk

    async def send():
        for number in range(150):
            await asyncio.sleep(0.002)
            arrived.put_nowait(b"%d" % number)
        arrived.put_nowait(None)

    sending = asyncio.ensure_future(send())
    received = await _read_all(HttpResponse(200, {}, chunks()))
    await sending
    assert received == [b"%d" % number for number in range(150)]
    assert waits < 75


async def test_others_get_their_turn_while_bytes_keep_coming():
    turns = 0

    async def chunks():
        for _ in range(100):
            time.sleep(0.001)  # noqa: ASYNC251 - stands for the work a chunk causes
            yield b"x"

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(count())
    await _read_all(HttpResponse(200, {}, chunks()))
    counting.cancel()
    assert turns > 3
