"""``/help``: commands, keys, modes."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost


async def show_help(host: CommandHost, args: str) -> None:
    """Opens the help panel, at one command when it is named."""
    host.show("help", args.removeprefix("/"))


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The command names."""
    return choices.choices("command")


COMMAND = Command(
    "help", show_help, help="what there is", usage="[command]", aliases=("?",), now=True, complete=complete
)
