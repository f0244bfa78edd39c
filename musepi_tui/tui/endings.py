"""What people are told about maintenance: how a pass ended, what was pruned (tui 6.1, 6.4). Pure."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from musepi_tui.base.text import group_digits, plural, short_number
from musepi_tui.maintenance.notices import (
    AUTO_CANCELLED,
    CANCELLED,
    HANDOFF_CANCELLED,
    NO_MODEL,
    NOTHING_TO_HAND_OFF,
    save_failure,
    success_text,
)
from musepi_tui.runtime.events import ContextPruned, ExtensionFailed, MaintenanceEnded, ModelPromoted

Told: TypeAlias = tuple[Literal["info", "warning", "error"], str]

_WHOLE_SENTENCES = (NO_MODEL, save_failure(""))
"""Causes of a failed pass that name it themselves."""

_PRUNED = {
    "superseded": "superseded read",
    "useless": "uneventful tool result",
    "threshold": "old tool result",
    "dedup": "repeated tool result",
    "shake": "large output",
    "tail": "recent large output",
    "images": "message with images",
}
"""What was shortened, by the kind of ``ContextPruned``."""


def ending(event: MaintenanceEnded) -> Told | None:
    """The line for the end of a pass, None when the divider or another notice says enough."""
    if event.reason == "manual":
        return _manual_ending(event)
    if event.aborted:
        return "info", AUTO_CANCELLED
    return ("error", event.error) if event.error else None


def _manual_ending(event: MaintenanceEnded) -> Told | None:
    if event.action == "handoff":
        return None  # the new session says where it comes from, and the intent why there is none
    if event.result is not None and event.result.entry_id is None:
        return None  # nothing was summarised: the report of the shake says what was done
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
    if event.error is None:
        return None
    whole = event.error.startswith(_WHOLE_SENTENCES)
    return "error", event.error if whole else f"Compaction failed: {event.error}"


def gives_queue_back(event: MaintenanceEnded) -> bool:
    """Whether what waits goes back to the editor: the turn it was meant for cannot be saved (TUI-6.4)."""
    return event.reason == "overflow" and event.error is not None


def pruned(event: ContextPruned) -> Told:
    """``Pruned 8 old tool results (~31k tokens)``."""
    noun = _PRUNED.get(event.kind, "message")
    nouns = "messages with images" if event.kind == "images" else None
    freed = f" (~{short_number(event.tokens_freed)} tokens)" if event.tokens_freed > 0 else ""
    return "info", f"Pruned {plural(event.entries, noun, nouns)}{freed}"


def promoted(event: ModelPromoted) -> Told:
    """Another model took over by itself."""
    return "info", f"Switched to {event.to_model} for a larger window"


def extension_failure(event: ExtensionFailed) -> Told:
    """A handler of an extension was passed over."""
    what = f"The extension {event.extension} failed at {event.event}: {event.error.rstrip('.')}."
    return "warning", f"{what} It is not called any more." if event.switched_off else what


def shaken(data: Mapping[str, Any]) -> Told:
    """What a shake did (tui 4.7): ``data`` of its ``IntentSettled``."""
    images, freed = int(data.get("images", 0)), int(data.get("tokensFreed", 0))
    if data.get("mode") == "images":
        return "info", f"{plural(images, 'image')} dropped" if images else "No images in this session"
    counts = ((int(data.get("toolResults", 0)), "tool result"), (int(data.get("blocks", 0)), "block"))
    moved = ", ".join(plural(count, noun) for count, noun in counts if count)
    return "info", f"Shaken: {moved} (~{group_digits(freed)} tokens freed)" if moved else "Nothing to shake"


def handoff_refusal(error: str) -> Told:
    """The line for a ``/handoff`` that did nothing."""
    return ("info" if error in (HANDOFF_CANCELLED, NOTHING_TO_HAND_OFF) else "warning"), error


def refusal(error: str, ended: MaintenanceEnded | None) -> Told | None:
    """The line for a ``/compact`` that did nothing; ``ended`` is the pass it had started, if any.

    A pass that was cancelled or failed has been told about already.
    """
    told = ended is not None and (ended.aborted or ended.error is not None)
    return None if told else ("info", error)
