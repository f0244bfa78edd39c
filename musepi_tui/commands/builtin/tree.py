"""``/tree``: look at every branch of the session, and go on from another place (tui 5)."""

from musepi_tui.commands.types import Command, CommandHost


async def tree(host: CommandHost, args: str) -> None:
    """Opens the tree; an entry id as argument is the row it begins at."""
    host.show("tree", args.strip())


COMMAND = Command(
    "tree", tree, help="go on from another place of this session", usage="[entry id]", busy="press esc first"
)
