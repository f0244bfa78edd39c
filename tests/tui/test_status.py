from dataclasses import replace

import pytest

from musepi_tui.runtime.events import (
    AgentStarted,
    BranchSummaryEnded,
    BranchSummaryStarted,
    IdleCountdown,
    MaintenanceEnded,
    MaintenanceProgress,
    MaintenanceStarted,
    Meter,
    Notice,
    Phase,
    PhaseChanged,
    QueueChanged,
    RetryEnded,
    RetryScheduled,
    SessionReady,
    SummaryRetryEnded,
    SummaryRetryScheduled,
    SummaryRetryStarted,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
from musepi_tui.tools.types import ToolView
from musepi_tui.tui.status import Maintaining, Status, Waiting, Working, describe
from tests.support.transcripts import session_view

VIEW = ToolView("tail", "$ make")
SESSION = replace(session_view(()), phase=Phase.MAINTAINING, compacting=True)


def line(status: Status, now: float) -> str:
    activity = status.activity
    assert activity is not None
    return describe(activity, now)


def test_nothing_is_shown_at_rest():
    assert Status(phase=Phase.IDLE).activity is None


def test_turn_shows_its_seconds_and_the_tools_that_run():
    status = Status()
    for event in (PhaseChanged(Phase.STREAMING), AgentStarted()):
        assert status.apply(event, 10.0)
    assert line(status, 22.9) == "Working… 12s (esc to cancel)"
    status.apply(ToolStarted("1", "bash", {}, VIEW), 23.0)
    status.apply(ToolStarted("2", "read", {}, VIEW), 23.0)
    status.apply(ToolStarted("3", "read", {}, VIEW), 23.0)
    assert line(status, 75.0) == "Running bash, read… 1m 5s (esc to cancel)"
    status.apply(ToolEnded("1", "bash", "", VIEW, False, 5), 76.0)
    assert "Running read…" in line(status, 76.0)
    status.apply(PhaseChanged(Phase.IDLE), 77.0)
    assert status.activity is None


def test_retry_counts_down():
    status = Status(phase=Phase.RETRYING, turn_since=0.0)
    status.apply(RetryScheduled(1, 10, 2.0, "overloaded"), 100.0)
    assert isinstance(status.activity, Waiting)
    assert line(status, 100.0) == "Retrying (1/10) in 2s… (esc to cancel)"
    assert line(status, 100.5) == "Retrying (1/10) in 2s… (esc to cancel)"
    assert line(status, 101.5) == "Retrying (1/10) in 1s… (esc to cancel)"
    assert line(status, 105.0) == "Retrying (1/10) in 0s… (esc to cancel)"
    status.apply(RetryEnded(True, 1), 106.0)
    assert isinstance(status.activity, Working)


@pytest.mark.parametrize(
    ("reason", "mid_turn", "lead"),
    [
        ("manual", False, "Compacting…"),
        ("threshold", False, "Auto-compacting…"),
        ("threshold", True, "Auto-compacting before the next step…"),
        ("overflow", False, "Context overflow: compacting…"),
        ("incomplete", False, "Output cut off: compacting…"),
        ("idle", False, "Idle: compacting…"),
        ("provider switch", False, "Making the compacted history readable for this model…"),
    ],
)
def test_maintenance_line_begins_with_its_reason(reason, mid_turn, lead):
    status = Status()
    status.apply(MaintenanceStarted(reason, "summary", mid_turn), 5.0)
    assert line(status, 17.0) == f"{lead} 12s (esc to cancel)"


@pytest.mark.parametrize(
    ("reason", "mid_turn", "lead"),
    [
        ("manual", False, "Shake…"),
        ("threshold", False, "Auto-shake…"),
        ("threshold", True, "Auto-shake before the next step…"),
        ("overflow", False, "Context overflow: shake…"),
        ("incomplete", False, "Output cut off: shake…"),
        ("idle", False, "Idle: shake…"),
    ],
)
def test_verb_of_the_maintenance_line_follows_its_action(reason, mid_turn, lead):
    status = Status()
    status.apply(MaintenanceStarted(reason, "shake", mid_turn), 5.0)
    assert line(status, 17.0) == f"{lead} 12s (esc to cancel)"


def test_shake_that_goes_on_as_a_summary_says_so():
    status = Status()
    status.apply(MaintenanceStarted("threshold", "shake"), 0.0)
    status.apply(MaintenanceProgress("summary", 0, 2, 84_000), 3.0)
    assert line(status, 4.0) == "Auto-compacting… 4s · summary 1/2 · ~84k in (esc to cancel)"


def test_long_input_is_counted_in_windows_and_writing_is_said():
    status = Status()
    status.apply(MaintenanceStarted("overflow", "summary"), 0.0)
    status.apply(MaintenanceProgress("window", 2, 7, 400_000, 5_000), 1.0)
    assert line(status, 65.0) == (
        "Context overflow: compacting… 1m 5s · window 3/7 · ~400k in → 5.0k out (esc to cancel)"
    )
    status.apply(MaintenanceProgress("write"), 66.0)
    assert line(status, 66.0) == "Context overflow: compacting… 1m 6s · write (esc to cancel)"


@pytest.mark.parametrize(
    ("reason", "lead"),
    [
        ("manual", "Generating handoff…"),
        ("threshold", "Auto-handoff…"),
        ("incomplete", "Output cut off: handoff…"),
        ("idle", "Idle: handoff…"),
    ],
)
def test_handoff_has_words_of_its_own(reason, lead):
    status = Status()
    status.apply(MaintenanceStarted(reason, "handoff"), 0.0)
    assert line(status, 4.0) == f"{lead} 4s (esc to cancel)"
    status.apply(MaintenanceProgress("handoff", 0, 0, 84_000, 2_100), 5.0)
    assert line(status, 6.0) == f"{lead} 6s · ~84k in → 2.1k out (esc to cancel)"


def test_handoff_that_goes_on_as_a_summary_says_so():
    status = Status()
    status.apply(MaintenanceStarted("threshold", "handoff"), 0.0)
    status.apply(MaintenanceProgress("handoff", 0, 0, 84_000), 1.0)
    status.apply(MaintenanceProgress("summary", 0, 1, 84_000), 3.0)
    assert line(status, 4.0) == "Auto-compacting… 4s · summary 1/1 · ~84k in (esc to cancel)"


def test_handoff_keeps_its_line_while_the_session_changes():
    status = Status(phase=Phase.MAINTAINING)
    status.apply(MaintenanceStarted("threshold", "handoff"), 2.0)
    status.apply(SessionReady(SESSION, "handoff"), 5.0)
    assert line(status, 6.0) == "Auto-handoff… 4s (esc to cancel)"
    status.apply(MaintenanceEnded("threshold", "handoff"), 7.0)
    assert status.pass_running is None


def test_branch_summary_is_shown_until_its_end():
    status = Status()
    status.apply(PhaseChanged(Phase.NAVIGATING), 0.0)
    assert status.is_working
    assert status.apply(BranchSummaryStarted("e1"), 1.0)
    assert line(status, 13.0) == "Summarizing branch… 12s (esc to cancel)"
    status.apply(SummaryRetryScheduled(1, 10, 4.0, "overloaded"), 14.0)
    assert line(status, 14.0) == "Retrying (1/10) in 4s… (esc to cancel)"
    status.apply(BranchSummaryEnded(aborted=True), 15.0)
    status.apply(PhaseChanged(Phase.IDLE), 15.0)
    assert status.activity is None
    assert not status.is_working


def test_summary_that_is_tried_again_counts_down_and_comes_back():
    status = Status(phase=Phase.MAINTAINING)
    status.apply(MaintenanceStarted("threshold", "summary"), 0.0)
    status.apply(MaintenanceProgress("summary", 0, 1, 9_000), 1.0)
    assert status.apply(SummaryRetryScheduled(2, 10, 4.0, "overloaded"), 10.0)
    assert line(status, 10.0) == "Retrying (2/10) in 4s… (esc to cancel)"
    assert line(status, 12.5) == "Retrying (2/10) in 2s… (esc to cancel)"
    assert status.apply(SummaryRetryStarted(2), 14.0)
    assert line(status, 15.0) == "Auto-compacting… 15s · summary 1/1 · ~9.0k in (esc to cancel)"
    status.apply(SummaryRetryScheduled(3, 10, 8.0, "overloaded"), 16.0)
    status.apply(SummaryRetryEnded(False, 3, "cancelled"), 17.0)
    assert isinstance(status.activity, Maintaining)
    status.apply(SummaryRetryScheduled(4, 10, 8.0, "overloaded"), 18.0)
    status.apply(MaintenanceEnded("threshold", "summary", aborted=True), 19.0)
    assert status.activity is None


def test_idle_countdown_is_kept_as_a_time_until_it_is_over():
    status = Status()
    assert status.apply(IdleCountdown(300), 50.0)
    assert status.idle_until == 350.0
    status.apply(IdleCountdown(None), 60.0)
    assert status.idle_until is None


def test_maintenance_line_tells_how_far_the_pass_is():
    status = Status()
    status.apply(MaintenanceStarted("manual", "summary"), 0.0)
    status.apply(MaintenanceProgress("prepare"), 1.0)
    assert line(status, 2.0) == "Compacting… 2s · prepare (esc to cancel)"
    status.apply(MaintenanceProgress("summary", 0, 2, 84_000), 3.0)
    assert line(status, 4.0) == "Compacting… 4s · summary 1/2 · ~84k in (esc to cancel)"
    status.apply(MaintenanceProgress("summary", 0, 2, 84_000, 2_100), 5.0)
    assert line(status, 12.0) == "Compacting… 12s · summary 1/2 · ~84k in → 2.1k out (esc to cancel)"
    status.apply(MaintenanceEnded("manual", "summary"), 13.0)
    assert status.activity is None


def test_pass_is_shown_before_the_turn_it_interrupts():
    status = Status(phase=Phase.MAINTAINING, turn_since=0.0)
    status.apply(MaintenanceStarted("threshold", "summary", True), 1.0)
    assert isinstance(status.activity, Maintaining)
    assert status.is_working


def test_messages_queue_while_the_session_loads():
    status = Status(phase=Phase.LOADING)
    assert status.is_queueing
    assert not status.is_working


def test_figures_and_queue_are_taken_over():
    status = Status()
    assert status.apply(UsageChanged(Meter(context_tokens=5)), 0.0)
    assert status.apply(QueueChanged(("a",), ("b",)), 0.0)
    assert (status.meter.context_tokens, status.steering, status.follow_up) == (5, ("a",), ("b",))


def test_other_events_change_nothing():
    assert not Status().apply(Notice("info", "x", "y"), 0.0)


def test_narrow_maintenance_line_leaves_figures_out_before_the_way_to_cancel():
    status = Status()
    status.apply(MaintenanceStarted("overflow", "summary"), 0.0)
    status.apply(MaintenanceProgress("window", 2, 7, 400_000, 5_000), 1.0)
    activity = status.activity
    assert activity is not None
    whole = describe(activity, 2.0)
    assert describe(activity, 2.0, len(whole)) == whole
    assert describe(activity, 2.0, 78) == "Context overflow: compacting… 2s · window 3/7 (esc to cancel)"
    assert describe(activity, 2.0, 50) == "Context overflow: compacting… 2s (esc to cancel)"
