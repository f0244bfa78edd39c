"""What to do with a session that may only be read (contract 4.1, TUI-4.86)."""

from typing import TYPE_CHECKING

from musepi_tui.runtime.events import IntentSettled
from musepi_tui.runtime.intents import ForkSession, WaitForSession
from musepi_tui.tui.screens.panel import Item, Panel, PanelText

if TYPE_CHECKING:
    from musepi_tui.tui.shell import Shell

FORK = Item("fork", "Fork", "go on in a copy; this session stays as it is")
WAIT = Item("wait", "Wait", "until the other one closes it, then write here")
READ = Item("read", "Read", "look at it; nothing can be sent")
CLOSE = Item("close", "Close", "leave musepi")


class ReadOnlyPanel(Panel):
    """The choices, under the reason."""

    def __init__(self, app: "Shell", cause: str, *, can_wait: bool) -> None:
        items = (FORK, WAIT, READ, CLOSE) if can_wait else (FORK, READ, CLOSE)
        text = PanelText(cause[:1].upper() + cause[1:])
        super().__init__(app.looks.palette, text, lambda _: items, searchable=False)


def open_choices(app: "Shell") -> None:
    """Asks what to do, unless that is being asked or nothing is wrong any more."""
    status = app.bridge.status
    if status.read_only is None or any(isinstance(screen, ReadOnlyPanel) for screen in app.screen_stack):
        return

    def chosen(key: str | None) -> None:
        if key == FORK.key:
            app.host.send(ForkSession())
        elif key == WAIT.key:
            _wait(app)
        elif key == CLOSE.key:
            app.leave()

    app.push_screen(ReadOnlyPanel(app, status.read_only, can_wait=status.can_wait), chosen)


def close_choices(app: "Shell") -> None:
    """Takes the question away: the session can be written now."""
    if isinstance(app.screen, ReadOnlyPanel):
        app.screen.dismiss(None)


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
