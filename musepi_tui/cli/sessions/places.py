"""Where the session commands look for sessions and put them, and the few settings they heed."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from musepi_tui.base.dataclass import dataclass
from musepi_tui.cli.tables import print_error
from musepi_tui.storage.paths import Paths, expand_home, find_paths, session_dir_override

if TYPE_CHECKING:
    from musepi_tui.settings.schema import Settings

_HEEDED = ("session.", "tokens.")
"""Settings the session commands heed; trouble with others is for the commands that use them."""


@dataclass(frozen=True, slots=True)
class Places:
    """``override`` is the folder that replaces the sessions root, if any; ``foreign`` says whether the
    sessions of other tools are listed too."""

    paths: Paths
    override: Path | None
    foreign: bool


def find_places(environ: Mapping[str, str], given: Path | None) -> Places:
    """The places; ``given`` comes from ``--session-dir``, after it the environment counts, then the settings.

    Raises ``SessionError`` for the home folder of somebody unknown.
    """
    paths = find_paths(environ)
    if given is not None:
        return Places(paths, expand_home(str(given)).absolute(), foreign=False)
    settings = read_settings(paths, environ)
    if settings is None:
        return Places(paths, session_dir_override(environ), foreign=True)
    override = session_dir_override(environ, settings.session.dir)
    return Places(paths, override, foreign=settings.session.foreign_roots)


def read_settings(paths: Paths, environ: Mapping[str, str]) -> "Settings | None":
    """The settings, None when nothing sets any that is heeded here. What cannot be used is told on stderr."""
    if not (paths.config / "settings.json").exists() and not environ.get("MUSEPI_TOKENIZER"):
        return None
    # Deferred: the schema takes 20 ms to load, and most people have no such file.
    from musepi_tui.settings.load import load_settings

    loaded = load_settings(paths.config, None, environ=environ)
    for problem in loaded.problems:
        if not problem.key or problem.key.startswith(_HEEDED):
            print_error(f"{problem.path}: {problem.message}")
    return loaded.values
