"""``musepi sessions``: looking at session files. Takes no lock, writes nothing, loads nothing heavy."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from musepi_tui.base.errors import MusepiError, UsageError
from musepi_tui.cli.parser import Parser
from musepi_tui.cli.tables import print_error

Runner: TypeAlias = Callable[[argparse.Namespace, Mapping[str, str]], int]

IMPORT_TOOLS = ("pi", "omp", "musepi", "veyyon", "claude", "codex")
"""What ``import --from`` takes; ``musepi`` is the program of that name written in TypeScript."""

_EPILOG = "The commands that only look take no lock and change nothing; none changes a file it reads from."


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command of the group; 0, 1 for a file that cannot be used, 2 for an argument that cannot."""
    try:
        arguments = _parser().parse_args(list(argv))
        return _runner(arguments.command)(arguments, environ)
    except UsageError as error:
        print_error(str(error))
        return 2
    except MusepiError as error:
        print_error(str(error))
        return 1


def _runner(name: str) -> Runner:
    """What a command runs. Deferred imports: each command starts faster without the parts of the others."""
    match name:
        case "inspect":
            from musepi_tui.cli.sessions.facts import inspect as run
        case "context":
            from musepi_tui.cli.sessions.context import show_context as run
        case "transcript":
            from musepi_tui.cli.sessions.transcript import show_transcript as run
        case "tree":
            from musepi_tui.cli.sessions.tree import show_tree as run
        case "check":
            from musepi_tui.cli.sessions.check import check as run
        case "import":
            from musepi_tui.cli.sessions.import_ import import_files as run
        case "gc":
            from musepi_tui.cli.sessions.gc import collect as run
        case "export":
            from musepi_tui.cli.sessions.export import export as run
        case "delete":
            from musepi_tui.cli.sessions.delete import delete as run
        case _:
            from musepi_tui.cli.sessions.rows import show_list as run
    return run


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="musepi sessions", description="Look at session files.", epilog=_EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("inspect", "facts about a file: counts, tree, damage, compactions"),
        ("context", "what the model would be sent"),
        ("transcript", "the conversation as people see it"),
        ("tree", "all branches, the active path marked"),
        ("check", "verify the rules a session must keep; exit 1 when one is broken"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("file", type=Path, metavar="FILE", help="session file")
        if name == "check":
            command.add_argument("--strict", action="store_true", help="notes count as breaches")
        else:
            command.add_argument("--json", action="store_true", help="for scripts")
        if name == "context":
            command.add_argument("--leaf", metavar="ID", help="entry to end at instead of the last one")
            command.add_argument("--provider", metavar="NAME", help="provider the request would go to")
        if name == "transcript":
            command.add_argument("--collapse", action="store_true", help="hide what was compacted")
        if name == "tree":
            command.add_argument("--all", action="store_true", help="bookkeeping too: models, labels, titles")
    _add_list(commands.add_parser("list", help="stored sessions, newest first"))
    _add_import(commands.add_parser("import", help="sessions of other programs as new ones of musepi"))
    _add_gc(commands.add_parser("gc", help="delete blobs that no session mentions"))
    _add_export(commands.add_parser("export", help="a session as .html, .md, .txt or .jsonl"))
    _add_delete(commands.add_parser("delete", help="a session into the trash"))
    return parser


def _add_list(command: argparse.ArgumentParser) -> None:
    command.add_argument("--all", action="store_true", help="of all folders, not only this one")
    command.add_argument("--session-dir", type=Path, metavar="DIR", help="folder that holds the sessions")
    command.add_argument("--json", action="store_true", help="for scripts")


def _add_import(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="session file of another program"
    )
    command.add_argument(
        "--from", dest="tool", choices=IMPORT_TOOLS, help="all sessions this program has of this folder"
    )
    command.add_argument("--all", action="store_true", help="with --from: of all folders")
    command.add_argument(
        "--salvage", action="store_true", help="take what is readable of a file that has lost its header"
    )
    command.add_argument("--session-dir", type=Path, metavar="DIR", help="folder that holds the sessions")
    command.add_argument("--json", action="store_true", help="for scripts")


def _add_gc(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", help="only tell what would be deleted")
    command.add_argument("--session-dir", type=Path, metavar="DIR", help="folder that holds the sessions")


def _add_export(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="session file")
    command.add_argument("out", type=Path, metavar="OUT", help="what to write: .html, .md, .txt or .jsonl")
    command.add_argument("--force", action="store_true", help="replace OUT when it exists")
    command.add_argument("--raw", action="store_true", help="do not mask keys and passwords")
    command.add_argument("--inline", action="store_true", help="in .jsonl: put blobs where they are named")
    command.add_argument("--leaf", metavar="ID", help="entry to end at instead of the last one")


def _add_delete(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", metavar="ID", help="start of the id, title, or path of the session")
    command.add_argument("--permanently", action="store_true", help="delete for good, without the trash")
    command.add_argument("--session-dir", type=Path, metavar="DIR", help="folder that holds the sessions")
