"""How long a server wants us to wait before the next request (providers 7.2)."""

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_EPOCH_MS = 1e12
_EPOCH_S = 1e9
_UNIT_S = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
}
_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|seconds?|secs?|s|minutes?|mins?|min|m|hours?|hour|h|days?|d)(?![a-z])"
)
_DURATION = r"((?:\d+(?:\.\d+)?\s*(?:ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)\s*)+)"
_BODY_HINTS = (
    re.compile(rf'"retryDelay"\s*:\s*"{_DURATION}"', re.IGNORECASE),
    re.compile(rf"(?:please )?retry in {_DURATION}", re.IGNORECASE),
    re.compile(rf"try again in {_DURATION}", re.IGNORECASE),
    re.compile(rf"reset after {_DURATION}", re.IGNORECASE),
)


def find_delay_hint(headers: Mapping[str, str], body: str, *, now_s: float | None = None) -> float | None:
    """Seconds to wait by the first hint that is given, never below 0; None when the server gave none.

    ``headers`` have lower-case names. ``now_s`` is the Unix time, for dates.
    """
    now = time.time() if now_s is None else now_s
    for found in (_from_headers(headers, now), _from_body(body)):
        if found is not None:
            return max(0.0, found)
    return None


def _from_headers(headers: Mapping[str, str], now_s: float) -> float | None:
    plain = (
        _scaled(headers.get("retry-after-ms"), 0.001),
        _retry_after(headers.get("retry-after"), now_s),
        _scaled(headers.get("x-ratelimit-reset-after"), 1.0),
        _reset(headers.get("x-ratelimit-reset-ms"), 0.001, now_s),
        _reset(headers.get("x-ratelimit-reset"), 1.0, now_s),
    )
    for found in plain:
        if found is not None:
            return found
    return _from_spent_counters(headers, now_s)


def _from_spent_counters(headers: Mapping[str, str], now_s: float) -> float | None:
    for name in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0":
            found = read_duration(headers.get(f"x-ratelimit-reset-{name}", ""))
            if found is not None:
                return found
    waits: list[float] = []
    for name in ("requests", "tokens", "input-tokens", "output-tokens"):
        prefix = f"anthropic-ratelimit-{name}"
        if headers.get(f"{prefix}-remaining", "").strip() == "0":
            found = _until(headers.get(f"{prefix}-reset", ""), now_s)
            if found is not None:
                waits.append(found)
    return max(waits, default=None)


def _scaled(value: str | None, unit_s: float) -> float | None:
    try:
        return float(value) * unit_s if value is not None else None
    except ValueError:
        return None


def _retry_after(value: str | None, now_s: float) -> float | None:
    if value is None:
        return None
    seconds = _scaled(value, 1.0)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now_s


def _reset(value: str | None, unit_s: float, now_s: float) -> float | None:
    number = _scaled(value, 1.0)
    if number is None:
        return None
    if number > _EPOCH_MS:
        return number / 1000 - now_s
    if number > _EPOCH_S:
        return number - now_s
    return number * unit_s


def _until(value: str, now_s: float) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now_s


def _from_body(body: str) -> float | None:
    for pattern in _BODY_HINTS:
        match = pattern.search(body)
        if match:
            return read_duration(match.group(1))
    return None


def read_duration(text: str) -> float | None:
    """Seconds of ``34.07s``, ``5 min``, ``1h2m3s`` or ``250ms``; None when it is no duration."""
    parts = _PART.findall(text.lower())
    if not parts:
        return None
    return sum(float(number) * _unit_s(unit) for number, unit in parts)


def _unit_s(unit: str) -> float:
    return (
        _UNIT_S.get(unit)
        or _UNIT_S.get(unit.rstrip("s"))
        or {"second": 1.0, "minute": 60.0, "day": 86400.0}[unit.rstrip("s")]
    )
