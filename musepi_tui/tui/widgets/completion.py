"""The list above the editor: commands and their arguments."""

from collections.abc import Iterable, Sequence

from rich.style import Style

from musepi_tui.base.cells import cell_width
from musepi_tui.commands.registry import Completion
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row, cut_row

MAX_ROWS = 7
"""Rows shown at once (``autocompleteMaxVisible`` of other programs allows 3 to 20)."""


class CompletionList(DrawnWidget):
    """Rows to choose from; hidden when there is none. It takes no keys: the editor moves in it."""

    DEFAULT_CSS = "CompletionList { display: none; &.-open { display: block; } }"
    items: Sequence[Completion] = ()
    index = 0
    moved = False

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self.items)

    @property
    def chosen(self) -> Completion | None:
        """The marked row."""
        return self.items[self.index] if self.items else None

    def chosen_for(self, text: str) -> Completion | None:
        """The row that enter takes for the text in the editor.

        While the command word is typed that is the marked row; for an argument only one that was moved to, so
        that free text which happens to look like an argument is sent as it is.
        """
        names = {item.label for item in self.items}
        if self.moved or (" " not in text and text not in names):
            return self.chosen
        return None

    def offer(self, items: Sequence[Completion]) -> None:
        """Shows these rows, the first one marked; none hides the list."""
        same = [item.text for item in items] == [item.text for item in self.items]
        if same:
            return
        grown = len(items[:MAX_ROWS]) != len(self.items[:MAX_ROWS])
        self.items, self.index, self.moved = tuple(items), 0, False
        self.set_class(bool(items), "-open")
        self.refresh(layout=grown)

    def close(self) -> bool:
        """Hides the list; whether it was shown."""
        was_open = self.is_open
        self.offer(())
        return was_open

    def move(self, step: int) -> None:
        """Marks another row; past the ends it goes round."""
        self.index = (self.index + step) % len(self.items)
        self.moved = True
        self.refresh()

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The visible rows, the marked one among them."""
        top = max(0, min(self.index - MAX_ROWS + 1, len(self.items) - MAX_ROWS))
        shown = self.items[top : top + MAX_ROWS]
        label_cells = max((cell_width(item.label) for item in shown), default=0)
        accent, muted = self.palette.style("accent"), self.palette.style("muted")
        for number, item in enumerate(shown, start=top):
            marked = number == self.index
            mark = self.palette.symbol("cursor") if marked else " "
            label = f"{item.label}{' ' * (label_cells - cell_width(item.label))}"
            row = [(f"{mark} ", accent), (label, accent if marked else Style()), (f"  {item.detail}", muted)]
            yield cut_row(row, width_cells, self.palette.symbol("ellipsis"))
