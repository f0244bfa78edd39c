"""``/compact``: summarise older history now (tui 4.2)."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import Compact

MODES = ("summary", "soft")
"""Modes of this version. Any other first word is focus text."""


def split_mode(args: str) -> tuple[str | None, str | None]:
    """Mode and focus text of the arguments.

    The first word is a mode only if it equals a mode name and stands alone or before a blank; quotes around
    the text make all of it focus text (TUI-4.60).
    """
    text = args.strip()
    if len(text) > 1 and text[0] in "\"'" and text.endswith(text[0]):
        return None, text[1:-1].strip() or None
    word, _, rest = text.partition(" ")
    if word.lower() in MODES:
        return word.lower(), rest.strip() or None
    return None, text or None


async def compact(host: CommandHost, args: str) -> None:
    """Asks for a pass."""
    mode, focus = split_mode(args)
    host.send(Compact(mode=mode, focus=focus))


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The modes."""
    return MODES


COMMAND = Command(
    "compact",
    compact,
    help="summarise older history now",
    usage="[focus]",
    complete=complete,
)
