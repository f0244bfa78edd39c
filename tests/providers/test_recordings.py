"""Every recorded exchange of the supported APIs against its expected decoding."""

import json
import random

import pytest

from musepi_tui.providers.sse import SseDecoder
from musepi_tui.sdk import parse_wire_response
from tests.support.shared import shared_path

APIS = ("anthropic-messages", "openai-completions")
NAMES = [
    "anthropic-error-auth-401",
    "anthropic-error-overflow-400",
    "anthropic-json-image-tool-result",
    "anthropic-json-parallel-tools",
    "anthropic-stream-after-tool-result",
    "anthropic-stream-compaction-block",
    "anthropic-stream-redacted-thinking",
    "anthropic-stream-server-tool-blocks",
    "anthropic-stream-text",
    "anthropic-stream-thinking-signature",
    "anthropic-stream-tool-use",
    "deepseek-chat-stream-reasoning",
    "deepseek-chat-stream-tool",
    "groq-chat-stream-error-event",
    "groq-chat-stream-reasoning-tool",
    "mistral-chat-stream-thinking-parts",
    "mistral-chat-stream-tool",
    "ollama-chat-stream-tool",
    "ollama-error-overflow-400",
    "openai-chat-stream-parallel-tools",
    "openai-chat-stream-text",
    "openrouter-chat-stream-length-then-error",
    "openrouter-chat-stream-reasoning-details-tool",
    "openrouter-error-overflow-400",
    "openrouter-error-rate-limit-429",
    "zai-chat-stream-thinking",
]
SHORT_BYTES = 2_000
LONG_CUTS = 200
"""Cuts that are tried of a body longer than ``SHORT_BYTES``: each decodes it whole, and its events repeat."""


def load(name: str):
    return json.loads(shared_path("fixtures", "wire", f"{name}.json").read_text("utf-8"))


def decode(recording, splits=None):
    response = recording["response"]
    body = response["body_text"].encode()
    return parse_wire_response(recording["api"], response["status"], response["headers"], body, splits)


def check(recording, found):
    expected = recording["expected"]
    for theirs, ours in (("text", "text"), ("thinking", "thinking"), ("tool_calls", "toolCalls")):
        if theirs in expected:
            assert found[ours] == expected[theirs]
    assert found["stopReason"] == expected["stop_reason"]
    if "usage" in expected:
        wanted = expected["usage"]
        assert found["usage"] == (wanted and {name: wanted[name] for name in found["usage"]})
    if "error" not in expected:
        assert found["error"] is None
        return
    for name, value in expected["error"].items():
        assert found["error"]["retryAfter" if name == "retry_after_s" else name] == value


def test_list_of_recordings_is_complete():
    files = sorted(shared_path("fixtures", "wire").glob("*.json"))
    found = [path.stem for path in files if json.loads(path.read_text("utf-8"))["api"] in APIS]
    assert found == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_recording_decodes_to_its_expected_values(name):
    recording = load(name)
    check(recording, decode(recording))


@pytest.mark.parametrize("name", NAMES)
def test_recording_decodes_the_same_byte_by_byte_and_at_sampled_cuts(name):
    recording = load(name)
    size = len(recording["response"]["body_text"].encode())
    check(recording, decode(recording, range(size)))
    picker = random.Random(name)
    for _ in range(6):
        check(recording, decode(recording, picker.sample(range(size), k=min(size, picker.randint(1, 12)))))


@pytest.mark.parametrize("name", [name for name in NAMES if "stream" in name])
def test_events_are_the_same_at_whatever_position_the_bytes_are_cut(name):
    # Whole events only: what the decoder sees of a cut depends on the event it falls into, not on later ones.
    events = load(name)["response"]["body_text"].encode().split(b"\n\n")
    body = b"\n\n".join(events[:8]) + b"\n\n"
    expected = read_events(body)
    for cut in range(1, len(body)):
        assert read_events(body[:cut], body[cut:]) == expected


def read_events(*chunks: bytes):
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.finish()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_recording_decodes_the_same_cut_in_two_at_any_position(name):
    # Every position of a short body; byte by byte, above, the decoder meets every position of a long one.
    recording = load(name)
    size = len(recording["response"]["body_text"].encode())
    for cut in range(1, size, 1 if size <= SHORT_BYTES else -(-size // LONG_CUTS)):
        check(recording, decode(recording, [cut]))


@pytest.mark.parametrize("name", [name for name in NAMES if "stream" in name and "error-event" not in name])
def test_stream_cut_at_any_event_border_is_a_transport_error(name):
    recording = load(name)
    events = [part for part in recording["response"]["body_text"].split("\n\n") if part.strip()]
    kinds = set()
    for count in range(1, len(events)):
        body = "\n\n".join(events[:count]) + "\n\n"
        found = parse_wire_response(recording["api"], 200, {}, body)
        if found["error"] is not None:
            kinds.add(found["error"]["kind"])
            assert found["error"]["retryable"]
    assert kinds == {"transport"}


@pytest.mark.parametrize("name", [name for name in NAMES if "stream" in name])
def test_unknown_events_and_fields_change_nothing(name):
    recording = load(name)
    body = recording["response"]["body_text"]
    if recording["api"] == "anthropic-messages":
        odd = 'event: odd\ndata: {"type": "odd", "new": [1]}\n\n'
    else:
        odd = 'data: {"object": "odd", "choices": null, "p": "abc"}\n\n: comment\n\n'
    changed = body.replace("\n\n", "\n\n" + odd, 3).replace('"type":', '"x_new":{"a":1},"type":', 1)
    check(recording, parse_wire_response(recording["api"], 200, {}, changed))
