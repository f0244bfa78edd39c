"""Where the session commands that write look for sessions and put them."""

from collections.abc import Mapping
from pathlib import Path

from musepi_tui.storage.paths import Paths, find_paths, session_dir_override


def find_places(environ: Mapping[str, str], given: Path | None) -> tuple[Paths, Path | None]:
    """The folders of the program and the one that replaces the sessions root, if any.

    ``given`` comes from ``--session-dir``; after it the environment counts, then the settings. Raises
    ``SettingsError``.
    """
    paths = find_paths(environ)
    if given is not None:
        return paths, given.expanduser().absolute()
    return paths, session_dir_override(environ, _session_dir_setting(paths))


def _session_dir_setting(paths: Paths) -> str | None:
    if not (paths.config / "settings.json").exists():
        return None
    from musepi_tui.settings.load import (
        load_settings,  # deferred: loads pydantic, which costs half of the start
    )

    return load_settings(paths.config, None).values.session.dir
