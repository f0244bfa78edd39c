import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.session.codec import dump_line
from musepi_tui.session.entries import MessageEntry
from musepi_tui.session.glimpse import START_BYTES, glimpse, glimpse_answer
from musepi_tui.session.messages import (
    AssistantMessage,
    StopReason,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)
from tests.support.builders import a, call, entry, t, u
from tests.support.random_sessions import trees

CHARS = 400


def line_of(part) -> bytes:
    return dump_line(entry(part, "e1", "e0"))


def test_prompt_is_told_by_the_start_of_its_line():
    assert glimpse(line_of(u("say hello")), "e1", CHARS) == ("say hello", True, None, None)
    assert glimpse(line_of(UserMessage("plain text")), "e1", CHARS) == ("plain text", True, None, None)


def test_result_names_its_call_and_tool():
    assert glimpse(line_of(t("two\nlines", "call-7", "grep")), "e1", CHARS) == (
        "two\nlines",
        True,
        "call-7",
        "grep",
    )


def test_answer_behind_its_thinking_is_found_and_is_not_all():
    line = line_of(a("I look.", [call("read", path="x")], thinking='why "so"?'))
    assert glimpse(line, "e1", CHARS) == ("I look.", False, None, None)


@pytest.mark.parametrize(
    "text", ["a" * 5_000, "路" * 3_000, '"\\\n' * 2_000, " " * 300 + "x" * 900, "🧭" * 900]
)
def test_long_text_is_cut_between_characters(text):
    found = glimpse(line_of(u(text))[:START_BYTES], "e1", CHARS)
    assert found is not None
    assert text.startswith(found.text)
    assert found.is_enough == (len(found.text.lstrip()) > CHARS)


def test_escaped_text_of_other_tools_is_read_like_any_other():
    line = json.dumps(json.loads(line_of(u("Größe 🧭 " * 300))), separators=(",", ":")).encode()
    found = glimpse(line[:START_BYTES], "e1", 100)
    assert found is not None
    assert (found.text[:9], found.is_enough) == ("Größe 🧭 G", True)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"type":"message"',
        line_of(u("hi")).replace(b'"e1"', b'"e2"'),
        line_of(u("hi")).replace(b"hi", b"blobtext:sha256:" + b"0" * 64),
        line_of(u("hi")).replace(b"hi", b"\\q"),
        line_of(a("", [call("read")])),
        dump_line(entry(u("hi"), "e1", "e0")).replace(b'"type":"text","text"', b'"text":"x","type"'),
    ],
    ids=["empty", "torn", "other entry", "blob", "bad escape", "calls only", "other order"],
)
def test_line_that_does_not_tell_gives_nothing(line):
    assert glimpse(line, "e1", CHARS) is None


def test_answer_is_read_with_its_calls_and_its_end():
    made = a("", [call("read", path="x")], stop=StopReason.ERROR, error_message="overloaded")
    found = glimpse_answer(line_of(made), "e1")
    assert found is not None
    assert (found.content, found.stop_reason, found.error_message) == (
        made.content,
        StopReason.ERROR,
        "overloaded",
    )


@pytest.mark.parametrize(
    "line",
    [
        line_of(u("hi")),
        line_of(a("hi")).replace(b'"e1"', b'"e2"'),
        line_of(a("hi"))[:-3],
        line_of(a("blobtext:sha256:" + "0" * 64)),
    ],
    ids=["prompt", "other entry", "torn", "blob"],
)
def test_line_of_no_answer_gives_none(line):
    assert glimpse_answer(line, "e1") is None


@settings(max_examples=60)
@given(trees(), st.integers(1, 30))
def test_glimpses_agree_with_the_decoded_messages(entries, chars):
    for made in entries:
        line = dump_line(made)
        found = glimpse(line[:START_BYTES], made.id, chars)
        message = made.message if isinstance(made, MessageEntry) else None
        if found is not None:
            assert isinstance(message, UserMessage | AssistantMessage | ToolResultMessage)
            text = text_of(message.content)
            assert text.startswith(found.text)
            assert not found.is_enough or found.text == text or len(found.text.lstrip()) > chars
        answer = glimpse_answer(line, made.id)
        assert (answer is not None) == isinstance(message, AssistantMessage)
        if answer is not None and isinstance(message, AssistantMessage):
            assert (answer.content, answer.stop_reason) == (message.content, message.stop_reason)
            assert tool_calls_of(answer) == tool_calls_of(message)
