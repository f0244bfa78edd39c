"""``/compact``: summarise older history now (tui 4.2)."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.maintenance.modes import MODES, WORDS, refuse_mode
from musepi_tui.runtime.intents import Compact, Shake


def split_mode(args: str) -> tuple[str | None, str | None]:
    """Mode and focus text of the arguments.

    The first word is a mode only if it equals a mode name and stands alone or before a blank; quotes around
    the text make all of it focus text (TUI-4.60). Modes this version has not are modes too: ``refuse_mode``.
    """
    text = args.strip()
    if len(text) > 1 and text[0] in "\"'" and text.endswith(text[0]):
        return None, text[1:-1].strip() or None
    word, *rest = text.split(maxsplit=1)[:2] or ("",)
    if word.lower() in WORDS:
        return word.lower(), rest[0].strip() if rest else None
    return None, text or None


async def compact(host: CommandHost, args: str) -> None:
    """Asks for a pass; ``shake`` means what ``/shake`` does."""
    mode, focus = split_mode(args)
    refusal = refuse_mode(mode, focus)
    if refusal is not None:
        host.notify("warning", refusal)
    else:
        host.send(Shake() if mode == "shake" else Compact(mode=mode, focus=focus))


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The modes."""
    return MODES


def detail(choices: Choices) -> str:
    """What the completion list says: how full the context is (TUI-4.65)."""
    return " · ".join(("Compact now", *choices.choices("context")))


COMMAND = Command(
    "compact",
    compact,
    help="summarise older history now",
    usage="[mode] [focus]",
    interrupts=True,
    complete=complete,
    detail=detail,
)
