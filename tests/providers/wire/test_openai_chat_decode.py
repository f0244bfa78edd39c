import json

import pytest

from musepi_tui.base.errors import ErrorKind, ProviderError
from musepi_tui.providers.reader import ResponseReader
from musepi_tui.providers.types import Model
from musepi_tui.providers.wire.openai_chat_decode import ChatDecoder, read_usage
from musepi_tui.session.messages import StopReason, TextBlock, ThinkingBlock, ToolCallBlock

PLAIN = Model("x", "m", "openai-completions", "https://x.example/v1")


def choice(delta=None, finish=None):
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}]}


def call(arguments="", *, index=None, call_id=None, name=None):
    item = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{key: value for key, value in item.items() if value is not None}]}


def decode(*chunks, model=PLAIN, done=True):
    reader = ResponseReader(ChatDecoder(model))
    for chunk in chunks:
        reader.feed(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode())
    if done:
        reader.feed(b"data: [DONE]\n\n")
    reader.finish()
    return reader.decoder.draft


def calls_of(draft):
    return [
        (block.id, block.name, dict(block.arguments))
        for block in draft.content()
        if isinstance(block, ToolCallBlock)
    ]


@pytest.mark.parametrize(
    "deltas",
    [
        [
            call('{"a"', index=0, call_id="x", name="f"),
            call(": 1}", index=0),
            call("{}", index=1, call_id="y", name="g"),
        ],
        [call('{"a"', call_id="x", name="f"), call(": 1}", call_id="x"), call("{}", call_id="y", name="g")],
        [call('{"a": 1}', index=0, call_id="x", name="f"), call("{}", index=0, call_id="y", name="g")],
        [
            call('{"a"', index=0, call_id="x", name="f"),
            call(": 1}", index=0, call_id="x", name="f"),
            call("{}", index=1, call_id="y", name="g"),
        ],
        [
            call('{"a"', index=0, call_id="x", name="f"),
            call("{", index=1, call_id="y", name="g"),
            call(": 1}", index=0),
            call("}", index=1),
        ],
        [call({"a": 1}, index=0, call_id="x", name="f"), call({}, index=1, call_id="y", name="g")],
        [call('{"a"', call_id="x", name="f"), call(": 1}"), call("{}", call_id="y", name="g")],
    ],
    ids=[
        "by index",
        "by id",
        "one index for all",
        "names repeated",
        "interleaved",
        "objects",
        "pieces without names",
    ],
)
def test_tool_calls_are_put_together(deltas):
    draft = decode(*[choice(delta) for delta in deltas], choice(finish="tool_calls"))
    assert calls_of(draft) == [("x", "f", {"a": 1}), ("y", "g", {})]


def test_stop_word_after_complete_calls_is_a_tool_stop():
    draft = decode(choice(call("{}", index=0, call_id="x", name="f")), choice(finish="stop"))
    assert draft.stop_reason is StopReason.TOOL_USE


def test_only_one_reasoning_field_is_read():
    draft = decode(
        choice({"reasoning": "a", "reasoning_content": "a"}),
        choice({"reasoning": "b"}),
        choice(finish="stop"),
    )
    assert draft.content() == (ThinkingBlock("a", "reasoning_content"),)


def test_cumulative_reasoning_is_not_doubled():
    model = Model("minimax", "m", "openai-completions", "")
    deltas = [choice({"reasoning": text}) for text in ("Let", "Let me", "Let me see")]
    assert decode(*deltas, choice({"content": "x"}), choice(finish="stop"), model=model).content() == (
        ThinkingBlock("Let me see", "reasoning"),
        TextBlock("x"),
    )


def test_think_tags_are_split_for_local_servers_only():
    deltas = [choice({"content": text}) for text in ("<thi", "nk>why</th", "ink>so")]
    local = Model("x", "m", "openai-completions", "http://127.0.0.1:8080/v1")
    assert decode(*deltas, choice(finish="stop"), model=local).content() == (
        ThinkingBlock("why"),
        TextBlock("so"),
    )
    assert decode(*deltas, choice(finish="stop")).content() == (TextBlock("<think>why</think>so"),)


def test_body_may_end_without_done_after_a_finish_reason():
    assert decode(choice({"content": "x"}), choice(finish="eos"), done=False).stop_reason is StopReason.STOP


def test_first_finish_reason_counts():
    draft = decode(choice({"content": "x"}, "length"), choice(finish="stop"))
    assert draft.stop_reason is StopReason.LENGTH


def test_chunks_after_done_are_ignored():
    reader = ResponseReader(ChatDecoder(PLAIN))
    body = f"data: {json.dumps(choice({'content': 'a'}, 'stop'))}\n\ndata: [DONE]\n\ndata: broken\n\n"
    reader.feed(body.encode())
    reader.finish()
    assert reader.decoder.draft.content() == (TextBlock("a"),)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("content_filter", ErrorKind.REFUSAL),
        ("model_context_window_exceeded", ErrorKind.OVERFLOW),
        ("network_error", ErrorKind.SERVER),
        ("banana", ErrorKind.SERVER),
    ],
)
def test_other_finish_reasons_are_failures(word, kind):
    with pytest.raises(ProviderError) as caught:
        decode(choice({"content": "x"}, word))
    assert caught.value.kind is kind


def test_length_without_content_is_an_overflow_for_ollama():
    ollama = Model("ollama", "m", "openai-completions", "")
    with pytest.raises(ProviderError) as caught:
        decode(choice(finish="length"), model=ollama)
    assert caught.value.kind is ErrorKind.OVERFLOW
    assert decode(choice(finish="length")).stop_reason is StopReason.LENGTH


def test_no_finish_reason_and_damaged_chunks_are_a_cut():
    for chunks in ([choice({"content": "x"})], ['{"choices": [{"delta": {"content": "x']):
        with pytest.raises(ProviderError) as caught:
            decode(*chunks)
        assert (caught.value.kind, caught.value.retryable) == (ErrorKind.TRANSPORT, True)


def test_raw_control_characters_in_a_chunk_are_repaired():
    draft = decode('{"choices": [{"delta": {"content": "a\tb\\d"}, "finish_reason": "stop"}]}')
    assert draft.content() == (TextBlock("a\tb\\d"),)


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 2}, "choices": []}, (10, 2, 0, 0)),
        (
            {"choices": [{"usage": {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4}}]},
            (6, 2, 4, 0),
        ),
        ({"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}, "choices": None}, (9, 2, 0, 0)),
    ],
)
def test_usage_is_found_wherever_it_stands(chunk, expected):
    usage = decode(choice({"content": "x"}, "stop"), chunk).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == expected


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 7}, (3, 7, 0)),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3}},
            (5, 2, 3),
        ),
        ({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 5}}, (0, 5, 0)),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, (0, 0, 0)),
        ({"prompt_tokens": -4, "cached_tokens": True}, (0, 0, 0)),
    ],
)
def test_cached_tokens_are_taken_out_of_the_input(wire, expected):
    usage = read_usage(wire)
    assert (usage.input, usage.cache_read, usage.cache_write) == expected


def test_price_of_the_server_is_kept():
    assert read_usage({"prompt_tokens": 1, "cost": 0.25}).cost.total == 0.25
