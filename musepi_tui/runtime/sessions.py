"""Loading a session wholly, for work (architecture 7d)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from musepi_tui.runtime.events import Notice
from musepi_tui.runtime.history import Loaded, context_heads
from musepi_tui.runtime.opening import Opened
from musepi_tui.session.entries import Entry, LoadIssue, SessionHeader
from musepi_tui.session.rebuild import SessionContext, build_session_context
from musepi_tui.session.totals import Totals
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.loading import describe_issues, load_session
from musepi_tui.storage.session_file import SessionFile


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session that is wholly there, locked for writing. ``cwd`` is where its tools work."""

    loaded: Loaded
    file: SessionFile
    cwd: Path
    issues: tuple[LoadIssue, ...] = ()
    notices: tuple[Notice, ...] = ()
    read_totals: Callable[[], Totals] | None = None


def load_wholly(opened: Opened, cwd: Path) -> StoredSession:
    """The whole session, its context rebuilt. Blocking: call it in a thread. Raises ``SessionError``."""
    if opened.is_new:
        loaded = Loaded(opened.header, SessionTree.empty(), Bodies(opened.path), SessionContext((), ()))
        return StoredSession(loaded, SessionFile.create(opened.path, opened.header), cwd)
    stored = load_session(opened.path)
    file = SessionFile.open(opened.path, stored)
    context = build_session_context(_read(stored.tree, stored.bodies))
    loaded = Loaded(stored.header, stored.tree, stored.bodies, context, stored.name)
    folder, notices = _work_folder(stored.header, cwd)
    damage = describe_issues(stored.issues)
    warnings = context.warnings if damage is None else (damage, *context.warnings)
    notices += tuple(Notice("warning", text, "session") for text in warnings)
    return StoredSession(loaded, file, folder, tuple(stored.issues), notices, lambda: stored.totals)


def _work_folder(header: SessionHeader, cwd: Path) -> tuple[Path, tuple[Notice, ...]]:
    """The folder the session belongs to; ``cwd`` with a notice when that is gone (P-098)."""
    own = Path(header.cwd) if header.cwd else cwd
    if own.is_dir():
        return own, ()
    text = f"The folder of this session, {own}, does not exist here; tools work in {cwd}."
    return cwd, (Notice("warning", text, "session"),)


def _read(tree: SessionTree, bodies: Bodies) -> Sequence[Entry]:
    return tuple(bodies.get(head) for head in context_heads(tree, bodies))
