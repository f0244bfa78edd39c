import json

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.reader import ResponseReader
from musepi_tui.providers.types import Model
from musepi_tui.providers.wire.anthropic_decode import AnthropicDecoder
from musepi_tui.session.messages import StopReason, TextBlock, ThinkingBlock, ToolCallBlock

MODEL = Model("x", "m", "anthropic-messages", "https://x.example")
START = {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 7, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def start(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, **fields):
    return {"type": "content_block_delta", "index": index, "delta": fields}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def end(reason, **fields):
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, **fields},
        "usage": {"output_tokens": 3},
    }


def decode(*events):
    reader = ResponseReader(AnthropicDecoder(MODEL))
    for event in events:
        reader.feed(f"event: {event['type']}\ndata: {json.dumps(event)}   \n\n".encode())
    reader.finish()
    return reader.decoder.draft


def test_empty_text_block_vanishes():
    draft = decode(
        START,
        start(0, type="text", text=""),
        stop(0),
        start(1, type="text", text="a"),
        stop(1),
        end("end_turn"),
        STOP,
    )
    assert draft.content() == (TextBlock("a"),)


def test_thinking_without_text_keeps_its_signature():
    draft = decode(
        START,
        start(0, type="thinking", thinking=""),
        delta(0, type="signature_delta", signature="ab"),
        delta(0, type="signature_delta", signature="cd"),
        stop(0),
        end("end_turn"),
        STOP,
    )
    assert draft.content() == (ThinkingBlock("", "abcd"),)


def test_call_cut_by_the_output_limit_is_dropped():
    draft = decode(
        START,
        start(0, type="text", text="Reading."),
        stop(0),
        start(1, type="tool_use", id="t", name="read", input={}),
        delta(1, type="input_json_delta", partial_json='{"path": "a'),
        stop(1),
        end("max_tokens"),
        STOP,
    )
    assert draft.content() == (TextBlock("Reading."),)
    assert draft.stop_reason is StopReason.LENGTH


def test_call_with_empty_pieces_only_has_no_arguments():
    draft = decode(
        START,
        start(0, type="tool_use", id="t", name="ls", input={}),
        delta(0, type="input_json_delta", partial_json=""),
        stop(0),
        end("tool_use"),
        STOP,
    )
    assert draft.content() == (ToolCallBlock("t", "ls", {}),)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("pause_turn", "stop"), ("max_tokens", "length")],
)
def test_stop_word_is_mapped(word, expected):
    draft = decode(START, start(0, type="text", text="a"), stop(0), end(word), STOP)
    assert draft.stop_reason == expected


@pytest.mark.parametrize(
    ("word", "fields", "kind", "text"),
    [
        ("refusal", {"stop_details": {"explanation": "Not this."}}, ErrorKind.REFUSAL, "Not this."),
        ("refusal", {}, ErrorKind.REFUSAL, "declined"),
        ("banana", {}, ErrorKind.SERVER, "banana"),
    ],
)
def test_other_stop_words_are_failures(word, fields, kind, text):
    with pytest.raises(ProviderError, match=text) as caught:
        decode(START, end(word, **fields), STOP)
    assert caught.value.kind is kind


def test_error_event_ends_the_answer():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ProviderError) as caught:
        decode(START, start(0, type="text", text="a"), error)
    assert (caught.value.kind, caught.value.retryable) == (ErrorKind.OVERLOADED, True)


def test_missing_message_stop_is_a_cut():
    with pytest.raises(ProviderError, match="ended before message_stop"):
        decode(START, start(0, type="text", text="a"), end("end_turn"))


def test_usage_keeps_what_later_events_leave_out():
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    last["usage"] = {
        "output_tokens": 9,
        "input_tokens": None,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    first = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 2}}}
    first["message"]["usage"]["cache_creation_input_tokens"] = 6
    first["message"]["usage"]["cache_creation"] = {"ephemeral_1h_input_tokens": 6}
    usage = decode(first, start(0, type="text", text="a"), last, STOP).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (5, 9, 2, 6)
    assert (usage.reasoning, usage.cache_write_1h, usage.total_tokens) == (4, 6, 22)
