"""What to do with a session that may only be read (contract 4.1, TUI-4.86)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events

from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import ForkSession, OpenSession, WaitForSession
from musepi_tui.tui.screens.panel import Item, Panel, PanelText

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

FORK = Item("fork", "Fork", "go on in a copy; this session stays as it is")
WAIT = Item("wait", "Wait", "until the other one closes it, then write here")
READ = Item("read", "Read", "look at it; nothing can be sent")
AGAIN = Item("again", "Read again", "show what the other one has written since")
CLOSE = Item("close", "Close", "leave musepi")


class ReadOnlyPanel(Panel):
    """The choices, under the reason. It may come up while somebody types: what is typed goes to the editor,
    so that the enter after it chooses nothing that nobody has read."""

    def __init__(self, app: "Shell", cause: str, items: Sequence[Item]) -> None:
        self._composer = app.main.composer
        text = PanelText(cause[:1].upper() + cause[1:])
        super().__init__(app.looks.palette, text, lambda _: items, searchable=False)

    def on_key(self, event: events.Key) -> None:
        """A typed character closes the question and goes on in the editor."""
        if event.is_printable and event.character is not None:
            event.stop()
            self._composer.insert(event.character)
            if self.is_current:
                self.dismiss(None)

    def accept(self, item: Item) -> None:
        """Chooses, unless typing has closed the question while the key was on its way."""
        if self.is_current:
            super().accept(item)


def open_choices(app: "Shell", *, is_read: bool) -> None:
    """Asks what to do, unless that is being asked or nothing is wrong any more.

    ``is_read``: the session has been looked at already, so that there may be something new to read.
    """
    status = app.bridge.status
    if status.read_only is None or any(isinstance(screen, ReadOnlyPanel) for screen in app.screen_stack):
        return

    def chosen(key: str | None) -> None:
        if key == FORK.key:
            app.host.send(ForkSession())
        elif key == WAIT.key:
            _wait(app)
        elif key == AGAIN.key:
            _read_again(app)
        elif key == CLOSE.key:
            app.leave()

    reading = AGAIN if is_read and status.can_wait else READ
    items = (
        (FORK, WAIT, reading, CLOSE) if status.can_wait and not status.is_waiting else (FORK, reading, CLOSE)
    )
    app.push_screen(ReadOnlyPanel(app, status.read_only, items), chosen)


def close_choices(app: "Shell") -> None:
    """Takes the question away: the session can be written now."""
    if isinstance(app.screen, ReadOnlyPanel):
        app.screen.dismiss(None)


def _read_again(app: "Shell") -> None:
    path = app.runtime.view().file
    if path is not None:
        app.send(OpenSession(str(path), "again"))


def _wait(app: "Shell") -> None:
    status = app.bridge.status

    def ended(event: IntentSettled) -> None:
        status.is_waiting = False
        if not (event.data or {}).get("cancelled"):
            app.tell("info", "The session is yours now: the other musepi has closed it.")
        app.bridge.request_flush()

    app.send(WaitForSession(), ended)
    status.is_waiting = True
    app.bridge.request_flush()
