"""``/move``: another working folder for the session."""

from musepi_tui.commands.registry import split_arguments
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import MoveSession


async def move(host: CommandHost, args: str) -> None:
    """Moves the session to the folder, which must exist; its file goes along."""
    folders = split_arguments(args)
    if len(folders) != 1:
        host.notify("info", f"The session works in {host.view().header.cwd}. /move FOLDER changes that.")
    else:
        host.send(MoveSession(folders[0]), done="The session works there from now on.")


COMMAND = Command(
    "move", move, help="change the working folder of this session", usage="<folder>", aliases=("cwd",)
)
