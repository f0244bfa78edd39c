"""``/theme``: choose the colours."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost


async def theme(host: CommandHost, args: str) -> None:
    """Opens the picker, or takes the theme that is named."""
    if args.strip():
        host.act("set-theme", args.strip())
    else:
        host.show("theme")


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The theme names."""
    return choices.choices("theme")


COMMAND = Command("theme", theme, help="choose the colours", usage="[name]", now=True, complete=complete)
