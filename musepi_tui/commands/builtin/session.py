"""``/session``: facts about the open session."""

from musepi_tui.commands.types import Command, CommandHost


async def session(host: CommandHost, args: str) -> None:
    """Shows file, name, origin, entries and usage."""
    host.show("session")


COMMAND = Command("session", session, help="facts about this session", aliases=("status",), now=True)
