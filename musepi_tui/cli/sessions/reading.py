"""What the session commands share: load a file, choose a leaf, tell about damage."""

from collections.abc import Sequence
from pathlib import Path

from musepi_tui.base.errors import UsageError
from musepi_tui.cli.tables import print_error
from musepi_tui.session.entries import Entry
from musepi_tui.storage.loading import LoadedSession, describe_issues, load_session


def load_telling(path: Path) -> LoadedSession:
    """The session; what is wrong with its file is said on stderr. Raises ``SessionError``."""
    loaded = load_session(path, thorough=True)
    text = describe_issues(loaded.issues)
    if text is not None:
        print_error(f"{path}: {text}")
    return loaded


def path_to(loaded: LoadedSession, leaf_id: str | None) -> Sequence[Entry]:
    """The entries from the root to ``leaf_id``, or to the leaf. Raises ``UsageError`` for an unknown id."""
    if leaf_id is not None and leaf_id not in loaded.tree:
        raise UsageError(
            f"--leaf: {loaded.path} has no entry {leaf_id}; `musepi sessions tree` lists the ids it has."
        )
    return loaded.read_path(leaf_id)
