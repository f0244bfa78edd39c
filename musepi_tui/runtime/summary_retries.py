"""Sending the requests for a summary again: the wait, and what is told of it (compaction 6.7)."""

from collections.abc import Callable
from types import TracebackType

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import MusepiError
from musepi_tui.runtime.events import Event, SummaryRetryEnded, SummaryRetryScheduled, SummaryRetryStarted


class SummaryRetries:
    """Counts and tells the tries. ``attempt`` is how often the current candidate was asked again.

    For a ``with`` block: a try that the block breaks off, by a cancel for one, gets its end too. ``most`` is
    the number of tries that are told to be possible.
    """

    def __init__(self, clock: Clock, emit: Callable[[Event], None], most: int) -> None:
        self.attempt = 0
        self._clock = clock
        self._emit = emit
        self._most = most
        self._is_open = False

    def __enter__(self) -> "SummaryRetries":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(str(error) if isinstance(error, MusepiError) else "Retry cancelled")

    async def wait(self, delay_s: float, error: MusepiError) -> None:
        """Waits for the next try after a failure."""
        self.attempt += 1
        self._is_open = True
        self._emit(SummaryRetryScheduled(self.attempt, self._most, delay_s, str(error)))
        await self._clock.sleep(delay_s)
        self._emit(SummaryRetryStarted(self.attempt))

    def ended(self, error: MusepiError | None) -> None:
        """The requests were answered, or failed with ``error``."""
        self._close(None if error is None else str(error))

    def start_over(self) -> None:
        """Another candidate is asked from now on."""
        self.attempt = 0

    def _close(self, error: str | None) -> None:
        if self._is_open:
            self._is_open = False
            self._emit(SummaryRetryEnded(error is None, self.attempt, error))
