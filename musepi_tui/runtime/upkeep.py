"""Intents about the context of the open session and its last turn."""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from musepi_tui.runtime.context_figures import context_figures
from musepi_tui.runtime.idle import IdleClock
from musepi_tui.runtime.intents import (
    Compact,
    CompactIdle,
    EditorChanged,
    MeasureContext,
    MoveLeaf,
    NavigateTree,
    Retry,
    SetAutoCompaction,
    Shake,
    Touch,
)
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.worker import Worker

MaintenanceIntent: TypeAlias = (
    Compact
    | Retry
    | CompactIdle
    | Shake
    | SetAutoCompaction
    | MeasureContext
    | MoveLeaf
    | NavigateTree
    | EditorChanged
    | Touch
)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Carries them out, or starts what takes longer."""

    services: Services
    worker: Worker
    idle: IdleClock

    def take(self, intent: MaintenanceIntent, settle: Settle) -> None:
        """Never waits."""
        match intent:
            case Compact(mode, focus):
                self.worker.compact(mode, focus, settle)
            case Retry():
                self.worker.retry(settle)
            case CompactIdle():
                self.worker.compact_idle(settle)
            case Shake(mode):
                self.worker.shake(mode, settle)
            case SetAutoCompaction(enabled):
                self.services.meter.is_automatic = enabled
                self.services.meter.refresh()
                settle(None)
            case MeasureContext():
                self.services.children.start("context", self._measure(settle))
            case MoveLeaf() | NavigateTree():
                self.worker.navigate(intent, settle)
            case EditorChanged() | Touch():
                self._note_person(intent)
                settle(None)
            case _:
                assert_never(intent)

    def _note_person(self, intent: EditorChanged | Touch) -> None:
        if isinstance(intent, EditorChanged):
            self.idle.set_editor_empty(empty=intent.empty)
        else:
            self.idle.touch()

    async def _measure(self, settle: Settle) -> None:
        try:
            await self.worker.prepare()
            settle(None, await context_figures(self.services))
        finally:
            settle(STOPPED_UNEXPECTEDLY)  # counts only when the line above did not
