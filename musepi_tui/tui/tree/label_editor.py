"""The label of an entry, edited in its row of the tree (tui 5.5)."""

from musepi_tui.tui.keys import Keymap
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.field import Field


class LabelEditor(Field):
    """One line on the row of the entry. Nothing but its place differs from other fields."""

    DEFAULT_CSS = "LabelEditor { height: 1; min-height: 1; }"

    def __init__(self, palette: Palette, keymap: Keymap, label: str) -> None:
        super().__init__(palette, keymap, "label (empty: none)", single_line=True)
        self._label = label

    def on_mount(self) -> None:
        """Begins with the label there is."""
        self.put(self._label)
        self.focus()

    def place(self, x: int, y: int, width_cells: int) -> None:
        """Moves the editor to this cell of the widget it lies on."""
        self.styles.offset = (x, y)
        self.styles.width = max(1, width_cells)
