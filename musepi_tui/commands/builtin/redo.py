"""``/redo``: go back to where the last move came from (TUI-4.8)."""

from musepi_tui.commands.types import Command, CommandHost


async def redo(host: CommandHost, args: str) -> None:
    """Reverses the newest move in the tree of this run, rewinds included."""
    host.act("redo")


COMMAND = Command("redo", redo, help="reverse the last /rewind or move in /tree")
