"""Reads the numbers the policy decides on (compaction 2.2, 3.4; architecture 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from musepi_tui.base.errors import ErrorKind
from musepi_tui.context.threshold import (
    Threshold,
    ThresholdSetting,
    budget_reserve,
    parse_threshold,
    resolve_threshold,
)
from musepi_tui.context.usage import calculate_context_tokens
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.chain import Chain
from musepi_tui.maintenance.facts import Facts, IdleGates, TurnFacts
from musepi_tui.maintenance.guards import names_media_limit
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.triggers import (
    IdleElapsed,
    ManualRequested,
    PromptPending,
    Signal,
    Strategy,
    ToolBoundary,
    TurnFinished,
)
from musepi_tui.providers.classify import ErrorBody, find_kind
from musepi_tui.providers.types import Model
from musepi_tui.runtime.promotion import promotion_target
from musepi_tui.runtime.services import Services
from musepi_tui.session.messages import (
    AssistantMessage,
    StopReason,
    TextBlock,
    ToolCallBlock,
)
from musepi_tui.session.times import unix_ms
from musepi_tui.settings.schema import CompactionSettings

USABLE_STRATEGIES = frozenset({Strategy.SUMMARY, Strategy.SHAKE})
"""What a pass of this version can do in any session."""


@dataclass(slots=True)
class Standing:
    """What the maintainer remembers between two runs, and what only others know.

    ``idle`` is asked last, after anything that is waited for. ``relieved_tokens``: what shakes of earlier
    runs took out since the newest answer was billed. ``can_hand_off``: a new session can be opened from here.
    """

    chain: Chain
    idle: Callable[[], IdleGates]
    dead_end: bool = False
    queued_input: bool = False
    relieved_tokens: int = 0
    can_hand_off: bool = False


async def read_facts(services: Services, signal: Signal, standing: Standing) -> Facts:
    """The facts at this moment. Waits for the tokenizer where the exact count could matter."""
    pending = signal.pending_tokens if isinstance(signal, PromptPending) else 0
    measured = services.meter.measure(pending)
    if not services.meter.is_exact_enough(measured):
        await services.tokens.ready()
        measured = services.meter.measure(pending)
    billed = measured.measured + pending if measured.billed else 0
    compaction = services.settings.compaction
    window = services.meter.window
    setting = parse_threshold(compaction.threshold)
    threshold = None if window is None else resolve_threshold(setting, window, compaction.reserve_tokens)
    strategy = strategy_of(compaction)
    return Facts(
        context_tokens=max(billed - standing.relieved_tokens, measured.stored),
        stored_tokens=measured.stored,
        other_tokens=services.tokens.non_message_tokens(),
        window=window,
        threshold=threshold,
        reserve_tokens=0 if window is None else budget_reserve(window, compaction.reserve_tokens),
        enabled=services.meter.is_automatic,
        strategy=strategy,
        strategies_usable=_usable_strategies(standing),
        mid_turn=compaction.mid_turn_enabled,
        auto_continue=compaction.auto_continue,
        turn=_turn_of(services, signal),
        idle=standing.idle(),
        chain=standing.chain,
        promotion_target=promotion_target(services),
        dead_end=standing.dead_end,
        queued_input=standing.queued_input,
        setting_notices=_setting_notices(compaction, setting, threshold, window),
    )


def _usable_strategies(standing: Standing) -> frozenset[Strategy]:
    return USABLE_STRATEGIES | {Strategy.HANDOFF} if standing.can_hand_off else USABLE_STRATEGIES


def strategy_of(compaction: CompactionSettings) -> Strategy:
    """The configured strategy; one this version does not have counts as ``summary``."""
    name = compaction.strategy
    return Strategy(name) if name in tuple(Strategy) else Strategy.SUMMARY


def _turn_of(services: Services, signal: Signal) -> TurnFacts | None:
    match signal:
        case TurnFinished(message, error_kind):
            return turn_facts(services, message, error_kind)
        case ToolBoundary(message):
            return turn_facts(services, message, None)
        case PromptPending():
            newest = next(
                (each for each in reversed(services.history.messages) if isinstance(each, AssistantMessage)),
                None,
            )
            return None if newest is None else turn_facts(services, newest, None)
        case ManualRequested() | IdleElapsed():
            return None
        case _:
            assert_never(signal)


def turn_facts(services: Services, message: AssistantMessage, kind: ErrorKind | None) -> TurnFacts:
    """An answer in numbers; ``kind`` is that of its failure where it is known from the request itself."""
    current = services.gateway.model
    usage = message.usage
    text = message.error_message or ""
    failed = message.stop_reason is StopReason.ERROR
    if failed and kind is None:
        kind = find_kind(ErrorBody(message=text), message.error_status)
    return TurnFacts(
        stop_reason=message.stop_reason,
        model=f"{message.provider}/{message.model}",
        same_model=current is not None
        and (message.provider, message.model) == (current.provider, current.id),
        before_promotion=_is_before_promotion(services, message, current),
        stale=_is_stale(services, message),
        error_kind=kind if failed else None,
        names_media=failed and names_media_limit(text),
        delivered=has_delivered(message),
        output_tokens=0 if usage is None else usage.output,
        used_tokens=0 if usage is None else calculate_context_tokens(usage),
        prompt_tokens=0 if usage is None else usage.input + usage.cache_read + usage.cache_write,
    )


def _is_stale(services: Services, message: AssistantMessage) -> bool:
    """Whether the answer is older than the compaction the context starts with."""
    compaction_id = services.history.compaction_id
    if compaction_id is None:
        return False
    compacted_ms = unix_ms(services.history.entry(compaction_id).timestamp)
    return compacted_ms is not None and message.timestamp_ms < compacted_ms


def _is_before_promotion(services: Services, message: AssistantMessage, current: Model | None) -> bool:
    if current is None:
        return False
    former = services.gateway.find(f"{message.provider}/{message.model}")
    if former is None or former.context_promotion_target not in (current.key, current.id):
        return False
    return (current.context_window or 0) > (former.context_window or 0)


def has_delivered(message: AssistantMessage) -> bool:
    """Whether the answer has text or a tool call."""
    return any(
        isinstance(block, ToolCallBlock) or (isinstance(block, TextBlock) and bool(block.text.strip()))
        for block in message.content
    )


def _setting_notices(
    compaction: CompactionSettings,
    setting: ThresholdSetting,
    threshold: Threshold | None,
    window: int | None,
) -> tuple[NoticeText, ...]:
    """What the settings ask for and do not get."""
    found: list[NoticeText] = []
    if threshold is not None and window is not None:
        if setting.invalid_raw is not None:
            found.append(notices.invalid_threshold(setting, threshold))
        if threshold.clamped:
            found.append(notices.clamped_threshold(setting, threshold, window))
    if compaction.strategy not in tuple(Strategy):
        found.append(notices.unavailable_strategy(compaction.strategy, Strategy.SUMMARY.value))
    return tuple(found)
