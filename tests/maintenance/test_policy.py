from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musepi_tui.base.errors import MaintenanceError, NothingToCompactError
from musepi_tui.context.threshold import Threshold, ThresholdKind
from musepi_tui.maintenance.facts import Facts, Outcome
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.policy import DeclareDeadEnd, Notify, Pass, Run, next_step
from musepi_tui.maintenance.triggers import ManualRequested, Stop, TurnFinished
from musepi_tui.session.messages import StopReason
from tests.support.builders import a

THRESHOLD = Threshold(170_000, clamped=False, kind=ThresholdKind.AUTO)
OVER = Facts(180_000, 12_000, 200_000, THRESHOLD, automatic=True)
FREED = replace(OVER, context_tokens=24_000)
OK = Outcome(ok=True)
FAILED = Outcome(ok=False, error=MaintenanceError("boom"))
NOTHING = Outcome(ok=False, error=NothingToCompactError("Already compacted"))
CANCELLED = Outcome(ok=False, cancelled=True)
MANUAL = ManualRequested()
TURN = TurnFinished(a("done"))


def drive(signal, facts, *outcomes):
    """The steps of a run. ``facts`` are those before a pass and those after it."""
    before, after = facts if isinstance(facts, tuple) else (facts, facts)
    run, steps, passed = Run.start(signal), [], False
    waiting = list(outcomes)
    while len(steps) < 20:
        run, step = next_step(run, after if passed else before)
        steps.append(step)
        if isinstance(step, Stop):
            return steps
        passed = passed or isinstance(step, Pass)
        run = run.after(waiting.pop(0) if isinstance(step, Pass) and waiting else OK)
    raise AssertionError("no end")


def names(steps):
    return [type(step).__name__ for step in steps]


def ended(stop):
    return TurnFinished(a("x", stop=stop))


@pytest.mark.parametrize(
    ("signal", "facts", "outcome", "expected", "blocked"),
    [
        (TURN, (OVER, FREED), OK, ["Pass", "Stop"], False),
        (TURN, replace(OVER, context_tokens=170_000), OK, ["Stop"], False),
        (TURN, replace(OVER, context_tokens=170_001), OK, ["Pass", "DeclareDeadEnd", "Stop"], True),
        (TURN, (OVER, replace(OVER, context_tokens=136_000)), OK, ["Pass", "Stop"], False),
        (TURN, (OVER, replace(OVER, context_tokens=136_001)), OK, ["Pass", "DeclareDeadEnd", "Stop"], True),
        (TURN, OVER, FAILED, ["Pass", "Stop"], True),
        (TURN, OVER, CANCELLED, ["Pass", "Stop"], True),
        (TURN, OVER, NOTHING, ["Pass", "DeclareDeadEnd", "Stop"], True),
        (TURN, replace(OVER, automatic=False), OK, ["Stop"], False),
        (TURN, replace(OVER, dead_end=True), OK, ["Stop"], False),
        (TURN, replace(OVER, threshold=None, window=None), OK, ["Stop"], False),
        (TURN, replace(OVER, other_tokens=170_000), OK, ["Notify", "Stop"], False),
        (ended(StopReason.ERROR), OVER, OK, ["Stop"], False),
        (ended(StopReason.ABORTED), OVER, OK, ["Stop"], False),
        (ended(StopReason.LENGTH), (OVER, FREED), OK, ["Pass", "Stop"], False),
        (MANUAL, (OVER, FREED), OK, ["Pass", "Stop"], False),
        (MANUAL, OVER, OK, ["Pass", "Stop"], False),
        (MANUAL, replace(OVER, automatic=False, dead_end=True), OK, ["Pass", "Stop"], False),
        (MANUAL, replace(OVER, threshold=None, window=None), OK, ["Pass", "Stop"], False),
        (MANUAL, OVER, FAILED, ["Pass", "Stop"], True),
        (MANUAL, OVER, NOTHING, ["Pass", "Stop"], True),
    ],
    ids=[
        "over-the-threshold",
        "exactly-at-it",
        "one-over-and-nothing-freed",
        "just-inside-the-band",
        "just-outside-the-band",
        "pass-failed",
        "pass-cancelled",
        "nothing-left-to-summarise",
        "switched-off",
        "after-a-dead-end",
        "unknown-window",
        "overhead-alone-is-too-large",
        "failed-turn",
        "aborted-turn",
        "cut-off-turn",
        "manual",
        "manual-that-freed-little",
        "manual-while-off",
        "manual-with-unknown-window",
        "manual-failed",
        "manual-nothing-to-do",
    ],
)
def test_steps_of_a_run(signal, facts, outcome, expected, blocked):
    steps = drive(signal, facts, outcome)
    assert names(steps) == expected
    assert steps[-1].blocked is blocked


@pytest.mark.parametrize(
    ("signal", "outcome", "error"),
    [
        (TURN, FAILED, "Auto-compaction failed: boom"),
        (MANUAL, FAILED, "boom"),
        (MANUAL, NOTHING, "Already compacted"),
        (MANUAL, CANCELLED, "Compaction cancelled"),
        (MANUAL, OK, None),
    ],
)
def test_the_stop_says_what_went_wrong(signal, outcome, error):
    assert drive(signal, OVER, outcome)[-1].error == error


def test_setting_notices_come_before_the_decision():
    notice = NoticeText("warning", "clamped")
    steps = drive(TURN, (replace(OVER, setting_notices=(notice,)), FREED))
    assert names(steps) == ["Notify", "Pass", "Stop"]
    assert steps[0] == Notify((notice,))


@pytest.mark.parametrize(
    ("outcome", "changed", "figure"), [(OK, True, "180,000"), (NOTHING, False, "180,000")]
)
def test_a_dead_end_names_the_figures_and_whether_a_pass_was_committed(outcome, changed, figure):
    step = drive(TURN, OVER, outcome)[1]
    assert isinstance(step, DeclareDeadEnd)
    assert step.changed is changed
    assert figure in step.notice.text
    assert "/model" in step.notice.text


def test_overhead_notice_is_given_once_a_window():
    step = drive(TURN, replace(OVER, other_tokens=170_001))[0]
    assert step.notices[0].once == "overhead:200000"
    for figure in ("170,001", "170,000", "200,000", "compaction.threshold", "compaction.reserveTokens"):
        assert figure in step.notices[0].text


facts = st.builds(
    Facts,
    context_tokens=st.integers(0, 300_000),
    other_tokens=st.integers(0, 300_000),
    window=st.sampled_from([None, 200_000]),
    threshold=st.sampled_from([None, THRESHOLD]),
    automatic=st.booleans(),
    dead_end=st.booleans(),
    setting_notices=st.sampled_from([(), (NoticeText("warning", "x"),)]),
)
signals = st.one_of(
    st.builds(ManualRequested), st.sampled_from([TURN, *(ended(stop) for stop in StopReason)])
)


@given(signals, facts, facts, st.sampled_from([OK, FAILED, NOTHING, CANCELLED]))
def test_every_run_ends_with_its_only_stop_after_one_pass_at_most(signal, before, after, outcome):
    steps = drive(signal, (before, after), outcome)
    assert len(steps) <= 12
    assert names(steps).count("Stop") == 1
    assert names(steps).count("Pass") <= 1
    if not before.automatic and isinstance(signal, TurnFinished):
        assert "Pass" not in names(steps)
    if "DeclareDeadEnd" in names(steps):
        assert steps[-1].blocked
