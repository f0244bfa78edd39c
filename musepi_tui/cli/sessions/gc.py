"""``musepi sessions gc``: deletes blobs that no session mentions."""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.base.text import plural
from musepi_tui.cli.sessions.places import find_places
from musepi_tui.cli.tables import print_error, print_line
from musepi_tui.storage.blob_garbage import delete_blob, find_garbage
from musepi_tui.storage.foreign import IMPORTED_TOOLS
from musepi_tui.storage.paths import Paths


def collect(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Prints the path of every blob it deletes, or would with ``--dry-run``. Raises ``SessionError``."""
    places = find_places(environ, arguments.session_dir)
    now_ms = time.time_ns() // 1_000_000
    garbage = find_garbage(places.paths.data / "blobs", _roots(places.paths, places.override), now_ms)
    gone = 0
    for path in garbage.files:
        try:
            is_gone = arguments.dry_run or delete_blob(path, now_ms)
        except OSError as error:
            raise SessionError(f"{path}: {error.strerror}") from error
        if is_gone:
            gone += 1
            print_line(str(path))
    told = "would be deleted" if arguments.dry_run else "deleted"
    print_error(f"{plural(gone, 'blob')} {told}")
    return 0


def _roots(paths: Paths, override: Path | None) -> tuple[Path, ...]:
    """The folders whose sessions may mention our blobs: the own ones, and those of tools that musepi
    continues in place."""
    others = [root for tool in paths.tools if tool.tool not in IMPORTED_TOOLS for root in tool.roots()]
    own = [paths.sessions] if override is None else [paths.sessions, override]
    return (*own, *others)
