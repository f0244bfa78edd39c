"""The theme that is on: loading it, previewing another one, remembering the choice."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from musepi_tui.base.errors import MusepiError
from musepi_tui.base.resources import theme_paths
from musepi_tui.tui.themes import Palette, load_palette, theme_files

_log = logging.getLogger("musepi.tui")

AUTO = "auto"


class Looks:
    """Themes by name. ``wanted`` is the setting, ``palette`` what it came to in this terminal."""

    def __init__(self, wanted: str, symbols: str, environ: Mapping[str, str], config_dir: Path) -> None:
        self._environ = environ
        self._symbols = symbols
        self._config_dir = config_dir
        self._ground: str | None = None
        self.problem: str | None = None
        """Why another theme than the wanted one is on."""
        self.wanted = wanted
        try:
            self.palette = self.load(wanted)
        except MusepiError as error:
            self.problem = str(error)
            self.wanted = AUTO
            self.palette = self.load(AUTO)
        self.changed: Callable[[Palette], None] = lambda palette: None
        self.told: Callable[[Literal["info", "warning"], str], None] = lambda level, text: None

    @property
    def names(self) -> tuple[str, ...]:
        """What can be chosen, ``auto`` first."""
        return (AUTO, *sorted({*theme_paths(), *theme_files(self._config_dir / "themes")}))

    def load(self, name: str) -> Palette:
        """The palette of a theme. Raises ``SettingsError`` when there is none or it is broken."""
        files = theme_files(self._config_dir / "themes")
        if name == AUTO and self._ground is not None:
            name = self._ground
        return load_palette(name, self._environ, files=files, symbols=self._symbols)

    @property
    def asks_terminal(self) -> bool:
        """Whether only the terminal can tell which of dark and light fits it."""
        return self.wanted == AUTO and self.palette.name == "dark" and "COLORFGBG" not in self._environ

    def follow_ground(self, *, is_light: bool) -> None:
        """Takes the theme that fits the ground, while the person leaves the choice to the terminal."""
        if self.wanted == AUTO and self.palette.name in {"dark", "light"}:
            self._ground = "light" if is_light else "dark"
            if self._ground != self.palette.name:
                self._show(self.load(AUTO))

    def preview(self, name: str) -> None:
        """Shows a theme without choosing it; a broken one changes nothing."""
        try:
            self._show(self.load(name))
        except MusepiError as error:
            self.told("warning", str(error))

    def choose(self, name: str) -> None:
        """Shows a theme and makes it the setting. A broken one changes nothing."""
        from musepi_tui.settings.write import set_key  # deferred: not needed for the first frame

        try:
            self._show(self.load(name))
        except MusepiError as error:
            self.told("warning", str(error))
            return
        self.wanted = name
        try:
            set_key(self._config_dir, "theme", name)
        except (MusepiError, OSError) as error:
            self.told("warning", f"The theme {name} is on, but could not be remembered: {error}")
            return
        other = "" if name in {AUTO, self.palette.name} else f"; this terminal gets {self.palette.name}"
        self.told("info", f"Theme: {name}{other}")

    def _show(self, palette: Palette) -> None:
        self.palette = palette
        self.changed(palette)
