"""``/new``: an empty session in the same folder, with the same model."""

from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import NewSession


async def new(host: CommandHost, args: str) -> None:
    """Starts it; the old session stays on disk."""
    host.send(NewSession())


COMMAND = Command(
    "new",
    new,
    help="start a new session; this one is kept",
    aliases=("clear",),
    alias_note="/clear is another name for /new: nothing is deleted, /resume opens the session before again.",
)
