"""What people are told when a compaction is over (tui 6.1, 6.4). Pure."""

from typing import Literal, TypeAlias

from musepi_tui.maintenance.notices import CANCELLED, success_text
from musepi_tui.runtime.events import MaintenanceEnded

Told: TypeAlias = tuple[Literal["info", "warning", "error"], str]


def ending(event: MaintenanceEnded) -> Told | None:
    """The line for the end of a pass, None when the divider or another notice says enough."""
    if event.reason == "manual":
        return _manual_ending(event)
    if event.aborted:
        return "info", "Auto-compaction cancelled"
    return ("error", event.error) if event.error else None


def _manual_ending(event: MaintenanceEnded) -> Told | None:
    if event.result is not None:
        cost = event.result.usage.cost if event.result.usage is not None else None
        text = success_text(
            event.result.tokens_before,
            event.result.tokens_after,
            event.result.duration_ms,
            cost.total if cost is not None else None,
        )
        return "info", text
    if event.aborted:
        return "info", CANCELLED
    return ("error", f"Compaction failed: {event.error}") if event.error else None


def refusal(error: str, ended: MaintenanceEnded | None) -> Told | None:
    """The line for a ``/compact`` that did nothing; ``ended`` is the pass it had started, if any.

    A pass that was cancelled or failed has been told about already.
    """
    told = ended is not None and (ended.aborted or ended.error is not None)
    return None if told else ("info", error)
