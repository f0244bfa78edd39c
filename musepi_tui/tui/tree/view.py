"""The rows of the tree: a window of them around the selected one (TUI-5.8, 5.9)."""

from collections.abc import Callable

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from musepi_tui.tui.themes import Palette
from musepi_tui.tui.tree.drawing import CURSOR_CELLS, Look, draw_row, find_pan, text_start
from musepi_tui.tui.tree.label_editor import LabelEditor
from musepi_tui.tui.tree.layout import FOLDABLE, FOLDED
from musepi_tui.tui.tree.model import TreeModel
from musepi_tui.tui.widgets.drawing import Row, cut_row, strip_of

MAX_TEXTS = 2_000
"""Texts of rows that are remembered; a screen shows far fewer, and each takes about half a kilobyte."""

EDITOR_CELLS = 24
"""Cells of the editor of a label, as far as there is room; longer labels move in it."""


def find_rows(screen_rows: int) -> int:
    """Rows of the tree a screen of that height shows (TUI-5.9)."""
    return max(1, min(max(5, screen_rows // 2), screen_rows - 8))


class TreeView(Widget):
    """Draws the model. Bodies are read when a row is drawn, and only then."""

    DEFAULT_CSS = "TreeView { height: 1; width: 1fr; background: ansi_default; }"
    ALLOW_SELECT = False
    can_focus = True

    class Clicked(Message):
        """A row was clicked and is selected now; ``again``: for the second time, shortly after the first."""

        def __init__(self, *, again: bool) -> None:
            super().__init__()
            self.again = again

    def __init__(self, model: TreeModel, palette: Palette, now_ms: Callable[[], int]) -> None:
        super().__init__()
        self.model = model
        self.palette = palette
        self.empty_text = ""
        self.shows_times = False
        self.editor: LabelEditor | None = None
        self._now_ms = now_ms
        self._clicked: tuple[int, int, int] | None = None
        self._top_at_click = 0
        self._texts: dict[str, str] = {}

    @property
    def top(self) -> int:
        """The first row that is seen: the selected one stands in the middle, but for one that was clicked. It
        stays under the pointer, or the second click would meet another."""
        if self._clicked == self._sight():
            return self._top_at_click
        room = max(1, self.size.height)
        return max(0, min(self.model.index - room // 2, len(self.model) - room))

    def _sight(self) -> tuple[int, int, int]:
        """What the first row depends on."""
        return self.model.index, self.model.revision, self.size.height

    def edit(self, editor: LabelEditor) -> None:
        """Puts an editor on the selected row, or on the first one when there is none."""
        self.editor = editor
        self.mount(editor)
        self.place_editor()
        self.refresh()

    def end_edit(self) -> None:
        """Takes the editor away and the keys back."""
        if self.editor is not None:
            self.editor.remove()
            self.editor = None
            self.focus()
            self.refresh()

    def place_editor(self) -> None:
        """Keeps the editor on its row; called when rows or the size changed."""
        if self.editor is None or not len(self.model):
            return
        row = self.model.row(self.model.index)
        x = CURSOR_CELLS + text_start(row, self.palette) - self._pan()
        self.editor.place(x, self.model.index - self.top, min(EDITOR_CELLS, self.size.width - x))

    def on_resize(self) -> None:
        """The row of the editor is elsewhere."""
        self.place_editor()

    def on_focus(self) -> None:
        """While a label is edited, a click beside it does not take the keys from its editor."""
        if self.editor is not None:
            self.editor.focus()

    def render_line(self, y: int) -> Strip:
        """The row at ``y``."""
        width, index = self.size.width, self.top + y
        if index < len(self.model):
            return strip_of(self._row(index, width), width)
        if y == 0 and not len(self.model):
            text: Row = [(f"  {self.empty_text}", self.palette.style("muted"))]
            return strip_of(cut_row(text, width, self.palette.symbol("ellipsis")), width)
        return strip_of((), width)

    def _row(self, index: int, width_cells: int) -> Row:
        row = self.model.row(index)
        now_ms = self._now_ms() if self.shows_times else None
        marked = index == self.model.index
        gap_cells = EDITOR_CELLS + 1 if marked and self.editor is not None else 0
        look = Look(self.palette, width_cells, self._pan(), now_ms, gap_cells)
        return draw_row(row, self._text(row.entry_id), look, marked=marked)

    def _pan(self) -> int:
        if not len(self.model):
            return 0
        start = text_start(self.model.row(self.model.index), self.palette)
        return find_pan(start, self.size.width - CURSOR_CELLS)

    def _text(self, entry_id: str) -> str:
        text = self._texts.get(entry_id)
        if text is None:
            if len(self._texts) >= MAX_TEXTS:
                self._texts.clear()
            text = self._texts[entry_id] = self.model.describe(entry_id)
        return text

    # -- the mouse

    def on_click(self, event: events.Click) -> None:
        """Selects a row; a click on its fold sign folds it, a second one on the row goes there."""
        event.stop()
        top = self.top
        index = top + event.y
        if index >= len(self.model) or self.editor is not None:
            return
        was_selected = index == self.model.index
        row = self.model.row(index)
        column = event.x - CURSOR_CELLS + self._pan()
        self.model.index = index
        self._clicked, self._top_at_click = self._sight(), top
        if 0 <= column < len(row.prefix) and row.prefix[column] in (FOLDED, FOLDABLE):
            if row.is_folded:
                self.model.unfold()
            else:
                self.model.fold()
            was_selected = False
        self.post_message(self.Clicked(again=was_selected and event.chain > 1))
