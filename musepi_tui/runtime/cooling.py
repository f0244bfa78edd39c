"""Letting go of history the live context cannot reach (session-format 16, compaction 14)."""

from musepi_tui.session.columns import HeadList
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, EntryHead
from musepi_tui.session.rebuild import effective_compaction
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies

_MESSAGE_TYPES = frozenset({"message", "custom_message", "branch_summary", "context_edit", "compaction"})

_COLD_ANYWHERE = frozenset({"session_init", "settings_snapshot", "subagent_spawn"})
"""State entries that grow large and that no context needs."""


def cool(tree: SessionTree, bodies: Bodies) -> None:
    """Forgets the bodies of all entries the live context cannot reach: they are read back when needed.

    What is not in the file yet stays. To be called after a load, a compaction and a rewrite; reads the
    compactions it meets, so it may block for a few milliseconds.
    """
    warm = {head.id for head in context_heads(tree, bodies) if head.type not in _COLD_ANYWHERE}
    heads = tree.heads
    cold = [entry_id for entry_id in bodies.hot_ids if entry_id not in warm]
    bodies.forget([entry_id for entry_id in cold if entry_id in heads and heads[entry_id].length])


def context_heads(tree: SessionTree, bodies: Bodies) -> tuple[EntryHead, ...]:
    """The heads whose bodies make the context: the path from the keep boundary of the effective compaction
    on, and before it every state entry and the newest answer, whose model counts where no entry names one.

    Reads the compactions it meets, newest first.
    """
    path = tree.path()
    start = _boundary(path, bodies)
    before = path[:start]
    answers = before.with_roles(("assistant",))
    return (*before.without_types(_MESSAGE_TYPES), *answers[-1:], *path[start:])


def _boundary(path: HeadList, bodies: Bodies) -> int:
    """The index of the first entry the effective compaction kept; 0 without one."""
    columns, positions = path.columns, path.positions
    for place in reversed(path.of_types(("compaction",)).positions):
        entry = bodies.get(columns.head_at(place))
        if not isinstance(entry, CompactionEntry) or effective_compaction((entry,)) is None:
            continue
        index, first_kept = positions.index(place), entry.first_kept_entry_id
        if first_kept == KEEP_NOTHING:
            return index
        kept = None if first_kept is None else columns.find(first_kept)
        return min(index, positions.index(kept)) if kept is not None and kept in positions else 0
    return 0
