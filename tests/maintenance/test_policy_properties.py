from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from musepi_tui.base.errors import ErrorKind
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import IdleGates, Outcome, TurnFacts
from musepi_tui.maintenance.policy import chain_after, next_step
from musepi_tui.maintenance.run import Run
from musepi_tui.maintenance.steps import (
    DeclareDeadEnd,
    DropTurn,
    HideTurn,
    Pass,
    Promote,
    Rescue,
    RestoreTurn,
)
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Reason,
    Stop,
    Strategy,
    Then,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.session.messages import StopReason
from tests.support.builders import a
from tests.support.policy import CANCELLED, FAILED, MOST_STEPS, NOTHING, REFUSED, THRESHOLD, facts

TOKENS = st.integers(0, 300_000)
# Many small values in one draw, and strategies that are made once: both take most of the time of a course.
# What lets a run go on is more frequent than what ends it, or hardly a course would get as far as a pass.
FLAGS = (False, True)
MOSTLY = (True, True, True, False)
SELDOM = (False, False, False, True)
TURN_FLAGS = st.sampled_from(list(product(MOSTLY, FLAGS, SELDOM, FLAGS, FLAGS)))
FAILURES = (None, None, ErrorKind.OVERFLOW, ErrorKind.OVERFLOW, ErrorKind.PAYLOAD, ErrorKind.SERVER)
ENDS = st.sampled_from(list(product(StopReason, FAILURES)))
OUTPUTS = st.integers(0, 10)


@st.composite
def turns(draw):
    same_model, before_promotion, stale, names_media, delivered = draw(TURN_FLAGS)
    stop_reason, error_kind = draw(ENDS)
    return TurnFacts(
        stop_reason=stop_reason,
        model="test/model",
        same_model=same_model,
        before_promotion=before_promotion,
        stale=stale,
        error_kind=error_kind,
        names_media=names_media,
        delivered=delivered,
        output_tokens=draw(OUTPUTS),
        used_tokens=draw(TOKENS),
        prompt_tokens=draw(TOKENS),
    )


TURNS = st.none() | turns() | turns()
COMMITTED = st.builds(Outcome, st.just(True), st.sampled_from(MOSTLY), st.integers(0, 100_000))
OUTCOMES = COMMITTED | COMMITTED | st.sampled_from([FAILED, NOTHING, CANCELLED, REFUSED])
COUNTS = st.sampled_from(list(product(range(5), SELDOM, range(5))))
CHAINS = st.builds(
    lambda counts, tokens: Chain(*counts, handed_off_tokens=tokens), COUNTS, st.none() | TOKENS
)
TARGETS = st.sampled_from([None, None, None, "x/big"])
IDLES = st.builds(
    lambda on, tokens: IdleGates(on[0], tokens, *on[1:]),
    st.sampled_from(list(product(MOSTLY, MOSTLY, SELDOM))),
    st.integers(-1, 300_000),
)
CHOICES = st.sampled_from(
    list(
        product(
            [None, 200_000, 200_000, 200_000],
            [0, 12_000, 12_000, 170_000],
            Strategy,
            [frozenset(), frozenset(Strategy), frozenset(Strategy)],
        )
    )
)
MOMENT_FLAGS = st.sampled_from(list(product(MOSTLY, MOSTLY, MOSTLY, SELDOM, FLAGS)))


@st.composite
def moments(draw):
    """Facts with all a session could answer at one moment."""
    window, other_tokens, strategy, strategies_usable = draw(CHOICES)
    enabled, mid_turn, auto_continue, dead_end, queued_input = draw(MOMENT_FLAGS)
    return facts(
        draw(TOKENS),
        stored_tokens=draw(TOKENS),
        other_tokens=other_tokens,
        window=window,
        threshold=None if window is None else THRESHOLD,
        enabled=enabled,
        strategy=strategy,
        strategies_usable=strategies_usable,
        mid_turn=mid_turn,
        auto_continue=auto_continue,
        turn=draw(TURNS),
        idle=draw(IDLES),
        chain=draw(CHAINS),
        promotion_target=draw(TARGETS),
        dead_end=dead_end,
        queued_input=queued_input,
    )


MOMENTS = moments()
SIGNALS = {
    kind: [
        TurnFinished(a("x", stop=kind)),
        TurnFinished(a("x", stop=kind)),
        PromptPending(10),
        ToolBoundary(a("x", stop=kind)),
        ToolBoundary(a("x", stop=kind)),
        IdleElapsed(),
        ManualRequested(),
    ]
    for kind in StopReason
}
NUMBERS = st.integers(0, 6)
CHANGES = st.sampled_from(SELDOM)


@st.composite
def courses(draw):
    """A signal, the steps it led to, and the facts at its start. The facts may change at every step."""
    first = draw(MOMENTS)
    signal = SIGNALS[first.turn.stop_reason if first.turn else StopReason.STOP][draw(NUMBERS)]
    run, now, steps = Run.start(signal), first, []
    while not steps or not isinstance(steps[-1], Stop):
        run, step = next_step(run, now)
        steps.append(step)
        assert len(steps) <= MOST_STEPS
        run = run.after(draw(OUTCOMES))
        if draw(CHANGES):
            now = draw(MOMENTS)
    return signal, first, steps


def of(steps, kind):
    return [index for index, step in enumerate(steps) if isinstance(step, kind)]


RULES = []
"""What holds of every course. Making one costs more than all of them, so each course is held against all."""


def rule(check):
    RULES.append(check)
    return check


@rule
def every_run_ends_with_its_only_stop(course):
    _, _, steps = course
    assert of(steps, Stop) == [len(steps) - 1]
    assert len(of(steps, Promote)) <= 1


@rule
def at_most_two_passes_and_the_second_is_a_summary_after_a_shake_or_a_handoff(course):
    passes = [step for step in course[2] if isinstance(step, Pass)]
    assert len(passes) <= 2
    if len(passes) == 2:
        assert passes[0].strategy in (Strategy.SHAKE, Strategy.HANDOFF)
        assert passes[1].strategy is Strategy.SUMMARY


@rule
def no_handoff_in_mid_turn_after_an_overflow_or_by_compact(course):
    signal, _, steps = course
    for step in steps:
        if isinstance(step, Pass) and step.strategy is Strategy.HANDOFF:
            assert not isinstance(signal, ToolBoundary | ManualRequested)
            assert step.reason is not Reason.OVERFLOW
            assert not step.mid_turn


@rule
def only_a_finished_turn_ends_in_a_continuation(course):
    signal, _, steps = course
    if not isinstance(signal, TurnFinished):
        assert steps[-1].then is Then.NOTHING


@rule
def a_turn_is_asked_for_again_only_after_it_was_dropped_and_not_restored(course):
    _, _, steps = course
    if steps[-1].then is Then.RETRY:
        assert of(steps, DropTurn)
        assert not of(steps, RestoreTurn)


@rule
def a_turn_is_restored_only_after_it_was_hidden_or_dropped(course):
    _, _, steps = course
    restored = of(steps, RestoreTurn)
    assert len(restored) <= 1
    if restored:
        assert any(index < restored[0] for index in of(steps, HideTurn | DropTurn))


@rule
def a_blocked_run_never_continues(course):
    _, _, steps = course
    if steps[-1].blocked:
        assert steps[-1].then is Then.NOTHING
    if of(steps, DeclareDeadEnd):
        assert steps[-1].blocked


@rule
def a_rescue_comes_only_after_a_summary(course):
    _, _, steps = course
    rescues = of(steps, Rescue)
    if rescues:
        before = [step for step in steps[: rescues[0]] if isinstance(step, Pass)]
        assert before[-1].strategy is Strategy.SUMMARY
        assert [steps[index].tier for index in rescues] == list(range(1, len(rescues) + 1))


@rule
def errors_of_another_model_or_older_than_the_compaction_start_no_recovery(course):
    signal, first, steps = course
    foreign = first.turn is not None and (not first.turn.same_model or first.turn.stale)
    if foreign and isinstance(signal, TurnFinished | PromptPending):
        reasons = {step.reason for step in steps if isinstance(step, Pass)}
        assert not reasons & {Reason.OVERFLOW, Reason.INCOMPLETE}
        assert not of(steps, HideTurn)


@settings(max_examples=600, deadline=None)
@given(courses())
def test_every_course_keeps_every_rule(course):
    for keep in RULES:
        keep(course)


@settings(max_examples=200, deadline=None)
@given(TOKENS, TURNS, IDLES, st.sampled_from(["turn", "prompt", "boundary", "idle"]))
def test_off_never_passes_by_itself(tokens, turn, idle, kind):
    first = facts(tokens, strategy=Strategy.OFF, turn=turn, idle=idle)
    answer = a("x", stop=turn.stop_reason if turn else StopReason.STOP)
    signal = {
        "turn": TurnFinished(answer),
        "prompt": PromptPending(1),
        "boundary": ToolBoundary(answer),
        "idle": IdleElapsed(),
    }[kind]
    run, steps = Run.start(signal), []
    while not steps or not isinstance(steps[-1], Stop):
        run, step = next_step(run, first)
        steps.append(step)
        run = run.after(Outcome(ok=not isinstance(step, Promote)))
    assert not of(steps, Pass | Rescue)


@settings(max_examples=200, deadline=None)
@given(CHAINS, TARGETS)
def test_a_payload_rejection_with_headroom_never_compacts(chain, target):
    turn = TurnFacts(StopReason.ERROR, error_kind=ErrorKind.PAYLOAD, delivered=False)
    first = facts(100_000, chain=chain, promotion_target=target, turn=turn)
    run, steps = Run.start(TurnFinished(a("", stop=StopReason.ERROR))), []
    while not steps or not isinstance(steps[-1], Stop):
        run, step = next_step(run, first)
        steps.append(step)
        run = run.after(Outcome(ok=True, changed=True))
    assert not of(steps, Pass | Promote)
    assert steps[-1].blocked


class BilledSession:
    """A session whose passes work and whose bill is larger by ``surplus`` than what is counted here."""

    def __init__(self, surplus, left):
        self.surplus, self.left, self.counted = surplus, left, 50_000
        self.chain, self.dead_end, self.is_billed = Chain(), False, True
        self.passes = self.notices = self.handoffs = self.continued = 0

    def prompt(self, growths, strategy):
        """A prompt with so many new tokens at each step; how many passes and notices it cost."""
        before = self.passes, self.notices
        self.dead_end = False
        self.consider(PromptPending(1), strategy)
        self.chain = self.chain.after_prompt()
        for growth in growths:
            self.answer(growth)
            self.consider(ToolBoundary(a("x", stop=StopReason.TOOL_USE)), strategy)
        then = Then.AUTO_CONTINUE
        while then is Then.AUTO_CONTINUE:
            self.answer(100)
            then = self.consider(TurnFinished(a("x")), strategy).then
            self.continued += then is Then.AUTO_CONTINUE
        return self.passes - before[0], self.notices - before[1]

    def answer(self, growth):
        self.counted += growth
        self.is_billed = True
        self.chain = self.chain.after_answer(delivered=True, succeeded=True)

    def consider(self, signal, strategy):
        run, step = Run.start(signal), None
        while not isinstance(step, Stop):
            now = self.facts(strategy)
            run, step = next_step(run, now)
            self.chain = chain_after(run, step, now)
            if isinstance(step, Pass):
                self.passes += 1
                self.handoffs += step.strategy is Strategy.HANDOFF
                self.counted, self.is_billed = self.left, False
            if isinstance(step, DeclareDeadEnd):
                self.notices += 1
                self.dead_end = True
            run = run.after(Outcome(ok=True, changed=isinstance(step, Pass)))
        return step

    def facts(self, strategy):
        billed = self.counted + self.surplus if self.is_billed else 0
        turn = TurnFacts(StopReason.STOP, stale=not self.is_billed, used_tokens=billed, prompt_tokens=billed)
        return facts(
            max(billed, self.counted),
            stored_tokens=self.counted,
            turn=turn,
            chain=self.chain,
            dead_end=self.dead_end,
            strategy=strategy,
            strategies_usable=frozenset(Strategy),
        )


GROWTHS = st.lists(st.lists(st.integers(0, 60_000), max_size=12), min_size=1, max_size=5)
PASSING = st.sampled_from([Strategy.SUMMARY, Strategy.SHAKE, Strategy.HANDOFF])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 250_000), st.integers(12_000, 136_000), GROWTHS, PASSING)
def test_bill_with_a_constant_surplus_is_never_paid_for_by_pass_after_pass(surplus, left, prompts, strategy):
    session = BilledSession(surplus, left)
    hopeless = left + surplus > THRESHOLD.recovery_tokens
    for growths in prompts:
        grown = sum(growths) + 400
        passes, notices = session.prompt(growths, strategy)
        if hopeless:
            assert passes <= 1
            assert notices <= 1
        else:
            assert notices == 0
            assert passes <= 1 + grown // (THRESHOLD.tokens - THRESHOLD.recovery_tokens)


@settings(max_examples=100, deadline=None)
@given(st.integers(170_000, 400_000), PASSING)
def test_work_that_grows_the_context_over_the_threshold_is_compacted_again(growth, strategy):
    session = BilledSession(10_000, 24_000)
    passes, notices = session.prompt([growth, growth, growth], strategy)
    assert (passes, notices) == (3, 0)


@settings(max_examples=200, deadline=None)
@given(st.integers(136_002, 199_000), GROWTHS)  # one token of it is the prompt that waits
def test_a_session_that_begins_without_headroom_is_the_last_handoff(left, prompts):
    session = BilledSession(0, left)
    session.counted = left
    for growths in prompts:
        session.prompt(growths, Strategy.HANDOFF)
    assert session.handoffs <= 1
    assert session.continued == 0
