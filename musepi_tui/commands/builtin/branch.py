"""``/branch``: go on from before an earlier prompt (tui 4.3)."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost

USAGE = "/branch takes no argument but new; /fork ENTRY copies the path up to an entry."


async def branch(host: CommandHost, args: str) -> None:
    """Opens what ``doubleEscapeAction`` says: the tree, or the prompts to begin a new session at.

    ``new`` opens the prompts whatever the setting says.
    """
    wanted = args.strip().lower()
    if wanted in ("", "new"):
        host.show("branch", wanted)
    else:
        host.notify("warning", USAGE)


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The one argument there is."""
    return ("new",)


COMMAND = Command(
    "branch",
    branch,
    help="go on from an earlier prompt; new: in a session of its own",
    usage="[new]",
    busy="press esc first",
    complete=complete,
)
