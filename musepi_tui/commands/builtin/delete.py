"""``/delete``: move the session to the trash (TUI-4.48)."""

from musepi_tui.commands.types import Command, CommandHost

USAGE = "/delete moves the session you are in to the trash; ctrl+d in the list of /resume another one."


async def delete(host: CommandHost, args: str) -> None:
    """Asks first, and shows the list of sessions afterwards. It means the open session only."""
    if args.strip():
        host.notify("warning", USAGE)
    else:
        host.show("delete")


COMMAND = Command("delete", delete, help="move this session to the trash")
