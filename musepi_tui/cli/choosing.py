"""Which session the command line means, and what is done before it can be opened (session-format 15)."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from musepi_tui.base.clock import SystemClock, iso_time
from musepi_tui.base.dataclass import dataclass
from musepi_tui.base.errors import SessionError, UsageError
from musepi_tui.base.ids import new_session_id
from musepi_tui.base.safe_text import display_safe
from musepi_tui.cli.options import PICK, Options
from musepi_tui.runtime.options import SessionChoice
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.storage.paths import Paths, expand_home, resolve_path, same_folder, session_folder

if TYPE_CHECKING:
    from musepi_tui.storage.listing import SessionInfo


class Ask(Protocol):
    """Puts a question to the person."""

    def __call__(self, question: str, *, is_yes_usual: bool) -> bool:
        """Whether the answer is yes."""
        ...


# Deferred imports below: a new session needs none of what the other choices need.


@dataclass(frozen=True, slots=True)
class Place:
    """Where the program runs: folders, working folder, settings."""

    paths: Paths
    cwd: Path
    settings: LoadedSettings

    @property
    def session_dir(self) -> Path | None:
        """The folder of sessions that flag, variable or setting name instead of the usual one.

        Raises ``SessionError`` for the home folder of somebody unknown.
        """
        chosen = self.settings.values.session.dir
        return None if chosen is None else resolve_path(expand_home(chosen))


def choose_session(
    options: Options, place: Place, environ: Mapping[str, str], ask: Ask | None
) -> SessionChoice:
    """Which session to open; copies, moves or imports it first where that is asked for.

    ``ask`` puts a question to the person, None when there is nobody. Raises ``SessionError`` when a named
    session cannot be found or is not to be opened here.
    """
    if options.no_session:
        return SessionChoice("memory")
    if options.session is not None:
        path = resolve_path(options.session)
        known = path.exists() and (not path.is_file() or path.stat().st_size > 0)
        return SessionChoice("open" if known else "new", path)
    if options.fork is not None:
        return _forked(_find(options.fork, place), place)
    if options.continue_newest:
        from musepi_tui.storage.breadcrumbs import continue_recent

        newest = continue_recent(place.paths, environ, place.cwd, override=place.session_dir)
        return SessionChoice() if newest is None else SessionChoice("open", newest)
    if options.resume == PICK and (options.print_once or options.mode != "text"):
        raise UsageError("musepi: --resume without an id needs the screen. Give an id: musepi sessions list.")
    if options.resume:
        return _resumed(options.resume, place, ask)
    return SessionChoice()


def ask_person(question: str, *, is_yes_usual: bool) -> bool:
    """The answer of the person at the terminal. Nothing typed is the usual one, the end of input a no."""
    sys.stderr.write(display_safe(f"{question} [{'Y/n' if is_yes_usual else 'y/N'}] "))
    sys.stderr.flush()
    line = sys.stdin.readline()
    answer = line.strip().lower()
    return is_yes_usual if line and not answer else answer in ("y", "yes")


def _find(reference: str, place: Place) -> "SessionInfo":
    from musepi_tui.storage.listing import find_session

    foreign = place.settings.values.session.foreign_roots
    return find_session(place.paths, place.cwd, reference, override=place.session_dir, foreign=foreign)


def _resumed(reference: str, place: Place, ask: Ask | None) -> SessionChoice:
    found = _find(reference, place)
    from musepi_tui.storage.listing import needs_import

    if needs_import(found):
        return _imported(found.path, place)
    is_path = "/" in reference or "\\" in reference or reference.endswith(".jsonl")
    if is_path or not found.cwd or same_folder(found.cwd, place.cwd):
        return SessionChoice("open", found.path)
    if Path(found.cwd).is_dir():
        return _from_other_folder(found, place, ask)
    return _from_lost_folder(found, place, ask)


def _from_lost_folder(found: "SessionInfo", place: Place, ask: Ask | None) -> SessionChoice:
    where = f"The folder of session {found.id}, {found.cwd}, does not exist any more"
    if ask is None:
        raise SessionError(f"{where}. To go on here in a copy: --fork {found.id}")
    if not ask(f"{where}. Move the session to {place.cwd}?", is_yes_usual=True):
        raise SessionError(f"Nothing was opened. To go on here in a copy: --fork {found.id}")
    from musepi_tui.storage.moving import move_session

    moved = move_session(found.path, place.cwd, place.paths, override=place.session_dir)
    _tell(moved.warnings)
    return SessionChoice("open", moved.path)


def _from_other_folder(found: "SessionInfo", place: Place, ask: Ask | None) -> SessionChoice:
    where = f"Session {found.id} belongs to {found.cwd}"
    there = f"musepi --cwd {found.cwd} --resume {found.id}"
    remedy = f"To go on there: {there}; here in a copy: --fork {found.id}"
    if ask is None:
        raise SessionError(f"{where}. {remedy}")
    if not ask(f"{where}. Go on here in a copy of it?", is_yes_usual=False):
        raise SessionError(f"Nothing was opened. {remedy}")
    return _forked(found, place)


def _forked(found: "SessionInfo", place: Place) -> SessionChoice:
    from musepi_tui.storage.branching import CopyPlace, fork_session
    from musepi_tui.storage.listing import needs_import

    if needs_import(found):
        return _imported(found.path, place)
    folder = session_folder(place.paths, place.cwd, place.session_dir)
    now = iso_time(SystemClock().now_ms())
    copy = fork_session(found.path, CopyPlace(folder, new_session_id(), now, str(place.cwd)))
    _tell(copy.warnings)
    return SessionChoice("open", copy.path)


def _imported(path: Path, place: Place) -> SessionChoice:
    """A session of another tool becomes one of musepi; the other tool's file is only read."""
    from musepi_tui.cli.sessions.import_ import tell_import
    from musepi_tui.storage.importers import import_session

    made = import_session(path, place.paths, override=place.session_dir, clock=SystemClock())
    _tell((f"{path} was copied into a new session, {made.path}; the original stays as it is",))
    tell_import(path, made)
    return SessionChoice("open", made.path)


def _tell(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        sys.stderr.write(display_safe(f"musepi: {warning}") + "\n")
