"""Labels of a session with the time they were given."""

from collections.abc import Callable, Iterable

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.session.entries import Entry, StateEntry
from musepi_tui.session.fields import as_text


@dataclass(frozen=True, slots=True)
class Label:
    """What a person called an entry. ``timestamp`` is that of the label, ISO 8601 as stored."""

    text: str
    timestamp: str


def put_labels(labels: dict[str, Label], entry_ids: Iterable[str], read: Callable[[str], Entry]) -> None:
    """Take the label entries with these ids, in file order, into ``labels``, which are by target id.

    The last one wins for its target, an empty one clears it. One that cannot be read is passed over.
    """
    for entry_id in entry_ids:
        try:
            entry = read(entry_id)
        except SessionError:
            continue
        if not isinstance(entry, StateEntry):
            continue
        target_id = as_text(entry.fields.get("targetId"))
        text = (as_text(entry.fields.get("label")) or "").strip()
        if target_id is not None and text:
            labels[target_id] = Label(text, entry.timestamp)
        elif target_id is not None:
            labels.pop(target_id, None)
