"""Shakes as passes: what they free is told between one start and one end (compaction 5.6)."""

from typing import Literal

from musepi_tui.base.errors import MusepiError
from musepi_tui.maintenance.facts import Outcome
from musepi_tui.maintenance.steps import Pass
from musepi_tui.maintenance.triggers import Reason, Strategy
from musepi_tui.runtime.announce import Announcement
from musepi_tui.runtime.events import MaintenanceResult
from musepi_tui.runtime.pruner import Pruner, Seal, ShakeResult
from musepi_tui.runtime.relief import Relief
from musepi_tui.runtime.services import Services


class Shaker:
    """Frees room with the pruner and notes what that relieves the billed figure of."""

    def __init__(self, services: Services, pruner: Pruner, relief: Relief) -> None:
        self._services = services
        self._pruner = pruner
        self._relief = relief

    async def by_hand(self, mode: Literal["elide", "images"], seal: Seal) -> ShakeResult:
        """Frees room for a person, as a pass of its own. Raises ``MusepiError`` when it failed."""
        announcement = Announcement(self._services)
        announcement.start(Pass(Strategy.SHAKE, Reason.MANUAL))
        begun = self._begin()
        free = self._pruner.shake_all if mode == "elide" else self._pruner.drop_images
        try:
            result = await free(seal)
            self._relief.note(result.tokens_freed)
            self._note(announcement, begun, changed=bool(result.regions or result.images))
        except MusepiError as error:
            announcement.failed(str(error))
            raise
        finally:
            announcement.close(None)
        return result

    async def within(self, announcement: Announcement, seal: Seal, *, by_hand: bool) -> Outcome:
        """Frees room within a pass that is announced already."""
        begun = self._begin()
        outcome = await self._pruner.shake(seal, by_hand=by_hand)
        self._relief.note(outcome.tokens_freed)
        self._note(announcement, begun, changed=outcome.changed)
        return outcome

    def _begin(self) -> tuple[float, int]:
        """When it begins (monotonic seconds), and the context then (tokens)."""
        return self._services.clock.monotonic(), self._services.meter.measure().decision

    def _note(self, announcement: Announcement, begun: tuple[float, int], *, changed: bool) -> None:
        if not changed:
            announcement.skipped()
            return
        started_s, before = begun
        elapsed_ms = round((self._services.clock.monotonic() - started_s) * 1000)
        after = self._services.meter.measure().stored
        announcement.done(
            MaintenanceResult(None, None, tokens_before=before, tokens_after=after, duration_ms=elapsed_ms)
        )
