"""Which session a terminal had last, for ``--continue`` (session-format 13, 15)."""

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from musepi_tui.base.files import atomic_write, make_private_folder, read_regular
from musepi_tui.storage.paths import Paths, same_folder
from musepi_tui.storage.state import set_aside

FOLDER = "terminal-sessions"
MAX_BYTES = 64 * 1024
MAX_ID_CHARS = 100
MAX_LEVELS = 8
"""How far a path inside artifact folders is followed outwards."""

_VARIABLES = (
    "ZELLIJ_PANE_ID",
    "TMUX_PANE",
    "CMUX_SURFACE_ID",
    "KITTY_WINDOW_ID",
    "WEZTERM_PANE",
    "TERM_SESSION_ID",
    "WT_SESSION",
)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def remember_terminal(paths: Paths, environ: Mapping[str, str], cwd: Path, path: Path) -> None:
    """Notes that this terminal has the session ``path`` open, from the folder ``cwd``.

    Does nothing where the terminal has no name or the state folder cannot be written. Blocks.
    """
    terminal = terminal_id(environ)
    lines = (str(cwd), str(path.absolute()))
    if terminal is None or any("\n" in line for line in lines):
        return
    file = paths.state / FOLDER / terminal
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    with contextlib.suppress(OSError):
        make_private_folder(file.parent)
        atomic_write(file, data, mode=0o600)


def remembered_session(paths: Paths, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The session this terminal had last, when that was in ``cwd`` and its file is still there.

    A note that cannot be read is set aside. Blocks.
    """
    terminal = terminal_id(environ)
    if terminal is None:
        return None
    file = paths.state / FOLDER / terminal
    try:
        text = read_regular(file, MAX_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    except OSError:
        set_aside(file)
        return None
    lines = text.split("\n")
    if len(lines) < 3 or "\0" in text or not Path(lines[1]).is_absolute():
        set_aside(file)
        return None
    if not same_folder(lines[0], cwd):
        return None
    path = outer_session(Path(lines[1]))
    return path if path.is_file() else None


def continue_recent(
    paths: Paths, environ: Mapping[str, str], cwd: Path, *, override: Path | None = None
) -> Path | None:
    """The session ``--continue`` means: the last of this terminal, else the newest of ``cwd``, else None."""
    path = remembered_session(paths, environ, cwd)
    if path is not None:
        return path
    from musepi_tui.storage.listing import newest_session  # deferred: mostly the terminal knows

    newest = newest_session(paths, cwd, override=override)
    return None if newest is None else newest.path


def outer_session(path: Path) -> Path:
    """The session that a file belongs to: itself, or the one whose artifact folder holds it."""
    for _ in range(MAX_LEVELS):
        outer = path.parent.with_name(f"{path.parent.name}.jsonl") if path.parent.name else path
        if outer == path or not outer.is_file():
            break
        path = outer
    return path


def terminal_id(environ: Mapping[str, str]) -> str | None:
    """A name for the terminal that can be a file name; None where there is no terminal to tell apart."""
    name = _tty() or _name_in(environ)
    if name is None:
        return None
    return _UNSAFE.sub("_", name.replace("/", "-")).lstrip(".")[:MAX_ID_CHARS] or None


def _tty() -> str | None:
    for descriptor in (0, 1, 2):
        with contextlib.suppress(OSError):
            return os.ttyname(descriptor).removeprefix("/dev/")
    return None


def _name_in(environ: Mapping[str, str]) -> str | None:
    """What a terminal multiplexer or program calls this pane or window."""
    for variable in _VARIABLES:
        value = environ.get(variable)
        if value:
            session = environ.get("ZELLIJ_SESSION_NAME", "") if variable == "ZELLIJ_PANE_ID" else ""
            program = variable.partition("_")[0].lower()
            return "-".join(part for part in (program, session, value) if part)
    return None
