"""``/fork``: go on in a copy of the session (tui 4.3)."""

from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import ForkSession


async def fork(host: CommandHost, args: str) -> None:
    """Copies the whole session, or the path up to the entry with that id."""
    host.send(ForkSession(args.strip() or None))


COMMAND = Command("fork", fork, help="go on in a copy of this session", usage="[entry id]")
