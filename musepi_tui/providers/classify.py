"""Failures of a provider into kinds, and the server's own words out of them (providers 1.9, 2.6, 6, 7)."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.hints import find_delay_hint

MAX_RAW_CHARS = 4000
"""How much of an error body that nothing can be read from is kept (providers 2.6)."""

_OVERFLOW = re.compile(
    "|".join(
        (
            r"prompt is too long",
            r"exceed context limit",
            r"input is too long for requested model",
            r"input tokens exceeded",
            r"exceeds the context window",
            r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of [\d,]+ tokens?|\s*\([\d,]+\))",
            r"input token count.*exceeds the maximum",
            r"maximum prompt length is \d+",
            r"reduce the length of the messages",
            r"maximum context length is [\d,]+ tokens",
            r"exceeds (?:the )?maximum allowed input length of [\d,]+ tokens?",
            r"input \(\d+ tokens\) is longer than the model'?s context length",
            r"prompt token count of \d+ exceeds the limit of \d+",
            r"exceeds the available context size",
            r"exceed_context_size_error",
            r"greater than the context length",
            r"when context the overflows",
            r"context window exceeds limit",
            r"exceeded model token limit",
            r"too large for model with \d+ maximum context length",
            r"prompt has [\d,]+ tokens?, but the configured context size is",
            r"model_context_window_exceeded|model_context_exceeded",
            r"prompt too long; exceeded (?:max )?context length",
            r"prompt_too_long|too_many_prompt_tokens",
            r"total length of all messages is too long",
            r"range of input length should be",
            r"context[_ ]length[_ ]exceeded",
            r"(?:context (?:window|length|size)).*(?:exceeded|overflow|too small)",
            r"too many tokens",
            r"token limit exceeded",
            r"\b4(?:00|13)\b\s*(?:status code)?\s*\(no body\)",
        )
    ),
    re.IGNORECASE,
)
_NEVER_OVERFLOW = re.compile(
    r"rate.?limit|too many requests|throttl|please wait before trying again|service unavailable|quota"
    r"|per minute",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"insufficient_quota|billing|out of budget|usage limit reached|insufficient balance|spending limit"
    r"|credit balance is too low|insufficient credits",
    re.IGNORECASE,
)
_PER_MINUTE = re.compile(r"per.?minute", re.IGNORECASE)
_AUTH = re.compile(r"API_KEY_INVALID|incorrect api key|invalid api key|invalid x-api-key", re.IGNORECASE)
_PAYLOAD = re.compile(
    r"request_too_large|image exceeds|too many images"
    r"|\b(?:image|request|payload|body|file)\b.{0,60}"
    r"(?:too large|exceeds .{0,40}(?:bytes|\bMB\b|\bKB\b|pixels|dimensions))",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"content[_ ]filter|content[_ ]policy|content management policy|safety system", re.IGNORECASE
)
_OVERLOADED = re.compile(r"overloaded|\bcapacity\b|provider returned error|loading model", re.IGNORECASE)
_SERVER = re.compile(r"api_error|server_error|internal error|internal server error", re.IGNORECASE)
_DETERMINISTIC = re.compile(r"failed to parse tool call arguments as json", re.IGNORECASE)

_STRUCTURED_OVERFLOW = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_KIND_BY_WORD = {
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "too_many_requests": ErrorKind.RATE_LIMIT,
    "1302": ErrorKind.RATE_LIMIT,  # z.ai
    "overloaded_error": ErrorKind.OVERLOADED,
    "authentication_error": ErrorKind.AUTH,
    "permission_error": ErrorKind.AUTH,
    "invalid_api_key": ErrorKind.AUTH,
    "billing_error": ErrorKind.QUOTA,
    "insufficient_quota": ErrorKind.QUOTA,
    "not_found_error": ErrorKind.NOT_FOUND,
    "model_not_found": ErrorKind.NOT_FOUND,
    "request_too_large": ErrorKind.PAYLOAD,
    "conflict_error": ErrorKind.CONFLICT,
    "timeout_error": ErrorKind.SERVER,
    "api_error": ErrorKind.SERVER,
    "server_error": ErrorKind.SERVER,
    "content_filter": ErrorKind.REFUSAL,
    "content_policy_violation": ErrorKind.REFUSAL,
}
_KIND_BY_STATUS = {
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    404: ErrorKind.NOT_FOUND,
    408: ErrorKind.TRANSPORT,
    409: ErrorKind.CONFLICT,
    413: ErrorKind.PAYLOAD,
    425: ErrorKind.TRANSPORT,
    429: ErrorKind.RATE_LIMIT,
    503: ErrorKind.OVERLOADED,
    529: ErrorKind.OVERLOADED,
}
_RETRYABLE = frozenset(
    {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.TRANSPORT,
        ErrorKind.CONFLICT,
    }
)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error body says. ``message`` is the server's text, ``details`` what belongs to it elsewhere."""

    message: str = ""
    type: str | None = None
    code: str | int | None = None
    details: str = ""
    status: int | None = None
    raw: str = field(default="", repr=False)

    @property
    def searched(self) -> str:
        """Everything in which a word may stand that tells the kind."""
        words = (self.message, self.details, self.type or "", str(self.code or ""))
        return "\n".join(word for word in words if word)


def is_overflow_text(text: str) -> bool:
    """Whether an error text says that the prompt does not fit the context window (providers 6.2)."""
    return _OVERFLOW.search(text) is not None and _NEVER_OVERFLOW.search(text) is None


def parse_error_body(body: bytes) -> ErrorBody:
    """The words of an error body in any of the shapes of providers 2.6; raw text when it is no JSON."""
    raw = body.decode("utf-8", "replace").strip()
    if _is_html(raw):
        return ErrorBody(message=describe_html(body), raw=raw)
    try:
        value = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return ErrorBody(message=raw[:MAX_RAW_CHARS], raw=raw)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = cast("dict[str, Any]", value[0])
    if not isinstance(value, dict):
        return ErrorBody(message=raw[:MAX_RAW_CHARS], raw=raw)
    found = error_body_of(cast("dict[str, Any]", value))
    return (
        found
        if found.message
        else ErrorBody(found.message or raw[:MAX_RAW_CHARS], found.type, found.code, raw=raw)
    )


def error_body_of(value: Mapping[str, Any]) -> ErrorBody:
    """The words of an error object: under ``error``, a plain string there, ``message`` or ``detail``."""
    inner = value.get("error")
    source = cast("Mapping[str, Any]", inner) if isinstance(inner, dict) else value
    message = source.get("message")
    if not isinstance(message, str):
        message = inner if isinstance(inner, str) else _detail_text(value.get("detail"))
    kind = source.get("type")
    code = source.get("code")
    if isinstance(code, bool) or not isinstance(code, str | int):
        code = None
    status = source.get("status_code", code)
    return ErrorBody(
        message=message,
        type=kind if isinstance(kind, str) and kind != "error" else None,
        code=code,
        details=_metadata_text(source, message),
        status=status if isinstance(status, int) and 300 <= status < 600 else None,
    )


def _detail_text(detail: object) -> str:
    if isinstance(detail, str):
        return detail
    if not isinstance(detail, list):
        return ""
    parts: list[str] = []
    for item in cast("list[object]", detail):
        if isinstance(item, dict):
            row = cast("dict[str, Any]", item)
            place = ".".join(str(step) for step in row.get("loc") or ())
            parts.append(f"{place}: {row.get('msg', '')}" if place else str(row.get("msg", "")))
    return "; ".join(parts)


def _metadata_text(source: Mapping[str, Any], message: str) -> str:
    metadata = source.get("metadata")
    raw = cast("dict[str, Any]", metadata).get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) and raw not in message else ""


def classify_http(status: int, headers: Mapping[str, str], body: bytes, api: str = "") -> ProviderError:
    """The failure a response with an error status stands for; ``api`` is named in the text of a redirect."""
    names = {name.lower(): value for name, value in headers.items()}
    if 300 <= status < 400:
        return _redirect_error(status, names)
    found = parse_error_body(body)
    if not body.strip():
        found = ErrorBody(message=f"{status} status code (no body)")
    error = _build(found, status, is_page=_is_html(found.raw))
    hint = find_delay_hint(names, found.searched + "\n" + found.raw)
    error.retry_after_s = hint
    match names.get("x-should-retry", "").lower():
        case "false":
            error.retryable = False
        case "true" if error.kind in _RETRYABLE or error.kind is ErrorKind.INVALID_REQUEST:
            error.retryable = True
        case _:
            pass
    return error


def provider_error_of_body(found: ErrorBody) -> ProviderError:
    """The failure that stands inside a successful response or stream; its own code counts as the status."""
    error = _build(found, found.status, is_page=False)
    error.retry_after_s = find_delay_hint({}, found.searched)
    return error


def classify_exception(error: BaseException) -> ProviderError:
    """A failure of the program's own side as a ProviderError: time-outs, sockets, unreadable data."""
    match error:
        case ProviderError():
            return error
        case asyncio.CancelledError():
            return ProviderError("Cancelled", kind=ErrorKind.ABORTED)
        case TimeoutError():
            found = ProviderError(
                "The server did not answer in time", kind=ErrorKind.TRANSPORT, retryable=True
            )
            found.cause = "timeout"
            return found
        case _:
            found = ProviderError(
                f"The connection failed: {error or type(error).__name__}",
                kind=ErrorKind.TRANSPORT,
                retryable=True,
            )
            found.cause = "cut"
            return found


def find_kind(found: ErrorBody, status: int | None) -> ErrorKind:
    """The kind of a failure (table 7.1). Structured words beat text, text beats the bare status."""
    text = found.searched
    words = {found.type or "", str(found.code or "")}
    by_word = next((_KIND_BY_WORD[word] for word in sorted(words) if word in _KIND_BY_WORD), None)
    rows = (
        (ErrorKind.OVERFLOW, bool(words & _STRUCTURED_OVERFLOW)),
        (ErrorKind.PAYLOAD, by_word is ErrorKind.PAYLOAD or status != 429 and _PAYLOAD.search(text)),
        (ErrorKind.OVERFLOW, status not in (401, 403, 429) and is_overflow_text(text)),
        (ErrorKind.QUOTA, _QUOTA.search(text) and not _PER_MINUTE.search(text)),
        (ErrorKind.AUTH, _AUTH.search(text)),
    )
    kind = next((kind for kind, applies in rows if applies), None)
    return kind or by_word or _kind_by_status(status, text)


def _kind_by_status(status: int | None, text: str) -> ErrorKind:
    if status in _KIND_BY_STATUS:
        return _KIND_BY_STATUS[status]
    is_client_error = status is not None and 400 <= status < 500
    rows = (
        (ErrorKind.REFUSAL, _REFUSAL.search(text)),
        (ErrorKind.INVALID_REQUEST, is_client_error),
        (ErrorKind.OVERLOADED, _OVERLOADED.search(text)),
        (ErrorKind.SERVER, status is not None or _SERVER.search(text)),
        (ErrorKind.RATE_LIMIT, _NEVER_OVERFLOW.search(text)),
        (ErrorKind.INVALID_REQUEST, "invalid" in text.lower()),
    )
    return next((kind for kind, applies in rows if applies), ErrorKind.SERVER)


def _build(found: ErrorBody, status: int | None, *, is_page: bool) -> ProviderError:
    kind = find_kind(found, status)
    words = found.message or "The server reported an error without a text"
    if found.details:
        words = f"{words} ({found.details})"
    shown = words if status is None or words.startswith(str(status)) else f"{status}: {words}"
    retryable = kind in _RETRYABLE and not _DETERMINISTIC.search(words)
    error = ProviderError(shown, kind=kind, status=status, retryable=retryable)
    error.error_type = found.type
    error.code = found.code
    error.server_message = found.message or None
    error.cause = "html" if is_page else None
    return error


def _redirect_error(status: int, headers: Mapping[str, str]) -> ProviderError:
    target = headers.get("location", "another address")
    error = ProviderError(
        f"{status}: the server redirects to {target[:300]}; set baseUrl",
        kind=ErrorKind.INVALID_REQUEST,
        status=status,
    )
    error.cause = "redirect"
    return error


def _is_html(text: str) -> bool:
    head = text[:200].lstrip().lower()
    return head.startswith(("<!doctype html", "<html", "<head", "<body", "<?xml", "<center", "<h1"))


def describe_html(body: bytes) -> str:
    """One line that names an HTML page without showing it."""
    text = body[:65536].decode("utf-8", "replace")
    title = re.search(r"<title[^>]*>([^<]{1,200})", text, re.IGNORECASE)
    named = f' titled "{" ".join(title.group(1).split())[:80]}"' if title else ""
    return f"The server answered with an HTML page{named} instead of data"
