import pytest

from musepi_tui.context.estimate import Estimator
from musepi_tui.context.usage import (
    calculate_context_tokens,
    calculate_prompt_tokens,
    fresh_index,
    last_assistant_usage,
    measure_context,
    sum_usage,
)
from musepi_tui.session.messages import CompactionSummary, Cost, StopReason, Usage
from tests.support.builders import a, path, stub_count, t, u, words

ORCHESTRATED = {"orchestration": {"input": 700}}


@pytest.mark.parametrize(
    ("usage", "context", "prompt"),
    [
        (Usage(input=900, output=100, cache_read=4000), 5000, 4900),
        (Usage(input=900, output=100, cache_read=4000, total_tokens=5200), 5200, 4900),
        (Usage(input=900, output=100, cache_read=4000, total_tokens=5200, extra=ORCHESTRATED), 4500, 4900),
        (Usage(output=80, total_tokens=80), 80, 80),
        (Usage(input=10, extra={"orchestration": {"input": 700, "output": 5}}), 0, 10),
    ],
)
def test_usage_figures(usage, context, prompt):
    assert calculate_context_tokens(usage) == context
    assert calculate_prompt_tokens(usage) == prompt


def test_last_usage_passes_over_failed_aborted_and_empty_answers():
    good = Usage(input=50, output=5)
    entries = path(
        u("q"),
        a("yes", usage=good),
        a("half", stop=StopReason.ABORTED, usage=Usage(input=99)),
        a("no", stop=StopReason.ERROR, usage=Usage(input=98)),
        a("zero", usage=Usage(output=0, total_tokens=0, reasoning=1)),
    )
    assert last_assistant_usage(entries) == good
    assert last_assistant_usage(path(u("q"))) is None


def test_measure_takes_the_bill_and_estimates_what_came_after():
    messages = [u("q"), a("answer", usage=Usage(input=900, output=100)), t(words(40)), u(words(10))]
    measured = measure_context(messages, Estimator(stub_count), other_tokens=30)
    assert (measured.measured, measured.billed) == (1050, True)


def test_measure_ignores_a_bill_from_before_the_compaction():
    messages = [CompactionSummary("1234"), a("kept", usage=Usage(input=99_000)), u("1234")]
    measured = measure_context(messages, Estimator(stub_count), fresh_from=2, other_tokens=100)
    assert (measured.measured, measured.billed) == (103, False)


def test_decision_takes_the_larger_of_bill_and_local_count():
    messages = [u(words(500)), a("ok", usage=Usage(input=20, output=1))]
    measured = measure_context(messages, Estimator(stub_count))
    assert (measured.measured, measured.decision) == (21, measured.stored)
    assert measured.stored > 500


@pytest.mark.parametrize(
    ("entry_ids", "expected"),
    [(["C", "a", "b", "d"], 3), (["C", "a", "b"], 3), (["C", "d", "e"], 1)],
    ids=["messages-after-it", "none-after-it", "nothing-kept"],
)
def test_fresh_index(entry_ids, expected):
    assert fresh_index(entry_ids, ["d", "e"]) == expected


def test_sum_of_usage_adds_tokens_and_cost():
    first = Usage(input=10, output=2, total_tokens=12, cost=Cost(input=0.1, total=0.2))
    second = Usage(input=5, output=1, cache_read=4, total_tokens=10, cost=Cost(input=0.1, total=0.3))
    total = sum_usage([first, second])
    assert (total.input, total.output, total.cache_read, total.total_tokens) == (15, 3, 4, 22)
    assert total.cost.total == pytest.approx(0.5)


def test_sum_of_usage_has_no_cost_when_one_is_unknown():
    assert sum_usage([Usage(input=1, cost=Cost(total=1)), Usage(input=1)]).cost is None
    assert sum_usage([]) is None
