"""``/hotkeys``: the keys as they are now."""

from musepi_tui.commands.types import Command, CommandHost


async def hotkeys(host: CommandHost, args: str) -> None:
    """Opens the list."""
    host.show("hotkeys", args)


COMMAND = Command("hotkeys", hotkeys, help="the keys as they are now", now=True)
