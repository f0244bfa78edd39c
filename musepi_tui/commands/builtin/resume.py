"""``/resume``: open another session."""

from musepi_tui.commands.types import Command, CommandHost


async def resume(host: CommandHost, args: str) -> None:
    """Opens the picker, or the session that the argument names."""
    host.show("resume", args)


COMMAND = Command("resume", resume, help="open another session", usage="[--all] [id or title]")
