"""``/model``: choose the model."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost


async def model(host: CommandHost, args: str) -> None:
    """Opens the picker; an argument with one match switches at once."""
    host.show("model", args)


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The models that can be used."""
    return choices.choices("model")


COMMAND = Command("model", model, help="choose the model", usage="[name]", now=True, complete=complete)
