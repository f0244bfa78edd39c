"""``/shake``: free room in the context without a summary (tui 4.7)."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import Shake


async def shake(host: CommandHost, args: str) -> None:
    """Takes large outputs, or every image, out of the context. The transcript keeps them."""
    match args.strip().lower():
        case "" | "elide":
            host.send(Shake())
        case "images":
            host.send(Shake("images"))
        case other:
            host.notify("warning", f'There is no mode "{other}". Usage: /shake [elide|images].')


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The modes."""
    return ("elide", "images")


COMMAND = Command(
    "shake",
    shake,
    help="move large outputs out of the context, without a summary",
    usage="[elide|images]",
    complete=complete,
)
