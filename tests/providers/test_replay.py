import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.providers.replay import (
    IMAGE_OMITTED,
    NO_RESULT,
    TOOL_IMAGE_OMITTED,
    ReplayRules,
    prepare_history,
    shape_call_id,
)
from musepi_tui.providers.types import Model
from musepi_tui.session.messages import (
    AssistantMessage,
    DeveloperMessage,
    ImageBlock,
    OpaqueBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)

CLAUDE = Model("anthropic", "claude-x", "anthropic-messages", "", input=("text", "image"))
LOCAL = Model("local", "small", "openai-completions", "")
RULES = ReplayRules("anthropic")


def answer(*content, model=CLAUDE, stop=StopReason.TOOL_USE, **fields):
    return AssistantMessage(tuple(content), model.api, model.provider, model.id, stop, **fields)


def call(call_id="c1", name="read", **arguments):
    return ToolCallBlock(call_id, name, arguments, thought_signature="opaque")


def result(call_id="c1", *blocks, **fields):
    return ToolResultMessage(call_id, "read", blocks or (TextBlock("done"),), **fields)


def test_call_without_a_result_gets_an_error_result():
    ready = prepare_history([UserMessage("a"), answer(call()), UserMessage("b")], CLAUDE, RULES)
    assert [type(message) for message in ready] == [
        UserMessage,
        AssistantMessage,
        ToolResultMessage,
        UserMessage,
    ]
    assert ready[2].is_error
    assert text_of(ready[2].content) == NO_RESULT


def test_results_follow_their_call_in_call_order_even_when_stored_later():
    history = [answer(call("a"), call("b")), result("b"), UserMessage("in between"), result("a")]
    ready = prepare_history(history, CLAUDE, RULES)
    assert [getattr(message, "tool_call_id", None) for message in ready] == [None, "a", "b", None]


def test_result_without_a_call_is_dropped():
    assert prepare_history([result("x"), UserMessage("a"), result("y")], CLAUDE, RULES) == (UserMessage("a"),)


@pytest.mark.parametrize("stop", [StopReason.ERROR, StopReason.ABORTED])
def test_broken_answer_is_left_out_with_its_results(stop):
    history = [UserMessage("a"), answer(TextBlock("half"), call(), stop=stop), result(), UserMessage("b")]
    assert prepare_history(history, CLAUDE, RULES) == (UserMessage("a"), UserMessage("b"))


def test_call_without_id_or_name_is_dropped_with_its_result():
    history = [answer(TextBlock("x"), call(" "), call("c2", "")), result(" "), result("c2")]
    (only,) = prepare_history(history, CLAUDE, RULES)
    assert only.content == (TextBlock("x"),)


def test_own_signed_thinking_stays_and_foreign_thinking_becomes_text():
    signed, hidden = ThinkingBlock("why", "sig"), ThinkingBlock("", "data", redacted=True)
    history = [answer(signed, hidden, TextBlock("so"), stop=StopReason.STOP)]
    assert prepare_history(history, CLAUDE, RULES)[0].content == (signed, hidden, TextBlock("so"))
    (foreign,) = prepare_history(history, replace(CLAUDE, id="claude-y"), RULES)
    assert foreign.content == (TextBlock("why"), TextBlock("so"))


def test_unsigned_thinking_stays_only_where_nothing_checks_it():
    history = [answer(ThinkingBlock("why"), TextBlock("so"), stop=StopReason.STOP)]
    assert prepare_history(history, CLAUDE, RULES)[0].content[0] == TextBlock("why")
    kept = prepare_history(history, CLAUDE, ReplayRules(keep_unsigned_thinking=True))
    assert kept[0].content[0] == ThinkingBlock("why")


def test_thinking_cut_by_length_is_dropped():
    history = [UserMessage("a"), answer(ThinkingBlock("why", "sig"), stop=StopReason.LENGTH)]
    assert prepare_history(history, CLAUDE, RULES) == (UserMessage("a"),)


def test_what_only_the_other_model_can_read_is_removed():
    history = [
        answer(call(), OpaqueBlock({"type": "odd"}), provider_payload={"reasoning_details": [1]}),
        result(),
    ]
    (foreign, _) = prepare_history(history, LOCAL, ReplayRules())
    assert foreign.content[0].thought_signature is None
    assert len(foreign.content) == 1
    assert foreign.provider_payload is None


def test_images_are_named_for_a_model_that_reads_none():
    images = (ImageBlock("AAAA", "image/png"), ImageBlock("BBBB", "image/png"))
    history = [UserMessage((TextBlock("look"), *images)), answer(call()), result("c1", *images)]
    ready = prepare_history(history, LOCAL, ReplayRules())
    assert ready[0].content == (TextBlock("look"), TextBlock(IMAGE_OMITTED))
    assert ready[2].content == (TextBlock(TOOL_IMAGE_OMITTED),)
    assert prepare_history(history, CLAUDE, RULES)[0].content[1:] == images


def test_empty_messages_are_dropped():
    history = [
        UserMessage(""),
        DeveloperMessage(()),
        answer(TextBlock("  "), stop=StopReason.STOP),
        UserMessage("a"),
    ]
    assert prepare_history(history, CLAUDE, RULES) == (UserMessage("a"),)


def test_same_id_in_two_turns_is_told_apart():
    history = [answer(call("x")), result("x", TextBlock("1")), answer(call("x")), result("x", TextBlock("2"))]
    ready = prepare_history(history, CLAUDE, RULES)
    assert [message.content[0].id for message in ready[::2]] == ["x", "x_dup1"]
    assert [message.tool_call_id for message in ready[1::2]] == ["x", "x_dup1"]
    assert [text_of(message.content) for message in ready[1::2]] == ["1", "2"]


@pytest.mark.parametrize(
    ("style", "call_id", "expected"),
    [
        ("any", "call|fc+1", "call|fc+1"),
        ("anthropic", "call|fc+1", "call_fc_1"),
        ("anthropic", "x" * 80, "x" * 64),
        ("openai40", "call_1", "call_1"),
        ("openai40", "call_1|fc_2", "call_1_fc_2"),
        ("mistral9", "abcDEF123", "abcDEF123"),
    ],
)
def test_call_id_takes_the_form_of_the_target(style, call_id, expected):
    assert shape_call_id(call_id, style) == expected


def test_long_openai_ids_with_a_shared_call_part_stay_different():
    first, second = (shape_call_id("call_" + "a" * 60 + f"|fc_{number}", "openai40") for number in (1, 2))
    assert first != second
    assert len(first) == len(second) == 40


MESSAGES = st.lists(
    st.one_of(
        st.builds(UserMessage, st.text(max_size=3)),
        st.builds(
            lambda ids, text, stop: answer(*([TextBlock(text)] * bool(text)), *map(call, ids), stop=stop),
            st.lists(st.sampled_from(["a", "b", "é|1", ""]), max_size=3),
            st.text(max_size=3),
            st.sampled_from(list(StopReason)),
        ),
        st.builds(result, st.sampled_from(["a", "b", "é|1", "", "z"])),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(MESSAGES, st.sampled_from(["any", "anthropic", "openai40", "mistral9"]))
def test_every_call_is_followed_by_exactly_its_results(history, style):
    ready = prepare_history(history, CLAUDE, ReplayRules(style))
    waiting: list[str] = []
    seen: set[str] = set()
    for message in ready:
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert waiting == []
        if isinstance(message, AssistantMessage):
            waiting = [block.id for block in message.content if isinstance(block, ToolCallBlock)]
            assert not seen & set(waiting)
            assert len(set(waiting)) == len(waiting)
            seen |= set(waiting)
    assert waiting == []
    if style == "anthropic":
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) for call_id in seen)
    if style == "mistral9":
        assert all(re.fullmatch(r"[A-Za-z0-9]{9}", call_id) for call_id in seen)
