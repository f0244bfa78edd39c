"""``/quit``: leave."""

from musepi_tui.commands.types import Command, CommandHost


async def leave(host: CommandHost, args: str) -> None:
    """Ends the program; the session is on disk already."""
    host.act("quit")


COMMAND = Command("quit", leave, help="leave; the session is kept", aliases=("exit",), now=True)
