from dataclasses import replace

import pytest

from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import Outcome, TurnFacts
from musepi_tui.maintenance.guards import (
    excess_tokens,
    has_headroom,
    has_helped,
    has_not_helped,
    has_overflowed,
    is_exhausted,
    names_media_limit,
    residual_tokens,
)
from musepi_tui.maintenance.run import Run
from musepi_tui.maintenance.triggers import IdleElapsed, PromptPending, ToolBoundary, Trigger, TurnFinished
from musepi_tui.session.messages import StopReason
from tests.support.builders import a
from tests.support.policy import facts

TURN = Run.start(TurnFinished(a("x")))
RUN = Run.start(IdleElapsed())


@pytest.mark.parametrize(
    ("residual", "retry", "go_on"),
    [(140_000, 0, 4_000), (136_000, 0, 0), (136_001, 0, 1), (170_001, 1, 34_001)],
)
def test_band_and_retry_budget(residual, retry, go_on):
    now = facts(residual)
    assert excess_tokens(replace(TURN, trigger=Trigger.OVERFLOW), now) == retry
    assert excess_tokens(TURN, now) == go_on
    assert has_headroom(TURN, now) is (go_on == 0)


@pytest.mark.parametrize("trigger", Trigger)
def test_an_unknown_window_holds(trigger):
    now = facts(10**9, window=None, threshold=None)
    assert excess_tokens(replace(TURN, trigger=trigger), now) == 0


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.IDLE])
def test_manual_and_idle_passes_need_not_free_anything(trigger):
    assert excess_tokens(replace(TURN, trigger=trigger), facts(10**9)) == 0


@pytest.mark.parametrize(
    ("stored", "freed", "expected"), [(100, 0, 500), (100, 300, 200), (100, 450, 100), (600, 500, 600)]
)
def test_residual_takes_off_what_edits_freed_but_never_below_the_local_count(stored, freed, expected):
    run = RUN.after(Outcome(ok=True, changed=True, tokens_freed=freed))
    assert residual_tokens(run, facts(max(500, stored), stored_tokens=stored)) == expected


@pytest.mark.parametrize(
    ("stop", "prompt", "window", "expected"),
    [
        (StopReason.STOP, 200_001, 200_000, True),
        (StopReason.STOP, 200_000, 200_000, False),
        (StopReason.TOOL_USE, 200_001, 200_000, True),
        (StopReason.LENGTH, 200_001, 200_000, False),
        (StopReason.ERROR, 200_001, 200_000, False),
        (StopReason.STOP, 200_001, None, False),
    ],
)
def test_overflow_of_a_successful_answer(stop, prompt, window, expected):
    assert has_overflowed(TurnFacts(stop, prompt_tokens=prompt), facts(window=window)) is expected


@pytest.mark.parametrize(("used", "expected"), [(170_000, False), (170_001, True)])
def test_window_is_exhausted_above_the_threshold(used, expected):
    turn = TurnFacts(StopReason.LENGTH, used_tokens=used)
    assert is_exhausted(turn, facts()) is expected
    assert is_exhausted(turn, replace(facts(), threshold=None, window=None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("messages.3: at most 100 images are allowed", True),
        ("Too many images in the request", True),
        ("image exceeds 5 MB maximum", True),
        ("image dimensions exceed 8000 pixels", True),
        ("The number of frames is above the limit", True),
        ("Request entity too large", False),
        ("could not decode image", False),
        ("request_too_large: body is 40 MB", False),
        ("The imagery count limit", False),
    ],
)
def test_media_limits_are_told_by_words_that_occur_together(text, expected):
    assert names_media_limit(text) is expected


ANSWER = TurnFacts(StopReason.TOOL_USE, used_tokens=180_000)
BOUNDARY = replace(Run.start(ToolBoundary(a("x"))), turn=ANSWER)


@pytest.mark.parametrize(
    ("run", "left", "billed", "stored", "expected"),
    [
        (BOUNDARY, 24_000, 180_000, 25_000, (False, True)),
        (BOUNDARY, 24_000, 180_000, 67_999, (False, True)),
        (BOUNDARY, 24_000, 180_000, 68_000, (True, False)),
        (BOUNDARY, 24_000, 140_000, 24_500, (False, True)),
        (BOUNDARY, 24_000, 180_000, 20_000, (False, True)),
        (BOUNDARY, 140_000, 180_000, 145_000, (False, False)),
        (BOUNDARY, None, 180_000, 25_000, (False, False)),
        (replace(BOUNDARY, turn=replace(ANSWER, stale=True)), 24_000, 180_000, 25_000, (False, False)),
        (replace(BOUNDARY, turn=replace(ANSWER, used_tokens=0)), 24_000, 180_000, 25_000, (False, False)),
        (replace(BOUNDARY, turn=None), 24_000, 180_000, 25_000, (False, False)),
        (replace(BOUNDARY, signal=PromptPending(9)), 24_000, 180_000, 25_000, (False, False)),
        (replace(BOUNDARY, freed_tokens=50_000), 24_000, 180_000, 25_000, (True, False)),
    ],
    ids=[
        "bill-stays",
        "just-above-the-recovery-band",
        "just-inside-it",
        "above-the-band-and-not-due",
        "history-was-moved-back",
        "measured-against-another-threshold",
        "no-pass-yet",
        "answer-from-before-the-pass",
        "answer-without-a-bill",
        "no-answer",
        "before-a-prompt",
        "edits-took-something-out-since",
    ],
)
def test_first_bill_after_a_pass_tells_whether_it_helped(run, left, billed, stored, expected):
    now = facts(billed, stored_tokens=stored, chain=Chain(tokens_after_pass=left))
    assert (has_helped(run, now), has_not_helped(run, now)) == expected
