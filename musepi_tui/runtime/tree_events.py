"""What the runtime tells about moves between the branches of a session (tui 9.3)."""

from musepi_tui.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BranchSummaryStarted:
    """The branch that is left is being summarised, on the way to ``target_id``."""

    target_id: str


@dataclass(frozen=True, slots=True)
class BranchSummaryEnded:
    """The summary is stored as ``entry_id``, was ``aborted`` by the person, or failed with ``error``."""

    entry_id: str | None = None
    aborted: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LeafMoved:
    """The session goes on from another entry; what follows is on another path.

    Ids are of the places people see, None before the first entry; ``summary_entry_id`` is the branch summary
    stored on the way, which is the new place then. It follows the ``EntryAppended`` of what was stored.
    """

    old_leaf_id: str | None
    new_leaf_id: str | None
    summary_entry_id: str | None = None
