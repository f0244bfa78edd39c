"""Numbers of one request: time limits, delays before a retry, the cap on a server's wish (providers 7)."""

import random
import re
from dataclasses import dataclass, replace

from musepi_tui.base.address import address_of
from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.base.http import is_loopback_host
from musepi_tui.providers.compat import Compat
from musepi_tui.providers.types import Model, Request, Timeouts

MAX_DELAY_S = 8.0
LOCAL_CONNECT_S = 2.0
LOCAL_FIRST_EVENT_S = 300.0
LOCAL_IDLE_S = 300.0
MIN_SHRUNK_TOKENS = 1024
_SUM_TOO_LARGE = re.compile(
    r"input length and `?max_tokens`? exceed context limit: ([\d,]+) \+ ([\d,]+) > ([\d,]+)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, 0 for none: connecting, until the first event since sending, between two contents."""

    connect_s: float
    first_event_s: float
    idle_s: float


def limits_of(model: Model, compat: Compat, timeouts: Timeouts) -> Limits:
    """The time limits of a request to ``model``.

    The row's ``idleTimeoutMs`` wins (SAF-116). Slow and local servers get longer defaults, but a value a
    person chose is kept. Waiting for the first event is never shorter than a raised idle limit.
    """
    defaults = Timeouts()
    connect, first, idle = timeouts.connect_s, timeouts.first_event_s, timeouts.idle_s
    if is_loopback_host(address_of(model.base_url).host):
        connect = LOCAL_CONNECT_S if connect == defaults.connect_s else connect
        first = LOCAL_FIRST_EVENT_S if first == defaults.first_event_s else first
        idle = LOCAL_IDLE_S if idle == defaults.idle_s else idle
    own_row = model.compat.get("idleTimeoutMs")
    if compat.idle_timeout_ms is not None and (own_row is not None or idle == defaults.idle_s):
        idle = compat.idle_timeout_ms / 1000
        first = max(first, idle) if idle and first == defaults.first_event_s else first
    return Limits(connect, first, idle)


def request_delay_s(attempt: int, base_s: float, hint_s: float | None) -> float:
    """Seconds before retry number ``attempt`` (1, 2, …): doubled each time, at most 8, shortened at random.

    A server's hint is waited for in full.
    """
    own = min(base_s * 2 ** (attempt - 1), MAX_DELAY_S) * random.uniform(0.75, 1.0)
    return own if hint_s is None else max(own, hint_s)


def over_cap(error: ProviderError, cap_s: float) -> ProviderError | None:
    """The failure to report when the server wants a longer wait than ``cap_s`` (0: no cap), else None."""
    hint = error.retry_after_s
    if hint is None or not cap_s or hint <= cap_s or not error.retryable:
        return None
    text = f"Server requested {hint:.0f}s retry delay (max: {cap_s:.0f}s). {error}"
    return rebuilt(error, text, retryable=False)


def rebuilt(error: ProviderError, text: str, *, retryable: bool | None = None) -> ProviderError:
    """``error`` with another text, everything else kept."""
    copy = ProviderError(
        text,
        kind=error.kind,
        status=error.status,
        retry_after_s=error.retry_after_s,
        retryable=error.retryable if retryable is None else retryable,
    )
    copy.error_type, copy.code = error.error_type, error.code
    copy.server_message, copy.cause = error.server_message, error.cause
    copy.__cause__ = error.__cause__
    return copy


def shrunk_request(error: ProviderError, request: Request) -> Request | None:
    """The request with a ``max_tokens`` that fits, when only input and answer together were too long.

    None when the error says something else or hardly anything would be left (providers 1.9).
    """
    match = _SUM_TOO_LARGE.search(str(error)) if error.kind is ErrorKind.OVERFLOW else None
    if match is None:
        return None
    input_tokens, _, limit_tokens = (int(number.replace(",", "")) for number in match.groups())
    room_tokens = limit_tokens - input_tokens - 1024
    return replace(request, max_tokens=room_tokens) if room_tokens >= MIN_SHRUNK_TOKENS else None
