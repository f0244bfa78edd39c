"""What an import carried over and what it left out, counted by kind."""

from collections import Counter
from dataclasses import field

from musepi_tui.base.dataclass import dataclass


@dataclass(slots=True)
class Tally:
    """Counts of one import. Keys of ``carried`` are roles, entry types and kinds of blocks; those of
    ``skipped`` are words of the source, such as its record types. ``warnings`` are whole sentences."""

    carried: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])
    warnings: list[str] = field(default_factory=list[str])

    def carry(self, kind: str) -> None:
        """One more thing of a kind is in the new session."""
        self.carried[kind] += 1

    def skip(self, kind: str) -> None:
        """One more thing of a kind is not."""
        self.skipped[kind] += 1
