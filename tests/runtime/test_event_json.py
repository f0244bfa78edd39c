"""The JSON of single events; whole streams of them are in tests/cli/test_doors.py."""

import pytest

from musepi_tui.runtime import events as ev
from musepi_tui.runtime.event_json import to_json


def json_of(event):
    return to_json(event, lambda entry_id: pytest.fail(f"nothing has to be read, yet {entry_id} was"))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            ev.ContextPruned("superseded", 3, 1_200),
            {"type": "context_pruned", "kind": "superseded", "entries": 3, "tokensFreed": 1_200},
        ),
        (
            ev.ModelPromoted("a/small", "a/large", "overflow"),
            {"type": "model_promoted", "from": "a/small", "to": "a/large", "reason": "overflow"},
        ),
        (
            ev.ExtensionFailed("guard", "session_compact", "ValueError: no", switched_off=True),
            {
                "type": "extension_error",
                "extension": "guard",
                "event": "session_compact",
                "error": "ValueError: no",
            },
        ),
        (
            ev.BranchSummaryStarted("t"),
            {"type": "branch_summary_start", "targetId": "t"},
        ),
        (
            ev.BranchSummaryEnded("s"),
            {"type": "branch_summary_end", "aborted": False, "summaryEntryId": "s"},
        ),
        (ev.BranchSummaryEnded(aborted=True), {"type": "branch_summary_end", "aborted": True}),
        (
            ev.BranchSummaryEnded(error="no"),
            {"type": "branch_summary_end", "aborted": False, "errorMessage": "no"},
        ),
        (ev.LeafMoved("a", None), {"type": "tree_moved", "from": "a", "to": None}),
        (
            ev.LeafMoved("a", "s", "s"),
            {"type": "tree_moved", "from": "a", "to": "s", "summaryEntryId": "s"},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_event_is_one_object(event, expected):
    assert json_of(event) == (expected,)


@pytest.mark.parametrize(
    "event", [ev.EndDropped(("a",)), ev.EndRestored(("a",)), ev.IdleCountdown(5.0)], ids=repr
)
def test_what_concerns_screens_only_is_no_json_event(event):
    assert json_of(event) == ()


@pytest.mark.parametrize("mid_turn", [True, False])
def test_both_ends_of_a_pass_say_whether_a_turn_was_under_way(mid_turn):
    start = ev.MaintenanceStarted("threshold", "summary", mid_turn)
    end = ev.MaintenanceEnded("threshold", "summary", mid_turn=mid_turn, skipped=True)
    assert [each["midTurn"] for each in (*json_of(start), *json_of(end))] == [mid_turn, mid_turn]
