"""The status line: the one thing that runs, with its seconds (tui 1.1, 6.2)."""

from collections.abc import Iterable

from textual.timer import Timer

from musepi_tui.base.cells import cell_width
from musepi_tui.base.clock import Clock
from musepi_tui.tui.status import Activity, Status, describe
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import GROUND, DrawnWidget, Row, cut_row

TICK_S = 0.1
"""Ten frames a second while something runs (at most 12.5, TUI-1.4); without animation one tick a second."""


class StatusLine(DrawnWidget):
    """One row, blank at rest. Its timer exists only while something runs: at rest nothing wakes up."""

    DEFAULT_CSS = "StatusLine { height: 1; }"

    def __init__(self, palette: Palette, status: Status, clock: Clock, *, animated: bool) -> None:
        super().__init__(palette)
        self._status = status
        self._clock = clock
        self._animated = animated
        self._timer: Timer | None = None
        self._frame = 0
        self._shown: Activity | None = None
        self._hint = ""
        self._hint_timer: Timer | None = None

    def hint(self, text: str, for_s: float = 2.0) -> None:
        """Says something for a moment."""
        if self._hint_timer is not None:
            self._hint_timer.stop()
        self._hint = text
        self._hint_timer = self.set_timer(for_s, self._end_hint)
        self.refresh()

    def _end_hint(self) -> None:
        self._hint = ""
        self.refresh()

    def refresh_row(self) -> None:
        """Draws again after the status changed, and starts or stops the ticking."""
        activity = self._status.activity
        if activity == self._shown:
            return  # the ticking draws the seconds
        self._shown = activity
        active = activity is not None
        if active and self._timer is None:
            self._timer = self.set_interval(TICK_S if self._animated else 1.0, self.tick)
        elif not active and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.refresh()

    def tick(self) -> None:
        """The next frame."""
        self._frame += 1
        self.refresh()

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The line of what runs."""
        activity = self._status.activity
        if self._hint:
            yield [("  ", GROUND), (self._hint, self.palette.style("warning"))]
            return
        if activity is None:
            yield ()
            return
        frames = self.palette.spinner
        sign = frames[self._frame % len(frames)] if self._animated else self.palette.symbol("dot")
        text = describe(activity, self._clock.monotonic(), width_cells - cell_width(f"{sign} "))
        accent, muted = self.palette.style("accent"), self.palette.style("muted")
        yield cut_row([(f"{sign} ", accent), (text, muted)], width_cells, self.palette.symbol("ellipsis"))
