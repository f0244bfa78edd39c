"""``musepi sessions export``: a session as a page, a document, plain text or a file others can open."""

import argparse
from collections.abc import Mapping

from musepi_tui.base.errors import UsageError
from musepi_tui.base.known_secrets import find_secrets
from musepi_tui.cli.sessions.reading import load_telling, require_leaf
from musepi_tui.cli.tables import print_error, print_line
from musepi_tui.storage.exporters.export import ExportOptions, export_session, format_of, source_of
from musepi_tui.storage.paths import find_paths


def export(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Writes FILE to OUT and prints where it went. Takes no lock. Raises ``SessionError``, ``UsageError``."""
    try:
        suffix = format_of(arguments.out)
    except UsageError as error:
        raise UsageError(f"OUT: {error}") from error
    if arguments.leaf is not None and suffix == ".jsonl":
        raise UsageError(
            f"--leaf {arguments.leaf}: a .jsonl export always holds the whole session; "
            "accepted with .html, .md and .txt."
        )
    secrets = None if arguments.raw else find_secrets(find_paths(environ).config, environ)
    for problem in secrets.problems if secrets is not None else ():
        print_error(problem)
    loaded = load_telling(arguments.file)
    require_leaf(loaded, arguments.leaf)
    options = ExportOptions(secrets, force=arguments.force, inline=arguments.inline)
    exported = export_session(source_of(loaded, arguments.leaf), arguments.out, options)
    for warning in exported.warnings:
        print_error(warning)
    print_line(str(exported.path))
    return 0
