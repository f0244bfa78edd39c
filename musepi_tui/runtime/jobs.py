"""What a worker can be asked to do. Each job settles the intent it came with exactly once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from musepi_tui.runtime.intents import MoveLeaf, NavigateTree
from musepi_tui.runtime.queue import QueuedMessage
from musepi_tui.runtime.settling import Settle


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages that start a turn; none goes on from what is there. ``settle`` None: they came from the
    queue, or from nobody."""

    messages: tuple[QueuedMessage, ...] = ()
    settle: Settle | None = None

    def end(self, error: str | None) -> None:
        """Settles the intent it came with, if any."""
        if self.settle is not None:
            self.settle(error)


@dataclass(frozen=True, slots=True)
class CompactJob:
    """A pass somebody asked for. ``interrupted``: a turn was stopped for it."""

    mode: str | None
    focus: str | None
    settle: Settle
    interrupted: bool = False

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


@dataclass(frozen=True, slots=True)
class IdleJob:
    """A pass because nobody did anything. ``settle`` None: the clock asked for it."""

    settle: Settle | None = None

    def end(self, error: str | None, data: Mapping[str, Any] | None = None) -> None:
        """Settles the intent it came with, if any."""
        if self.settle is not None:
            self.settle(error, data)


@dataclass(frozen=True, slots=True)
class ShakeJob:
    """Somebody wants large outputs, or the images, out of the context."""

    mode: Literal["elide", "images"]
    settle: Settle

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


@dataclass(frozen=True, slots=True)
class HandoffJob:
    """Somebody wants to go on in a new session; ``focus`` is what its document should dwell on."""

    focus: str | None
    settle: Settle

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


@dataclass(frozen=True, slots=True)
class NavigateJob:
    """Somebody wants to go on from another entry of the session."""

    intent: NavigateTree | MoveLeaf
    settle: Settle

    def end(self, error: str | None) -> None:
        """Settles the intent it came with."""
        self.settle(error)


Job: TypeAlias = Prompt | CompactJob | IdleJob | ShakeJob | HandoffJob | NavigateJob
