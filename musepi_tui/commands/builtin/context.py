"""``/context``: what the context consists of (tui 4.6)."""

from musepi_tui.commands.types import Command, CommandHost


async def context(host: CommandHost, args: str) -> None:
    """Shows the parts of the context, its limits and the last compaction."""
    host.show("context")


COMMAND = Command("context", context, help="what fills the context, and where compaction starts", now=True)
