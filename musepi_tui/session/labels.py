"""Labels of a session: the last label entry in file order wins for its target, an empty one clears it."""

from collections.abc import Iterable

from musepi_tui.session.entries import Entry, StateEntry
from musepi_tui.session.fields import as_text


def collect_labels(entries: Iterable[Entry]) -> dict[str, str]:
    """Labels by target id. ``entries`` are in file order, whatever branch they are on."""
    labels: dict[str, str] = {}
    for entry in entries:
        if not isinstance(entry, StateEntry) or entry.type != "label":
            continue
        target_id = as_text(entry.fields.get("targetId"))
        label = as_text(entry.fields.get("label"))
        if target_id is not None and label:
            labels[target_id] = label
        elif target_id is not None:
            labels.pop(target_id, None)
    return labels
