"""SessionRuntime: lifetime, the intent loop, what is going on now (architecture 6)."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from musepi_tui.base.errors import EntryNotFoundError, MusepiError
from musepi_tui.providers.types import Model
from musepi_tui.runtime.bus import EventBus, Subscription
from musepi_tui.runtime.events import (
    IntentSettled,
    Meter,
    Notice,
    Phase,
    PhaseChanged,
    QueueChanged,
    SessionReady,
    SessionView,
)
from musepi_tui.runtime.intents import Intent, NewSession, OpenSession, SubmitPrompt
from musepi_tui.runtime.opening import Opened, open_quickly, session_override
from musepi_tui.runtime.options import RuntimeOptions, SessionChoice
from musepi_tui.runtime.outcome import Outcome
from musepi_tui.runtime.settling import BUSY, LOAD_FAILED, STILL_LOADING, STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.tasks import CancelStack, Children
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.messages import Message
from musepi_tui.session.tree import SessionTree

if TYPE_CHECKING:
    # The first screen needs none of these; they are imported in a thread while it is shown.
    from musepi_tui.runtime.assembly import Shared
    from musepi_tui.runtime.desk import Desk
    from musepi_tui.storage.glance import SessionInfo

CLOSE_WITHIN_S = 3.0
"""Seconds children may take to end at closing: a cancelled command needs 2. With ``LEAVE_WITHIN_S`` and the
last sync it stays under the 5 of SAF-12."""


class SessionRuntime:
    """One session at a time, driven by intents, telling events. Opened with ``open``, started with
    ``begin``."""

    def __init__(self, options: RuntimeOptions, opened: Opened) -> None:
        self._options = options
        self._opened = opened
        self._phase = Phase.LOADING
        self._bus = EventBus()
        self._cancels = CancelStack()
        self._group = asyncio.TaskGroup()
        self._children = Children(self._group, self._bus.emit)
        self._loop = asyncio.get_running_loop()
        self._intents: asyncio.Queue[tuple[str, Intent]] = asyncio.Queue()
        self._ids = count(1)
        self._shared: Shared | None = None
        self._desk: Desk | None = None
        self._failure: str | None = None
        self._early: list[tuple[str, SubmitPrompt]] = []
        self._begun = False
        self._closed = False
        self._rescue: Path | None = None

    @classmethod
    def open(cls, options: RuntimeOptions) -> "AbstractAsyncContextManager[SessionRuntime]":
        """The runtime for a ``with`` block. Entering it reads the end of the session and locks it, no more.

        Raises ``SessionError`` at entering when the session cannot be opened, ``SessionBusyError`` when
        another process writes it. Leaving stops everything, stores what is there and gives the file back.
        """
        return _Opening(options)

    @property
    def options(self) -> RuntimeOptions:
        """What it was opened with."""
        return self._options

    @property
    def outcome(self) -> Outcome:
        """How the last turn ended, for an exit code."""
        return Outcome() if self._desk is None else self._desk.outcome()

    @property
    def rescue_file(self) -> Path | None:
        """Where entries went that could not be written to the session; known after closing."""
        return self._rescue

    def begin(self) -> None:
        """Starts loading; again does nothing. ``SessionReady`` follows."""
        if self._begun or self._closed:
            return
        self._begun = True
        self._children.start("loading", self._start())

    def send(self, intent: Intent) -> str:
        """Hands an intent over and returns its id; ``IntentSettled`` ends it. Never blocks."""
        intent_id = f"intent-{next(self._ids)}"
        self._intents.put_nowait((intent_id, intent))
        return intent_id

    def call_soon(self, function: Callable[[], None]) -> None:
        """Runs a function in the runtime's event loop; may be called from any thread."""
        self._loop.call_soon_threadsafe(function)

    def subscribe(self) -> Subscription:
        """The events from now on."""
        return self._bus.subscribe()

    def view(self) -> SessionView:
        """The session as it is now."""
        desk = self._desk
        if desk is not None:
            return desk.view(self._phase)
        opened = self._opened
        return SessionView(
            header=opened.header,
            file=opened.path,
            tree=SessionTree.from_heads([_head(entry) for entry in opened.tail]),
            phase=self._phase,
            meter=Meter(),
            model=None,
            thinking_level="off",
            mode=self._options.mode or self._options.settings.values.permissions.mode,
            tail=opened.tail,
            tail_is_whole=opened.tail_is_whole,
            steering=tuple(prompt.text for _, prompt in self._early),
            issues=opened.issues,
        )

    def read_entry(self, entry_id: str) -> Entry:
        """One entry, read from the file when it is not in memory. Raises ``EntryNotFoundError``."""
        if self._desk is not None:
            return self._desk.history.entry(entry_id)
        found = next((entry for entry in self._opened.tail if entry.id == entry_id), None)
        if found is None:
            raise EntryNotFoundError(f"Entry {entry_id} not found")
        return found

    def models(self) -> tuple[Model, ...]:
        """Models that can be chosen."""
        return () if self._desk is None else self._desk.services.gateway.available()

    def context_messages(self) -> tuple[tuple[str, Message], ...]:
        """What the model would be sent: entry id and converted message."""
        return () if self._desk is None else self._desk.services.context_with_ids()

    async def list_sessions(self, *, everywhere: bool = False) -> "tuple[SessionInfo, ...]":
        """Stored sessions, newest first: of this folder, or of all."""
        from musepi_tui.storage.listing import list_sessions  # deferred: only when somebody asks

        options = self._options
        cwd = None if everywhere else options.cwd
        override = session_override(options)
        return tuple(await asyncio.to_thread(list_sessions, options.paths, cwd, override=override))

    async def enter(self) -> None:
        """Starts the intent loop; called by ``open``."""
        await self._group.__aenter__()
        self._children.start("intents", self._serve())

    async def close(self) -> None:
        """Stops everything, stores what is there, gives the file back; called at the end of ``open``."""
        if self._closed:
            return
        self._set_phase(Phase.CLOSING)
        self._closed = True
        await self._children.stop(CLOSE_WITHIN_S)
        if self._desk is not None:
            self._rescue = await self._desk.close() or self._rescue
            await self._desk.leave()
        self._bus.close()
        await self._group.__aexit__(None, None, None)

    async def _start(self) -> None:
        """Loads the session chosen at opening; without it intents are answered with the reason."""
        try:
            shared = await self._share()
            self._shared = shared
            desk = await self._build(self._opened, shared)
        except MusepiError as error:
            self._fail(str(error))
            return
        except Exception:
            # A bug; the task guard logs it. Whoever waits for the session must still hear that there is none.
            self._fail(LOAD_FAILED)
            raise
        self._announce(desk, self._opened, "start")
        for problem in self._options.settings.problems:
            self._bus.emit(Notice("warning", f"{problem.path}: {problem.message}", "settings"))
        for problem in shared.registry.problems:
            self._bus.emit(Notice("warning", problem, "models"))
        self._take_early()

    async def _share(self) -> "Shared":
        """What outlives a session. Most of the program is imported here, in a thread."""
        await asyncio.to_thread(import_module, "musepi_tui.runtime.assembly")
        from musepi_tui.runtime.assembly import Shared, load_registry  # deferred: see TYPE_CHECKING above

        registry = await load_registry(self._options)
        return Shared(self._options, registry, self._bus, self._children, self._cancels, self._set_phase)

    async def _build(self, opened: Opened, shared: "Shared") -> "Desk":
        from musepi_tui.runtime.assembly import build_desk  # deferred: see TYPE_CHECKING above
        from musepi_tui.runtime.sessions import load_wholly

        stored = await asyncio.to_thread(load_wholly, opened, self._options.cwd)
        desk = build_desk(shared, stored, self._desk)
        meter = desk.services.meter
        await asyncio.to_thread(meter.measure)  # counts every message once, away from the screen
        meter.refresh()
        return desk

    def _fail(self, text: str) -> None:
        self._failure = text
        self._set_phase(Phase.IDLE)
        self._bus.emit(Notice("error", text, "session"))
        self._take_early()

    def _announce(self, desk: "Desk", opened: Opened, reason: Literal["start", "new", "resume"]) -> None:
        self._opened = opened
        self._desk = desk
        self._failure = None
        self._set_phase(Phase.IDLE)
        self._bus.emit(SessionReady(self.view(), reason))
        for notice in desk.notices:
            self._bus.emit(notice)
        self._children.start("preparation", desk.prepare())

    def _take_early(self) -> None:
        """Hands over the prompts that were sent while there was no session to send them to."""
        early, self._early = self._early, []
        for intent_id, prompt in early:
            self._take(prompt, self._settling(intent_id), intent_id)

    async def _switch(self, choice: SessionChoice, settle: Settle) -> None:
        """Another session takes the place of this one, which is stored and given back."""
        shared, old = self._shared, self._desk
        if shared is None:
            settle(STILL_LOADING)
            return
        self._set_phase(Phase.LOADING)
        try:
            opened = await asyncio.to_thread(open_quickly, choice, self._options)
            desk = await self._build(opened, shared)
        except MusepiError as error:
            self._set_phase(Phase.IDLE)
            settle(str(error))
        else:
            if old is not None:
                self._rescue = await old.close() or self._rescue
            self._announce(desk, opened, "new" if opened.is_new else "resume")
            settle(None)
        self._take_early()

    async def _serve(self) -> None:
        while True:
            intent_id, intent = await self._intents.get()
            settle = self._settling(intent_id)
            take = partial(self._take, intent, settle, intent_id)
            if not self._children.call(type(intent).__name__, take):
                settle(STOPPED_UNEXPECTEDLY)

    def _take(self, intent: Intent, settle: Settle, intent_id: str) -> None:
        desk = self._desk
        if self._phase is Phase.LOADING:
            if isinstance(intent, SubmitPrompt):
                self._early.append((intent_id, intent))
                self._bus.emit(QueueChanged(tuple(prompt.text for _, prompt in self._early), ()))
            else:
                settle(STILL_LOADING)
        elif isinstance(intent, NewSession | OpenSession):
            self._begin_switch(intent, settle)
        elif desk is None:
            settle(self._failure)
        else:
            desk.take(intent, settle)

    def _begin_switch(self, intent: NewSession | OpenSession, settle: Settle) -> None:
        desk = self._desk
        if desk is not None and desk.worker.busy:
            settle(BUSY)
        elif isinstance(intent, NewSession):
            self._children.start("switching", self._switch(SessionChoice(), settle))
        elif desk is not None and Path(intent.path).resolve() == desk.history.saver.path.resolve():
            self._announce(desk, self._opened, "resume")
            settle(None)
        else:
            choice = SessionChoice("open", Path(intent.path))
            self._children.start("switching", self._switch(choice, settle))

    def _settling(self, intent_id: str) -> Settle:
        settled = False

        def settle(error: str | None, data: Mapping[str, Any] | None = None) -> None:
            nonlocal settled
            if not settled:
                settled = True
                self._bus.emit(IntentSettled(intent_id, error is None, data, error))

        return settle

    def _set_phase(self, phase: Phase) -> None:
        if phase is not self._phase and self._phase is not Phase.CLOSING:
            self._phase = phase
            self._bus.emit(PhaseChanged(phase))


class _Opening:
    """Opens a runtime at entering and closes it at leaving, whatever ends the block."""

    def __init__(self, options: RuntimeOptions) -> None:
        self._options = options
        self._runtime: SessionRuntime | None = None

    async def __aenter__(self) -> SessionRuntime:
        runtime = SessionRuntime(self._options, open_quickly(self._options.session, self._options))
        await runtime.enter()
        self._runtime = runtime
        return runtime

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._runtime is not None:
            await self._runtime.close()


def _head(entry: Entry) -> EntryHead:
    return EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp)
