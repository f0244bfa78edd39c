"""``/retry``: repeat the last failed turn."""

from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import Retry


async def retry(host: CommandHost, args: str) -> None:
    """Asks for it."""
    host.send(Retry())


COMMAND = Command("retry", retry, help="repeat the last failed turn")
