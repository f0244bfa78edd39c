"""The messages that wait, above the editor (TUI-3.42)."""

from collections.abc import Iterable, Sequence

from musepi_tui.tui.status import Status
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row, cut_row, one_line

MAX_ROWS = 6


class PendingArea(DrawnWidget):
    """One row per waiting message, then how to get them back."""

    def __init__(self, palette: Palette, status: Status) -> None:
        super().__init__(palette)
        self._status = status
        self._shown: tuple[Sequence[str], Sequence[str]] = ((), ())
        self.key_hint = "alt+up"

    def refresh_rows(self) -> None:
        """Draws again when the queue is another one."""
        queue = (self._status.steering, self._status.follow_up)
        if queue != self._shown:
            self._shown = queue
            self.refresh(layout=True)

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The rows; none when nothing waits."""
        muted, dim = self.palette.style("muted"), self.palette.style("dim")
        steering, follow_up = self._shown
        lines = [*(f"Steering: {text}" for text in steering), *(f"Follow-up: {text}" for text in follow_up)]
        if not lines:
            return
        ellipsis = self.palette.symbol("ellipsis")
        room = MAX_ROWS - 1
        shown = lines if len(lines) <= room else lines[: room - 1]
        for line in shown:
            yield cut_row([(f"  {one_line(line)}", muted)], width_cells, ellipsis)
        if len(shown) < len(lines):
            yield [(f"  {ellipsis} {len(lines) - len(shown)} more", muted)]
        hint = f"  {self.palette.symbol('queued')} {self.key_hint} edits the queue"
        yield cut_row([(hint, dim)], width_cells, ellipsis)
