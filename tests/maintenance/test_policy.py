from dataclasses import replace

import pytest

from musepi_tui.base.errors import ErrorKind
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import IdleGates, Outcome, TurnFacts
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.steps import DeclareDeadEnd, Notify, Pass, Refuse, Remind
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Reason,
    Strategy,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.session.messages import StopReason
from tests.support.builders import a
from tests.support.policy import (
    CANCELLED,
    DONE,
    FAILED,
    FINISHED,
    NOTHING,
    THRESHOLD,
    Scene,
    facts,
    names,
)

MANUAL = ManualRequested()
PROMPT = PromptPending(2_000)
IDLE = IdleElapsed()
PRUNES = ["PruneStale", "PruneThreshold"]
PASSED = [*PRUNES, "Dedup", "Pass summary"]
FREED_NOTHING = Outcome(ok=True)


def turn(stop=StopReason.STOP):
    return TurnFinished(a("done", stop=stop))


def boundary(stop=StopReason.TOOL_USE):
    return ToolBoundary(a("go", stop=stop))


TURN = turn()
MID = boundary()


@pytest.mark.parametrize(
    ("signal", "scene", "expected"),
    [
        (TURN, Scene(facts()), [*PASSED, "Stop auto_continue"]),
        (TURN, Scene(facts(170_000)), [*PRUNES, "Stop nothing"]),
        (TURN, Scene(facts(170_001)), [*PASSED, "Stop auto_continue"]),
        (TURN, Scene(facts(), left=[136_000]), [*PASSED, "Stop auto_continue"]),
        (
            TURN,
            Scene(facts(), left=[136_001, 136_000]),
            [*PASSED, "Rescue 1", "Notify", "Stop auto_continue"],
        ),
        (TURN, Scene(facts(auto_continue=False)), [*PASSED, "Stop nothing"]),
        (TURN, Scene(facts(queued_input=True)), [*PASSED, "Stop nothing"]),
        (TURN, Scene(facts(chain=Chain(auto_continues=2))), [*PASSED, "Stop auto_continue"]),
        (TURN, Scene(facts(chain=Chain(auto_continues=3))), [*PASSED, "Notify", "Stop nothing"]),
        (TURN, Scene(facts(), passes=[FAILED]), [*PASSED, "Stop blocked"]),
        (TURN, Scene(facts(), passes=[CANCELLED]), [*PASSED, "Stop blocked"]),
        (TURN, Scene(facts(), passes=[NOTHING]), [*PASSED, "DeclareDeadEnd", "Stop blocked"]),
        (TURN, Scene(facts(enabled=False)), ["PruneStale", "Stop nothing"]),
        (TURN, Scene(facts(strategy=Strategy.OFF)), ["PruneStale", "Stop nothing"]),
        (TURN, Scene(facts(dead_end=True)), [*PRUNES, "Stop nothing"]),
        (TURN, Scene(facts(threshold=None, window=None)), [*PRUNES, "Stop nothing"]),
        (TURN, Scene(facts(other_tokens=170_000)), [*PRUNES, "Notify", "Stop nothing"]),
        (TURN, Scene(facts(promotion_target="x/big"), promotes=True), [*PRUNES, "Promote", "Stop nothing"]),
        (
            TURN,
            Scene(facts(promotion_target="x/big")),
            [*PRUNES, "Promote", "Dedup", "Pass summary", "Stop auto_continue"],
        ),
        (TURN, Scene(facts(turn=None)), [*PASSED, "Stop auto_continue"]),
        (turn(StopReason.ABORTED), Scene(facts()), ["Stop nothing"]),
        (PROMPT, Scene(facts()), [*PASSED, "Stop nothing"]),
        (PROMPT, Scene(facts(turn=None)), [*PASSED, "Stop nothing"]),
        (
            PROMPT,
            Scene(facts(turn=replace(FINISHED, stop_reason=StopReason.ABORTED))),
            [*PASSED, "Stop nothing"],
        ),
        (
            PROMPT,
            Scene(facts(turn=replace(FINISHED, stop_reason=StopReason.ERROR, error_kind=ErrorKind.SERVER))),
            ["PruneStale", "Stop nothing"],
        ),
        (
            PROMPT,
            Scene(facts(turn=replace(FINISHED, stop_reason=StopReason.LENGTH))),
            [*PASSED, "Stop nothing"],
        ),
        (PROMPT, Scene(facts(dead_end=True)), [*PRUNES, "Stop nothing"]),
        (MID, Scene(facts()), [*PASSED, "Stop nothing"]),
        (MID, Scene(facts(mid_turn=False)), ["Stop nothing"]),
        (MID, Scene(facts(enabled=False)), ["Stop nothing"]),
        (MID, Scene(facts(dead_end=True)), [*PRUNES, "Stop nothing"]),
        (boundary(StopReason.ERROR), Scene(facts()), ["Stop nothing"]),
        (boundary(StopReason.ABORTED), Scene(facts()), ["Stop nothing"]),
        (boundary(StopReason.LENGTH), Scene(facts()), [*PASSED, "Stop nothing"]),
    ],
    ids=[
        "over-the-threshold",
        "exactly-at-it",
        "one-over-it",
        "just-inside-the-band",
        "just-outside-the-band",
        "continuing-is-switched-off",
        "a-queued-message-goes-on-instead",
        "third-continuation-in-a-row",
        "fourth-continuation-in-a-row",
        "pass-failed",
        "pass-cancelled",
        "nothing-left-to-summarise",
        "switched-off",
        "strategy-off",
        "after-a-dead-end",
        "unknown-window",
        "overhead-alone-is-too-large",
        "larger-model",
        "larger-model-refused",
        "no-answer-yet",
        "aborted-turn",
        "before-a-prompt",
        "before-the-first-prompt",
        "before-a-prompt-after-an-abort",
        "before-a-prompt-after-an-error",
        "before-a-prompt-after-a-cut-off-answer",
        "before-a-prompt-after-a-dead-end",
        "mid-turn",
        "mid-turn-switched-off",
        "mid-turn-while-all-is-off",
        "mid-turn-after-a-dead-end",
        "mid-turn-failed-answer",
        "mid-turn-aborted-answer",
        "mid-turn-cut-off-call",
    ],
)
def test_threshold_triggers(signal, scene, expected):
    assert names(scene.run(signal)) == expected


def failed(kind=ErrorKind.OVERFLOW, **fields):
    return TurnFacts(StopReason.ERROR, model="test/model", error_kind=kind, **{"delivered": False, **fields})


OVERFLOW = facts(turn=failed())
ERROR = turn(StopReason.ERROR)
RECOVERY = ["HideTurn", "DropTurn", "Dedup", "Pass summary"]


@pytest.mark.parametrize(
    ("signal", "scene", "expected"),
    [
        (ERROR, Scene(OVERFLOW), [*RECOVERY, "Stop retry"]),
        (ERROR, Scene(OVERFLOW, left=[140_000]), [*RECOVERY, "Stop retry"]),
        (ERROR, Scene(OVERFLOW, left=[170_000]), [*RECOVERY, "Stop retry"]),
        (ERROR, Scene(OVERFLOW, left=[170_001, 90_000]), [*RECOVERY, "Rescue 1", "Notify", "Stop retry"]),
        (
            ERROR,
            Scene(replace(OVERFLOW, promotion_target="x/big"), promotes=True),
            ["HideTurn", "Promote", "DropTurn", "Stop retry"],
        ),
        (
            ERROR,
            Scene(replace(OVERFLOW, promotion_target="x/big")),
            ["HideTurn", "Promote", "DropTurn", "Dedup", "Pass summary", "Stop retry"],
        ),
        (
            ERROR,
            Scene(replace(OVERFLOW, promotion_target="x/big", enabled=False), promotes=True),
            ["HideTurn", "Promote", "DropTurn", "Stop retry"],
        ),
        (
            ERROR,
            Scene(replace(OVERFLOW, promotion_target="x/big", enabled=False)),
            ["HideTurn", "Promote", "RestoreTurn", "Notify", "Stop nothing"],
        ),
        (ERROR, Scene(replace(OVERFLOW, enabled=False)), ["Notify", "Stop nothing"]),
        (ERROR, Scene(replace(OVERFLOW, strategy=Strategy.OFF)), ["Notify", "Stop nothing"]),
        (
            ERROR,
            Scene(replace(OVERFLOW, chain=Chain(overflow_recovered=True))),
            ["HideTurn", "Refuse", "Stop blocked"],
        ),
        (ERROR, Scene(replace(OVERFLOW, dead_end=True)), [*RECOVERY, "Stop retry"]),
        (ERROR, Scene(replace(OVERFLOW, window=None, threshold=None)), [*RECOVERY, "Stop retry"]),
        (ERROR, Scene(OVERFLOW, passes=[FAILED]), [*RECOVERY, "Stop blocked"]),
        (
            ERROR,
            Scene(facts(turn=failed(delivered=True)), passes=[FAILED]),
            [*RECOVERY, "RestoreTurn", "Stop blocked"],
        ),
        (
            ERROR,
            Scene(facts(turn=failed(delivered=True)), passes=[FAILED], dedup=Outcome(ok=True, changed=True)),
            [*RECOVERY, "Stop blocked"],
        ),
        (ERROR, Scene(OVERFLOW, passes=[CANCELLED]), [*RECOVERY, "RestoreTurn", "Stop blocked"]),
        (
            ERROR,
            Scene(facts(turn=failed(delivered=True)), passes=[NOTHING]),
            [*RECOVERY, "RestoreTurn", "DeclareDeadEnd", "Stop blocked"],
        ),
        (
            ERROR,
            Scene(facts(turn=failed(stale=True))),
            ["PruneStale", "Stop nothing"],
        ),
        (ERROR, Scene(facts(turn=failed(same_model=False))), ["PruneStale", "Stop nothing"]),
        (
            ERROR,
            Scene(facts(turn=failed(same_model=False, before_promotion=True))),
            ["DropTurn", "Stop retry"],
        ),
        (
            ERROR,
            Scene(facts(turn=failed(same_model=False, before_promotion=True, stale=True))),
            ["PruneStale", "Stop nothing"],
        ),
        (ERROR, Scene(facts(turn=failed(ErrorKind.RATE_LIMIT))), ["PruneStale", "Stop nothing"]),
        (PROMPT, Scene(OVERFLOW), [*RECOVERY, "Stop nothing"]),
        (
            PROMPT,
            Scene(facts(turn=failed(same_model=False, before_promotion=True))),
            ["PruneStale", "Stop nothing"],
        ),
        (
            TURN,
            Scene(facts(205_000, turn=replace(FINISHED, prompt_tokens=200_001))),
            ["Dedup", "Pass summary", "Stop nothing"],
        ),
        (
            TURN,
            Scene(facts(205_000, turn=replace(FINISHED, prompt_tokens=200_001), dead_end=True)),
            ["Stop nothing"],
        ),
        (
            TURN,
            Scene(facts(205_000, turn=replace(FINISHED, prompt_tokens=200_001), enabled=False)),
            ["Stop nothing"],
        ),
    ],
    ids=[
        "overflow",
        "fits-without-headroom",
        "just-fits",
        "just-does-not-fit",
        "larger-model",
        "larger-model-refused",
        "larger-model-while-off",
        "larger-model-refused-while-off",
        "switched-off",
        "strategy-off",
        "second-of-the-chain",
        "armed-after-a-dead-end",
        "unknown-window",
        "pass-failed-empty-turn",
        "pass-failed-turn-with-text",
        "pass-failed-after-edits",
        "pass-cancelled",
        "nothing-left-to-summarise",
        "older-than-the-compaction",
        "of-another-model",
        "of-the-model-before-the-promotion",
        "of-the-model-before-an-old-promotion",
        "another-error",
        "before-a-prompt",
        "before-a-prompt-after-a-promotion",
        "successful-answer-above-the-window",
        "successful-answer-above-the-window-after-a-dead-end",
        "successful-answer-above-the-window-while-off",
    ],
)
def test_overflow(signal, scene, expected):
    assert names(scene.run(signal)) == expected


def cut_off(**fields):
    fields = {"delivered": False, "output_tokens": 8_000, "used_tokens": 60_000, **fields}
    return TurnFacts(StopReason.LENGTH, model="test/model", **fields)


CUT = turn(StopReason.LENGTH)
EXHAUSTED = facts(turn=cut_off(used_tokens=170_001))
SHORT = facts(60_000, turn=cut_off())


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (Scene(replace(SHORT, turn=cut_off(delivered=True))), ["Notify", "Stop nothing"]),
        (Scene(replace(SHORT, turn=cut_off(delivered=True), enabled=False)), ["Notify", "Stop nothing"]),
        (Scene(SHORT), ["HideTurn", "DropTurn", "Remind", "Stop retry"]),
        (
            Scene(replace(SHORT, turn=cut_off(output_tokens=0))),
            ["HideTurn", "DropTurn", "Stop retry"],
        ),
        (Scene(EXHAUSTED), [*RECOVERY, "Stop retry"]),
        (
            Scene(replace(EXHAUSTED, turn=cut_off(delivered=True, used_tokens=170_001))),
            [*RECOVERY, "Stop retry"],
        ),
        (Scene(replace(SHORT, window=None, threshold=None)), [*RECOVERY, "Stop retry"]),
        (
            Scene(replace(SHORT, promotion_target="x/big"), promotes=True),
            ["HideTurn", "Promote", "DropTurn", "Stop retry"],
        ),
        (Scene(replace(SHORT, enabled=False)), ["Notify", "Stop nothing"]),
        (
            Scene(replace(SHORT, promotion_target="x/big", strategy=Strategy.OFF)),
            ["HideTurn", "Promote", "RestoreTurn", "Notify", "Stop nothing"],
        ),
        (
            Scene(replace(SHORT, chain=Chain(incomplete_attempts=2))),
            ["HideTurn", "DropTurn", "Remind", "Stop retry"],
        ),
        (
            Scene(replace(SHORT, chain=Chain(incomplete_attempts=3))),
            ["HideTurn", "DropTurn", "Notify", "Stop blocked"],
        ),
        (
            Scene(replace(EXHAUSTED, chain=Chain(incomplete_attempts=3))),
            ["HideTurn", "DropTurn", "Notify", "Stop blocked"],
        ),
        (Scene(EXHAUSTED, passes=[FAILED]), [*RECOVERY, "RestoreTurn", "Stop blocked"]),
        (Scene(EXHAUSTED, passes=[NOTHING]), [*RECOVERY, "RestoreTurn", "DeclareDeadEnd", "Stop blocked"]),
        (Scene(replace(SHORT, turn=cut_off(stale=True))), [*PRUNES, "Stop nothing"]),
        (Scene(replace(SHORT, turn=cut_off(same_model=False))), [*PRUNES, "Stop nothing"]),
    ],
    ids=[
        "text-and-room",
        "text-and-room-while-off",
        "nothing-said-and-room",
        "nothing-billed-and-room",
        "window-exhausted",
        "text-and-window-exhausted",
        "unknown-window",
        "larger-model",
        "switched-off",
        "larger-model-refused-while-off",
        "third-attempt",
        "given-up",
        "given-up-with-the-window-exhausted",
        "pass-failed",
        "nothing-left-to-summarise",
        "older-than-the-compaction",
        "of-another-model",
    ],
)
def test_cut_off_answers(scene, expected):
    assert names(scene.run(CUT)) == expected


def rejected(**fields):
    return failed(ErrorKind.PAYLOAD, **fields)


BYTES = ["HideTurn", "Notify", "Stop blocked"]


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (Scene(facts(179_999, turn=rejected())), BYTES),
        (Scene(facts(180_000, turn=rejected())), [*RECOVERY, "Stop retry"]),
        (Scene(facts(100_000, turn=rejected(prompt_tokens=200_001))), [*RECOVERY, "Stop retry"]),
        (Scene(facts(190_000, turn=rejected(names_media=True))), BYTES),
        (
            Scene(facts(190_000, turn=rejected(names_media=True, prompt_tokens=200_001))),
            [*RECOVERY, "Stop retry"],
        ),
        (Scene(facts(turn=rejected(), window=None, threshold=None)), [*RECOVERY, "Stop retry"]),
        (
            Scene(facts(turn=rejected(), window=None, threshold=None, strategies_usable=frozenset())),
            BYTES,
        ),
        (Scene(facts(turn=rejected(names_media=True), window=None, threshold=None)), BYTES),
        (
            Scene(facts(100_000, turn=rejected(), promotion_target="x/big"), promotes=True),
            BYTES,
        ),
        (
            Scene(facts(190_000, turn=rejected(), promotion_target="x/big"), promotes=True),
            ["HideTurn", "Promote", "DropTurn", "Stop retry"],
        ),
        (Scene(facts(190_000, turn=rejected()), passes=[FAILED]), [*RECOVERY, "Notify", "Stop blocked"]),
        (Scene(facts(190_000, turn=rejected()), passes=[NOTHING]), [*RECOVERY, "Notify", "Stop blocked"]),
        (
            Scene(facts(190_000, turn=rejected(delivered=True)), passes=[FAILED]),
            [*RECOVERY, "RestoreTurn", *BYTES],
        ),
        (Scene(facts(190_000, turn=rejected(), enabled=False)), BYTES),
        (Scene(facts(190_000, turn=rejected(), chain=Chain(overflow_recovered=True))), BYTES),
        (Scene(facts(190_000, turn=rejected(stale=True))), ["PruneStale", "Stop nothing"]),
        (Scene(facts(190_000, turn=rejected(same_model=False))), ["PruneStale", "Stop nothing"]),
    ],
    ids=[
        "below-nine-tenths-of-the-window",
        "at-nine-tenths",
        "usage-above-the-window",
        "media",
        "media-but-usage-above-the-window",
        "unknown-window",
        "unknown-window-and-no-way-to-compact",
        "unknown-window-and-media",
        "no-promotion-for-bytes",
        "promotion-for-tokens",
        "pass-failed",
        "nothing-left-to-summarise",
        "pass-failed-turn-with-text",
        "switched-off",
        "second-of-the-chain",
        "older-than-the-compaction",
        "of-another-model",
    ],
)
def test_rejected_payloads(scene, expected):
    assert names(scene.run(ERROR)) == expected


@pytest.mark.parametrize(("prompt_tokens", "words"), [(0, "pictures"), (200_001, "context window")])
def test_rejected_payload_notice_tells_bytes_from_tokens(prompt_tokens, words):
    scene = Scene(facts(190_000, turn=rejected(prompt_tokens=prompt_tokens)), passes=[FAILED])
    notices = [step.notices[0].text for step in scene.run(ERROR) if isinstance(step, Notify)]
    assert len(notices) == 1
    assert words in notices[0]


GATES = IdleGates(enabled=True, threshold_tokens=100_000)
READY = facts(idle=GATES)


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (Scene(READY), ["Pass summary", "Stop nothing"]),
        (Scene(READY, left=[170_000]), ["Pass summary", "Stop nothing"]),
        (Scene(replace(READY, context_tokens=100_000)), ["Pass summary", "Stop nothing"]),
        (Scene(replace(READY, context_tokens=99_999)), ["Stop nothing"]),
        (Scene(replace(READY, enabled=False)), ["Pass summary", "Stop nothing"]),
        (Scene(replace(READY, strategy=Strategy.OFF)), ["Stop nothing"]),
        (Scene(replace(READY, idle=replace(GATES, enabled=False))), ["Stop nothing"]),
        (Scene(replace(READY, idle=replace(GATES, threshold_tokens=0))), ["Stop nothing"]),
        (Scene(replace(READY, idle=replace(GATES, editor_empty=False))), ["Stop nothing"]),
        (Scene(replace(READY, idle=replace(GATES, busy=True))), ["Stop nothing"]),
        (Scene(replace(READY, promotion_target="x/big"), promotes=True), ["Pass summary", "Stop nothing"]),
        (Scene(READY, passes=[NOTHING]), ["Pass summary", "Stop nothing"]),
        (Scene(READY, passes=[FAILED]), ["Pass summary", "Stop blocked"]),
        (
            Scene(replace(READY, strategy=Strategy.SHAKE), passes=[FREED_NOTHING]),
            ["Pass shake", "Stop nothing"],
        ),
    ],
    ids=[
        "due",
        "no-guard",
        "exactly-enough-context",
        "too-little-context",
        "while-compaction-is-off",
        "strategy-off",
        "not-enabled",
        "no-threshold",
        "text-in-the-editor",
        "busy",
        "no-promotion",
        "nothing-left-to-summarise",
        "pass-failed",
        "shake-that-freed-nothing",
    ],
)
def test_idle(scene, expected):
    assert names(scene.run(IDLE)) == expected


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        (Scene(facts()), ["Pass summary", "Stop nothing"]),
        (Scene(facts(), left=[179_000]), ["Pass summary", "Stop nothing"]),
        (Scene(facts(enabled=False, dead_end=True)), ["Pass summary", "Stop nothing"]),
        (Scene(facts(strategy=Strategy.OFF)), ["Pass summary", "Stop nothing"]),
        (Scene(facts(strategy=Strategy.SHAKE)), ["Pass summary", "Stop nothing"]),
        (Scene(facts(threshold=None, window=None)), ["Pass summary", "Stop nothing"]),
        (Scene(facts(), passes=[FAILED]), ["Pass summary", "Stop blocked"]),
        (Scene(facts(), passes=[NOTHING]), ["Pass summary", "Stop blocked"]),
        (Scene(facts(), passes=[CANCELLED]), ["Pass summary", "Stop blocked"]),
    ],
    ids=[
        "ordinary",
        "freed-little",
        "while-off-after-a-dead-end",
        "strategy-off",
        "strategy-shake",
        "unknown-window",
        "failed",
        "nothing-to-do",
        "cancelled",
    ],
)
def test_manual(scene, expected):
    assert names(scene.run(MANUAL)) == expected


SHAKE = facts(strategy=Strategy.SHAKE)
SHAKEN = [*PRUNES, "Dedup", "Pass shake"]


@pytest.mark.parametrize(
    ("signal", "scene", "expected"),
    [
        (TURN, Scene(SHAKE, left=[136_000]), [*SHAKEN, "Stop auto_continue"]),
        (TURN, Scene(SHAKE, passes=[FREED_NOTHING]), [*SHAKEN, "Pass summary", "Stop auto_continue"]),
        (TURN, Scene(SHAKE, left=[136_001, 24_000]), [*SHAKEN, "Pass summary", "Stop auto_continue"]),
        (
            TURN,
            Scene(SHAKE, left=[150_000, 137_000, 24_000]),
            [*SHAKEN, "Pass summary", "Rescue 1", "Notify", "Stop auto_continue"],
        ),
        (TURN, Scene(SHAKE, passes=[FREED_NOTHING, FAILED]), [*SHAKEN, "Pass summary", "Stop blocked"]),
        (MID, Scene(SHAKE, left=[136_000]), [*SHAKEN, "Stop nothing"]),
        (
            ERROR,
            Scene(replace(OVERFLOW, strategy=Strategy.SHAKE), left=[100_000]),
            ["HideTurn", "DropTurn", "Dedup", "Pass shake", "Stop retry"],
        ),
        (
            TURN,
            Scene(replace(SHAKE, strategies_usable=frozenset({Strategy.SUMMARY}))),
            [*PASSED, "Stop auto_continue"],
        ),
    ],
    ids=[
        "enough",
        "freed-nothing",
        "outside-the-band",
        "rescue-after-the-summary",
        "summary-failed-too",
        "mid-turn",
        "overflow",
        "excluded",
    ],
)
def test_shake(signal, scene, expected):
    assert names(scene.run(signal)) == expected


HANDOFF = facts(strategy=Strategy.HANDOFF, strategies_usable=frozenset(Strategy))
HANDED_OFF = [*PRUNES, "Dedup", "Pass handoff"]
RETRIED = ["HideTurn", "DropTurn", "Dedup", "Pass handoff"]


@pytest.mark.parametrize(
    ("signal", "scene", "expected"),
    [
        (TURN, Scene(HANDOFF), [*HANDED_OFF, "Stop auto_continue"]),
        (TURN, Scene(HANDOFF, left=[136_000]), [*HANDED_OFF, "Stop auto_continue"]),
        (TURN, Scene(HANDOFF, left=[136_001]), [*HANDED_OFF, "DeclareDeadEnd", "Stop blocked"]),
        (PROMPT, Scene(HANDOFF, left=[136_001]), [*HANDED_OFF, "DeclareDeadEnd", "Stop blocked"]),
        (CUT, Scene(replace(HANDOFF, turn=EXHAUSTED.turn), left=[170_000]), [*RETRIED, "Stop retry"]),
        (
            CUT,
            Scene(replace(HANDOFF, turn=EXHAUSTED.turn), left=[170_001]),
            [*RETRIED, "DeclareDeadEnd", "Stop blocked"],
        ),
        (IDLE, Scene(replace(HANDOFF, idle=GATES), left=[180_000]), ["Pass handoff", "Stop nothing"]),
        (TURN, Scene(replace(HANDOFF, dead_end=True)), [*PRUNES, "Stop nothing"]),
        (
            TURN,
            Scene(replace(HANDOFF, chain=Chain(handed_off_tokens=136_001))),
            [*PASSED, "Stop auto_continue"],
        ),
        (
            TURN,
            Scene(replace(HANDOFF, chain=Chain(handed_off_tokens=136_000))),
            [*HANDED_OFF, "Stop auto_continue"],
        ),
        (TURN, Scene(replace(HANDOFF, auto_continue=False)), [*HANDED_OFF, "Stop nothing"]),
        (TURN, Scene(replace(HANDOFF, queued_input=True)), [*HANDED_OFF, "Stop nothing"]),
        (PROMPT, Scene(HANDOFF), [*HANDED_OFF, "Stop nothing"]),
        (MID, Scene(HANDOFF), [*PASSED, "Stop nothing"]),
        (ERROR, Scene(replace(HANDOFF, turn=failed())), [*RECOVERY, "Stop retry"]),
        (
            TURN,
            Scene(replace(HANDOFF, turn=replace(FINISHED, prompt_tokens=200_001))),
            ["Dedup", "Pass summary", "Stop nothing"],
        ),
        (CUT, Scene(replace(HANDOFF, turn=EXHAUSTED.turn)), [*RETRIED, "Stop retry"]),
        (TURN, Scene(HANDOFF, passes=[FREED_NOTHING]), [*HANDED_OFF, "Pass summary", "Stop auto_continue"]),
        (
            CUT,
            Scene(replace(HANDOFF, turn=EXHAUSTED.turn), passes=[FREED_NOTHING]),
            [*RETRIED, "Pass summary", "Stop retry"],
        ),
        (TURN, Scene(HANDOFF, passes=[FREED_NOTHING, FAILED]), [*HANDED_OFF, "Pass summary", "Stop blocked"]),
        (TURN, Scene(HANDOFF, passes=[FAILED]), [*HANDED_OFF, "Stop blocked"]),
        (
            CUT,
            Scene(replace(HANDOFF, turn=EXHAUSTED.turn), passes=[CANCELLED]),
            [*RETRIED, "RestoreTurn", "Stop blocked"],
        ),
        (IDLE, Scene(replace(HANDOFF, idle=GATES)), ["Pass handoff", "Stop nothing"]),
        (
            IDLE,
            Scene(replace(HANDOFF, idle=GATES), passes=[FREED_NOTHING]),
            ["Pass handoff", "Pass summary", "Stop nothing"],
        ),
        (MANUAL, Scene(HANDOFF), ["Pass summary", "Stop nothing"]),
        (TURN, Scene(facts(strategy=Strategy.HANDOFF)), [*PASSED, "Stop auto_continue"]),
    ],
    ids=[
        "goes-on",
        "just-inside-the-band",
        "just-outside-the-band",
        "prompt-without-headroom",
        "incomplete-just-fits",
        "incomplete-just-does-not-fit",
        "idle-need-not-free-anything",
        "after-a-dead-end",
        "the-last-one-left-no-headroom",
        "the-last-one-left-headroom",
        "without-auto-continue",
        "queued-input",
        "prompt",
        "mid-turn",
        "overflow",
        "overflow-of-a-success",
        "incomplete",
        "no-document",
        "incomplete-no-document",
        "no-document-and-no-summary",
        "failed",
        "cancelled",
        "idle",
        "idle-no-document",
        "compact",
        "no-way-there",
    ],
)
def test_handoff(signal, scene, expected):
    assert names(scene.run(signal)) == expected


@pytest.mark.parametrize(
    ("signal", "left", "figures", "is_useless"),
    [
        (TURN, 150_000, ["150,000 tokens; ", "136,000", "200,000"], True),
        (PROMPT, 137_000, ["137,000 tokens (135,000 without your message)", "136,000"], False),
    ],
    ids=["document", "message"],
)
def test_handoff_without_headroom_names_the_figures_and_whether_there_will_be_another(
    signal, left, figures, is_useless
):
    steps = Scene(HANDOFF, left=[left]).run(signal)
    step = next(step for step in steps if isinstance(step, DeclareDeadEnd))
    assert not step.changed
    assert all(figure in step.notice.text for figure in figures)
    assert all(remedy in step.notice.text for remedy in ("compaction.threshold", "/model"))
    assert ("summarised instead of handed off" in step.notice.text) is is_useless


def test_a_shake_is_measured_by_what_it_freed_while_the_bill_still_shows_the_old_context():
    billed = replace(SHAKE, context_tokens=180_000, stored_tokens=150_000)
    enough = Scene(billed, passes=[Outcome(ok=True, changed=True, tokens_freed=44_000)], left=[])
    too_little = Scene(billed, passes=[Outcome(ok=True, changed=True, tokens_freed=43_999)], left=[])
    assert "Pass summary" in names(enough.run(TURN))
    billed = replace(billed, stored_tokens=100_000)
    assert "Pass summary" not in names(replace(enough, before=billed).run(TURN))
    assert "Pass summary" in names(replace(too_little, before=billed).run(TURN))


@pytest.mark.parametrize(
    ("freed", "changed", "expected"),
    [
        (10_000, True, [*PRUNES, "Dedup", "Stop nothing"]),
        (9_999, True, [*PASSED, "Stop auto_continue"]),
        (0, False, [*PASSED, "Stop auto_continue"]),
    ],
)
def test_dedup_that_gets_the_context_under_the_threshold_is_all(freed, changed, expected):
    scene = Scene(facts(), dedup=Outcome(ok=True, changed=changed, tokens_freed=freed))
    assert names(scene.run(TURN)) == expected


@pytest.mark.parametrize(
    ("rescues", "left", "expected"),
    [
        ({}, [150_000, 24_000], ["Rescue 1", "Notify", "Stop auto_continue"]),
        ({1: DONE}, [150_000, 24_000], ["Rescue 1", "Rescue 2", "Notify", "Stop auto_continue"]),
        ({}, [150_000, 149_000, 24_000], ["Rescue 1", "Rescue 2", "Notify", "Stop auto_continue"]),
        (
            {1: DONE, 2: DONE},
            [150_000, 24_000],
            ["Rescue 1", "Rescue 2", "Rescue 3", "Notify", "Stop auto_continue"],
        ),
        (
            {},
            [150_000, 149_000, 148_000, 147_000],
            ["Rescue 1", "Rescue 2", "Rescue 3", "DeclareDeadEnd", "Stop blocked"],
        ),
        (
            {1: DONE, 2: DONE, 3: DONE},
            [150_000],
            ["Rescue 1", "Rescue 2", "Rescue 3", "DeclareDeadEnd", "Stop blocked"],
        ),
        ({1: CANCELLED}, [150_000], ["Rescue 1", "Stop blocked"]),
    ],
    ids=[
        "first-tier",
        "second-after-one-that-changed-nothing",
        "second-after-one-that-freed-too-little",
        "third",
        "none-frees-enough",
        "none-changes-anything",
        "cancelled",
    ],
)
def test_rescue(rescues, left, expected):
    assert names(Scene(facts(), rescues=rescues, left=left).run(TURN)) == [*PASSED, *expected]


def test_rescue_of_a_retry_ends_in_the_retry_or_in_the_dead_end():
    left = [180_000, 170_000]
    assert names(Scene(OVERFLOW, left=left).run(ERROR))[-3:] == ["Rescue 1", "Notify", "Stop retry"]
    left = [180_000, 179_000, 178_000, 177_000]
    assert names(Scene(OVERFLOW, left=left).run(ERROR))[-2:] == ["DeclareDeadEnd", "Stop blocked"]


def last_pass(scene, signal):
    return [step for step in scene.run(signal) if isinstance(step, Pass)][-1]


@pytest.mark.parametrize(
    ("scene", "signal", "expected"),
    [
        (Scene(facts()), TURN, Pass(Strategy.SUMMARY, Reason.THRESHOLD)),
        (Scene(facts()), PROMPT, Pass(Strategy.SUMMARY, Reason.THRESHOLD)),
        (Scene(facts()), MID, Pass(Strategy.SUMMARY, Reason.THRESHOLD, mid_turn=True)),
        (Scene(OVERFLOW), ERROR, Pass(Strategy.SUMMARY, Reason.OVERFLOW, will_retry=True)),
        (Scene(OVERFLOW), PROMPT, Pass(Strategy.SUMMARY, Reason.OVERFLOW)),
        (Scene(EXHAUSTED), CUT, Pass(Strategy.SUMMARY, Reason.INCOMPLETE, will_retry=True)),
        (Scene(READY), IDLE, Pass(Strategy.SUMMARY, Reason.IDLE)),
        (Scene(facts()), MANUAL, Pass(Strategy.SUMMARY, Reason.MANUAL)),
        (
            Scene(facts(205_000, turn=replace(FINISHED, prompt_tokens=200_001))),
            TURN,
            Pass(Strategy.SUMMARY, Reason.OVERFLOW),
        ),
        (Scene(SHAKE, passes=[FREED_NOTHING]), TURN, Pass(Strategy.SUMMARY, Reason.THRESHOLD)),
    ],
)
def test_what_a_pass_is_announced_as(scene, signal, expected):
    assert last_pass(scene, signal) == expected


@pytest.mark.parametrize(
    ("signal", "scene", "error"),
    [
        (TURN, Scene(facts(), passes=[FAILED]), "Auto-compaction failed: boom"),
        (MID, Scene(facts(), passes=[FAILED]), "Auto-compaction failed: boom"),
        (IDLE, Scene(READY, passes=[FAILED]), "Auto-compaction failed: boom"),
        (ERROR, Scene(OVERFLOW, passes=[FAILED]), "Context overflow recovery failed: boom"),
        (CUT, Scene(EXHAUSTED, passes=[FAILED]), "Incomplete response recovery failed: boom"),
        (TURN, Scene(facts(), passes=[CANCELLED]), "Auto-compaction cancelled"),
        (MANUAL, Scene(facts(), passes=[FAILED]), "boom"),
        (MANUAL, Scene(facts(), passes=[NOTHING]), "Already compacted"),
        (MANUAL, Scene(facts(), passes=[CANCELLED]), "Compaction cancelled"),
        (MANUAL, Scene(facts()), None),
    ],
)
def test_the_stop_says_what_went_wrong(signal, scene, error):
    assert scene.run(signal)[-1].error == error


def test_a_refused_recovery_says_that_one_was_made_and_what_to_do():
    steps = Scene(replace(OVERFLOW, chain=Chain(overflow_recovered=True))).run(ERROR)
    refusal = next(step for step in steps if isinstance(step, Refuse))
    assert refusal.reason is Reason.OVERFLOW
    assert refusal.error.startswith("Context overflow recovery failed: ")
    assert "once" in refusal.error
    assert "/model" in refusal.error
    assert steps[-1].error == refusal.error


@pytest.mark.parametrize("attempts", [0, 1, 2])
def test_the_reminder_counts_its_attempts(attempts):
    steps = Scene(replace(SHORT, chain=Chain(incomplete_attempts=attempts))).run(CUT)
    assert Remind(attempts + 1, 3) in steps


def test_giving_up_names_the_model_and_a_larger_output_limit():
    steps = Scene(replace(SHORT, chain=Chain(incomplete_attempts=3))).run(CUT)
    notice = next(step for step in steps if isinstance(step, Notify)).notices[0]
    assert notice.level == "error"
    assert "test/model" in notice.text
    assert "output limit" in notice.text


def test_setting_notices_come_before_the_decision():
    notice = NoticeText("warning", "clamped")
    steps = Scene(facts(setting_notices=(notice,))).run(TURN)
    assert names(steps)[:3] == [*PRUNES, "Notify"]
    assert steps[2] == Notify((notice,))


@pytest.mark.parametrize(
    ("signal", "scene", "changed", "figures"),
    [
        (TURN, Scene(facts(), left=[150_000] * 4), True, ["150,000", "136,000", "200,000"]),
        (ERROR, Scene(OVERFLOW, left=[180_000] * 4), True, ["180,000", "170,000", "200,000"]),
        (TURN, Scene(facts(), passes=[NOTHING]), False, ["180,000", "170,000", "200,000"]),
    ],
)
def test_a_dead_end_names_the_figures_the_remedies_and_whether_a_pass_was_committed(
    signal, scene, changed, figures
):
    step = next(step for step in scene.run(signal) if isinstance(step, DeclareDeadEnd))
    assert step.changed is changed
    assert all(figure in step.notice.text for figure in figures)
    assert all(remedy in step.notice.text for remedy in ("/shake", "/model", "/new"))


def test_overhead_notice_is_given_once_a_window():
    steps = Scene(facts(other_tokens=170_001)).run(TURN)
    notice = next(step for step in steps if isinstance(step, Notify)).notices[0]
    assert notice.once == "overhead:200000"
    for figure in ("170,001", "170,000", "200,000", "compaction.threshold", "compaction.reserveTokens"):
        assert figure in notice.text


def test_overhead_alone_stops_a_successful_answer_above_the_window_too():
    scene = Scene(
        facts(205_000, turn=replace(FINISHED, prompt_tokens=200_001), other_tokens=THRESHOLD.tokens)
    )
    assert names(scene.run(TURN)) == ["Notify", "Stop nothing"]


USELESS = facts(stored_tokens=25_000, chain=Chain(tokens_after_pass=24_000))


@pytest.mark.parametrize(
    ("signal", "scene", "expected"),
    [
        (TURN, Scene(USELESS), [*PRUNES, "DeclareDeadEnd", "Stop blocked"]),
        (MID, Scene(USELESS), [*PRUNES, "DeclareDeadEnd", "Stop blocked"]),
        (PROMPT, Scene(USELESS), [*PASSED, "Stop nothing"]),
        (MANUAL, Scene(USELESS), ["Pass summary", "Stop nothing"]),
        (TURN, Scene(replace(USELESS, dead_end=True)), [*PRUNES, "Stop nothing"]),
        (TURN, Scene(replace(USELESS, enabled=False)), ["PruneStale", "Stop nothing"]),
        (MID, Scene(replace(USELESS, mid_turn=False)), ["Stop nothing"]),
        (TURN, Scene(replace(USELESS, stored_tokens=150_000)), [*PASSED, "Stop auto_continue"]),
        (
            TURN,
            Scene(replace(USELESS, promotion_target="x/big"), promotes=True),
            [*PRUNES, "Promote", "Stop nothing"],
        ),
    ],
    ids=[
        "after-a-turn",
        "mid-turn",
        "before-a-prompt-one-pass-more",
        "by-hand",
        "after-a-dead-end",
        "switched-off",
        "mid-turn-switched-off",
        "the-work-has-grown-since",
        "a-larger-model-is-tried-first",
    ],
)
def test_pass_whose_bill_stayed_is_not_run_again(signal, scene, expected):
    assert names(scene.run(signal)) == expected


def test_bill_that_stayed_is_told_with_its_figures():
    step = next(step for step in Scene(USELESS).run(TURN) if isinstance(step, DeclareDeadEnd))
    assert not step.changed
    assert all(part in step.notice.text for part in ("180,000", "155,000 more", "170,000", "200,000"))


def test_shake_by_hand_that_finds_nothing_says_so():
    stop = Scene(facts(), passes=[FREED_NOTHING]).run(ManualRequested(mode="shake"))[-1]
    assert (stop.blocked, stop.error) == (True, "Nothing to shake")
