"""``musepi sessions import``: sessions of other programs as new sessions of musepi."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from musepi_tui.base.errors import SessionError, UsageError
from musepi_tui.cli.sessions.places import find_places
from musepi_tui.cli.tables import print_error, print_json, print_line
from musepi_tui.storage.importers import Imported, import_session
from musepi_tui.storage.listing import list_sessions
from musepi_tui.storage.paths import Paths, same_folder


def import_files(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the path of each new session; 1 when one of the files could not be imported."""
    if bool(arguments.files) == (arguments.tool is not None):
        raise UsageError("import: give files, or --from and the name of a program")
    if arguments.all and arguments.tool is None:
        raise UsageError("--all: only together with --from")
    places = find_places(environ, arguments.session_dir)
    files = arguments.files or _files_of(
        places.paths, arguments.tool, cwd=None if arguments.all else Path.cwd()
    )
    if not files:
        print_error(f"{arguments.tool} has no sessions{'' if arguments.all else ' of this folder'}.")
        return 1
    done: list[tuple[Path, Imported]] = []
    for file in files:
        try:
            imported = import_session(file, places.paths, override=places.override, salvage=arguments.salvage)
        except SessionError as error:
            print_error(str(error))
            continue
        done.append((file, imported))
        tell_import(file, imported)
        if not arguments.json:
            print_line(str(imported.path))
    if arguments.json:
        print_json([_as_json(file, imported) for file, imported in done])
    return 0 if len(done) == len(files) else 1


def _files_of(paths: Paths, tool: str, cwd: Path | None) -> Sequence[Path]:
    """The session files of another program, oldest first, so that the newest is the newest copy too."""
    rows = [row for row in list_sessions(paths, None, foreign=True) if row.tool == tool and not row.is_own]
    chosen = [row for row in rows if cwd is None or same_folder(row.cwd, cwd)]
    return [row.path for row in reversed(chosen)]


def tell_import(file: Path, imported: Imported) -> None:
    """Says on stderr what became of a file, in one line for each thing."""
    carried = _listed(imported.counts) or "nothing"
    skipped = _listed(imported.skipped)
    print_error(f"{file}: carried over {carried}" + (f"; left out {skipped}" if skipped else ""))
    for warning in imported.warnings:
        print_error(f"{file}: {warning}")
    if imported.earlier is not None:
        print_error(f"{file}: imported before as {imported.earlier}")


def _listed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in ordered)


def _as_json(file: Path, imported: Imported) -> dict[str, object]:
    return {
        "source": str(file),
        "path": str(imported.path),
        "id": imported.session_id,
        "counts": dict(imported.counts),
        "skipped": dict(imported.skipped),
        "earlier": None if imported.earlier is None else str(imported.earlier),
        "warnings": list(imported.warnings),
    }
