"""How full the context is: what the server billed, and the local count beside it (compaction 3.1, 3.4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from musepi_tui.context.estimate import Estimator, stored_estimate
from musepi_tui.session.entries import Entry, MessageEntry
from musepi_tui.session.messages import AssistantMessage, Cost, Message, StopReason, Usage

_UNUSABLE_STOPS = frozenset({StopReason.ABORTED, StopReason.ERROR})


def calculate_context_tokens(usage: Usage) -> int:
    """Tokens the context holds after the answer this usage belongs to.

    Tokens of an orchestrating model, which some files report beside the answer's own, are taken off.
    """
    parts = usage.input + usage.output + usage.cache_read + usage.cache_write
    return max(0, (usage.total_tokens or parts) - _orchestration_tokens(usage))


def calculate_prompt_tokens(usage: Usage) -> int:
    """Tokens of the prompt alone; the context tokens where the server reported no prompt."""
    return usage.input + usage.cache_read + usage.cache_write or calculate_context_tokens(usage)


def usable_usage(message: Message) -> Usage | None:
    """The usage of an answer that says something about the context, else None.

    Failed and aborted answers and usage that is all zero say nothing.
    """
    if not isinstance(message, AssistantMessage) or message.usage is None:
        return None
    if message.stop_reason in _UNUSABLE_STOPS or not _counts(message.usage):
        return None
    return message.usage


def last_assistant_usage(path: Sequence[Entry]) -> Usage | None:
    """The usage of the newest answer on the path that has a usable one."""
    for entry in reversed(path):
        if isinstance(entry, MessageEntry) and (usage := usable_usage(entry.message)) is not None:
            return usage
    return None


@dataclass(frozen=True, slots=True)
class ContextMeasure:
    """How full the context is, in tokens.

    ``measured`` is what the gauge shows: billed tokens of the newest answer plus an estimate of what came
    after it, or the local count when no answer is newer than the compaction. ``stored`` is the local count.
    ``billed`` tells which of the two ``measured`` is.
    """

    measured: int
    stored: int
    billed: bool

    @property
    def decision(self) -> int:
        """What a threshold is compared with: the larger figure, so that growth is never overlooked."""
        return max(self.measured, self.stored)


def fresh_index(entry_ids: Sequence[str], newer_ids: Iterable[str]) -> int:
    """Index of the first message of the context that came after its compaction.

    ``entry_ids`` tell for each message of the context the entry it came from; ``newer_ids`` are the entries
    of the path behind the compaction. Usage of messages before that index was billed for a context that is
    gone.
    """
    newer = frozenset(newer_ids)
    fresh = (index for index, entry_id in enumerate(entry_ids) if entry_id in newer)
    return next(fresh, len(entry_ids))


def measure_context(
    messages: Sequence[Message],
    estimate: Estimator,
    *,
    fresh_from: int = 0,
    other_tokens: int = 0,
) -> ContextMeasure:
    """How full the context of these messages is.

    Gauge, threshold and guards all call this, so they agree. ``fresh_from`` is the ``fresh_index``;
    ``other_tokens`` are system prompt, tool schemas and pending texts.
    """
    stored = stored_estimate(messages, estimate, other_tokens)
    for index in range(len(messages) - 1, fresh_from - 1, -1):
        usage = usable_usage(messages[index])
        if usage is not None:
            later = sum(estimate(message) for message in messages[index + 1 :])
            return ContextMeasure(calculate_context_tokens(usage) + later, stored, billed=True)
    return ContextMeasure(stored, stored, billed=False)


def sum_usage(usages: Sequence[Usage]) -> Usage | None:
    """Tokens and cost of several requests; None without any. The cost is unknown when one of them is."""
    if not usages:
        return None
    costs = [usage.cost for usage in usages if usage.cost is not None]
    return Usage(
        input=sum(usage.input for usage in usages),
        output=sum(usage.output for usage in usages),
        cache_read=sum(usage.cache_read for usage in usages),
        cache_write=sum(usage.cache_write for usage in usages),
        total_tokens=sum(calculate_context_tokens(usage) for usage in usages),
        cost=_sum_cost(costs) if len(costs) == len(usages) else None,
    )


def _sum_cost(costs: Sequence[Cost]) -> Cost:
    return Cost(
        sum(cost.input for cost in costs),
        sum(cost.output for cost in costs),
        sum(cost.cache_read for cost in costs),
        sum(cost.cache_write for cost in costs),
        sum(cost.total for cost in costs),
    )


def _counts(usage: Usage) -> bool:
    return any((usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total_tokens))


def _orchestration_tokens(usage: Usage) -> int:
    found = usage.extra.get("orchestration")
    if not isinstance(found, Mapping):
        return 0
    counts = cast("Mapping[str, Any]", found)
    values = (counts.get(name) for name in ("input", "output", "cacheRead"))
    return sum(int(value) for value in values if isinstance(value, int | float))
