"""``musepi sessions list``: stored sessions, those of other tools included."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from musepi_tui.base.text import plural
from musepi_tui.cli.sessions.places import find_places
from musepi_tui.cli.tables import print_error, print_json, print_line, print_table
from musepi_tui.storage.listing import DamagedFile, SessionInfo, age_of, iter_sessions

SHOWN_DAMAGED = 10
"""Files that are no sessions and are named; a folder full of them must not push the list off the screen."""


def show_list(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the sessions of this folder, or of all, newest first. What cannot be read is told on stderr."""
    places = find_places(environ, arguments.session_dir)
    rows: dict[Path, SessionInfo] = {}
    damaged: list[DamagedFile] = []
    cwd = None if arguments.all else Path.cwd()
    for batch in iter_sessions(places.paths, cwd, override=places.override, foreign=places.foreign):
        rows.update((row.path, row) for row in batch.rows)
        damaged += batch.damaged
        for notice in batch.notices:
            print_error(notice)
    newest_first = sorted(rows.values(), key=age_of, reverse=True)
    if arguments.json:
        print_json([_row_json(row) for row in newest_first])
    elif not rows:
        print_line("No sessions here." if not arguments.all else "No sessions.")
    else:
        print_table(_table(newest_first, with_folder=arguments.all))
    _tell_damaged(damaged)
    return 0


def _table(rows: Sequence[SessionInfo], *, with_folder: bool) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = [("id", "modified", "messages", "tool", "folder", "title")]
    for row in rows:
        modified = row.modified[:16].replace("T", " ")
        table.append((row.id, modified, _count(row), row.tool, row.cwd, row.title))
    return table if with_folder else [(*cells[:4], cells[5]) for cells in table]


def _tell_damaged(damaged: list[DamagedFile]) -> None:
    for file in damaged[:SHOWN_DAMAGED]:
        print_error(f"{file.path}: not listed: {file.reason}")
    if len(damaged) > SHOWN_DAMAGED:
        print_error(f"{plural(len(damaged) - SHOWN_DAMAGED, 'more file')} not listed.")


def _row_json(row: SessionInfo) -> dict[str, object]:
    return {
        "path": str(row.path),
        "id": row.id,
        "cwd": row.cwd,
        "title": row.title,
        "created": row.created,
        "modified": row.modified,
        "messages": row.messages,
        "size": row.size,
        "tool": row.tool,
    }


def _count(row: SessionInfo) -> str:
    return str(row.messages) if row.messages_exact else f"{row.messages}+"
