"""``/mode``: what runs without asking (tui 8.1)."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import SetMode

MODES = {
    "ask": "reads run, everything else asks",
    "auto-edit": "reads and edits in the project run, commands ask",
    "yolo": "everything runs without asking",
}
"""The approval modes and what each means."""


async def mode(host: CommandHost, args: str) -> None:
    """Sets the mode; ``yolo`` is confirmed first. Without an argument it says which one is on."""
    wanted = args.strip().lower()
    if not wanted:
        current = host.view().mode
        meaning = f" ({MODES[current]})" if current in MODES else ""
        host.notify("info", f"Mode: {current}{meaning}. Modes: {', '.join(MODES)}.")
    elif wanted not in MODES:
        host.notify("warning", f'There is no mode "{wanted}". Modes: {", ".join(MODES)}.')
    elif wanted == "yolo":
        host.show("yolo")
    else:
        host.send(SetMode(wanted))


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The modes."""
    return tuple(MODES)


COMMAND = Command(
    "mode",
    mode,
    help="what runs without asking",
    usage="[ask|auto-edit|yolo]",
    aliases=("permissions",),
    now=True,
    complete=complete,
)
