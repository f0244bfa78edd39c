"""``musepi sessions delete``: a session into the trash."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from musepi_tui.base.errors import SessionError
from musepi_tui.cli.sessions.places import Places, find_places
from musepi_tui.cli.tables import print_error, print_line
from musepi_tui.storage.listing import SessionInfo, find_session
from musepi_tui.storage.trash import MOVED, REMOVED, delete_session


def delete(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Deletes one session; 1 when no trash takes it, which leaves it where it is. Raises ``SessionError``."""
    places = find_places(environ, arguments.session_dir)
    found = _find(places, arguments.id)
    outcome = delete_session(found.path, places.paths, environ=environ, permanently=arguments.permanently)
    if not outcome.done:
        remedy = (
            "Check who may write there." if arguments.permanently else "--permanently deletes it for good."
        )
        print_error(f"{found.path} was not deleted: {outcome.reason}. {remedy}")
        return 1
    for path in outcome.left:
        print_error(f"{path} belonged to the session and could not be deleted with it.")
    print_line(REMOVED if arguments.permanently else MOVED)
    return 0


def _find(places: Places, reference: str) -> SessionInfo:
    """The session that is meant. By id only our own: one of another tool has to be named by its path."""
    try:
        return find_session(places.paths, Path.cwd(), reference, override=places.override, foreign=False)
    except SessionError as error:
        try:
            foreign = find_session(places.paths, Path.cwd(), reference, override=places.override)
        except SessionError:
            raise error from None
        raise SessionError(
            f'"{reference}" is a session of {foreign.tool}. To delete that one all the same, name its file: '
            f"{foreign.path}"
        ) from error
