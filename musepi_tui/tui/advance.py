"""Says in time that the next automatic compaction is near (TUI-6.13). Pure."""

from musepi_tui.runtime.events import Meter

SHARE = 0.9
"""Share of the compaction threshold from which it is said: late enough to be rare, early enough to act."""

NOTICE = "context at 90% of the auto-compact point · /compact"


class Advance:
    """Looks at the gauge and speaks once for each crossing."""

    def __init__(self) -> None:
        self._was_near = False

    def start(self, meter: Meter) -> None:
        """A session begins with these figures: what is near already was not crossed now."""
        self._was_near = _is_near(meter)

    def take(self, meter: Meter) -> str | None:
        """The line for new figures, when they crossed the share and the pass itself is not due yet."""
        was_near, self._was_near = self._was_near, _is_near(meter)
        is_due = (meter.context_tokens or 0) > (meter.threshold or 0)
        return NOTICE if self._was_near and not was_near and not is_due else None


def _is_near(meter: Meter) -> bool:
    if not meter.auto_compaction or not meter.threshold or meter.context_tokens is None:
        return False
    return meter.context_tokens >= SHARE * meter.threshold
