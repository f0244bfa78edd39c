"""Repairs of a damaged tree, in memory, and what to say about them (session-format 7)."""

from collections.abc import Mapping, Sequence

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.entries import EntryHead
from musepi_tui.session.tree import SessionTree, find_rings, relink_orphans


@dataclass(frozen=True, slots=True)
class Repair:
    """The tree after repairs. ``problems`` are (index of the head, issue kind, detail), in file order.

    ``orphans`` counts entries whose parent is not in the file.
    """

    tree: SessionTree
    heads: Sequence[EntryHead]
    problems: tuple[tuple[int, str, str], ...]
    orphans: int


def repair_tree(heads: Sequence[EntryHead], *, strict: bool = False) -> Repair:
    """The tree of all heads of a file, in file order; with ``strict`` orphans stay roots."""
    tree = SessionTree.from_heads(heads)
    return Repair(tree, heads, (), 0) if tree.is_plain else mend_tree(heads, strict=strict)


def mend_tree(heads: Sequence[EntryHead], *, strict: bool = False) -> Repair:
    """As ``repair_tree``, for heads whose tree is known to be damaged."""
    first_places: dict[str, int] = {}
    problems: list[tuple[int, str, str]] = []
    suspects: list[int] = []
    for index, head in enumerate(heads):
        if head.id in first_places:
            problems.append((index, "dup_id", f"id {head.id} repeats"))
            suspects.append(index)
        else:
            first_places[head.id] = index
        if head.parent_id is not None and head.parent_id not in first_places:
            suspects.append(index)
    linked, changed = (tuple(heads), _orphans(heads, first_places)) if strict else relink_orphans(heads)
    if not strict:
        problems += [
            (
                index,
                "orphan_relinked",
                f"parent {heads[index].parent_id} is missing; {_now_under(linked[index])}",
            )
            for index in changed
        ]
    late = (index for index in suspects if _is_late(index, heads[index], first_places))
    problems += [(index, "late_parent", f"parent {heads[index].parent_id} comes later") for index in late]
    problems += _ring_problems(linked)
    tree = SessionTree.from_heads(linked)
    return Repair(tree, linked, tuple(sorted(problems)), len(changed))


def _orphans(heads: Sequence[EntryHead], known: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        index
        for index, head in enumerate(heads)
        if head.parent_id is not None and head.parent_id not in known
    )


def _now_under(head: EntryHead) -> str:
    return "it is a root now" if head.parent_id is None else f"linked to {head.parent_id}"


def _is_late(index: int, head: EntryHead, first_places: Mapping[str, int]) -> bool:
    place = -1 if head.parent_id is None else first_places.get(head.parent_id, -1)
    return place > index


def _ring_problems(heads: Sequence[EntryHead]) -> list[tuple[int, str, str]]:
    last_places = {head.id: index for index, head in enumerate(heads)}
    by_id = {head.id: head for head in heads}
    rings = find_rings(by_id, list(by_id))
    own_parents = [entry_id for entry_id, head in by_id.items() if head.parent_id == entry_id]
    found = [*rings, *own_parents]
    return [
        (last_places[entry_id], "cycle", f"the parents of {entry_id} lead back to it") for entry_id in found
    ]
