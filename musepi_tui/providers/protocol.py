"""What one wire format must offer, and what the formats share (architecture: providers).

A format encodes a request and decodes an answer. Sending, time-outs, retries and cancelling are the same for
all of them: ``providers/stream.py``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.draft import Draft
from musepi_tui.providers.sse import SseEvent
from musepi_tui.providers.types import Credentials, Model, Prices, Request
from musepi_tui.session.messages import AssistantMessage, Cost, StopReason, Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What is sent: ``body`` is the JSON object; ``headers`` have lower-case names."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class Decoder(Protocol):
    """Reads one answer into ``draft``. The methods raise ProviderError when the server reports a failure."""

    draft: Draft

    def take(self, event: SseEvent) -> None:
        """Reads one server-sent event."""
        ...

    def take_whole(self, body: Mapping[str, Any]) -> None:
        """Reads an answer that came as one JSON object."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the server said that nothing more comes."""
        ...

    def finish(self) -> None:
        """The body is over: the draft is finished, or a ProviderError says what is missing."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """One wire format, without any input or output."""

    api: str
    encode: Callable[[Model, Credentials, Request], WireRequest]
    decoder: Callable[[Model], Decoder]


def build_message(
    draft: Draft,
    model: Model,
    started_ms: int,
    *,
    error: ProviderError | None = None,
    usage: Usage | None = None,
) -> AssistantMessage:
    """The message of what ``draft`` holds; with ``error`` its stop reason is ``error`` or ``aborted``.

    ``usage`` stands in when the server reported none.
    """
    usage = draft.usage or usage
    stop_reason = draft.stop_reason or StopReason.STOP
    if error is not None:
        stop_reason = StopReason.ABORTED if error.kind is ErrorKind.ABORTED else StopReason.ERROR
    extra = dict(draft.extra)
    if draft.response_model and draft.response_model != model.id:
        extra["responseModel"] = draft.response_model
    return AssistantMessage(
        content=draft.content(),
        api=model.api,
        provider=model.provider,
        model=model.id,
        stop_reason=stop_reason,
        usage=with_cost(usage, model.prices) if usage else None,
        timestamp_ms=started_ms,
        error_message=str(error) if error is not None else None,
        error_status=error.status if error is not None else None,
        response_id=draft.response_id,
        provider_payload=dict(draft.payload) or None,
        extra=extra,
    )


def with_cost(usage: Usage, prices: Prices | None) -> Usage:
    """``usage`` with its price in US dollars, unless the server named one or nobody knows the rates.

    The highest tier whose ``inputTokensAbove`` the prompt exceeds counts for the whole request; a one-hour
    cache write costs twice the input rate (providers 1.3, 9.1).
    """
    if usage.cost is not None or prices is None:
        return usage
    prompt_tokens = usage.input + usage.cache_read + usage.cache_write
    rates = _rates(prices, prompt_tokens)
    hour_tokens = min(usage.cache_write_1h or 0, usage.cache_write)
    parts = {
        "input": usage.input * rates["input"] / MILLION,
        "output": usage.output * rates["output"] / MILLION,
        "cache_read": usage.cache_read * rates["cacheRead"] / MILLION,
        "cache_write": (
            (usage.cache_write - hour_tokens) * rates["cacheWrite"] + hour_tokens * 2 * rates["input"]
        )
        / MILLION,
    }
    return replace(usage, cost=Cost(**parts, total=sum(parts.values())))


def _rates(prices: Prices, prompt_tokens: int) -> dict[str, float]:
    rates = {
        "input": prices.input,
        "output": prices.output,
        "cacheRead": prices.cache_read,
        "cacheWrite": prices.cache_write,
    }
    passed = [tier for tier in prices.tiers if prompt_tokens > tier.get("inputTokensAbove", 0)]
    if passed:
        best = max(passed, key=lambda tier: tier.get("inputTokensAbove", 0))
        rates.update({name: rate for name, rate in best.items() if name in rates})
    return rates


def merge_headers(*layers: Mapping[str, str | None]) -> dict[str, str]:
    """The layers laid over each other, later ones last; names without case, None removes (providers 0.3)."""
    merged: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            if value is None:
                merged.pop(name.lower(), None)
            else:
                merged[name.lower()] = value
    return merged


def read_int(source: Mapping[str, Any], name: str) -> int | None:
    """A token figure of ``source``: None when it is missing, null, negative or no number."""
    value = source.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    return int(value)


def read_object(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested object of ``source``; empty when there is none."""
    value = source.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def read_text(source: Mapping[str, Any], name: str) -> str:
    """A string of ``source``; empty when there is none."""
    value = source.get(name)
    return value if isinstance(value, str) else ""


def cut_error(what: str) -> ProviderError:
    """The connection ended before the answer did (providers 7.1, transport)."""
    error = ProviderError(what, kind=ErrorKind.TRANSPORT, retryable=True)
    error.cause = "cut"
    return error


def wrong_format_error(what: str) -> ProviderError:
    """Something else than this API answers at the address: most likely the base URL is wrong."""
    error = ProviderError(what, kind=ErrorKind.INVALID_REQUEST)
    error.cause = "html"
    return error
