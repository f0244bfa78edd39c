"""The footer row (tui 1.2)."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from textual.timer import Timer

from musepi_tui.base.clock import Clock
from musepi_tui.tui.footer import Piece, Place, Signs, countdown, footer_pieces
from musepi_tui.tui.status import Status
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row

Countdown: TypeAlias = Literal["off", "last-minute", "always"]

LAST_MINUTE_S = 60.0
TICK_S = 1.0
"""Between two figures of the countdown; nothing else is ever painted at rest (TUI-1.3)."""


class StatusBar(DrawnWidget):
    """Where, what with, and how full. Its timer exists only while an idle pass is due (TUI-6.6)."""

    DEFAULT_CSS = "StatusBar { height: 1; padding: 0 1 0 2; }"

    def __init__(self, palette: Palette, status: Status, clock: Clock, countdown: Countdown) -> None:
        super().__init__(palette)
        self._status = status
        self._clock = clock
        self._countdown: Countdown = countdown
        self._drawn: tuple[Piece, ...] = ()
        self._timer: Timer | None = None
        self._timed_for: float | None = None
        self.place = Place("")

    def refresh_row(self) -> None:
        """Draws again when the row would be another one."""
        if self._status.idle_until != self._timed_for:
            self._timed_for = self._status.idle_until
            self._wait()
        if self._pieces(self.size.width) != self._drawn:
            self.refresh()

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The row."""
        self._drawn = self._pieces(width_cells)
        yield [(piece.text, self.palette.style(piece.token)) for piece in self._drawn]

    def _pieces(self, width_cells: int) -> tuple[Piece, ...]:
        symbol = self.palette.symbol
        signs = Signs(
            dot=symbol("dot"),
            full=symbol("gauge_full"),
            rest=symbol("gauge_rest"),
            mark=symbol("gauge_mark"),
            up=symbol("up"),
            down=symbol("down"),
            bullet=symbol("bullet"),
            ellipsis=symbol("ellipsis"),
        )
        left_s = self._left_s()
        idle = countdown(left_s) if left_s is not None and left_s <= self._shown_from_s else ""
        return footer_pieces(self._status, self.place, width_cells, signs, idle)

    @property
    def _shown_from_s(self) -> float:
        """From how many seconds before an idle pass on the countdown is shown."""
        shown = {"off": -1.0, "last-minute": LAST_MINUTE_S, "always": float("inf")}
        return shown[self._countdown]

    def _left_s(self) -> float | None:
        until = self._status.idle_until
        return None if until is None else max(0.0, until - self._clock.monotonic())

    def _wait(self) -> None:
        """Wakes up when there is another figure to show, and only then."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        left_s = self._left_s()
        if left_s is not None and self._countdown != "off":
            wait_s = left_s - self._shown_from_s
            self._timer = self.set_timer(wait_s if wait_s > 0 else TICK_S, self._tick)

    def _tick(self) -> None:
        self._wait()
        self.refresh_row()
