"""What the session commands share: load a file, choose a leaf, tell about damage."""

from collections.abc import Sequence
from pathlib import Path

from musepi_tui.base.errors import NotASessionFileError, UsageError
from musepi_tui.cli.tables import print_error
from musepi_tui.session.entries import Entry
from musepi_tui.storage.loading import LoadedSession, describe_issues, load_session


def load_whole(path: Path) -> LoadedSession:
    """The session, every line parsed.

    Raises ``SessionError``; for a file that is no session with the command that makes one of it.
    """
    try:
        return load_session(path, thorough=True)
    except NotASessionFileError as error:
        # Deferred: only for a file that is refused.
        from musepi_tui.storage.importers import find_import_command

        command = find_import_command(path)
        raise NotASessionFileError(f"{error}" if command is None else f"{error}; try: {command}") from error


def load_telling(path: Path) -> LoadedSession:
    """As ``load_whole``; what is wrong with the file is said on stderr."""
    loaded = load_whole(path)
    text = describe_issues(loaded.issues)
    if text is not None:
        print_error(f"{path}: {text}")
    return loaded


def path_to(loaded: LoadedSession, leaf_id: str | None) -> Sequence[Entry]:
    """The entries from the root to ``leaf_id``, or to the leaf. Raises ``UsageError`` for an unknown id."""
    require_leaf(loaded, leaf_id)
    return loaded.read_path(leaf_id)


def require_leaf(loaded: LoadedSession, leaf_id: str | None) -> None:
    """Raises ``UsageError`` for an id the session does not have; None is the leaf it stands at."""
    if leaf_id is not None and leaf_id not in loaded.tree:
        raise UsageError(
            f"--leaf: {loaded.path} has no entry {leaf_id}; `musepi sessions tree` lists the ids it has."
        )
