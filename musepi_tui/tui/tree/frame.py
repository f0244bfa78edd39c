"""What stands above and below the rows of the tree: title and search; place, filter and keys."""

from collections.abc import Iterable, Mapping

from musepi_tui.base.cells import cell_width
from musepi_tui.base.safe_text import display_safe
from musepi_tui.tui.keys import Keymap
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.tree.model import FilterMode, TreeModel
from musepi_tui.tui.widgets.drawing import DrawnWidget, Row, cut_row, search_row, title_row

HEAD_ROWS = 3
FOOT_ROWS = 3

TAGS: Mapping[FilterMode, str] = {
    FilterMode.NO_TOOLS: "[no-tools]",
    FilterMode.USER_ONLY: "[user]",
    FilterMode.LABELED_ONLY: "[labeled]",
    FilterMode.ALL: "[all]",
}
HINTS = (
    ("tree.accept", "go"),
    ("tree.summarize", "summarize"),
    ("tree.filterNext", "filter"),
    ("tree.label", "label"),
    ("tree.times", "times"),
    ("tree.cancel", "close"),
)
"""The actions that are told, the most useful first; the last one always."""
EDIT_HINTS = (("editor.submit", "keep the label"), ("app.interrupt", "leave it"))


class TreeHead(DrawnWidget):
    """Title and search."""

    DEFAULT_CSS = "TreeHead { height: 3; background: ansi_default; }"

    def __init__(self, palette: Palette, model: TreeModel) -> None:
        super().__init__(palette)
        self.is_editing = False
        self._model = model

    def rows(self, width_cells: int) -> Iterable[Row]:
        """The title in a rule, the search with its cursor, a blank row."""
        yield title_row("Session tree", self.palette, width_cells)
        query = display_safe(self._model.query)
        yield search_row(query, "type to search", self.palette, width_cells, caret=not self.is_editing)
        yield ()


class TreeFoot(DrawnWidget):
    """Where the selection is, which filter is on, and the keys."""

    DEFAULT_CSS = "TreeFoot { height: 3; background: ansi_default; }"

    def __init__(self, palette: Palette, keymap: Keymap, said: str = "") -> None:
        super().__init__(palette)
        self.place = ""
        self.said = said
        self.is_editing = False
        self._keymap = keymap

    def rows(self, width_cells: int) -> Iterable[Row]:
        """A blank row, the place, the keys as far as they fit."""
        palette = self.palette
        said: Row = [(f"  {self.said}", palette.style("warning"))] if self.said else []
        yield ()
        yield cut_row(
            [(f"  {self.place}", palette.style("muted")), *said], width_cells, palette.symbol("ellipsis")
        )
        yield self._keys(width_cells)

    def _keys(self, width_cells: int) -> Row:
        dot, dim = f" {self.palette.symbol('dot')} ", self.palette.style("dim")
        hints = [
            f"{keys[0]} {words}"
            for action_id, words in (EDIT_HINTS if self.is_editing else HINTS)
            if (keys := self._keymap.keys_of(action_id))
        ]
        while len(hints) > 2 and cell_width(f"  {dot.join(hints)}") > width_cells:
            del hints[-2]
        return cut_row([(f"  {dot.join(hints)}", dim)], width_cells, self.palette.symbol("ellipsis"))
