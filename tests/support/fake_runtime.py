"""A runtime that does nothing: it tells what a test makes it tell and remembers what it was sent."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import EntryNotFoundError
from musepi_tui.providers.types import Model
from musepi_tui.runtime.bus import EventBus, Subscription
from musepi_tui.runtime.events import (
    EntryAppended,
    Event,
    IntentSettled,
    Meter,
    Phase,
    PhaseChanged,
    SessionReady,
    SessionView,
)
from musepi_tui.runtime.intents import Intent
from musepi_tui.session.entries import Entry, EntryHead, SessionHeader
from musepi_tui.session.tree import SessionTree
from musepi_tui.settings.load import LoadedSettings
from musepi_tui.settings.schema import Settings
from musepi_tui.storage.paths import Paths
from tests.support.builders import heads
from tests.support.clock import FakeClock

SONNET = Model("anthropic", "claude-sonnet", "anthropic-messages", "", context_window=200_000, reasoning=True)
GPT = Model("openai", "gpt-large", "openai-completions", "", context_window=128_000)
DEMO = Model("demo", "demo", "demo", "", context_window=12_000, source="demo")


@dataclass
class FakeOptions:
    """The part of ``RuntimeOptions`` that a screen reads."""

    paths: Paths
    cwd: Path
    settings: LoadedSettings = field(default_factory=lambda: LoadedSettings(Settings()))
    clock: Clock = field(default_factory=FakeClock)


class FakeRuntime:
    """Stands for ``SessionRuntime``. ``sent`` are the intents in order, ``view_now`` what ``view`` gives."""

    def __init__(self, home: Path, *entries: Entry, model: Model | None = SONNET, **fields: Any) -> None:
        paths = Paths(home / "config", home / "data", home / "state")
        self.options = FakeOptions(paths, home / "project")
        self.sent: list[Intent] = []
        self.offered: tuple[Model, ...] = (SONNET, GPT)
        self.sessions: Sequence[Any] = ()
        self.batches: Sequence[Any] = ()
        self.begun = False
        self._entries = {entry.id: entry for entry in entries}
        self._bus = EventBus()
        header = SessionHeader(
            "0198c0de-0000-7000-8000-000000000000", "2026-01-05T10:00:00.000Z", "/home/ada/parser"
        )
        given: dict[str, Any] = {
            "meter": Meter(context_tokens=24_800, window=200_000, threshold=170_000),
            "thinking_level": "medium",
            "mode": "ask",
        }
        self.view_now = SessionView(
            header=header,
            file=None,
            tree=SessionTree.from_heads(heads(entries)) if entries else SessionTree.empty(),
            phase=Phase.LOADING,
            model=model,
            tail=tuple(entries),
            **(given | fields),
        )

    # what the screen calls

    def begin(self) -> None:
        """Loading is over at once."""
        if not self.begun:
            self.begun = True
            self.view_now = replace(self.view_now, phase=Phase.IDLE)
            self.emit(PhaseChanged(Phase.IDLE), SessionReady(self.view_now))

    def send(self, intent: Intent) -> str:
        """Remembers the intent."""
        self.sent.append(intent)
        return f"intent-{len(self.sent)}"

    def subscribe(self) -> Subscription:
        """The events from now on."""
        return self._bus.subscribe()

    def view(self) -> SessionView:
        """The session as the test says it is."""
        return self.view_now

    def read_entry(self, entry_id: str) -> Entry:
        """An entry the test gave."""
        if entry_id not in self._entries:
            raise EntryNotFoundError(entry_id)
        return self._entries[entry_id]

    def read_start(self, head: EntryHead, size_bytes: int) -> bytes | None:
        """Nothing: there is no file."""
        del head, size_bytes

    def models(self) -> tuple[Model, ...]:
        """Models that can be chosen."""
        return self.offered

    async def list_sessions(self, *, everywhere: bool = False, progress: Any = None) -> tuple[Any, ...]:
        """Sessions the test gave; the parts it gave are told first."""
        for batch in self.batches:
            progress(batch)
        return tuple(self.sessions)

    # what a test calls

    def emit(self, *events: Event) -> None:
        """Tells the screen."""
        for event in events:
            self._bus.emit(event)

    def append(self, *entries: Entry, live_id: str | None = None) -> None:
        """Entries join the path."""
        for entry in entries:
            self._entries[entry.id] = entry
            self.emit(EntryAppended(entry, live_id=live_id))

    def settle(self, number: int = -1, *, error: str | None = None, **data: Any) -> None:
        """Ends an intent: the last one, or that of the list index."""
        index = number % len(self.sent)
        self.emit(IntentSettled(f"intent-{index + 1}", error is None, data or None, error))
