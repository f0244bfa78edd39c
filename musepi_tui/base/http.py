"""The one place that talks HTTP: TLS, proxies, size limits, the offline switch (safety 11, dependencies).

httpx costs half a second to import, so it is imported inside functions, in a thread, when the first request
is made. Nothing here retries or follows redirects.
"""

import asyncio
import contextlib
import importlib
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from musepi_tui import __version__
from musepi_tui.base.address import address_of, is_web_address
from musepi_tui.base.errors import ErrorKind, ProviderError

if TYPE_CHECKING:
    import httpx

USER_AGENT = f"musepi/{__version__}"
ERROR_BODY_BYTES = 64 * 1024
"""How much of an error body is read: some never end (pitfall P-162)."""
WRITE_TIMEOUT_S = 30.0
POOL_TIMEOUT_S = 10.0
_LOOPBACK_PATTERNS = ("all://127.0.0.1", "all://localhost", "all://[::1]")

_TRANSPORT_MODULES = ("httpx", "httpcore", "truststore", "anyio._backends._asyncio")
"""What httpx imports by and by, the last one only in the event loop while the first request is under way."""

GATHER_S = 0.02
"""How long bytes gather: well under the 50 ms between two paints, so nobody sees it."""
SLICE_S = 0.008
"""How long bytes that are there are used without a pause: half a frame."""
WAITED_S = 0.0005
"""Bytes that took longer were not there yet; those that were take a tenth of this."""


@dataclass(frozen=True, slots=True)
class HttpPolicy:
    """What a person set for all connections. ``offline`` None means: as ``MUSEPI_OFFLINE`` says."""

    offline: bool | None = None
    ca_file: Path | None = None
    plain_http_hosts: tuple[str, ...] = ()

    @property
    def is_offline(self) -> bool:
        """Whether only loopback may be reached."""
        if self.offline is not None:
            return self.offline
        return os.environ.get("MUSEPI_OFFLINE", "").lower() not in ("", "0", "false", "no")


class HttpResponse:
    """A response whose body is still arriving. ``headers`` have lower-case names."""

    def __init__(self, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._gathers = False
        self._slice_ends_s = 0.0

    async def next_chunk(self) -> bytes | None:
        """The next bytes of the body, decompressed; None at its end. Raises ProviderError when it breaks.

        After bytes that had to be waited for it lets some time pass, and what came meanwhile is then fetched
        without waiting: a fast stream wakes the program 50 times a second instead of once a token. While
        bytes come faster than they are used, keys and the screen get their turn now and then.
        """
        asked_s = time.monotonic()
        if self._gathers or asked_s > self._slice_ends_s:
            await asyncio.sleep(GATHER_S if self._gathers else 0)
            asked_s = time.monotonic()
            self._slice_ends_s = asked_s + SLICE_S
        chunk = await anext(self._chunks, None)
        self._gathers = time.monotonic() - asked_s > WAITED_S
        return chunk

    async def read_limited(self, limit_bytes: int = ERROR_BODY_BYTES) -> bytes:
        """The body up to ``limit_bytes``; the rest is not read."""
        body = bytearray()
        while len(body) < limit_bytes:
            chunk = await self.next_chunk()
            if chunk is None:
                break
            body += chunk
        return bytes(body[:limit_bytes])


class HttpClient:
    """One connection pool, for one event loop. Connections stay open between requests."""

    def __init__(self, policy: HttpPolicy) -> None:
        self._policy = policy
        self._client: httpx.AsyncClient | None = None
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def post_stream(
        self, url: str, headers: Mapping[str, str], body: bytes, *, connect_s: float = 10.0
    ) -> AsyncGenerator[HttpResponse, None]:
        """Sends ``body`` and yields the response as soon as its headers are there.

        There is no time-out for reading: the caller watches progress. Every failure is a ProviderError.
        """
        client = await self._open(url)
        import httpx  # deferred: see the docstring of the module

        timeout = httpx.Timeout(
            connect=connect_s or None, read=None, write=WRITE_TIMEOUT_S, pool=POOL_TIMEOUT_S
        )
        sent = {"user-agent": USER_AGENT, "accept-encoding": "identity", **headers}
        try:
            async with client.stream("POST", url, headers=sent, content=body, timeout=timeout) as response:
                names = {name.lower(): value for name, value in response.headers.items()}
                async with contextlib.aclosing(_translated_chunks(response, url)) as chunks:
                    yield HttpResponse(response.status_code, names, chunks)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError, OSError) as error:
            raise translate_error(error, url) from error

    async def _open(self, url: str) -> "httpx.AsyncClient":
        check_reachable(url, self._policy)
        async with self._lock:
            if self._client is None:
                self._client = await asyncio.to_thread(_build_client, self._policy)
            return self._client

    async def aclose(self) -> None:
        """Closes every connection; the next request opens a new pool."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


_shared: "WeakKeyDictionary[asyncio.AbstractEventLoop, HttpClient]" = WeakKeyDictionary()
_policies: list[HttpPolicy] = [HttpPolicy()]


def configure(policy: HttpPolicy) -> None:
    """Sets what holds for clients made from now on; call it before the first request."""
    _policies[0] = policy


def current_policy() -> HttpPolicy:
    """What ``configure`` set last."""
    return _policies[0]


def shared_client() -> HttpClient:
    """The client of the running event loop."""
    loop = asyncio.get_running_loop()
    client = _shared.get(loop)
    if client is None:
        client = _shared[loop] = HttpClient(current_policy())
    return client


async def close_shared_client() -> None:
    """Closes the connections of the running event loop, at the end of a run."""
    client = _shared.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()


def warm_up() -> None:
    """Imports the transport before the first request needs it: half a second, so call it in a thread."""
    for name in _TRANSPORT_MODULES:
        with contextlib.suppress(ImportError):  # told by the request itself
            importlib.import_module(name)


def _build_client(policy: HttpPolicy) -> "httpx.AsyncClient":
    import httpx  # deferred: see the docstring of the module

    context = _tls_context(policy.ca_file)
    return httpx.AsyncClient(
        verify=context,
        trust_env=True,
        follow_redirects=False,
        # A server on this machine is never asked through a proxy.
        mounts={pattern: httpx.AsyncHTTPTransport(verify=context) for pattern in _LOOPBACK_PATTERNS},
        limits=httpx.Limits(max_connections=20, max_keepalive_connections=5, keepalive_expiry=60.0),
    )


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    import truststore  # deferred: only needed with httpx

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=str(ca_file))
        except OSError as error:
            raise _failure(
                f"network.caFile {ca_file} cannot be used: {error}", "tls", retryable=False
            ) from error
    return context


async def _translated_chunks(response: "httpx.Response", url: str) -> AsyncGenerator[bytes, None]:
    import httpx  # deferred: see the docstring of the module

    try:
        async for chunk in response.aiter_bytes():
            yield chunk
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        raise translate_error(error, url) from error


def check_reachable(url: str, policy: HttpPolicy) -> None:
    """Raises ProviderError when ``url`` is no http(s) address, or not on this machine while offline."""
    if not is_web_address(url):
        raise _address_failure(f"{url[:300]!r} is no usable address: set baseUrl to http(s)://host…")
    host = address_of(url).host
    if policy.is_offline and not is_loopback_host(host):
        raise _failure(
            f"Offline: no connection to {host} (MUSEPI_OFFLINE allows servers on this machine only)",
            "offline",
            retryable=False,
        )


def check_plain_http(url: str, policy: HttpPolicy) -> None:
    """Raises ProviderError when a key would go unencrypted to a public host (SAF-111)."""
    address = address_of(url)
    host = address.host
    if address.scheme != "http" or is_private_host(host) or host in policy.plain_http_hosts:
        return
    raise _failure(
        f"A key is not sent over plain http to {host}: use https, or list the host in network.allowPlainHttp",
        "plain_http",
        retryable=False,
    )


def is_loopback_host(host: str) -> bool:
    """Whether a host name or address literal is this machine, without asking a name server."""
    name = host.lower().strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_private_host(host: str) -> bool:
    """Whether a host is on this machine or in a local network, without asking a name server."""
    name = host.lower().strip("[]")
    if is_loopback_host(name) or "." not in name and ":" not in name:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name.endswith((".local", ".lan", ".internal", ".home.arpa"))
    return address.is_private or address.is_link_local


def translate_error(error: BaseException, url: str) -> ProviderError:
    """A failure of the transport with its cause named: refused, dns, tls, timeout, cut, proxy, address."""
    import httpx  # deferred: see the docstring of the module

    host = _shown_host(url)
    match error:
        case httpx.ConnectTimeout():
            return _failure(f"No connection to {host} in time (network.connectTimeoutSeconds)", "timeout")
        case httpx.TimeoutException():
            return _failure(f"{host} did not take the request in time", "timeout")
        case httpx.ProxyError():
            return _failure(f"The proxy in front of {host} failed: {error}", "proxy")
        case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError() | UnicodeError():
            return _address_failure(f"The request to {host} cannot be sent: {error}")
        case _:
            return _failure_of_chain(
                host, _causes(error), is_connecting=isinstance(error, httpx.ConnectError)
            )


def _failure_of_chain(host: str, chain: list[BaseException], *, is_connecting: bool) -> ProviderError:
    if any(isinstance(item, ssl.SSLError) for item in chain):
        reason = _tls_reason(chain)
        return _failure(f"The TLS certificate of {host} was not accepted: {reason}", "tls", retryable=False)
    if any(isinstance(item, socket.gaierror) for item in chain):
        return _failure(f"The name {host} cannot be resolved", "dns")
    if is_connecting:
        return _connect_failure(host, chain)
    return _failure(f"The connection to {host} broke: {chain[0] or type(chain[0]).__name__}", "cut")


def _connect_failure(host: str, chain: list[BaseException]) -> ProviderError:
    refused = any(isinstance(item, ConnectionRefusedError) for item in chain)
    words = " ".join(str(item) for item in chain).lower()
    if refused or "refused" in words or "all connection attempts failed" in words:
        return _failure(f"{host} refused the connection", "refused")
    return _failure(f"No connection to {host}: {chain[0]}", "refused")


def _tls_reason(chain: list[BaseException]) -> str:
    for item in chain:
        if isinstance(item, ssl.SSLCertVerificationError):
            return item.verify_message
    found = next(item for item in chain if isinstance(item, ssl.SSLError))
    return found.reason or str(found)


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending and len(found) < 20:
        item = pending.pop()
        if item is None or item in found:
            continue
        found.append(item)
        if isinstance(item, BaseExceptionGroup):
            pending.extend(cast("BaseExceptionGroup[BaseException]", item).exceptions)
        pending.extend((item.__context__, item.__cause__))
    return found


def _failure(text: str, cause: str, *, retryable: bool = True) -> ProviderError:
    error = ProviderError(text, kind=ErrorKind.TRANSPORT, retryable=retryable)
    error.cause = cause
    return error


def _address_failure(text: str) -> ProviderError:
    error = ProviderError(text, kind=ErrorKind.INVALID_REQUEST)
    error.cause = "address"
    return error


def _shown_host(url: str) -> str:
    address = address_of(url)
    host = address.host or url[:100]
    return f"{host}:{address.port}" if address.port else host
