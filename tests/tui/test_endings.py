import pytest

from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceResult
from musepi_tui.session.messages import Cost, Usage
from musepi_tui.tui.endings import ending, refusal

RESULT = MaintenanceResult("c1", "e5", 231_785, 24_100, 12_400, Usage(cost=Cost(total=0.08)))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            MaintenanceEnded("manual", "summary", result=RESULT),
            ("info", "Compacted 231,785 → 24,100 tokens in 12s ($0.08)"),
        ),
        (MaintenanceEnded("manual", "summary", aborted=True), ("info", "Compaction cancelled")),
        (MaintenanceEnded("manual", "summary", error="no"), ("error", "Compaction failed: no")),
        (MaintenanceEnded("manual", "summary", skipped=True), None),
        (MaintenanceEnded("threshold", "summary", result=RESULT), None),
        (MaintenanceEnded("threshold", "summary", aborted=True), ("info", "Auto-compaction cancelled")),
        (
            MaintenanceEnded("overflow", "summary", error="Context overflow recovery failed: x"),
            ("error", "Context overflow recovery failed: x"),
        ),
    ],
)
def test_ending_says_what_the_divider_does_not(event, told):
    assert ending(event) == told


def test_refused_compaction_is_a_friendly_line():
    assert refusal("Already compacted", None) == ("info", "Already compacted")
    skipped = MaintenanceEnded("manual", "summary", skipped=True)
    assert refusal("Already compacted", skipped) == ("info", "Already compacted")


@pytest.mark.parametrize("fields", [{"aborted": True}, {"error": "x"}])
def test_what_the_pass_told_is_not_told_again(fields):
    assert refusal("x", MaintenanceEnded("manual", "summary", **fields)) is None
