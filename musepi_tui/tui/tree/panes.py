"""The screen of the tree without its keys: what stands where, drawing, reading behind the frame (tui 5)."""

import asyncio
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import ModalScreen

from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError
from musepi_tui.base.text import group_digits
from musepi_tui.session.entries import Entry
from musepi_tui.session.tree import SessionTree
from musepi_tui.tui.keys import typed_keys
from musepi_tui.tui.tree.frame import FOOT_ROWS, HEAD_ROWS, TAGS, TreeFoot, TreeHead
from musepi_tui.tui.tree.model import FilterMode, TreeModel
from musepi_tui.tui.tree.preview import PreviewPane
from musepi_tui.tui.tree.view import TreeView, find_rows

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

WORK_MS = 5.0
"""How long one slice of reading or searching takes; a key waits for one slice at most."""
PAUSE_S = 0.002

BESIDE_COLUMNS = 120
BELOW_ROWS = 30
"""From here on the selected entry is shown in full beside the tree, or below it (TUI-5.10)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The entry that was chosen, and whether a summary of the branch is wanted without a question."""

    entry_id: str
    summarize: bool = False


class TreePanes(ModalScreen[Choice | None], inherit_bindings=False):
    """The tree, a search line, and where there is room the selected entry in full.

    Reading and searching what is not on the screen goes on in slices while it is open.
    """

    AUTO_FOCUS = "TreeView"
    DEFAULT_CSS = """
    TreePanes { align: left bottom; background: transparent; }
    TreePanes > .tree--body { height: auto; width: 1fr; layout: vertical; background: ansi_default; }
    TreePanes.-beside > .tree--body { layout: horizontal; }
    """

    def __init__(self, app: "Shell", model: TreeModel, said: str = "") -> None:
        super().__init__()
        palette = app.looks.palette
        self.model = model
        self.head = TreeHead(palette, model)
        self.view = TreeView(model, palette, app.clock.now_ms)
        self.preview = PreviewPane(palette)
        self.foot = TreeFoot(palette, app.keymap, said)
        self._shell = app
        self._typed_keys = typed_keys(app.keymap, "tree")
        self._is_working = False
        self._is_painted = asyncio.Event()
        self._drawn_revision = -1
        self._preview_waits = False
        self._previewed: str | None = None

    def compose(self) -> ComposeResult:
        """Top to bottom."""
        yield self.head
        with Container(classes="tree--body"):
            yield self.view
            yield self.preview
        yield self.foot

    def on_mount(self) -> None:
        """Draws what is known; the rest is read behind the first frame."""
        self._show()
        self.call_after_refresh(self._start_work)

    def on_resize(self, event: events.Resize) -> None:
        """The tree takes half the height; the preview stands beside or below it, or nowhere."""
        columns, screen_rows = event.size
        rows = find_rows(screen_rows)
        below_rows = screen_rows - rows - HEAD_ROWS - FOOT_ROWS
        is_beside = columns >= BESIDE_COLUMNS
        is_shown = is_beside or screen_rows >= BELOW_ROWS
        self.set_class(is_beside, "-beside")
        self.view.styles.height = rows
        self.view.styles.width = "3fr" if is_beside else "1fr"
        self.preview.is_beside = is_beside
        self.preview.display = is_shown
        self.preview.styles.height = rows if is_beside else max(2, below_rows)
        self.preview.styles.width = "2fr" if is_beside else "1fr"
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """While a label is edited, its keys are the only ones."""
        return self.view.editor is None

    def close(self) -> None:
        """Takes the tree away, nothing chosen."""
        self.dismiss(None)

    def follow(self, tree: SessionTree) -> None:
        """Shows a tree that has grown, or another leaf."""
        self.model.follow(tree)
        self._changed()

    # -- drawing and working

    def _changed(self) -> None:
        """Rows may be others: draws them, and goes on with what is pending."""
        self._show()
        self._start_work()

    def _show(self) -> None:
        self._drawn_revision = self.model.revision
        self.view.empty_text = self._empty_text()
        self.view.refresh()
        self.view.place_editor()
        self.foot.place = self._place()
        self.head.refresh()
        self.foot.refresh()
        self._is_painted.clear()
        self.call_after_refresh(self._is_painted.set)
        self._preview_later()

    def _is_outdated(self) -> bool:
        """Whether something else would be drawn by now."""
        if self._drawn_revision != self.model.revision:
            return True
        return not len(self.model) and self._empty_text() != self.view.empty_text

    def _place(self) -> str:
        model = self.model
        number = model.index + 1 if len(model) else 0
        tags = [TAGS[model.mode]] if model.mode in TAGS else []
        tags += ["[+label time]"] if self.view.shows_times else []
        return " ".join([f"({group_digits(number)}/{group_digits(len(model))})", *tags])

    def _empty_text(self) -> str:
        if self.model.query:
            return "searching" if self.model.is_searching else "no match"
        if self.model.mode is FilterMode.LABELED_ONLY:
            return "no labels yet"
        return "nothing to show with this filter"

    def _preview_later(self) -> None:
        """The text of the entry follows the rows: the key that moved the mark does not wait for it."""
        if self.preview.display and not self._preview_waits:
            self._preview_waits = True
            self.call_after_refresh(self._show_preview)

    def _show_preview(self) -> None:
        self._preview_waits = False
        if self.model.selected != self._previewed:
            self._previewed = self.model.selected
            self.preview.show(self._selected_entry())

    def _selected_entry(self) -> Entry | None:
        selected = self.model.selected
        try:
            return None if selected is None else self._shell.runtime.read_entry(selected)
        except SessionError:
            return None

    def _start_work(self) -> None:
        if not self._is_working:
            self._is_working = True
            self.run_worker(self._work(), name="tree", exit_on_error=False)

    async def _work(self) -> None:
        """Goes on with what is pending, and draws when it changed what is seen."""
        try:
            while True:
                # What a key has changed is on the screen before anything else is done.
                await self._is_painted.wait()
                is_pending = self.model.work(WORK_MS)
                if self._is_outdated():
                    self._show()
                if not is_pending:
                    break
                await asyncio.sleep(PAUSE_S)
        finally:
            self._is_working = False
