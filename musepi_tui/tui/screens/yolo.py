"""The question before the mode that asks nothing (TUI-8.7)."""

from typing import TYPE_CHECKING

from musepi_tui.runtime.intents import SetMode
from musepi_tui.tui.screens.confirm import ask

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell


def open_confirmation(app: "Shell", argument: str) -> None:
    """Asks, then sets the mode for this session."""
    ask(
        app,
        "yolo: run every command and edit without asking?",
        "until you quit or choose another mode",
        lambda: app.send(SetMode("yolo")),
    )
