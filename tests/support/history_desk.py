"""A history with a session file of its own, for tests of the runtime."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from musepi_tui.base.ids import new_session_id
from musepi_tui.runtime.events import Event, Notice
from musepi_tui.runtime.history import History, Loaded
from musepi_tui.runtime.saving import Saver
from musepi_tui.runtime.tasks import Children
from musepi_tui.session.entries import SessionHeader
from musepi_tui.session.rebuild import SessionContext, build_session_context
from musepi_tui.session.tree import SessionTree
from musepi_tui.storage.bodies import Bodies
from musepi_tui.storage.entry_file import EntryFile
from musepi_tui.storage.loading import load_session
from musepi_tui.storage.session_file import SessionFile
from tests.support.clock import FakeClock

MODEL = ("model_change", {"provider": "test", "modelId": "model", "model": "test/model"})


class Desk:
    """A history with everything it told."""

    def __init__(self, path: Path, children: Children, policy: str, file: EntryFile | None = None) -> None:
        self.path = path
        self.children = children
        self.told: list[Event] = []
        self.clock = FakeClock()
        header = SessionHeader(new_session_id(), "2026-01-01T00:00:00.000Z", "/project")
        loaded = Loaded(header, SessionTree.empty(), Bodies(path), SessionContext((), ()))
        self.file = file or SessionFile.create(path, header, loaded.bodies)
        if file is None and path.exists():
            stored = load_session(path)
            self.file = SessionFile.open(path, stored)
            context = build_session_context(stored.read_path())
            loaded = Loaded(stored.header, stored.tree, stored.bodies, context, stored.name)
        self.saver = Saver(self.file, policy, children, self.clock, self.told.append)
        self.opening = [] if len(loaded.tree) else [MODEL]
        self.history = History(loaded, self.saver, self.clock, self.told.append, self._take_opening)
        self.saver.on_saved = self.history.note_saved

    def _take_opening(self):
        taken, self.opening = self.opening, []
        return taken

    def stored_types(self) -> list[str]:
        loaded = load_session(self.path)
        return [head.type for head in loaded.tree.path()]

    def reloaded(self) -> SessionContext:
        loaded = load_session(self.path)
        return build_session_context(loaded.read_path())

    def notices(self) -> list[Notice]:
        return [event for event in self.told if isinstance(event, Notice)]


@asynccontextmanager
async def desk_at(path: Path, policy: str = "turn", *, file: EntryFile | None = None) -> AsyncIterator[Desk]:
    """A history on a new file, on the one at ``path``, or on ``file``."""
    async with asyncio.TaskGroup() as group:
        children = Children(group, lambda _: None)
        made = Desk(path, children, policy, file)
        try:
            yield made
        finally:
            await children.stop(1)
            made.file.close()


def break_writes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Every write of the session file fails until the returned function is called."""
    real = os.write
    broken = True

    def write(descriptor: int, data: bytes) -> int:
        if broken and data[:1] in (b"{", b"\n"):
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    def mend() -> None:
        nonlocal broken
        broken = False

    monkeypatch.setattr(os, "write", write)
    return mend
