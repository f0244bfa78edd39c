"""A question with one yes and one no."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from musepi_tui.tui.screens.panel import Item, Panel, PanelText

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

YES, NO = "yes", "no"


def ask(app: "Shell", question: str, yes: str, then: Callable[[], object]) -> None:
    """Shows the question; ``then`` is called for a yes. The marked answer is no."""
    items = (Item(NO, "no"), Item(YES, "yes", yes))
    panel = Panel(app.looks.palette, PanelText(question), lambda query: items, searchable=False)

    def decided(answer: str | None) -> None:
        if answer == YES:
            then()

    app.push_screen(panel, decided)
