"""``/label``: a name for the place where the session stands."""

from musepi_tui.commands.registry import unquote
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import SetLabel


async def label(host: CommandHost, args: str) -> None:
    """Labels the current leaf; without a text its label goes."""
    text = unquote(args)
    host.send(SetLabel(text), done=f"Labelled: {text}" if text else "This place has no label now.")


COMMAND = Command("label", label, help="label this place; no text clears it", usage="[text]", now=True)
