"""``/clone``: go on in a copy of the current path (tui 4.3)."""

from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import CloneSession


async def clone(host: CommandHost, args: str) -> None:
    """Copies the path from the root to the leaf, without other branches."""
    host.send(CloneSession())


COMMAND = Command("clone", clone, help="go on in a copy of this path, without other branches")
