"""``/handoff``: go on in a new session that begins with a document about this one (tui 4.4)."""

from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.maintenance.notices import HANDOFF_WHILE_BUSY
from musepi_tui.runtime.intents import Handoff


async def handoff(host: CommandHost, args: str) -> None:
    """Asks for it; the text says what the document should dwell on."""
    host.send(Handoff(args.strip() or None))


COMMAND = Command(
    "handoff",
    handoff,
    help="go on in a new session, with a document about this one",
    usage="[focus]",
    busy=HANDOFF_WHILE_BUSY,
)
