"""The editor: a text area that sends, recalls, cuts and completes (tui 3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from musepi_tui.commands.registry import Completion
from musepi_tui.tui.recall import Recall
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.completion import CompletionList
from musepi_tui.tui.widgets.editing import EditingArea

Completer: TypeAlias = Callable[[str], Sequence[Completion]]

MAX_ROWS = 12
"""Rows the editor grows to, never more than a third of the screen (TUI-3.1)."""


class Composer(EditingArea):
    """Where prompts are written. It knows no session.

    ``submit`` gets what is sent, and whether it may wait until the agent has finished. It calls ``accept``
    when it takes the text; a refused one stays. It is called at once, so that keys keep their order.
    ``submit_nothing`` is called for an empty editor; ``edited`` gets the text whenever it is another one.
    """

    DEFAULT_CSS = """
    Composer {
        height: auto; min-height: 1; width: 1fr; padding: 0; border: none;
        color: ansi_default; background: ansi_default;
        scrollbar-size-vertical: 1;
        &:focus { border: none; }
        & .text-area--placeholder { color: $musepi-dim; background: ansi_default; }
    }
    """

    class ExitWanted(Message):
        """The exit key was pressed in an empty editor."""

    class EndWanted(Message):
        """The end key was pressed where the line has no more end."""

    def __init__(self, palette: Palette, completions: CompletionList, max_rows: int = MAX_ROWS) -> None:
        super().__init__(palette, "Ask anything · / for commands")
        self.recall = Recall()
        self.submit: Callable[[str, bool], None] = lambda text, follow_up: None
        self.submit_nothing: Callable[[], None] = lambda: None
        self.edited: Callable[[str], None] = lambda text: None
        self.working: Callable[[], bool] = lambda: False
        self.complete_line: Completer = lambda text: ()
        self.key_actions: Mapping[str, str] = {}
        self._completions = completions
        self._max_rows = max_rows
        self._recalled: str | None = None

    def fit(self, screen_rows: int) -> None:
        """Limits the height for a screen of that many rows."""
        self.styles.max_height = max(1, min(self._max_rows, screen_rows // 3))

    # -- what the app reads and sets

    def accept(self, text: str) -> bool:
        """Empties the editor after ``text`` was taken; whether it is new in the history."""
        remembered = self.recall.add(text)
        self.put("")
        self.history.clear()
        return remembered

    def clear_draft(self) -> None:
        """Empties the editor; the text can be recalled."""
        self.recall.add(self.full_text)
        self.put("")

    # -- sending

    def action_submit(self) -> None:
        """Sends the text, or ends the line when a backslash asks for it, or takes a completion."""
        row, column = self.cursor_location
        if column and self.document[row][column - 1] == "\\":
            self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
            return
        chosen = self._completions.chosen_for(self.text)
        if chosen is not None:
            self.put(chosen.text.rstrip())
        self._completions.close()
        self._send(follow_up=False)

    def action_follow_up(self) -> None:
        """Sends the text for when the agent has finished; a new line while it is idle."""
        if self.working():
            self._send(follow_up=True)
        else:
            self.action_newline()

    def _send(self, *, follow_up: bool) -> None:
        text = self.full_text
        if text.strip():
            self.submit(text, follow_up)
        elif not text:
            self.submit_nothing()

    def action_exit_or_delete(self) -> None:
        """Asks to quit when there is no text, else deletes to the right."""
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.ExitWanted())

    # -- completion

    def action_complete(self) -> None:
        """Takes the marked completion."""
        completion = self._completions.chosen
        if completion is not None:
            self.put(completion.text)

    def close_completions(self) -> bool:
        """Hides the list; whether it was shown."""
        return self._completions.close()

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """Nobody above listens; each step up costs time at every key."""
        event.stop()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Offers completions for what stands there now."""
        event.stop()
        self.edited(self.text)
        if self.text != self._recalled:
            self.recall.leave()
        if self.text.startswith("/") or self._completions.is_open:
            self._completions.offer(self.complete_line(self.text))

    # -- moving

    def action_up(self) -> None:
        """Moves in the list, up a row, or on the first row to the prompt before."""
        if self._completions.is_open:
            self._completions.move(-1)
        elif self.navigator.is_first_wrapped_line(self.cursor_location):
            self._recall(self.recall.older(self.full_text))
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        """Moves in the list, down a row, or on the last row to the prompt after."""
        if self._completions.is_open:
            self._completions.move(1)
        elif self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(self.recall.newer())
        else:
            self.action_cursor_down()

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self._recalled = text
            self.put(text)

    def action_line_end(self) -> None:
        """Goes to the end of the line; from there the app shows the end of the transcript."""
        if self.cursor_at_end_of_line:
            self.post_message(self.EndWanted())
        self.action_cursor_line_end()

    # -- input

    async def _on_key(self, event: events.Key) -> None:
        """Runs what the key is bound to; the base handler, called after this, inserts what is left."""
        action = self.key_actions.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            if not action.startswith("kill"):
                self._kills.interrupt()
            await self.run_action(action)
        elif event.is_printable:
            self._kills.interrupt()

    def watch_has_focus(self, has_focus: bool) -> None:  # noqa: FBT001  Textual calls it so
        """The list belongs to a focused editor."""
        super().watch_has_focus(has_focus)
        if not has_focus:
            self._completions.close()
