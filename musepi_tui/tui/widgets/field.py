"""An editor for a short text somebody is asked for: a label, what a summary should look at."""

from collections.abc import Callable

from textual import events

from musepi_tui.tui.keys import Keymap, editor_actions
from musepi_tui.tui.pastes import clean_paste
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.editing import EditingArea

_MEANINGS = {
    "submit": "take",
    "app.interrupt": "leave",
    "app.clear": "leave",
    "exit_or_delete": "delete_right",
    "follow_up": "newline",
    "line_end": "cursor_line_end",
    "up": "cursor_up",
    "down": "cursor_down",
}
"""What keys of the big editor mean here, where it is not the same."""


class Field(EditingArea):
    """The text, edited with the keys of the big editor. ``taken`` gets it, ``left`` is called instead of it.

    ``single_line``: line breaks become blanks and cannot be typed.
    """

    DEFAULT_CSS = """
    Field {
        height: auto; min-height: 1; width: 1fr; padding: 0; border: none;
        color: ansi_default; background: ansi_default; scrollbar-size-vertical: 1;
        &:focus { border: none; }
        & .text-area--placeholder { color: $musepi-dim; background: ansi_default; }
    }
    """

    def __init__(
        self, palette: Palette, keymap: Keymap, placeholder: str = "", *, single_line: bool = False
    ) -> None:
        super().__init__(palette, placeholder)
        self.taken: Callable[[str], None] = lambda text: None
        self.left: Callable[[], None] = lambda: None
        self._actions = editor_actions(keymap)
        self._single_line = single_line
        if single_line:
            self.soft_wrap = False
            self.show_horizontal_scrollbar = False
            self.styles.height = 1

    def action_take(self) -> None:
        """Hands the text over."""
        self.taken(self.full_text)

    def action_leave(self) -> None:
        """Ends without a text."""
        self.left()

    def action_newline(self) -> None:
        """Breaks the line, where there may be more than one."""
        if not self._single_line:
            super().action_newline()

    async def _on_key(self, event: events.Key) -> None:
        """Runs what the key is bound to in the editor; the base handler inserts what is left."""
        bound = self._actions.get(event.key)
        if bound is None:
            return
        event.stop()
        event.prevent_default()
        action = _MEANINGS.get(bound, bound)
        if "." not in action:
            await self.run_action(action)

    async def _on_paste(self, event: events.Paste) -> None:
        if self._single_line:
            event.stop()
            event.prevent_default()
            self._insert(" ".join(clean_paste(event.text).split()))
        else:
            await super()._on_paste(event)
