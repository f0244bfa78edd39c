from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.context.elide import Elision, artifact_text, plan_elisions
from musepi_tui.context.estimate import Estimator
from musepi_tui.context.window import path_items
from musepi_tui.session.messages import TextBlock, ToolResultMessage, text_of
from musepi_tui.session.rebuild import with_content
from tests.support.builders import a, call, path, stub_count, t, u
from tests.support.sketch import sketch


def plan(entries, budget, kept_from=0):
    items = path_items(entries)
    return plan_elisions(items, items[kept_from:], budget, Estimator(stub_count))


@pytest.mark.parametrize(
    ("text", "kept_from", "budget", "elided"),
    [
        ("u100 a200 t4000 a300 u50 a6000 t3000 a100", 5, 5_000, ["e7"]),
        ("u20 a20 t800 t5000 t2500", 0, 3_000, ["e4", "e5"]),
        ("u20 a20 t800 t5000 t2500", 0, 9_000, []),
        ("u10 a10 u10 a10 t9000", 2, 5_000, ["e5"]),
        ("u10 a10 e9000 t500", 0, 100, ["e4"]),
        ("u10 a10 t100 t101", 0, 50, ["e4"]),
        ("u10 a10 t500 t500", 0, 600, ["e3"]),
    ],
)
def test_elisions(text, kept_from, budget, elided):
    assert [elision.entry_id for elision in plan(sketch(text), budget, kept_from)] == elided


@pytest.mark.parametrize(
    "result",
    [t(5000, tool="skill"), t(5000, tool="read"), replace(t(5000), pruned_at_ms=5)],
    ids=["skill", "read-of-a-skill", "replaced-before"],
)
def test_protected_results_stay(result):
    calls = [
        call("skill", result.tool_call_id)
        if result.tool_name == "skill"
        else call("read", result.tool_call_id, path="skill://x")
    ]
    assert plan(path(u("x"), a("", calls), result), 10) == ()


def test_marker_names_tokens_tool_and_artifact():
    elision = Elision("e1", "bash", 812, "text")
    start = '[output elided by compaction: ~812 tokens of "bash" output removed '
    start += "to keep the retained tail within budget"
    assert elision.marker() == f"{start}]"
    assert elision.marker("7") == f"{start}; recover the full output at artifact://7]"


def test_artifact_holds_every_text_in_order():
    elisions = (Elision("e1", "bash", 5, "one"), Elision("e2", "read", 6, "two\nlines"))
    assert artifact_text(elisions) == (
        "### elision 1 (bash, ~5 tokens, entry e1)\n\none\n\n"
        "### elision 2 (read, ~6 tokens, entry e2)\n\ntwo\nlines\n\n"
    )


@given(
    st.lists(st.tuples(st.sampled_from("te"), st.integers(1, 3_000)), min_size=1, max_size=8),
    st.integers(1, 5_000),
)
def test_tail_is_within_budget_or_has_no_candidate_left(results, budget):
    entries = sketch("u40 a200 " + " ".join(f"{letter}{size}" for letter, size in results))
    elisions = plan(entries, budget)
    by_id = {elision.entry_id: elision for elision in elisions}
    estimate = Estimator(stub_count)
    total, left = 0, []
    for item in path_items(entries):
        message = item.message
        if item.id in by_id:
            assert isinstance(message, ToolResultMessage)
            assert not message.is_error
            assert by_id[item.id].text == text_of(message.content)
            assert by_id[item.id].text in artifact_text(elisions)
            message = with_content(message, (TextBlock(by_id[item.id].marker()),), 1)
        elif isinstance(message, ToolResultMessage) and not message.is_error and estimate(message) > 100:
            left.append(item.id)
        total += estimate(message)
    assert total <= budget or not left
