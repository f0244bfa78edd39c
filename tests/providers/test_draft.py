import time

import pytest

from musepi_tui.providers.draft import Draft
from musepi_tui.providers.types import BlockDelta, BlockEnd, BlockStart
from musepi_tui.session.messages import StopReason, TextBlock, ThinkingBlock, ToolCallBlock


def test_block_ends_when_another_kind_starts():
    draft = Draft()
    draft.add_thinking("hm", "reasoning")
    draft.add_text("a")
    draft.add_thinking("more", "reasoning")
    draft.finish(StopReason.STOP)
    assert draft.content() == (
        ThinkingBlock("hm", "reasoning"),
        TextBlock("a"),
        ThinkingBlock("more", "reasoning"),
    )
    kinds = [type(event) for event in draft.take_events()]
    assert kinds == [BlockStart, BlockDelta, BlockEnd] * 3


def test_call_without_arguments_has_an_empty_object():
    draft = Draft()
    draft.open("toolcall", call_id="c", name="ls")
    draft.finish(StopReason.TOOL_USE)
    assert draft.content() == (ToolCallBlock("c", "ls", {}),)


def test_call_with_unreadable_arguments_keeps_the_reason():
    draft = Draft()
    draft.grow(draft.open("toolcall", call_id="c", name="ls"), '{"path": ')
    assert draft.content() == ()
    draft.finish(StopReason.TOOL_USE)
    (call,) = draft.content()
    assert call.arguments == {}
    assert "not valid JSON" in call.parse_error


@pytest.mark.parametrize("arguments", ["", '{"path": "a'])
def test_unfinished_call_is_dropped_after_a_length_stop(arguments):
    draft = Draft()
    draft.add_text("Reading.")
    block = draft.open("toolcall", call_id="c", name="read")
    draft.grow(block, arguments)
    draft.end(block)
    draft.finish(StopReason.LENGTH)
    assert draft.content() == (TextBlock("Reading."),)


def test_ids_are_never_empty_and_never_twice():
    draft = Draft()
    for call_id in ("", "", "x", "x"):
        draft.open("toolcall", call_id=call_id, name="ls")
    draft.finish(StopReason.TOOL_USE)
    ids = [call.id for call in draft.content()]
    assert all(ids)
    assert len(set(ids)) == 4
    assert ids[2:] == ["x", "x_dup1"]


def test_surrogate_pair_split_over_deltas_is_joined():
    draft = Draft()
    draft.add_text("a\ud83d")
    draft.add_text("\ude00b\udc00")
    draft.finish(StopReason.STOP)
    assert draft.content() == (TextBlock("a😀b�"),)
    deltas = [event.delta for event in draft.take_events() if isinstance(event, BlockDelta)]
    assert deltas == ["a", "😀b�"]


def test_megabyte_of_arguments_in_many_deltas_takes_little_time():
    draft = Draft()
    block = draft.open("toolcall", call_id="c", name="write")
    draft.grow(block, '{"content": "')
    piece = 'line \\"quoted\\" and more of the text, fifty chars\\n'
    started = time.process_time()
    for _ in range(20_000):
        draft.grow(block, piece)
    draft.grow(block, '"}')
    draft.finish(StopReason.TOOL_USE)
    assert time.process_time() - started < 2
    (call,) = draft.content()
    assert len(call.arguments["content"]) > 900_000
    parsed = [event for event in draft.take_events() if isinstance(event, BlockDelta) and event.arguments]
    assert 20 < len(parsed) < 400
