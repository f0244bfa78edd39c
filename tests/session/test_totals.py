import pytest

from musepi_tui.session.entries import CompactionEntry
from musepi_tui.session.messages import Cost, Usage
from musepi_tui.session.totals import Totals
from tests.support.builders import a, branch_summary, compaction, path, state, t, u

USAGE = Usage(1, 2, 3, 4, 10, Cost(total=0.5))
STORED = {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": 0.5}}


@pytest.mark.parametrize(
    "part",
    [
        a("x", usage=USAGE),
        compaction("S", "e1", usage=USAGE),
        branch_summary("B", usage=USAGE),
        t("x", extra={"usage": STORED}),
        t("x", tool="task", details={"usage": STORED}),
        state("usage", kind="x", usage=STORED),
    ],
    ids=["answer", "compaction", "branch summary", "result", "task result", "usage entry"],
)
def test_usage_of_every_kind_of_entry_counts(part):
    assert Totals().add(path(part)[0]) == Totals(1, 2, 3, 4, 0.5, 1)


@pytest.mark.parametrize("part", [u("x"), t("x"), t("x", details={"usage": STORED}), state("label")])
def test_other_entries_add_nothing(part):
    assert Totals().add(path(part)[0]) == Totals()


def test_answer_with_unknown_usage_is_counted_apart():
    from dataclasses import replace

    entry = path(replace(a("x"), usage=None))[0]
    assert not isinstance(entry, CompactionEntry)
    assert Totals().add(entry) == Totals(unknown=1)


def test_usage_without_cost_adds_tokens_only():
    assert Totals(cost=1.0).add_usage(Usage(1, 1)) == Totals(1, 1, cost=1.0, requests=1)
