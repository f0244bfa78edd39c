"""The tree of the session over the screen: choosing where to go on (tui 5)."""

from textual import events

from musepi_tui.base.safe_text import display_safe
from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import SetLabel
from musepi_tui.tui.conversation import failure_of
from musepi_tui.tui.keys import bindings
from musepi_tui.tui.pastes import clean_paste
from musepi_tui.tui.tree.label_editor import LabelEditor
from musepi_tui.tui.tree.model import FilterMode
from musepi_tui.tui.tree.panes import Choice, TreePanes
from musepi_tui.tui.tree.preview import copied_text
from musepi_tui.tui.tree.view import TreeView


class TreeScreen(TreePanes):
    """What each key does. Ends with what was chosen."""

    BINDINGS = bindings("tree")

    # -- moving

    def action_move(self, step: int) -> None:
        """Marks the row above or below, around the ends."""
        self.model.move(step)
        self._moved()

    def action_page(self, direction: int) -> None:
        """Moves by a screenful."""
        self.model.page(direction * max(1, self.view.size.height - 1))
        self._moved()

    def action_edge(self, direction: int) -> None:
        """Goes to the first or last row."""
        self.model.to_edge(direction)
        self._moved()

    def action_turn(self, direction: int) -> None:
        """Goes to the next prompt or answer."""
        self.model.turn(direction)
        self._moved()

    def action_fold(self) -> None:
        """Folds the branch that begins here, or goes to where it begins."""
        self.model.fold()
        self._moved()

    def action_unfold(self) -> None:
        """Unfolds, or goes on to the next branch."""
        self.model.unfold()
        self._moved()

    def action_scroll_preview(self, rows: int) -> None:
        """Shows more of the text."""
        self.preview.scroll_rows(rows)

    def _moved(self) -> None:
        self.foot.said = ""
        self._show()

    # -- filter and search

    def action_cycle_filter(self, direction: int) -> None:
        """The next filter, or the one before."""
        self.model.cycle_mode(direction)
        self._changed()

    def action_set_filter(self, mode: str) -> None:
        """This filter."""
        self.model.set_mode(FilterMode(mode))
        self._changed()

    def search(self, query: str) -> None:
        """Shows what fits. Only what a terminal shows as it is can be searched for."""
        self.foot.said = ""
        self.model.set_query(display_safe(query).replace("\n", " "))
        self._changed()

    def action_erase(self) -> None:
        """Takes the last character of the search away."""
        if self.model.query:
            self.search(self.model.query[:-1])

    def action_erase_all(self) -> None:
        """Empties the search."""
        if self.model.query:
            self.search("")

    def on_key(self, event: events.Key) -> None:
        """Typed characters search; while nothing is searched for, some of them are keys."""
        if not event.is_printable or event.character is None:
            return
        if self.model.query or event.key not in self._typed_keys:
            event.stop()
            self.search(self.model.query + event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text searches, its first line that is not empty."""
        event.stop()
        lines = (line.strip() for line in clean_paste(event.text).split("\n"))
        self.search(self.model.query + next(filter(None, lines), ""))

    # -- choosing

    def action_accept(self) -> None:
        """Goes on from the marked entry."""
        self._choose(summarize=False)

    def action_accept_with_summary(self) -> None:
        """The same, with a summary of the branch that is left."""
        self._choose(summarize=True)

    def action_cancel(self) -> None:
        """Empties the search, else closes."""
        if self.model.query:
            self.search("")
        else:
            self.dismiss(None)

    def action_close(self) -> None:
        """Closes."""
        self.dismiss(None)

    def _choose(self, *, summarize: bool) -> None:
        if self.model.selected is not None:
            self.dismiss(Choice(self.model.selected, summarize))

    # -- labels and copying

    def action_toggle_times(self) -> None:
        """Shows when labels were given, or not."""
        self.view.shows_times = not self.view.shows_times
        self._show()

    def action_edit_label(self) -> None:
        """Edits the label of the marked entry in its row."""
        selected = self.model.selected
        if selected is None or self.view.editor is not None:
            return
        label = self.model.row(self.model.index).label
        before = "" if label is None else label.text
        editor = LabelEditor(self._shell.looks.palette, self._shell.keymap, before)

        def taken(text: str) -> None:
            self._end_edit()
            if text.strip() != before:
                self._shell.talk.send(SetLabel(text.strip(), selected), failed=self._label_failed)

        editor.taken = taken
        editor.left = self._end_edit
        self.view.edit(editor)
        self.head.is_editing = self.foot.is_editing = True
        self._show()

    def _end_edit(self) -> None:
        self.view.end_edit()
        self.head.is_editing = self.foot.is_editing = False
        self._show()

    def _label_failed(self, event: IntentSettled) -> None:
        """Tells it at the foot too: the transcript lies under the tree."""
        self._shell.tell("warning", failure_of(event))
        self._say(failure_of(event))

    def _say(self, text: str) -> None:
        self.foot.said = text
        self.foot.refresh()

    def action_copy(self) -> None:
        """Copies the text of the marked entry."""
        entry = self._selected_entry()
        text = "" if entry is None else copied_text(entry)
        if text:
            self._shell.copy_to_clipboard(text)
        self._say("copied" if text else "there is no text to copy")

    # -- the mouse

    def on_tree_view_clicked(self, message: TreeView.Clicked) -> None:
        """A row was marked; a second click goes there."""
        if message.again:
            self.action_accept()
        else:
            self._moved()

    def on_click(self, event: events.Click) -> None:
        """A click above the tree closes it, unless a label is being written."""
        if event.widget is self and self.view.editor is None:
            self.dismiss(None)

    def on_mouse_scroll_down(self) -> None:
        """The wheel moves the mark, not around the end."""
        self._roll(1)

    def on_mouse_scroll_up(self) -> None:
        """The wheel moves the mark, not around the end."""
        self._roll(-1)

    def _roll(self, rows: int) -> None:
        if self.view.editor is None:
            self.model.page(rows)
            self._moved()
