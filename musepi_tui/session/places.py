"""Which entries are a place to people, and where they see the session stand (tui 5.5)."""

from musepi_tui.session.tree import SessionTree

PLACE_TYPES = frozenset({"message", "custom_message", "compaction", "branch_summary"})
"""Types of entries that are a place; what else comes last belongs to the place before it."""


def place_of(tree: SessionTree) -> str | None:
    """The entry people see the session stand at; None before the first one."""
    leaf = place = tree.display_leaf
    while place is not None and tree.head(place).type not in PLACE_TYPES:
        place = tree.parent(place)
    return leaf if place is None else place
