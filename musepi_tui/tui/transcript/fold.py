"""What of the slots is shown: all of them, or those before the newest compaction as one row (tui 2.5). Pure.

The view counts shown places. A fold is one of them, so that a long folded history costs nothing.
"""

from musepi_tui.base.dataclass import dataclass
from musepi_tui.session.entries import KEEP_NOTHING, CompactionEntry, EntryHead
from musepi_tui.session.rebuild import is_usable
from musepi_tui.tui.transcript.blocks import FoldBlock, Item, ItemKind
from musepi_tui.tui.transcript.builder import ItemBuilder
from musepi_tui.tui.transcript.path import SlotPath
from musepi_tui.tui.transcript.slots import Changes, Slot

FOLD_ID = "local:fold"
FOLD_ROWS = 2
"""Rows of a fold, its blank one included."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The slots from ``start`` to ``stop``, all before ``compaction_id``, drawn as one row. ``messages``:
    how many they hold, None when the session is not loaded wholly."""

    start: int
    stop: int
    compaction_id: str
    messages: int | None

    @property
    def saved(self) -> int:
        """How many places fewer there are."""
        return self.stop - self.start - 1

    def item(self) -> Item:
        """The row."""
        return Item(FOLD_ID, ItemKind.FOLD, FoldBlock(self.messages), self.messages or 0)


def find_fold(path: SlotPath, *, is_whole: bool) -> Fold | None:
    """The fold in front of the first entry that the newest usable compaction kept; None for nothing to fold.

    ``is_whole``: nothing lies before the first slot. Reads compactions, newest first, until one is usable.
    """
    for index in range(len(path) - 1, -1, -1):
        slot = path[index]
        if not isinstance(slot, EntryHead) or slot.type != "compaction":
            continue
        entry = path.entry(slot.id)
        if isinstance(entry, CompactionEntry) and is_usable(entry):
            return _fold_before(path, index, entry, is_whole=is_whole)
    return None


def _fold_before(path: SlotPath, index: int, entry: CompactionEntry, *, is_whole: bool) -> Fold | None:
    first_id = entry.first_kept_entry_id
    kept = index if first_id == KEEP_NOTHING else path.index_of(first_id) if first_id is not None else None
    if kept is None:
        return None
    stop = min(kept, index)
    # The header and what was told before the first entry stay on top.
    start = next((place for place in range(stop) if isinstance(path[place], EntryHead)), stop)
    count = sum(_is_message(path[place]) for place in range(start, stop))
    return None if not count else Fold(start, stop, entry.id, count if is_whole else None)


def _is_message(slot: Slot) -> bool:
    """Whether people would count it: results belong to the call before them."""
    if not isinstance(slot, EntryHead):
        return False
    return slot.type == "custom_message" or (slot.type == "message" and slot.role != "toolResult")


class Shown:
    """The slots of a path as the view counts them, and what happened to them since it last looked."""

    def __init__(self, path: SlotPath, builder: ItemBuilder) -> None:
        self._path = path
        self._builder = builder
        self._collapses = False
        self._fold: Fold | None = None
        self._opened: Fold | None = None
        self._is_whole = True
        self._changes = Changes(reset=True)

    def __len__(self) -> int:
        return len(self._path) - (self._fold.saved if self._fold is not None else 0)

    def slot_id(self, shown: int) -> str:
        """The entry id, or local name, of a place."""
        return FOLD_ID if self._is_fold(shown) else self._path[self._place(shown)].id

    def index_of(self, slot_id: str) -> int | None:
        """The place of a slot; that of the fold for one inside it. An opened fold is its last slot."""
        if slot_id == FOLD_ID:
            known = self._fold or self._opened
            if known is None:
                return None
            return known.start if self._fold is not None else min(known.stop, len(self._path)) - 1
        place = self._path.index_of(slot_id)
        return None if place is None else self._shown(place)

    def items_at(self, shown: int) -> tuple[Item, ...]:
        """The items of a place."""
        if self._fold is not None and shown == self._fold.start:
            return (self._fold.item(),)
        return self._builder.items_at(self._place(shown))

    def estimates(self, width_cells: int, start: int, stop: int | None) -> list[int]:
        """Rows the places from ``start`` to ``stop`` will take, guessed without reading anything."""
        fold, path = self._fold, self._path
        if fold is None:
            return path.estimates(width_cells, start, stop)
        stop = len(self) if stop is None else stop
        rows = path.estimates(width_cells, start, min(stop, fold.start)) if start < fold.start else []
        if start <= fold.start < stop:
            rows = [*rows, FOLD_ROWS]
        if stop <= fold.start + 1:
            return rows
        first = max(start, fold.start + 1)
        return [*rows, *path.estimates(width_cells, self._place(first), self._place(stop))]

    def take_changes(self) -> Changes:
        """What happened since the last call."""
        changes, self._changes = self._changes, Changes()
        return changes

    # -- what happens

    def reset(self, *, is_whole: bool | None = None) -> None:
        """Everything may differ. ``is_whole``: whether the path begins with the session."""
        if is_whole is not None:
            self._is_whole = is_whole
        self._refold()
        self._changes = Changes(reset=True)

    def inserted(self, place: int) -> None:
        """A slot was inserted before slot ``place`` of the path."""
        slot, fold = self._path[place], self._fold
        folds_anew = self._collapses and isinstance(slot, EntryHead) and slot.type == "compaction"
        if folds_anew or (fold is not None and place < fold.stop):
            self.reset()
        else:
            self._changes.insert(self._shown(place))

    def touch(self, place: int) -> None:
        """The items of a slot of the path differ now."""
        self._builder.touch(self._path[place].id)
        self.redraw(place)

    def redraw(self, place: int) -> None:
        """A slot of the path became another one."""
        if self._fold is None or not self._fold.start <= place < self._fold.stop:
            self._changes.dirty.add(self._shown(place))

    def collapse(self, *, on: bool) -> None:
        """Whether what lies before the newest compaction is folded (``display.collapseCompacted``)."""
        self._collapses = on
        self._opened = None
        self.reset()

    @property
    def collapses(self) -> bool:
        """Whether what lies before the newest compaction is folded, unless it was opened."""
        return self._collapses

    def open_fold(self) -> None:
        """Shows what is folded, until the next compaction."""
        if self._fold is not None:
            self._opened = self._fold
            self.reset()

    def _refold(self) -> None:
        fold = find_fold(self._path, is_whole=self._is_whole) if self._collapses else None
        opened_id = self._opened.compaction_id if self._opened is not None else None
        self._fold = fold if fold is not None and fold.compaction_id != opened_id else None

    def _is_fold(self, shown: int) -> bool:
        return self._fold is not None and shown == self._fold.start

    def _place(self, shown: int) -> int:
        fold = self._fold
        return shown if fold is None or shown <= fold.start else shown + fold.saved

    def _shown(self, place: int) -> int:
        fold = self._fold
        if fold is None or place < fold.start:
            return place
        return max(fold.start, place - fold.saved)
