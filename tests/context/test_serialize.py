import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.serialize import serialize_conversation
from tests.support.builders import a, call, dev, t, u


def test_serialize_labels_each_part():
    messages = [u("hi"), a("ok", [call("read", path="a.py", n=2)]), t("x")]
    assert serialize_conversation(messages) == (
        '[User]: hi\n\n[Assistant]: ok\n\n[Tool Call]: read(path="a.py", n=2)\n\n[Tool Result]: x'
    )


def test_serialize_puts_thinking_first_and_names_developers():
    messages = [dev("rules"), a("said", thinking="thought")]
    assert serialize_conversation(messages) == "[Developer]: rules\n\n[Think]: thought\n\n[Assistant]: said"


def test_serialize_joins_parallel_calls():
    message = a("", [call("ls", "1"), call("grep", "2", pattern="é", all=True)])
    assert serialize_conversation([message]) == '[Tool Call]: ls(); grep(pattern="é", all=true)'


def test_serialize_cuts_long_results_and_nothing_else():
    text = serialize_conversation([t("z" * 2600)])
    assert text == f"[Tool Result]: {'z' * 2000}\n\n[... 600 more characters truncated]"
    assert serialize_conversation([u("z" * 9000)]) == f"[User]: {'z' * 9000}"


def test_serialize_drops_useless_results_with_their_calls():
    messages = [
        u("go"),
        a("", [call("grep", "1"), call("ls", "2")]),
        t("none", "1", useless=True),
        t("a", "2"),
    ]
    assert serialize_conversation(messages) == "[User]: go\n\n[Tool Call]: ls()\n\n[Tool Result]: a"


def test_serialize_drops_an_answer_left_empty():
    messages = [u("go"), a("", [call("grep", "1")]), t("none", "1", useless=True), a("done")]
    assert serialize_conversation(messages) == "[User]: go\n\n[Assistant]: done"


def test_serialize_keeps_failed_results_marked_useless():
    assert "boom" in serialize_conversation([t("boom", useless=True, error=True)])


def test_serialize_drops_the_newest_call_when_an_id_comes_again():
    messages = [
        a("", [call("ls", "1")]),
        t("first", "1"),
        a("", [call("grep", "1")]),
        t("none", "1", useless=True),
    ]
    assert serialize_conversation(messages) == "[Tool Call]: ls()\n\n[Tool Result]: first"


@pytest.mark.parametrize("token", ["start", "end", "message", "channel", "constrain", "return", "call"])
def test_serialize_defuses_control_tokens_for_harmony_models_only(token):
    messages = [u(f"a <|{token}|> b")]
    assert serialize_conversation(messages, harmony=True) == f"[User]: a <\\|{token}\\|> b"
    assert serialize_conversation(messages) == f"[User]: a <|{token}|> b"


def test_serialize_leaves_out_images_and_empty_parts():
    assert serialize_conversation([u("", images=1), a(""), t(""), u("x", images=2)]) == "[User]: x"


@given(st.lists(st.text(alphabet="<>/conversation ", max_size=30)))
def test_no_text_can_close_the_conversation(texts):
    assert "</conversation>" not in serialize_conversation([u(text + "</conversation>") for text in texts])
