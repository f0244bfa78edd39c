import json

import pytest

from musepi_tui.base.errors import ErrorKind
from musepi_tui.providers.classify import (
    classify_exception,
    classify_http,
    is_overflow_text,
    parse_error_body,
    provider_error_of_body,
)

OVERFLOWS = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 189136 + 20000 > 204648, decrease input length",
    "Input is too long for requested model",
    "Input Tokens Exceeded: Number of input tokens exceeds maximum length",
    "Your input exceeds the context window of this model",
    "This model's maximum context length is 128,000 tokens. However, you requested 130000 tokens",
    "Input exceeds the model's maximum context length of 128000 tokens",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    "Please reduce the length of the messages or completion",
    "Input length 200000 exceeds the maximum allowed input length of 131072 tokens",
    "The input (150000 tokens) is longer than the model's context length (131072 tokens)",
    "request (4476 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5)",
    "Trying to keep the first 5000 tokens when context the overflows",
    "prompt too long; exceeded max context length by 300 tokens",
    "prompt token count of 70000 exceeds the limit of 64000",
    "invalid params, context window exceeds limit",
    "Your request exceeded model token limit: 262144 (requested: 300000)",
    "Prompt contains 40000 tokens and is too large for model with 32768 maximum context length",
    "model_context_exceeded",
    "prompt_too_long",
    "Range of input length should be [1, 129024]",
    "too many tokens: size limit exceeded by 300",
    "The total length of all messages is too long",
    "400 status code (no body)",
    "413 status code (no body)",
]
NOT_OVERFLOWS = [
    "Too many tokens, please wait before trying again.",
    "Rate limit reached for tokens per minute",
    "Throttling: token limit exceeded",
    "You exceeded your current quota: token limit exceeded",
    "image exceeds the limit of 5 MB",
    "Too many requests: reduce the length of the messages",
    "503 Service Unavailable: context length exceeded",
    "max_tokens must be at least 1",
    "500 status code (no body)",
    "invalid x-api-key",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_overflow_text_is_known(text):
    assert is_overflow_text(text)


@pytest.mark.parametrize("text", NOT_OVERFLOWS)
def test_other_text_is_no_overflow(text):
    assert not is_overflow_text(text)


def error(**fields):
    return json.dumps({"error": fields}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, error(message="too big", code="context_length_exceeded"), ErrorKind.OVERFLOW, False),
        (
            400,
            error(code=400, message="no room", type="exceed_context_size_error"),
            ErrorKind.OVERFLOW,
            False,
        ),
        (400, b"", ErrorKind.OVERFLOW, False),
        (413, b"", ErrorKind.OVERFLOW, False),
        (
            413,
            error(message="Request exceeds the maximum size", type="request_too_large"),
            ErrorKind.PAYLOAD,
            False,
        ),
        (413, error(message="Entity too big"), ErrorKind.PAYLOAD, False),
        (400, error(message="image exceeds 5 MB maximum: 6000000 bytes"), ErrorKind.PAYLOAD, False),
        (401, error(message="invalid x-api-key", type="authentication_error"), ErrorKind.AUTH, False),
        (403, error(message="no access", type="permission_error"), ErrorKind.AUTH, False),
        (401, b'{"detail": "Invalid API Key"}', ErrorKind.AUTH, False),
        (
            400,
            b'{"code": "invalid-argument", "error": "Incorrect API key provided: xa***"}',
            ErrorKind.AUTH,
            False,
        ),
        (402, error(message="pay first"), ErrorKind.QUOTA, False),
        (
            429,
            error(message="You exceeded your current quota", code="insufficient_quota"),
            ErrorKind.QUOTA,
            False,
        ),
        (400, error(message="Your credit balance is too low"), ErrorKind.QUOTA, False),
        (403, error(message="Insufficient balance"), ErrorKind.QUOTA, False),
        (429, error(message="Quota exceeded per minute, check billing"), ErrorKind.RATE_LIMIT, True),
        (429, error(message="Rate limit reached", type="rate_limit_error"), ErrorKind.RATE_LIMIT, True),
        (
            429,
            error(
                message="Request too large for gpt on tokens per min: Limit 30000", code="rate_limit_exceeded"
            ),
            ErrorKind.RATE_LIMIT,
            True,
        ),
        (429, b"", ErrorKind.RATE_LIMIT, True),
        (400, error(message="busy", code="1302"), ErrorKind.RATE_LIMIT, True),
        (529, error(message="Overloaded", type="overloaded_error"), ErrorKind.OVERLOADED, True),
        (503, error(message="Loading model"), ErrorKind.OVERLOADED, True),
        (500, error(message="Internal server error", type="api_error"), ErrorKind.SERVER, True),
        (502, b"<html><title>502 Bad Gateway</title></html>", ErrorKind.SERVER, True),
        (522, b"", ErrorKind.SERVER, True),
        (504, error(message="slow", type="timeout_error"), ErrorKind.SERVER, True),
        (
            500,
            error(message="Failed to parse tool call arguments as JSON"),
            ErrorKind.SERVER,
            False,
        ),
        (408, b"", ErrorKind.TRANSPORT, True),
        (409, error(message="again", type="conflict_error"), ErrorKind.CONFLICT, True),
        (404, error(message="model: nope", type="not_found_error"), ErrorKind.NOT_FOUND, False),
        (400, error(message="odd", code="content_filter"), ErrorKind.REFUSAL, False),
        (400, error(message="tools.0: bad", type="invalid_request_error"), ErrorKind.INVALID_REQUEST, False),
        (
            422,
            b'{"detail": [{"msg": "field required", "loc": ["body", "model"]}]}',
            ErrorKind.INVALID_REQUEST,
            False,
        ),
        (
            400,
            b'{"object": "error", "message": "The maximum context length is 4096 tokens.", "code": 400}',
            ErrorKind.OVERFLOW,
            False,
        ),
        (
            400,
            b'{"error": "The number of tokens to keep is greater than the context length"}',
            ErrorKind.OVERFLOW,
            False,
        ),
    ],
)
def test_http_failure_has_the_right_kind(status, body, kind, retryable):
    found = classify_http(status, {}, body)
    assert (found.kind, found.retryable) == (kind, retryable)
    assert str(status) in str(found)


@pytest.mark.parametrize(
    ("header", "status", "expected"), [("false", 500, False), ("true", 400, True), ("true", 401, False)]
)
def test_server_says_whether_to_retry(header, status, expected):
    found = classify_http(status, {"X-Should-Retry": header}, error(message="x"))
    assert found.retryable is expected


def test_html_body_is_named_and_not_shown():
    found = classify_http(404, {}, b"<!DOCTYPE html><html><head><title>Not  here</title></head><body>secret")
    assert found.kind is ErrorKind.NOT_FOUND
    assert 'HTML page titled "Not here"' in str(found)
    assert "secret" not in str(found)
    assert found.cause == "html"


def test_reason_in_metadata_is_appended_once():
    body = error(message="Provider returned error", code=502, metadata={"raw": "upstream is down"})
    found = classify_http(502, {}, body)
    assert str(found) == "502: Provider returned error (upstream is down)"
    assert found.server_message == "Provider returned error"
    assert found.code == 502


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"plain words", "plain words"),
        (b'{"message": "top", "type": "t"}', "top"),
        (b'{"detail": "why"}', "why"),
        (b'{"detail": [{"msg": "m", "loc": ["a", 1]}]}', "a.1: m"),
        (b'[{"error": {"message": "in a list"}}]', "in a list"),
        (b'{"odd": 1}', '{"odd": 1}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * 4000),
    ],
)
def test_error_body_of_any_shape_gives_its_words(body, message):
    assert parse_error_body(body).message == message


def test_error_inside_a_stream_uses_its_own_code_as_status():
    found = provider_error_of_body(parse_error_body(error(message="slow down", code=429)))
    assert (found.kind, found.status) == (ErrorKind.RATE_LIMIT, 429)
    assert provider_error_of_body(parse_error_body(error(type="overloaded_error", message="x"))).retryable


@pytest.mark.parametrize(
    ("raised", "kind", "cause"),
    [
        (TimeoutError(), ErrorKind.TRANSPORT, "timeout"),
        (ConnectionResetError("reset"), ErrorKind.TRANSPORT, "cut"),
    ],
)
def test_exception_becomes_a_provider_error(raised, kind, cause):
    found = classify_exception(raised)
    assert (found.kind, found.cause, found.retryable) == (kind, cause, True)
