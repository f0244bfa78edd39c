"""``/thinking``: how much the model reasons before it answers."""

from musepi_tui.commands.choices import Choices
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.providers.types import ThinkingLevel
from musepi_tui.runtime.intents import SetThinking


async def thinking(host: CommandHost, args: str) -> None:
    """Sets the level from the next request on; without an argument it says which one is on."""
    wanted = args.strip().lower()
    levels = tuple(ThinkingLevel)
    if not wanted:
        host.notify("info", f"Thinking level: {host.view().thinking_level}. Levels: {', '.join(levels)}.")
    elif wanted not in levels:
        host.notify("warning", f'There is no thinking level "{wanted}". Levels: {", ".join(levels)}.')
    else:
        host.send(SetThinking(wanted))


def complete(choices: Choices, text: str) -> tuple[str, ...]:
    """The levels of the model."""
    return choices.choices("thinking")


COMMAND = Command(
    "thinking",
    thinking,
    help="how much the model reasons",
    usage="[level]",
    aliases=("effort",),
    now=True,
    complete=complete,
)
