import json

import pytest

from musepi_tui import sdk
from musepi_tui.base.errors import MusepiError
from musepi_tui.sdk import parse_wire_response
from tests.support.server import anthropic_reply, openai_reply


def test_example_of_the_docstring_runs():
    source = sdk.__doc__.split("::\n", 1)[1]
    exec("\n".join(line.removeprefix("    ") for line in source.splitlines()), {})


@pytest.mark.parametrize(
    ("api", "reply"), [("anthropic-messages", anthropic_reply), ("openai-completions", openai_reply)]
)
def test_answer_is_read_whatever_the_splits(api, reply):
    body = reply("Text é😀", thinking="Hm.", tools=[("read", {"path": "é"}), ("ls", {})]).body
    whole = parse_wire_response(api, 200, {}, body)
    assert set(whole) == {"text", "thinking", "toolCalls", "stopReason", "usage", "error"}
    assert (whole["text"], whole["thinking"], whole["stopReason"]) == ("Text é😀", "Hm.", "toolUse")
    assert [call["arguments"] for call in whole["toolCalls"]] == [{"path": "é"}, {}]
    assert whole["usage"] == {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15}
    for cut in range(0, len(body) + 5, 7):
        assert parse_wire_response(api, 200, {}, body, [cut, cut + 1, cut + 3]) == whole
    assert parse_wire_response(api, 200, {}, body.decode()) == whole


@pytest.mark.parametrize(
    ("api", "status", "headers", "body", "expected"),
    [
        (
            "anthropic-messages",
            529,
            {},
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            {"kind": "overloaded", "retryable": True, "type": "overloaded_error", "retryAfter": None},
        ),
        (
            "openai-completions",
            429,
            {"Retry-After": "3"},
            {"error": {"message": "slow", "type": "x", "code": "rate_limit_exceeded"}},
            {"kind": "rate_limit", "retryable": True, "code": "rate_limit_exceeded", "retryAfter": 3.0},
        ),
        (
            "openai-completions",
            200,
            {},
            {"error": {"message": "no", "type": "invalid_request_error"}},
            {"kind": "invalid_request", "retryable": False, "message": "no"},
        ),
    ],
)
def test_failure_is_described(api, status, headers, body, expected):
    found = parse_wire_response(api, status, headers, json.dumps(body).encode())
    assert found["stopReason"] == "error"
    assert expected.items() <= found["error"].items()


def test_full_window_is_told_though_the_answer_stands():
    body = anthropic_reply("Half an ans", stop="model_context_window_exceeded").body
    found = parse_wire_response("anthropic-messages", 200, {}, body)
    assert (found["text"], found["stopReason"]) == ("Half an ans", "length")
    assert found["error"]["kind"] == "overflow"


def test_api_without_a_wire_is_refused():
    for api in ("nonsense", "demo"):
        with pytest.raises(MusepiError, match=api):
            parse_wire_response(api, 200, {}, b"")
