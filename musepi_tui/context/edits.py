"""Changes to what the model sees of single messages, before anybody stores them (compaction 1.6)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from musepi_tui.context.window import PathItem
from musepi_tui.session.messages import Content


class EditReason(StrEnum):
    """Why a message was changed; stored, and the kind on the events."""

    SUPERSEDED = "superseded"
    USELESS = "useless"
    THRESHOLD = "threshold"
    DEDUP = "dedup"
    SHAKE = "shake"
    IMAGES = "images"
    TAIL = "tail"


@dataclass(frozen=True, slots=True)
class Edit:
    """The message of ``target_id`` gets this content; None takes the message out."""

    target_id: str
    replacement: Content | None
    reason: EditReason


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many messages were changed for one reason, and the tokens that freed, estimated."""

    reason: EditReason
    entries: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SavingEdit:
    """An edit and the tokens it frees, estimated; never below 0."""

    edit: Edit
    tokens: int


@dataclass(frozen=True, slots=True)
class Edits:
    """The changes of one pass, in the order of the path, each target once.

    ``earliest_entry_id`` is the first entry of the path that changes, None without changes. ``counts`` has
    one row a reason that occurs.
    """

    changes: tuple[Edit, ...] = ()
    tokens_saved: int = 0
    earliest_entry_id: str | None = None
    counts: tuple[KindCount, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)


NO_EDITS = Edits()


def collect_edits(items: Sequence[PathItem], found: Iterable[SavingEdit]) -> Edits:
    """The edits as one set; ``items`` is the path they are about."""
    by_target = {one.edit.target_id: one for one in found}
    if not by_target:
        return NO_EDITS  # as in most turns: no need to look through the path
    ordered = [by_target[item.id] for item in items if item.id in by_target]
    return Edits(
        changes=tuple(one.edit for one in ordered),
        tokens_saved=sum(one.tokens for one in ordered),
        earliest_entry_id=ordered[0].edit.target_id,
        counts=_count_kinds(ordered),
    )


def _count_kinds(found: Sequence[SavingEdit]) -> tuple[KindCount, ...]:
    rows: list[KindCount] = []
    for reason in EditReason:
        tokens = [one.tokens for one in found if one.edit.reason is reason]
        if tokens:
            rows.append(KindCount(reason, len(tokens), sum(tokens)))
    return tuple(rows)
