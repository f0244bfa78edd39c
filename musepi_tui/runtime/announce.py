"""The start and the end of a pass on the bus: exactly one end for each start (compaction 12.1)."""

from dataclasses import replace

from musepi_tui.maintenance.steps import Pass, Refuse
from musepi_tui.maintenance.triggers import Stop, Strategy, Then
from musepi_tui.runtime.events import MaintenanceEnded, MaintenanceResult, MaintenanceStarted, Phase
from musepi_tui.runtime.services import Services


class Announcement:
    """The pass of one course of maintenance. From ``start`` to ``close`` phase and events say that it runs.

    ``result`` is the newest committed pass; ``entry_id`` the compaction it stored, None for one that stored
    edits only.
    """

    def __init__(self, services: Services) -> None:
        self.entry_id: str | None = None
        self.result: MaintenanceResult | None = None
        self._services = services
        self._end: MaintenanceEnded | None = None

    @property
    def is_open(self) -> bool:
        """Whether a start was told and no end yet."""
        return self._end is not None

    def start(self, step: Pass) -> None:
        """Tells that the pass begins. Until something better is known it counts as aborted.

        A second pass of the same run, which does what the first could not, goes on under the start that was
        told; the end names what was done at last (compaction 2.9).
        """
        reason, action = step.reason.value, step.strategy.value
        self._services.phase(Phase.MAINTAINING)
        if self._end is not None:
            self._end = replace(self._end, action=action)
            self._note(aborted=True)
            return
        self._end = MaintenanceEnded(
            reason, action, aborted=True, will_retry=step.will_retry, mid_turn=step.mid_turn
        )
        self._services.bus.emit(MaintenanceStarted(reason, action, step.mid_turn))

    def refuse(self, step: Refuse) -> None:
        """A start and at once its end."""
        reason, action = step.reason.value, Strategy.SUMMARY.value
        self._services.bus.emit(MaintenanceStarted(reason, action))
        self._services.bus.emit(MaintenanceEnded(reason, action, aborted=False, error=step.error))

    def done(self, result: MaintenanceResult) -> None:
        """The pass was committed; its end is told once the guards have looked at it."""
        self.result = result
        self.entry_id = result.entry_id or None
        self._note(result=result)

    def handed_off(self, result: MaintenanceResult, services: Services) -> None:
        """The work goes on in the session that ``services`` work for, whose figures count from now on."""
        self._services = services
        self.result = result
        self._note(result=result)

    def skipped(self) -> None:
        """There was nothing to do."""
        self._note(skipped=True)

    def failed(self, text: str) -> None:
        """The pass failed."""
        self._note(error=text)

    def close(self, stop: Stop | None) -> None:
        """Tells the end, if a start was told. ``stop`` is how the course ended, None when it broke off."""
        if self._end is None:
            return
        end, self._end = self._end, None
        end = replace(end, will_retry=stop is not None and stop.then is Then.RETRY)
        # The end finds the gauge measured anew, so that no screen shows the old figure; scripts are promised
        # the figure behind every end (contract 4).
        self._services.meter.refresh(only_changes=True)
        self._services.bus.emit(end)
        self._services.meter.refresh()

    def _note(
        self,
        *,
        result: MaintenanceResult | None = None,
        error: str | None = None,
        skipped: bool = False,
        aborted: bool = False,
    ) -> None:
        if self._end is not None:
            self._end = replace(self._end, result=result, error=error, skipped=skipped, aborted=aborted)
