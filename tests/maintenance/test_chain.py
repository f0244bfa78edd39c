from dataclasses import replace

import pytest

from musepi_tui.base.errors import ErrorKind
from musepi_tui.maintenance.chain import MAX_AUTO_CONTINUES, MAX_INCOMPLETE, Chain
from musepi_tui.maintenance.facts import Outcome, TurnFacts
from musepi_tui.maintenance.policy import chain_after, next_step
from musepi_tui.maintenance.run import Run
from musepi_tui.maintenance.steps import Pass, Remind
from musepi_tui.maintenance.triggers import Stop, Strategy, Then, TurnFinished
from musepi_tui.session.messages import StopReason
from tests.support.builders import a
from tests.support.policy import facts

OVERFLOW = TurnFacts(StopReason.ERROR, error_kind=ErrorKind.OVERFLOW, delivered=False)
SILENT = TurnFacts(StopReason.LENGTH, delivered=False, output_tokens=9, used_tokens=10)


def drive(chain, turn=None, *, signal_stop=StopReason.STOP, left=24_000, context_tokens=180_000, **fields):
    """One run with passes that work; the counters after it and its steps."""
    run, steps = Run.start(TurnFinished(a("x", stop=signal_stop))), []
    now = facts(context_tokens, chain=chain, **({} if turn is None else {"turn": turn}), **fields)
    while not steps or not isinstance(steps[-1], Stop):
        run, step = next_step(run, now)
        steps.append(step)
        chain = chain_after(run, step, replace(now, chain=chain))
        if isinstance(step, Pass):
            now = facts(left, chain=chain, **fields)
        run = run.after(Outcome(ok=True, changed=True))
    return chain, steps


@pytest.mark.parametrize(
    ("delivered", "succeeded", "expected"),
    [
        (True, True, Chain(0, overflow_recovered=False, auto_continues=2)),
        (True, False, Chain(0, overflow_recovered=True, auto_continues=2)),
        (False, False, Chain(2, overflow_recovered=True, auto_continues=2)),
        (False, True, Chain(2, overflow_recovered=False, auto_continues=2)),
    ],
)
def test_an_answer_clears_what_it_disproves(delivered, succeeded, expected):
    chain = Chain(2, overflow_recovered=True, auto_continues=2)
    assert chain.after_answer(delivered=delivered, succeeded=succeeded) == expected


def test_one_overflow_recovery_a_chain():
    chain, steps = drive(Chain(), OVERFLOW, signal_stop=StopReason.ERROR)
    assert steps[-1].then is Then.RETRY
    assert chain.overflow_recovered
    chain, steps = drive(chain, OVERFLOW, signal_stop=StopReason.ERROR)
    assert not any(isinstance(step, Pass) for step in steps)
    assert steps[-1].blocked


def test_a_silent_model_is_reminded_three_times_and_then_given_up():
    chain, reminders, runs = Chain(), [], 0
    while runs < 10:
        chain = chain.after_answer(delivered=False, succeeded=False)
        chain, steps = drive(chain, SILENT, signal_stop=StopReason.LENGTH)
        runs += 1
        reminders += [step.attempt for step in steps if isinstance(step, Remind)]
        if steps[-1].then is not Then.RETRY:
            break
    assert reminders == list(range(1, MAX_INCOMPLETE + 1))
    assert steps[-1].blocked


def test_a_larger_model_starts_the_attempts_over():
    chain, _ = drive(Chain(2), SILENT, signal_stop=StopReason.LENGTH, promotion_target="x/big")
    assert chain == Chain()


def test_continuations_end_after_three_without_a_message_of_the_person():
    chain, ends = Chain(), []
    for _ in range(MAX_AUTO_CONTINUES + 1):
        chain = chain.after_answer(delivered=True, succeeded=True)
        chain, steps = drive(chain)
        ends.append(steps[-1].then)
    assert ends == [Then.AUTO_CONTINUE] * MAX_AUTO_CONTINUES + [Then.NOTHING]


def test_what_a_pass_left_is_kept_until_an_answer_was_billed_after_it():
    chain, _ = drive(Chain(), left=24_000)
    assert chain.tokens_after_pass == 24_000
    assert chain.after_prompt() == Chain(tokens_after_pass=24_000)
    chain, _ = drive(chain.after_prompt(), context_tokens=30_000)
    assert chain == Chain()


def test_what_a_pass_left_is_forgotten_with_the_dead_end_it_led_to():
    billed = {"context_tokens": 180_000, "stored_tokens": 25_000}
    chain, steps = drive(Chain(tokens_after_pass=24_000), **billed)
    assert [type(step).__name__ for step in steps[-2:]] == ["DeclareDeadEnd", "Stop"]
    assert steps[-1].blocked
    assert chain == Chain()


def test_a_handoff_and_a_shake_leave_what_has_to_be_billed_too():
    for strategy in (Strategy.HANDOFF, Strategy.SHAKE):
        usable = frozenset(Strategy)
        chain, _ = drive(Chain(), left=24_000, strategy=strategy, strategies_usable=usable)
        assert chain.tokens_after_pass == 24_000


def test_size_of_the_newest_handoff_goes_on_into_the_next_prompt():
    chain = Chain(auto_continues=2).after_handoff(1_330)
    assert chain.after_prompt() == Chain(handed_off_tokens=1_330)
    assert chain.after_handoff(None).handed_off_tokens is None
