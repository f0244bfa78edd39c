"""Choosing a theme, with each one shown as it is marked (TUI-1.27)."""

from typing import TYPE_CHECKING

from musepi_tui.tui.screens.panel import Item, Panel, PanelText, matches

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

ABOUT = {
    "auto": "follows the terminal",
    "dark": "calm colours on a dark ground",
    "light": "calm colours on a light ground",
    "ansi": "the sixteen colours of the terminal",
    "mono": "no colour",
    "high-contrast": "strong colours on black",
}


class ThemePanel(Panel):
    """The list; marking a row shows its theme."""

    def __init__(self, app: "Shell") -> None:
        self._shell = app
        self._before = app.looks.wanted
        items = [Item(name, name, ABOUT.get(name, ""), name == self._before) for name in app.looks.names]
        super().__init__(
            app.looks.palette,
            PanelText("Theme", "type to search", "enter choose · esc keep the old one"),
            lambda query: [item for item in items if matches(query, item.label)],
        )

    def marked(self) -> None:
        """Shows the theme of the marked row."""
        if self.chosen is not None and self.chosen.key is not None:
            self._shell.looks.preview(self.chosen.key)
            self.view.palette = self._shell.looks.palette
            self.view.refresh()


def open_themes(app: "Shell", argument: str) -> None:
    """Shows the themes."""
    before = app.looks.wanted

    def chosen(name: str | None) -> None:
        if name is None:
            app.looks.preview(before)
        else:
            app.looks.choose(name)

    app.push_screen(ThemePanel(app), chosen)
