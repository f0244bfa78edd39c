"""The JSON of a finished or failed compaction, for ``musepi compact --json`` and for RPC (contract 3.1)."""

from collections.abc import Callable
from typing import Any

from musepi_tui.runtime.event_json import result_json
from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceResult
from musepi_tui.session.entries import CompactionEntry, Entry

_FIGURES = ("entryId", "firstKeptEntryId", "tokensBefore", "tokensAfter", "durationMs")


def done_json(
    end: MaintenanceEnded, result: MaintenanceResult, read: Callable[[str], Entry]
) -> dict[str, Any]:
    """What a pass did. ``read`` gives the entry of an id; a pass without an entry was made by its action."""
    shape = result_json(result) or {}
    entry = None if result.entry_id is None else read(result.entry_id)
    stored = entry if isinstance(entry, CompactionEntry) else None
    return {
        "ok": True,
        **{name: shape[name] for name in _FIGURES},
        "action": end.action,
        "method": end.action if stored is None else stored.method,
        "warning": None if stored is None else stored.warning,
        "errorMessage": None,
        "aborted": False,
    }


def failed_json(error: str, action: str, *, aborted: bool) -> dict[str, Any]:
    """That nothing was done, and why."""
    return {
        "ok": False,
        **dict.fromkeys(_FIGURES),
        "action": action,
        "method": None,
        "warning": None,
        "errorMessage": error,
        "aborted": aborted,
    }
