"""A question with one yes and one no."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events

from musepi_tui.tui.screens.panel import Item, Panel, PanelText

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

YES, NO = "yes", "no"
HINT = "y yes · n no · enter choose · esc close"


class ConfirmPanel(Panel):
    """The question. The marked answer is no; one key answers as well."""

    def __init__(self, app: "Shell", question: str, yes: str) -> None:
        items = (Item(NO, "no"), Item(YES, "yes", yes))
        super().__init__(
            app.looks.palette, PanelText(question, hint=HINT), lambda query: items, searchable=False
        )

    def on_key(self, event: events.Key) -> None:
        """The first letter of an answer."""
        answer = {"y": YES, "n": NO}.get(event.character or "")
        if answer is not None:
            event.stop()
            self.dismiss(answer)


def ask(app: "Shell", question: str, yes: str, then: Callable[[], object]) -> None:
    """Shows the question; ``then`` is called for a yes."""

    def decided(answer: str | None) -> None:
        if answer == YES:
            then()

    app.push_screen(ConfirmPanel(app, question, yes), decided)
