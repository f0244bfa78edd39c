"""The figures behind ``/context`` and its like (contract 3.2, tui 4.6)."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from musepi_tui.context.breakdown import Overhead, break_down, results_by_tool
from musepi_tui.context.livetail import tail_of_context
from musepi_tui.context.prune import PruneOptions, is_cache_cold
from musepi_tui.context.reclaim import find_reclaimable
from musepi_tui.context.threshold import budget_reserve
from musepi_tui.context.usage import calculate_prompt_tokens, usable_usage
from musepi_tui.runtime.pruner import prune_options
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.threads import Checkpoint, run_stoppable
from musepi_tui.runtime.tokens import TokenService
from musepi_tui.session.messages import Message


@dataclass(frozen=True, slots=True)
class _Context:
    """The context at one moment, so that a thread can look at it while the conversation goes on."""

    messages: tuple[Message, ...]
    entry_ids: tuple[str, ...]
    compaction_id: str | None
    fresh_from: int


async def context_figures(services: Services) -> dict[str, Any]:
    """Window, threshold, reserve, the figure of the gauge, and what the context consists of.

    The parts are counted here; together with ``beyondParts`` they are ``tokens``. That is 0 as long as no
    server has billed the context; below 0 where it billed less than was counted.
    """
    await services.tokens.ready()
    meter, history = services.meter, services.history
    window, tokens = meter.window, meter.measure().measured
    reserve = services.settings.compaction.reserve_tokens
    services.tokens.overhead_tokens()  # here, where it is kept for later; the thread finds it counted
    context = _Context(history.messages, history.message_entry_ids, history.compaction_id, history.fresh_from)
    options = prune_options(services)
    found = await run_stoppable(lambda check: _look_through(context, services.tokens, options, check))
    return {
        "window": window,
        "threshold": meter.threshold_tokens(),
        "budgetReserve": None if window is None else budget_reserve(window, reserve),
        "tokens": tokens,
        "percent": None if window is None else round(100 * tokens / window, 1),
        "beyondParts": tokens - sum(part["tokens"] for part in found["parts"]),
        **found,
    }


def _look_through(
    context: _Context, tokens: TokenService, options: PruneOptions, check: Checkpoint
) -> dict[str, Any]:
    """The figures that take longer: a walk over every message, and the planners of pruning and shaking."""
    estimate = tokens.estimate
    parts = break_down(context.messages, estimate, Overhead(*tokens.overhead_tokens()), context.fresh_from)
    results = results_by_tool(context.messages[context.fresh_from :], estimate)
    check()
    tail = tail_of_context(context.messages, context.entry_ids, context.compaction_id)
    return {
        "parts": [asdict(part) for part in parts],
        "toolResults": [asdict(part) for part in results],
        "toolSchemas": _named(tokens.tool_tokens()),
        "contextFiles": _named(tokens.file_tokens()),
        "reclaimable": [asdict(row) for row in find_reclaimable(tail, estimate, options)],
        "cache": {**_cache_use(context), "cold": is_cache_cold(tail, options.now_ms)},
    }


def _named(sizes: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"name": name, "tokens": tokens} for name, tokens in sizes]


def _cache_use(context: _Context) -> dict[str, int | None]:
    """How much of the newest prompt that was billed came from the provider's cache."""
    for message in reversed(context.messages[context.fresh_from :]):
        usage = usable_usage(message)
        if usage is not None:
            return {"read": usage.cache_read, "prompt": calculate_prompt_tokens(usage)}
    return {"read": None, "prompt": None}
