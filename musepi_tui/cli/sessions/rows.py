"""``musepi sessions list``: stored sessions."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from musepi_tui.cli.tables import print_json, print_line, print_table
from musepi_tui.storage.listing import SessionInfo, list_sessions
from musepi_tui.storage.paths import Paths, find_paths, session_dir_override

ID_CHARS = 8


def show_list(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the sessions of this folder, or of all, newest first."""
    paths = find_paths(environ)
    override = arguments.session_dir or session_dir_override(environ, _session_dir_setting(paths))
    rows = list_sessions(paths, None if arguments.all else Path.cwd(), override=override)
    if arguments.json:
        print_json([_row_json(row) for row in rows])
    elif not rows:
        print_line("No sessions here." if not arguments.all else "No sessions.")
    else:
        table = [("id", "modified", "messages", "title")]
        table += [(row.id, row.modified[:16].replace("T", " "), _count(row), row.title) for row in rows]
        print_table(table)
    return 0


def _session_dir_setting(paths: Paths) -> str | None:
    if not (paths.config / "settings.json").exists():
        return None
    from musepi_tui.settings.load import (
        load_settings,  # deferred: loads pydantic, which costs half of the start
    )

    return load_settings(paths.config, None).values.session.dir


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
