"""``/move``: another working folder for the session."""

import asyncio
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.commands.registry import split_arguments
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import MoveSession
from musepi_tui.storage.paths import expand_home, resolve_path


async def move(host: CommandHost, args: str) -> None:
    """Moves the session to the folder, which must exist; its file goes along."""
    view = host.view()
    cwd = Path(view.header.cwd) if view.cwd is None else view.cwd
    folders = split_arguments(args)
    if len(folders) != 1:
        host.notify("info", f"The session works in {cwd}. /move FOLDER changes that.")
        return
    try:
        folder = await asyncio.to_thread(_resolve, cwd, folders[0])
    except SessionError as error:
        host.notify("warning", str(error))
        return
    if folder == await asyncio.to_thread(_resolve, cwd, "."):
        host.notify("info", f"The session works in {folder} already.")
    else:
        host.send(MoveSession(str(folder)), done=f"The session works in {folder} from now on.")


def _resolve(cwd: Path, folder: str) -> Path:
    return resolve_path(cwd / expand_home(folder))


COMMAND = Command(
    "move", move, help="change the working folder of this session", usage="<folder>", aliases=("cwd",)
)
