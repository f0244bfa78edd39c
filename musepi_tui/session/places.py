"""Which entries are a place to people, and where they see the session stand (tui 5.5)."""

from musepi_tui.session.tree import SessionTree

PLACE_TYPES = frozenset({"message", "custom_message", "compaction", "branch_summary"})
"""Types of entries that are a place; what else comes last belongs to the place before it."""


def place_of(tree: SessionTree) -> str | None:
    """The entry people see the session stand at; None before the first one."""
    leaf = tree.display_leaf
    if leaf is None:
        return None
    return next((head.id for head in reversed(tree.path(leaf)) if head.type in PLACE_TYPES), leaf)
