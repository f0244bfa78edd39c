from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.breakdown import ORDER, Overhead, break_down, results_by_tool
from musepi_tui.context.estimate import Estimator, stored_estimate
from musepi_tui.session.messages import BashExecution, CompactionSummary, ThinkingBlock
from musepi_tui.session.rebuild import build_session_context
from tests.support.builders import a, call, dev, path, stub_count, t, u, words
from tests.support.sketch import parts


def found(*messages, **overhead):
    made = break_down(messages, Estimator(stub_count), Overhead(**overhead))
    return {part.name: part.tokens for part in made}


def test_each_kind_of_content_is_a_part():
    answer = a(words(30), [call("read", path="a")], thinking=words(40))
    calls = stub_count("read") + stub_count('{"path":"a"}')
    assert found(
        CompactionSummary(words(10), 0),
        u(words(20), images=1),
        answer,
        t(50),
        dev(words(5)),
        system=100,
        tools=200,
    ) == {
        "system prompt": 100,
        "tools": 200,
        "summary": 10,
        "user": 20,
        "assistant": 30,
        "thinking": 40,
        "tool calls": calls,
        "tool results": 50,
        "images": 1_200,
        "other": 5,
    }


def test_what_takes_nothing_is_left_out():
    assert found(u("hi")) == {"user": 1}
    assert found() == {}


def test_signatures_are_no_part():
    answer = a(words(3))
    signed = a(words(3), content=(ThinkingBlock(words(4), signature=words(900)), *answer.content))
    assert found(signed) == {"assistant": 3, "thinking": 4}


def test_commands_of_the_person_are_other():
    assert found(BashExecution(words(2), words(3))) == {"other": 5}


def test_what_a_compaction_kept_is_one_part_besides_its_pictures():
    messages = (CompactionSummary(words(10), 0), u(words(20), images=1), t(50), u(words(4)), t(7))
    made = break_down(messages, Estimator(stub_count), Overhead(), fresh_from=3)
    assert {part.name: part.tokens for part in made} == {
        "summary": 10,
        "kept tail": 70,
        "user": 4,
        "tool results": 7,
        "images": 1_200,
    }


def test_results_are_told_apart_by_their_tool_the_largest_first():
    messages = (t(5, "c1", "ls"), t(50, "c2", "read"), u("x"), t(60, "c3", "read"), t(0, "c4", "find"))
    made = results_by_tool(messages, Estimator(stub_count))
    assert [(part.name, part.tokens) for part in made] == [("read", 110), ("ls", 5)]


@given(
    st.lists(
        st.sampled_from(["u5", "u0", "a7", "a50 t20", "a50 t3 e9", "x4", "c6", "b8", "d2", "m"]), max_size=15
    ),
    st.integers(0, 9_000),
    st.integers(0, 9_000),
    st.integers(0, 16),
)
def test_the_parts_together_are_the_stored_estimate(kinds, system, tools, fresh_from):
    messages = build_session_context(path(*parts(" ".join(kinds)))).messages
    estimate = Estimator(stub_count)
    made = break_down(messages, estimate, Overhead(system, tools), fresh_from)
    assert sum(part.tokens for part in made) == stored_estimate(messages, estimate, system + tools)
    names = [part.name for part in made]
    assert names == [name for name in ORDER if name in names]
    assert all(part.tokens > 0 for part in made)
