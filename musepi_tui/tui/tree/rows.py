"""What of a tree is visible: filter, search and folds over the entries, and the reading they need."""

from collections.abc import Sequence
from time import perf_counter

from musepi_tui.session.places import place_of
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.tree.facts import Facts, ReadEntry, ReadStart
from musepi_tui.tui.tree.filters import FilterMode, choose
from musepi_tui.tui.tree.forest import NONE, Forest, plant
from musepi_tui.tui.tree.labels import Label, put_labels
from musepi_tui.tui.tree.layout import Layout, lay_out
from musepi_tui.tui.tree.search import Search, fold
from musepi_tui.tui.tree.sweep import Sweep

NEAR_ROWS = 100
"""Around the selection so many rows are read before they are drawn: more than a screen has."""

LAY_OUT_S = 0.1
"""While entries are read the rows are made anew at most this often, so that most time goes into reading."""


class Rows:
    """The visible rows of one tree. ``revision`` grows whenever they are made anew.

    ``is_searching``: not every entry was looked at yet.
    """

    def __init__(self, read: ReadEntry, read_start: ReadStart | None, *, active_first: bool) -> None:
        self._sources = read, read_start
        self._active_first = active_first
        self._mode = FilterMode.DEFAULT
        self._query = ""
        self._search: Search | None = None
        self._folded: set[int] = set()
        self._is_stale = False
        self._is_pending = True
        self._made_at = 0.0
        self.is_searching = False
        self.layout = Layout()
        self.revision = 0
        self.center = NONE
        self._start_over()

    @property
    def mode(self) -> FilterMode:
        """The filter."""
        return self._mode

    @property
    def query(self) -> str:
        """What is searched for."""
        return self._query

    def take(self, tree: SessionTree) -> None:
        """Show this tree from now on; what is known of the entries of the same session stays known."""
        if not self._has_grown_to(tree):
            ids = [self.id_at(position) for position in self._folded]
            self._start_over()
            found = map(tree.all_heads.columns.find, ids)
            self._folded = {position for position in found if position is not None}
        known, heads = self.size, tree.all_heads
        self.tree, self.columns, self.size = tree, heads.columns, len(tree)
        self.parents = tree.parents
        self.facts.grow(tree, self.parents)
        put_labels(self._labels, heads[known:].of_types(("label",)).ids, self._sources[0])
        self._place(tree)
        self.lay_out()

    def set_mode(self, mode: FilterMode) -> None:
        """Change the filter."""
        self._mode = mode
        self.lay_out()

    def set_query(self, text: str, budget_s: float) -> None:
        """Search for a text; what is found within the budget shows at once, the rest with ``work``."""
        before = self._search or Search("", self.size)
        search = Search.after(before, text)
        self._query = text
        # A quote or a blank alone looks for nothing yet; what is typed behind it does.
        self._search = search if search.matchers else None
        self._begin_looking(NONE if search.is_complete else self._forest.index_of(self.center))
        self.is_searching = self._looking.go_on(self._look, perf_counter() + budget_s)
        self.lay_out()

    def set_folded(self, position: int, *, folded: bool) -> None:
        """Fold the segment that begins with an entry, or unfold it."""
        (self._folded.add if folded else self._folded.discard)(position)
        self.lay_out()

    def settle_near(self, row: int) -> bool:
        """Read what decides about the rows around one; whether they are other ones now."""
        near = self.layout.rows[max(0, row - NEAR_ROWS) : row + NEAR_ROWS]
        if not self.facts.settle_all(near):
            return False
        self.lay_out()
        return True

    def work(self, budget_s: float) -> bool:
        """Go on reading and searching for about that long; whether more is pending.

        The rows are made anew in a call of their own, as that takes as long as a slice.
        """
        is_due = not self._is_pending or perf_counter() - self._made_at > LAY_OUT_S
        if self._is_stale and is_due:
            self.lay_out()
            return self._is_pending
        self._is_pending = self._go_on(perf_counter() + budget_s)
        return self._is_pending or self._is_stale

    def settle(self, budget_s: float) -> bool:
        """Go on reading what kinds depend on for about that long; whether more is pending."""
        is_pending = self._settling.go_on(self._settle, perf_counter() + budget_s)
        if self._is_stale and not is_pending:
            self.lay_out()
        return is_pending

    def lay_out(self) -> None:
        """Make the rows anew."""
        shown: Sequence[int] = choose(self.facts.kinds, self._mode, self.labels_at, self.leaf)
        if self._search is not None:
            shown = self._search.hits_among(shown)
        # A search shows what it finds, also behind folds.
        self.shown = bytes(shown)
        self.layout = lay_out(self._forest, self.shown, self._folded if self._search is None else ())
        self.revision += 1
        self._is_stale = False
        self._made_at = perf_counter()

    def id_at(self, position: int) -> str:
        """The id of an entry."""
        return self.columns.id_at(position)

    def find(self, entry_id: str) -> int:
        """The position of an entry; -1 when it is not in the tree."""
        found = self.columns.find(entry_id)
        return NONE if found is None or found >= self.size else found

    def row_near(self, position: int) -> int | None:
        """The row of an entry or of its nearest ancestor that has one; None when there is none."""
        while position != NONE and not self.shown[position]:
            position = self.parents[position]
        row = None if position == NONE else self.layout.row_of(position)
        if row is not None or position == NONE:
            return row
        # Behind a fold: as deep as the session may be, so not by a search for each.
        rows = set(self.layout.rows)
        while position != NONE and position not in rows:
            position = self.parents[position]
        return None if position == NONE else self.layout.row_of(position)

    def _start_over(self) -> None:
        self.tree = SessionTree.empty()
        self.columns = self.tree.all_heads.columns
        self.size = 0
        self.facts = Facts(*self._sources)
        self._labels: dict[str, Label] = {}
        self.labels_at: dict[int, Label] = {}
        self._folded = set()
        self._forest = Forest((), (), ())
        self.parents: Sequence[int] = ()
        self.leaf = NONE
        self.on_path = bytearray()
        self.shown = b""

    def _has_grown_to(self, tree: SessionTree) -> bool:
        """Whether a tree holds the same entries at the same positions, and maybe more."""
        if len(tree) < self.size:
            return False
        columns, ends = tree.all_heads.columns, {0, self.size - 1} if self.size else set[int]()
        return all(columns.id_at(end) == self.columns.id_at(end) for end in ends)

    def _place(self, tree: SessionTree) -> None:
        """Find out where the leaf is and what leads there."""
        path: Sequence[int] = () if tree.leaf_id is None else tree.path().positions
        self._forest = plant(tree, self.parents, path[-1] if path and self._active_first else NONE)
        self._order = self._forest.order()
        place = place_of(tree)
        self.leaf = NONE if place is None else self.find(place)
        self.on_path = bytearray(self.size)
        for position in path:
            self.on_path[position] = 1
        found = ((self.find(target_id), label) for target_id, label in self._labels.items())
        self.labels_at = {position: label for position, label in found if position != NONE}
        self.center = self.leaf
        self._search = None if self._search is None else Search(self._search.query, self.size)
        self._begin_sweeps()
        self.facts.settle_all(self._near_leaf())

    def _near_leaf(self) -> Sequence[int]:
        at = self._forest.index_of(self.leaf)
        return self._order[max(0, at - NEAR_ROWS) : at + NEAR_ROWS]

    def _begin_sweeps(self) -> None:
        """Go over all entries again, the selected one first: for the search, for the kinds, for the texts."""
        at = self._forest.index_of(self.center)
        self._begin_looking(NONE if self._search is None else at)
        self._settling, self._reading = (Sweep(self._order, at) for _ in range(2))

    def _begin_looking(self, at: int) -> None:
        """Look at all entries from that index on; at none with -1, when that is not needed."""
        self._looking = Sweep((), 0) if at == NONE else Sweep(self._order, at)
        self.is_searching = at != NONE
        self._is_pending = True

    def _go_on(self, deadline: float) -> bool:
        """Search and read until then; whether more is pending."""
        self.is_searching = self._looking.go_on(self._look, deadline)
        if self.is_searching:
            return True
        return self._settling.go_on(self._settle, deadline) or self._reading.go_on(self._read, deadline)

    def _look(self, chunk: Sequence[int]) -> None:
        search, labels = self._search, self.labels_at
        if search is None:
            return
        positions = search.unknown_among(chunk)
        texts = self.facts.texts_of(positions)
        if labels:
            pairs = zip(positions, texts, strict=True)
            texts = [f"{fold(labels[at].text)} {text}" if at in labels else text for at, text in pairs]
        self._is_stale = search.look(positions, texts) or self._is_stale

    def _settle(self, chunk: Sequence[int]) -> None:
        self._is_stale = self.facts.settle_all(chunk) or self._is_stale

    def _read(self, chunk: Sequence[int]) -> None:
        self.facts.texts_of(chunk)
