"""The figures behind ``/context`` and its like (contract 3.2, tui 4.6)."""

import asyncio
from typing import Any

from musepi_tui.context.breakdown import Overhead, break_down
from musepi_tui.context.threshold import budget_reserve
from musepi_tui.runtime.services import Services


async def context_figures(services: Services) -> dict[str, Any]:
    """Window, threshold, reserve, the figure of the gauge, and what the context consists of.

    The parts are counted here; together they are ``tokens`` as long as no server has billed the context.
    """
    await services.tokens.ready()
    meter = services.meter
    window, tokens = meter.window, meter.measure().measured
    reserve = services.settings.compaction.reserve_tokens
    messages, overhead = services.history.messages, Overhead(*services.tokens.overhead_tokens())
    parts = await asyncio.to_thread(break_down, messages, services.tokens.estimate, overhead)
    return {
        "window": window,
        "threshold": meter.threshold_tokens(),
        "budgetReserve": None if window is None else budget_reserve(window, reserve),
        "tokens": tokens,
        "percent": None if window is None else round(100 * tokens / window, 1),
        "parts": [{"name": part.name, "tokens": part.tokens} for part in parts],
    }
