"""Whether a pass has achieved enough, whether one could, and which one it is (compaction 2.5, 2.6, 2.9)."""

import re

from musepi_tui.context.threshold import should_compact
from musepi_tui.maintenance.facts import Facts, TurnFacts
from musepi_tui.maintenance.run import Run
from musepi_tui.maintenance.triggers import (
    ManualRequested,
    PromptPending,
    Reason,
    Strategy,
    ToolBoundary,
    Trigger,
    TurnFinished,
)
from musepi_tui.session.messages import StopReason

TRUSTED_SHARE_PERCENT = 90
"""A rejected payload whose local count is below this share of the window was not too many tokens
(compaction 2.6). Estimates err by some percent; nearer to the window they prove nothing."""

_MEDIA_FIRST = re.compile(
    r"\b(?:images?|frames?|pixels?)\b.{0,80}"
    r"\b(?:count|limits?|maximum|max|dimensions?|sizes?|exceeds?|exceeded|too (?:many|large|big)|at most)\b",
    re.IGNORECASE | re.DOTALL,
)
_MEDIA_LAST = re.compile(
    r"\b(?:too many|number of|maximum|max|at most|limit(?:ed)?|exceeds?|more than)\b.{0,80}"
    r"\b(?:images?|frames?|pixels?)\b",
    re.IGNORECASE | re.DOTALL,
)


def residual_tokens(run: Run, facts: Facts) -> int:
    """What the context takes: the billed figure less what edits saved since, never below the local count."""
    return max(facts.context_tokens - run.freed_tokens, facts.stored_tokens)


def is_over_threshold(facts: Facts) -> bool:
    """Whether a pass is due. An unknown window has no threshold."""
    return facts.threshold is not None and should_compact(facts.context_tokens, facts.threshold)


def is_overhead_too_large(facts: Facts) -> bool:
    """Whether what no pass can shrink reaches the threshold by itself."""
    return facts.threshold is not None and facts.other_tokens >= facts.threshold.tokens


def has_headroom(run: Run, facts: Facts) -> bool:
    """Whether the context is so far below the threshold that the next turn will not start a pass again."""
    return facts.threshold is None or residual_tokens(run, facts) <= facts.threshold.recovery_tokens


def limit_tokens(run: Run, facts: Facts) -> int | None:
    """What the context may take after the pass; None where that is not limited.

    A turn is asked for again when the window holds the context and the reserve; other runs have to get well
    below the threshold. Manual and idle passes need not free anything.
    """
    match run.trigger:
        case Trigger.MANUAL | Trigger.IDLE:
            return None
        case Trigger.OVERFLOW | Trigger.INCOMPLETE:
            return None if facts.window is None else facts.window - facts.reserve_tokens
        case Trigger.THRESHOLD | Trigger.PROMPT | Trigger.MID_TURN:
            return None if facts.threshold is None else facts.threshold.recovery_tokens


def excess_tokens(run: Run, facts: Facts) -> int:
    """By how much the context is over its limit; 0 when the pass freed enough."""
    limit = limit_tokens(run, facts)
    return 0 if limit is None else max(0, residual_tokens(run, facts) - limit)


def has_helped(run: Run, facts: Facts) -> bool:
    """Whether the answer has shown that the newest pass made the bill small enough."""
    left, threshold = _billed_after_pass(run, facts), facts.threshold
    return left is not None and (threshold is None or left <= threshold.recovery_tokens)


def has_not_helped(run: Run, facts: Facts) -> bool:
    """Whether what the newest pass left is billed as too much, although its local count is small enough.

    A bill that holds what cannot be seen here, such as a prompt a gateway adds, stays large whatever a pass
    takes out: without this every step would start another one. The pass had to be measured against the
    threshold that holds now; under a smaller one another pass takes out more.
    """
    left, threshold = _billed_after_pass(run, facts), facts.threshold
    counted = facts.chain.tokens_after_pass
    if left is None or counted is None or threshold is None:
        return False
    return counted <= threshold.recovery_tokens < left


def _billed_after_pass(run: Run, facts: Facts) -> int | None:
    """What was billed for the context right after the newest pass: the bill less what was counted since.

    None while no answer was billed after it.
    """
    counted, turn = facts.chain.tokens_after_pass, run.turn
    if counted is None or turn is None or not isinstance(run.signal, TurnFinished | ToolBoundary):
        return None
    if turn.stale or not turn.used_tokens:
        return None
    return residual_tokens(run, facts) - max(0, facts.stored_tokens - counted)


def handed_off_tokens(run: Run, facts: Facts) -> int:
    """What the session a handoff began takes by itself: the document, system prompt and tools."""
    pending = run.signal.pending_tokens if isinstance(run.signal, PromptPending) else 0
    return max(0, facts.stored_tokens - pending)


def is_handoff_useless(tokens: int | None, facts: Facts) -> bool:
    """Whether a session that began with so much had no headroom; another handoff would begin one like it."""
    return tokens is not None and facts.threshold is not None and tokens > facts.threshold.recovery_tokens


def is_exhausted(turn: TurnFacts, facts: Facts) -> bool:
    """Whether a cut-off answer ran out of window, not only of its own output limit (compaction 2.4)."""
    return facts.threshold is None or turn.used_tokens > facts.threshold.tokens


def has_overflowed(turn: TurnFacts, facts: Facts) -> bool:
    """Whether an answer that succeeded had a prompt larger than the window (compaction 2.2)."""
    is_success = turn.stop_reason in (StopReason.STOP, StopReason.TOOL_USE)
    return is_success and facts.window is not None and turn.prompt_tokens > facts.window


def is_usage_backed(turn: TurnFacts, facts: Facts) -> bool:
    """Whether a rejected payload was too many tokens by the server's own count (compaction 2.6)."""
    return facts.window is not None and turn.prompt_tokens > facts.window


def is_byte_problem(turn: TurnFacts, facts: Facts) -> bool:
    """Whether fewer tokens would not help a rejected payload: bytes or pictures are the limit."""
    if facts.window is None:
        return turn.names_media or not facts.strategies_usable
    if is_usage_backed(turn, facts):
        return False
    return turn.names_media or facts.stored_tokens * 100 < TRUSTED_SHARE_PERCENT * facts.window


def names_media_limit(text: str) -> bool:
    """Whether an error text is about a number, size or dimension of images, frames or pixels.

    Words that occur together decide; the bare word "image" does not.
    """
    return _MEDIA_FIRST.search(text) is not None or _MEDIA_LAST.search(text) is not None


def may_run_idle(facts: Facts) -> bool:
    """Whether every condition of an idle pass holds (compaction 2.11)."""
    idle = facts.idle
    open_gates = idle.enabled and facts.strategy is not Strategy.OFF and idle.editor_empty and not idle.busy
    return open_gates and 0 < idle.threshold_tokens <= facts.context_tokens


def choose_strategy(run: Run, facts: Facts) -> Strategy:
    """What the pass does: the configured strategy, or a summary where that one is excluded.

    A manual pass is what the person names, else a summary, whatever is configured (compaction 12.3); the one
    after a shake or a handoff is a summary too. A handoff asks with the whole context, so it cannot follow an
    overflow, and in mid-turn it would leave a turn without its end. Where the last one left no headroom the
    next would not either: one prompt after another would begin a session.
    """
    if isinstance(run.signal, ManualRequested):
        named = (run.signal.mode or "").lower()
        return Strategy.SHAKE if named == Strategy.SHAKE else Strategy.SUMMARY
    wanted = facts.strategy
    if run.strategy is not None or wanted is Strategy.OFF:
        return Strategy.SUMMARY
    if wanted is Strategy.HANDOFF and not _may_hand_off(run, facts):
        return Strategy.SUMMARY
    return wanted if wanted in facts.strategies_usable else Strategy.SUMMARY


def _may_hand_off(run: Run, facts: Facts) -> bool:
    if run.reason is Reason.OVERFLOW or run.trigger is Trigger.MID_TURN:
        return False
    return not is_handoff_useless(facts.chain.handed_off_tokens, facts)
