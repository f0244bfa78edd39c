"""``/resume``: open another session."""

from musepi_tui.commands.types import Command, CommandHost


async def resume(host: CommandHost, args: str) -> None:
    """Opens the session that the argument names; the list without one, or when it is a part of several."""
    host.show("resume", args)


COMMAND = Command("resume", resume, help="open another session", usage="[--all] [id, name or path]")
