"""Which rows are on the screen: from an anchor (slot and row in it) on, or the end.

Heights are estimates until a slot is drawn. They only place the mark that shows how far one has read; what
is read cannot jump when one of them is corrected.
"""

from typing import NamedTuple

from musepi_tui.tui.transcript.blocks import Item
from musepi_tui.tui.transcript.drawings import Drawings
from musepi_tui.tui.transcript.heights import HeightTable
from musepi_tui.tui.transcript.lines import Row
from musepi_tui.tui.transcript.model import TranscriptModel
from musepi_tui.tui.transcript.slots import Changes


class Placed(NamedTuple):
    """A row on the screen: the item it belongs to, and its place in the item and in the slot."""

    row: Row
    item: Item
    item_row: int
    slot: int
    slot_row: int


class Viewport:
    """The visible part of a transcript."""

    def __init__(self, model: TranscriptModel, drawings: Drawings) -> None:
        self.following = True
        """Whether the end is shown, whatever comes."""
        self.rows: list[Placed] = []
        """What is on the screen, from its top; fewer than ``height`` when the transcript is short."""
        self.width = 0
        self.height = 0
        self.heights = HeightTable()
        self._model = model
        self._drawings = drawings
        self._anchor = (0, 0)
        self._anchor_id: str | None = None
        self._new_from: int | None = None
        self._grew = False

    @property
    def top_row(self) -> int:
        """The virtual row at the top of the screen; an estimate when slots above were never drawn."""
        if not self.rows:
            return 0
        first = self.rows[0]
        return self.heights.start_of(first.slot) + first.slot_row

    @property
    def new_items(self) -> int:
        """Slots that came while the reader was away from the end."""
        if self.following or self._new_from is None:
            return 0
        count = sum(1 for index in range(self._new_from, len(self.heights)) if self.heights[index])
        return max(count, int(self._grew))

    def take(self, changes: Changes) -> None:
        """Follows the model."""
        if changes.reset or not self.heights.total:
            self._rebuild()
            return
        for index in changes.inserted:
            self.heights.insert(index, self._model.estimates(self.width, index, index + 1)[0])
            slot, row = self._anchor
            if index <= slot and not self.following:
                self._anchor = (slot + 1, row)
            if self._new_from is not None and index < self._new_from:
                self._new_from += 1
        self._grew = self._grew or bool(changes.dirty)
        if changes.inserted or changes.dirty:
            self._remember()

    def layout(self, width: int, height: int) -> list[Placed]:
        """Draws what is visible at this size; exact heights for all of it."""
        if width != self.width:
            first = not self.width
            self.width = width
            if first:
                self._rebuild()
        self.height = height
        if not self.following and not self._fill_down():
            self._fill_up()
        if self.following:
            self._fill_up()
        return self.rows

    def scroll(self, rows: int) -> None:
        """Moves by that many rows, exactly; negative is up. Arriving at the end follows it again."""
        if not self.rows:
            return
        self._leave_end()
        if rows < 0:
            self._move_up(-rows)
        else:
            self._move_down(rows)
        self._settle()

    def to_top(self) -> None:
        """Shows the first row; nothing in between is drawn."""
        self._leave_end()
        self._anchor = (0, 0)
        self._settle()

    def to_end(self) -> None:
        """Shows the end and follows it."""
        self.following = True
        self._new_from = None

    def slot_height(self, index: int) -> int:
        """The exact number of rows of a slot; draws it."""
        count = sum(len(self._drawings.rows_of(item)) for item in self._model.items_at(index))
        self.heights.set(index, count)
        return count

    def slot_rows(self, index: int, start: int = 0, stop: int | None = None) -> list[Placed]:
        """Rows of a slot, by their place in it."""
        last = self.slot_height(index) if stop is None else stop
        placed: list[Placed] = []
        before = 0
        for item in self._model.items_at(index):
            rows = self._drawings.rows_of(item)
            for number in range(max(0, start - before), min(len(rows), last - before)):
                placed.append(Placed(rows[number], item, number, index, before + number))
            before += len(rows)
        return placed

    def hold(self) -> None:
        """Stops following the end; what is on the screen stays there."""
        self._leave_end()
        self._remember()

    def settle(self) -> None:
        """Draws from the row at the top on; follows the end again when that is on the screen."""
        self._settle()

    def _leave_end(self) -> None:
        if self.following and self.rows:
            first = self.rows[0]
            self._anchor = (first.slot, first.slot_row)
            self._new_from = len(self.heights)
            self._grew = False
        self.following = False

    def _settle(self) -> None:
        """After a move: draws, and follows the end when it is on the screen."""
        filled = self._fill_down()
        last = self.rows[-1] if self.rows else None
        if not filled or last is None or self._is_last(last):
            self.to_end()
            self._fill_up()
        self._remember()

    def _is_last(self, last: Placed) -> bool:
        if last.slot_row + 1 < self.heights[last.slot]:
            return False
        return not any(self.slot_height(index) for index in range(last.slot + 1, len(self.heights)))

    def _fill_down(self) -> bool:
        """Rows from the anchor on; false when the transcript ends before the screen does."""
        slot, row = self._anchor
        rows: list[Placed] = []
        while slot < len(self.heights) and len(rows) < self.height:
            count = self.slot_height(slot)
            if row >= count > 0 and not rows:
                row = count - 1
            rows += self.slot_rows(slot, row, min(count, row + self.height))
            slot, row = slot + 1, 0
        self.rows = rows[: self.height]
        return len(rows) >= self.height

    def _fill_up(self) -> None:
        """The last screenful."""
        parts: list[list[Placed]] = []
        count = 0
        slot = len(self.heights) - 1
        while slot >= 0 and count < self.height:
            rows_here = self.slot_height(slot)
            parts.append(self.slot_rows(slot, max(0, rows_here - self.height), rows_here))
            count += rows_here
            slot -= 1
        rows = [row for part in reversed(parts) for row in part]
        self.rows = rows[len(rows) - self.height :] if len(rows) > self.height else rows

    def _move_up(self, rows: int) -> None:
        slot, row = self._anchor
        row -= rows
        while row < 0 and slot > 0:
            slot -= 1
            row += self.slot_height(slot)
        self._anchor = (slot, max(0, row))

    def _move_down(self, rows: int) -> None:
        slot, row = self._anchor
        row += rows
        while slot < len(self.heights) - 1 and row >= (count := self.slot_height(slot)):
            row -= count
            slot += 1
        self._anchor = (slot, row)

    def _rebuild(self) -> None:
        """All heights estimated anew; the reader stays where he was if that slot is still there."""
        model = self._model
        self.heights = HeightTable(model.estimates(self.width))
        if self.following:
            return
        place = model.index_of(self._anchor_id) if self._anchor_id is not None else None
        if place is None:
            self.to_end()
        else:
            is_same = model.slot_id(place) == self._anchor_id  # else it was folded: the fold is shown whole
            self._anchor = (place, self._anchor[1] if is_same else 0)
            self._new_from = len(self.heights)

    def _remember(self) -> None:
        if not self.following and self._anchor[0] < len(self._model):
            self._anchor_id = self._model.slot_id(self._anchor[0])
