"""A text area with paste markers, a kill ring and colours of the theme; nothing in it is about prompts."""

import re

from rich.color import Color
from rich.style import Style
from rich.text import Text
from textual import events
from textual.content import Content
from textual.document._document import Location, Selection
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import TextAreaTheme

from musepi_tui.tui.kill_ring import KillRing
from musepi_tui.tui.pastes import Pastes, clean_paste
from musepi_tui.tui.themes import Palette
from musepi_tui.tui.widgets.drawing import app_of

_WORD = re.compile(r"\s*\w+|\s*[^\w\s]+|\s+$")


class EditingArea(TextArea, inherit_bindings=False):
    """Text with long pastes as markers, which cursor and deletion take as one unit (TUI-3.10, 3.21)."""

    def __init__(self, palette: Palette, placeholder: str) -> None:
        self._pastes = Pastes()  # before the base class, which places its cursor at once
        super().__init__(
            compact=True, highlight_cursor_line=False, max_checkpoints=200, placeholder=Content(placeholder)
        )
        self.cursor_blink = False
        self.match_cursor_bracket = False
        self._kills = KillRing()
        self._yank: tuple[Location, Location] | None = None
        self._marker_style = Style()
        self.set_palette(palette)

    def set_palette(self, palette: Palette) -> None:
        """Draws with another theme from now on."""
        selected = palette.style("selectedBg")
        self._marker_style = palette.style("accent")
        name = f"musepi-{palette.name}"
        self.register_theme(
            TextAreaTheme(
                name,
                base_style=Style(color=Color.default(), bgcolor=Color.default()),
                cursor_style=Style(reverse=True),
                selection_style=selected if selected.bgcolor else Style(reverse=True),
            )
        )
        self.theme = name

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows. The base class would first work its theme out of the style sheets again, at each key."""
        return super(TextArea, self).render_lines(crop)

    @property
    def full_text(self) -> str:
        """The text with every paste marker expanded."""
        return self._pastes.expand(self.text)

    def put(self, text: str) -> None:
        """Replaces the text as one step that can be undone; the cursor goes to its end."""
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)
        self._kills.interrupt()

    def put_before(self, text: str) -> None:
        """Puts text before what stands there, a blank line between them."""
        self.put("\n\n".join(part for part in (text, self.text) if part))

    def action_newline(self) -> None:
        """Breaks the line."""
        self._insert("\n")

    def offer(self, text: str) -> None:
        """Makes a text the one that is inserted next by ``yank``; the editor stays as it is."""
        self._kills.interrupt()
        self._kills.push(text, before=False)
        self._kills.interrupt()

    # -- moving over markers

    def get_cursor_left_location(self) -> Location:
        """One character left, over a whole paste marker."""
        return self._over_marker(super().get_cursor_left_location(), forward=False)

    def get_cursor_right_location(self) -> Location:
        """One character right, over a whole paste marker."""
        return self._over_marker(super().get_cursor_right_location(), forward=True)

    def get_cursor_word_left_location(self) -> Location:
        """One word left, over a whole paste marker."""
        return self._over_marker(super().get_cursor_word_left_location(), forward=False)

    def get_cursor_word_right_location(self) -> Location:
        """One word right, over a whole paste marker."""
        return self._over_marker(super().get_cursor_word_right_location(), forward=True)

    def clamp_visitable(self, location: Location) -> Location:
        """A place the cursor may stand: never inside a paste marker."""
        return self._over_marker(super().clamp_visitable(location), forward=True)

    def _over_marker(self, location: Location, *, forward: bool) -> Location:
        row, column = location
        for start, end in self._pastes.spans(self.document[row]):
            if start < column < end:
                return (row, end if forward else start)
        return location

    def get_line(self, line_index: int) -> Text:
        """The line with its paste markers coloured."""
        line = super().get_line(line_index)
        for start, end in self._pastes.spans(line.plain):
            line.stylize(self._marker_style, start, end)
        return line

    # -- cutting and yanking

    def action_kill_word_left(self) -> None:
        """Cuts the word before the cursor, or the selection."""
        self._kill(self.get_cursor_word_left_location(), before=True)

    def action_kill_word_right(self) -> None:
        """Cuts the word after the cursor, or the selection."""
        row, column = self.cursor_location
        line = self.document[row]
        if column == len(line):
            self._kill(self.get_cursor_right_location(), before=False)
            return
        match = _WORD.match(line, column)
        target = (row, match.end() if match else len(line))
        self._kill(self._over_marker(target, forward=True), before=False)

    def action_kill_line_start(self) -> None:
        """Cuts to the start of the line; at the start, the line break before it."""
        row, column = self.cursor_location
        self._kill((row, 0) if column else self.get_cursor_left_location(), before=True)

    def action_kill_line_end(self) -> None:
        """Cuts to the end of the line; at the end, the line break after it."""
        row, column = self.cursor_location
        length = len(self.document[row])
        self._kill((row, length) if column < length else self.get_cursor_right_location(), before=False)

    def _kill(self, target: Location, *, before: bool) -> None:
        selection = self.selection
        start, end = selection if not selection.is_empty else (self.cursor_location, target)
        text = self.get_text_range(start, end)
        if text:
            self.delete(start, end, maintain_selection_offset=False)
            self._kills.push(text, before=before)

    def action_yank(self) -> None:
        """Inserts what was cut last."""
        self._insert(self._kills.newest(), yank=True)

    def action_yank_older(self) -> None:
        """Right after a yank: what was cut before that, in its place."""
        if self._yank is not None and self._yank[1] == self.cursor_location:
            self.selection = Selection(*self._yank)
            self._insert(self._kills.older(), yank=True)

    def _insert(self, text: str, *, yank: bool = False) -> None:
        start, end = sorted(self.selection)
        result = self.replace(text, start, end, maintain_selection_offset=False)
        self._kills.interrupt()
        self._yank = (start, result.end_location) if yank else None

    # -- pasting

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()  # the base handler runs as well otherwise, and the text comes twice
        self._insert(self._pastes.shorten(clean_paste(event.text)))

    def action_paste_raw(self) -> None:
        """Inserts the clipboard of the program as it is, without a marker."""
        self._insert(clean_paste(app_of(self).clipboard))
