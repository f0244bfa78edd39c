from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.llm import LlmTemplates, convert_to_llm, convert_with_ids, strip_summary_wrapper
from musepi_tui.session.messages import (
    BashExecution,
    BranchSummary,
    CompactionSummary,
    CustomMessage,
    DeveloperMessage,
    FileMention,
    ImageBlock,
    TextBlock,
    UnknownMessage,
    UserMessage,
)
from tests.support.builders import a, dev, t, u

TEMPLATES = LlmTemplates("earlier\n<summary>\n{{summary}}\n</summary>", "branch:\n\n{{summary}}")
PICTURE = ImageBlock("aGk=", "image/png")


def convert(*messages, **options):
    return convert_to_llm(messages, TEMPLATES, **options)


@pytest.mark.parametrize(
    "message", [u("hi"), dev("rule"), a("there"), t("x")], ids=["user", "dev", "answer", "result"]
)
def test_message_in_a_known_role_stays_as_it_is(message):
    assert convert(message) == (message,)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (CustomMessage("note", "text", timestamp_ms=3), DeveloperMessage("text", 3)),
        (BashExecution("ls", "a\nb\n", 0, timestamp_ms=3), UserMessage("$ ls\na\nb", 3)),
        (BashExecution("1+1", "2", kind="python", timestamp_ms=3), UserMessage(">>> 1+1\n2", 3)),
        (BranchSummary("<summary>B</summary>", "e1", 3), DeveloperMessage("branch:\n\nB", 3)),
        (CompactionSummary("S", 9, timestamp_ms=3), UserMessage("earlier\n<summary>\nS\n</summary>", 3)),
        (
            CompactionSummary("S", images=(PICTURE,)),
            UserMessage((TextBlock("earlier\n<summary>\nS\n</summary>"), PICTURE)),
        ),
        (
            FileMention(
                (
                    {"path": "a.py", "content": "x = 1\n"},
                    {"path": "b.png", "image": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
                ),
                3,
            ),
            UserMessage((TextBlock("a.py\nx = 1"), TextBlock("b.png"), PICTURE), 3),
        ),
    ],
    ids=["custom", "bash", "python", "branch", "compaction", "frames", "files"],
)
def test_other_roles_become_roles_a_model_knows(message, expected):
    assert convert(message) == (expected,)


@pytest.mark.parametrize(
    "message", [BashExecution("ls", "a", excluded=True), UnknownMessage("system", {"role": "system"})]
)
def test_what_is_not_for_the_model_is_left_out(message):
    assert convert(u("x"), message) == (u("x"),)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ((TextBlock("a"), PICTURE, TextBlock("b")), "ab"),
        ((PICTURE,), "[Output truncated]"),
        ((), "[Output truncated]"),
    ],
)
def test_pruned_result_has_exactly_one_text(content, expected):
    result = replace(t("x"), content=content, pruned_at_ms=5)
    assert convert(result) == (replace(result, content=(TextBlock(expected),)),)


def test_provider_without_developer_role_gets_user_messages():
    converted = convert(dev("rule"), CustomMessage("n", "c"), a("x"), developer_role=False)
    assert converted == (UserMessage("rule"), UserMessage("c"), a("x"))


def test_summary_is_never_read_as_a_template():
    text = "keep {{summary}} and \\1"
    assert convert(CompactionSummary(text))[0].content == f"earlier\n<summary>\n{text}\n</summary>"


def test_ids_stay_with_their_messages():
    messages = (u("1"), BashExecution("ls", "", excluded=True), a("2"))
    assert convert_with_ids(messages, ("e1", "e2", "e3"), TEMPLATES) == (("e1", u("1")), ("e3", a("2")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<summary>\nA\n</summary>", "A"),
        ('<summary kind="x">A <summary>b</summary></summary>', "A <summary>b</summary>"),
        ("<summary>a</summary> <summary>b</summary>", "<summary>a</summary> <summary>b</summary>"),
        ("intro <summary>a</summary>", "intro <summary>a</summary>"),
        ("<summary>a", "<summary>a"),
        ("  plain  ", "plain"),
        ("</summary>a", "</summary>a"),
        ("<summary />a</summary>", "<summary />a</summary>"),
        ("<SUMMARY>a<summary />b</Summary>\n", "a<summary />b"),
        ("<summaryx>a</summaryx>", "<summaryx>a</summaryx>"),
        ("<summary></summary>", ""),
        ("", ""),
    ],
)
def test_wrapper_around_all_of_a_summary_is_taken_off(text, expected):
    assert strip_summary_wrapper(text) == expected


pieces = st.sampled_from(["<summary>", "</summary>", "<summary a='b'>", "<summary />", "text", " ", "\n"])


@given(st.lists(pieces, max_size=8).map("".join))
def test_stripping_twice_differs_only_for_a_nested_wrapper(text):
    once = strip_summary_wrapper(text)
    twice = strip_summary_wrapper(once)
    assert once == once.strip()
    assert twice == once or once.lower().startswith("<summary")
