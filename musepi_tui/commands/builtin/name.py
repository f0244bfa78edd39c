"""``/name``: what the session is called."""

from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import SetName

CLEARED = ('""', "''")
"""How a name is taken away; nothing at all asks for it."""


async def name(host: CommandHost, args: str) -> None:
    """Sets the name, or tells it when none is given."""
    wanted = " ".join(args.split())
    if not wanted:
        current = host.view().name
        known = f"This session is called {current}." if current else "This session has no name."
        host.notify("info", f'{known} /name TEXT gives it one, /name "" takes it away.')
    elif wanted in CLEARED:
        host.send(SetName(""), done="The session has no name any more.")
    else:
        host.send(SetName(wanted))


COMMAND = Command(
    "name", name, help="name this session", usage="[text]", aliases=("rename", "title"), now=True
)
