"""``/rewind``: take back a prompt and what came of it (TUI-4.7)."""

import re

from musepi_tui.commands.types import Command, CommandHost

USAGE = "Usage: /rewind [n]. 1 is the newest prompt; without a number there is a list to choose from."


async def rewind(host: CommandHost, args: str) -> None:
    """Goes back to before a prompt, whose text comes into the editor: the nth newest one, or a chosen one."""
    wanted = args.strip()
    if not wanted or re.fullmatch(r"[1-9]\d{0,8}", wanted, re.ASCII):
        host.show("rewind", wanted)
    else:
        host.notify("warning", USAGE)


COMMAND = Command(
    "rewind",
    rewind,
    help="take back a prompt; /redo brings it back",
    usage="[n]",
    aliases=("undo",),
)
