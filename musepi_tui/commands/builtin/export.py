"""``/export``: write the session to a file (TUI-4.17)."""

from musepi_tui.commands.registry import split_arguments
from musepi_tui.commands.types import Command, CommandHost
from musepi_tui.runtime.intents import ExportSession

_FLAGS = frozenset({"--force", "--raw", "--inline"})


async def export(host: CommandHost, args: str) -> None:
    """Asks for an export; a notice says where it went."""
    words = split_arguments(args)
    flags = {word for word in words if word in _FLAGS}
    paths = [word for word in words if word not in _FLAGS]
    unknown = next((word for word in paths if word.startswith("--")), None)
    if unknown is not None:
        host.notify("warning", f"/export does not know {unknown}; it knows {', '.join(sorted(_FLAGS))}.")
    elif len(paths) > 1:
        host.notify("warning", "/export takes one file; put a name with blanks in quotes.")
    else:
        path = paths[0] if paths else ""
        host.send(
            ExportSession(path, force="--force" in flags, raw="--raw" in flags, inline="--inline" in flags)
        )


COMMAND = Command(
    "export",
    export,
    help="write the session to a file: .html, .md, .txt, .jsonl",
    usage="[file] [--force] [--raw]",
    now=True,
)
