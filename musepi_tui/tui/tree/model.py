"""The tree of a session as rows: filter, search, folds, selection (tui 5).

Nothing here draws and nothing needs a terminal. Bodies are read in slices: ``work`` goes on with what is
pending, so that a session of 50,000 entries opens at once.
"""

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.base.safe_text import Safe, display_safe
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.tree.facts import ReadEntry, ReadStart
from musepi_tui.tui.tree.filters import TURNS, FilterMode
from musepi_tui.tui.tree.forest import NONE
from musepi_tui.tui.tree.labels import Label
from musepi_tui.tui.tree.layout import Segment
from musepi_tui.tui.tree.rows import Rows
from musepi_tui.tui.tree.text import describe

__all__ = ["FilterMode", "Label", "ReadEntry", "ReadStart", "TreeModel", "TreeRow"]

_MODES = tuple(FilterMode)

_FIRST_HITS_S = 0.005
"""How long a search looks for matches before it shows the first ones: a key is drawn in 50 ms (tui 5.9)."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    """What is drawn of one row besides its text. Every character of ``prefix`` takes one cell."""

    entry_id: str
    prefix: str
    on_path: bool
    is_leaf: bool
    label: Label | None
    is_folded: bool


class TreeModel:
    """The rows of one tree and the selected one of them.

    ``read_start`` gives the first bytes of a line (``Bodies.line_start``); with it large sessions are read
    ten times as fast. Where a filter or a search hides the selected entry, its nearest visible ancestor is
    selected, else the last row; it comes back with the entry unless another row was chosen meanwhile.
    """

    def __init__(
        self,
        tree: SessionTree,
        read: ReadEntry,
        *,
        mode: FilterMode = FilterMode.DEFAULT,
        active_first: bool = True,
        read_start: ReadStart | None = None,
    ) -> None:
        self._read = read
        self._rows = Rows(read, read_start, active_first=active_first)
        self._rows.set_mode(mode)
        self._row = 0
        self._rows.take(tree)
        self._choose(self._rows.leaf)

    def __len__(self) -> int:
        return len(self._rows.layout.rows)

    @property
    def mode(self) -> FilterMode:
        """The filter."""
        return self._rows.mode

    @property
    def query(self) -> str:
        """What is searched for."""
        return self._rows.query

    @property
    def index(self) -> int:
        """The selected row; 0 when there is none. Another one may be put here; it is kept among the rows."""
        return self._row

    @index.setter
    def index(self, row: int) -> None:
        self._row = max(0, min(row, len(self) - 1))
        if len(self):
            self._choose(self._rows.layout.rows[self._row])

    @property
    def selected(self) -> str | None:
        """The selected entry."""
        return self._rows.id_at(self._rows.layout.rows[self._row]) if len(self) else None

    @property
    def is_searching(self) -> bool:
        """Whether ``work`` may bring further hits."""
        return self._rows.is_searching

    @property
    def revision(self) -> int:
        """A number that grows whenever rows come, go or change: with the same one nothing has to be drawn."""
        return self._rows.revision

    def row(self, index: int) -> TreeRow:
        """What is drawn of a row."""
        layout = self._rows.layout
        position = layout.rows[index]
        segment = layout.segments[layout.segment_at(index)]
        return TreeRow(
            self._rows.id_at(position),
            layout.prefix(index),
            on_path=self._rows.on_path[position] == 1,
            is_leaf=position == self._rows.leaf,
            label=self._rows.labels_at.get(position),
            is_folded=segment.is_folded and segment.start == index,
        )

    def describe(self, entry_id: str) -> Safe:
        """The text of an entry's row; reads its body and, for a tool result, that of its call."""
        rows = self._rows
        position = rows.find(entry_id)
        try:
            return describe(self._read(entry_id), lambda call_id: rows.facts.call_of(position, call_id))
        except SessionError:
            return display_safe(f"[{rows.tree.head(entry_id).type}]")

    def move(self, step: int) -> None:
        """Select the row ``step`` rows further down, around the ends."""
        if len(self):
            self.index = (self._row + step) % len(self)

    def page(self, rows: int) -> None:
        """Select the row ``rows`` further down, or the first or last one there is."""
        self.index = self._row + rows

    def to_edge(self, direction: int) -> None:
        """Select the first row (-1) or the last (1)."""
        self.index = 0 if direction < 0 else len(self) - 1

    def turn(self, direction: int) -> None:
        """Select the next prompt or answer further down (1) or up (-1), if there is one."""
        row = self._row + direction
        while 0 <= row < len(self):
            if self._rows.facts.kinds[self._rows.layout.rows[row]] in TURNS:
                self.index = row
                return
            row += direction

    def fold(self) -> None:
        """Hide what follows the first row of a branch; from elsewhere go to that row, from there to the one
        of the branch it leaves."""
        segment = self._segment()
        if segment is None:
            return
        if self._row != segment.start:
            self.index = segment.start
        elif segment.is_foldable and not segment.is_folded:
            self._set_folded(folded=True)
        elif segment.parent != NONE:
            self.index = self._rows.layout.segments[segment.parent].start

    def unfold(self) -> None:
        """Show what is hidden behind a row; elsewhere go to the next branches, or to the end of this one."""
        segment = self._segment()
        if segment is None:
            return
        if segment.is_folded and self._row == segment.start:
            self._set_folded(folded=False)
        elif segment.children:
            self.index = self._rows.layout.segments[segment.first_child].start
        else:
            self.index = segment.stop - 1

    def set_mode(self, mode: FilterMode) -> None:
        """Change the filter."""
        self._rows.set_mode(mode)
        self._reselect()

    def cycle_mode(self, direction: int) -> None:
        """Take the next filter (1) or the one before (-1)."""
        self.set_mode(_MODES[(_MODES.index(self.mode) + direction) % len(_MODES)])

    def set_query(self, text: str) -> None:
        """Search for a text; an empty one ends the search. In a large tree ``work`` brings the other hits."""
        self._rows.set_query(text, _FIRST_HITS_S)
        self._reselect()

    def select(self, entry_id: str) -> None:
        """Select an entry, or its nearest visible ancestor, or the last row."""
        self._choose(self._rows.find(entry_id))

    def follow(self, tree: SessionTree) -> None:
        """Go on with a tree that has grown or whose leaf has moved. Selection, folds, filter, search stay."""
        chosen = self._rows.center
        chosen_id = None if chosen == NONE else self._rows.id_at(chosen)
        self._rows.take(tree)
        self._choose(NONE if chosen_id is None else self._rows.find(chosen_id))

    def work(self, budget_ms: float) -> bool:
        """Go on reading and searching for about that long. Returns whether more is pending."""
        before = self.revision
        is_pending = self._rows.work(budget_ms / 1000)
        if self.revision != before:
            self._reselect()
        return is_pending

    def settle(self, budget_ms: float) -> bool:
        """Go on for about that long, only with what the filters ask. Returns whether more is pending."""
        is_pending = self._rows.settle(budget_ms / 1000)
        self._reselect()
        return is_pending

    def _segment(self) -> Segment | None:
        layout = self._rows.layout
        return layout.segments[layout.segment_at(self._row)] if len(self) else None

    def _set_folded(self, *, folded: bool) -> None:
        self._rows.set_folded(self._rows.layout.rows[self._row], folded=folded)
        self._reselect()

    def _choose(self, position: int) -> None:
        self._rows.center = position
        self._reselect()
        # What is around it is drawn next. Answers that turn out to be hidden let others come in.
        while self._rows.settle_near(self._row):
            self._reselect()

    def _reselect(self) -> None:
        """Select the row of the chosen entry again, or what is selected in its place."""
        row = self._rows.row_near(self._rows.center)
        self._row = max(0, len(self) - 1) if row is None else row
