"""``/name``: what the session is called."""

from musepi_tui.commands.registry import unquote
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import SetName
from musepi_tui.storage.titles import TITLE_CHARS, clean_title


async def name(host: CommandHost, args: str) -> None:
    """Sets the name, or tells it when none is given; quotes with nothing in them take it away."""
    wanted = unquote(args)
    called = clean_title(wanted)
    if not args.strip():
        current = host.view().name
        known = f"This session is called {current}." if current else "This session has no name."
        host.notify("info", f'{known} /name TEXT gives it one, /name "" takes it away.')
    elif not called:
        host.send(SetName(""), done="The session has no name any more.")
    else:
        cut = f" (names end after {TITLE_CHARS} characters)" if called != wanted else ""
        host.send(SetName(called), done=f"The session is called {called}{cut}.")


COMMAND = Command(
    "name", name, help="name this session", usage="[text]", aliases=("rename", "title"), now=True
)
