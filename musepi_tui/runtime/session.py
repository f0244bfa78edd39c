"""SessionRuntime: lifetime, the intent loop, what a door may ask (architecture 6)."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from musepi_tui.providers.types import Model
from musepi_tui.runtime.bus import EventBus, Subscription
from musepi_tui.runtime.events import IntentSettled, Phase, QueueChanged, SessionView
from musepi_tui.runtime.intents import EditorChanged, Intent, SubmitPrompt
from musepi_tui.runtime.opening import Opened, open_quickly
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.outcome import Outcome
from musepi_tui.runtime.settling import STILL_LOADING, STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.stage import Stage
from musepi_tui.runtime.tasks import Children
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.messages import Message

if TYPE_CHECKING:
    # The first screen needs neither; they are imported in a thread while it is shown.
    from musepi_tui.runtime.exchange import Exchange
    from musepi_tui.storage.glance import SessionInfo
    from musepi_tui.storage.listing import Batch

CLOSE_WITHIN_S = 3.0
"""Seconds children may take to end at closing: a cancelled command needs 2. With ``LEAVE_WITHIN_S`` and the
last sync it stays under the 5 of SAF-12."""


class SessionRuntime:
    """One session at a time, driven by intents, telling events. Opened with ``open``, started with
    ``begin``."""

    def __init__(self, options: RuntimeOptions, opened: Opened) -> None:
        self._options = options
        self._bus = EventBus()
        self._group = asyncio.TaskGroup()
        self._children = Children(self._group, self._bus.emit)
        self._stage = Stage(options, opened, self._bus, self._children)
        self._stage.changed = self._take_early
        self._exchange: Exchange | None = None
        self._loop = asyncio.get_running_loop()
        self._intents: asyncio.Queue[tuple[str, Intent]] = asyncio.Queue()
        self._ids = count(1)
        self._early: list[tuple[str, SubmitPrompt]] = []
        self._begun = False
        self._closed = False

    @classmethod
    def open(cls, options: RuntimeOptions) -> "AbstractAsyncContextManager[SessionRuntime]":
        """The runtime for a ``with`` block. Entering it reads the end of the session, no more.

        Raises ``SessionError`` at entering when the session cannot be opened, ``SessionBusyError`` when
        another process writes it and it is not to be shown read-only. Leaving stops everything, stores what
        is there and gives the file back.
        """
        return _Opening(options)

    @property
    def options(self) -> RuntimeOptions:
        """What it was opened with."""
        return self._options

    @property
    def outcome(self) -> Outcome:
        """How the last turn ended, for an exit code."""
        desk = self._stage.desk
        return Outcome() if desk is None else desk.outcome()

    @property
    def rescue_files(self) -> tuple[Path, ...]:
        """Where entries went that could not be written to the sessions that were open; all after closing."""
        return tuple(self._stage.rescues)

    @property
    def lost(self) -> str | None:
        """What could be written nowhere, and where it was tried; known after closing."""
        return self._stage.lost

    def begin(self) -> None:
        """Starts loading; again does nothing. ``SessionReady`` follows."""
        if self._begun or self._closed:
            return
        self._begun = True
        self._children.start("loading", self._stage.start())

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
        return self._stage.view(self._early_texts())

    def read_entry(self, entry_id: str) -> Entry:
        """One entry, read from the file when it is not in memory. Raises ``EntryNotFoundError``."""
        return self._stage.read_entry(entry_id)

    def read_start(self, head: EntryHead, size_bytes: int) -> bytes | None:
        """The first bytes of an entry's line in the file; None when ``read_entry`` has to be asked."""
        desk = self._stage.desk
        return None if desk is None else desk.history.bodies.line_start(head, size_bytes)

    def models(self) -> tuple[Model, ...]:
        """Models that can be chosen."""
        desk = self._stage.desk
        return () if desk is None else desk.services.gateway.available()

    def context_messages(self) -> tuple[tuple[str, Message], ...]:
        """What the model would be sent: entry id and converted message."""
        desk = self._stage.desk
        return () if desk is None else desk.services.context_with_ids()

    async def list_sessions(
        self, *, everywhere: bool = False, progress: "Callable[[Batch], None] | None" = None
    ) -> "tuple[SessionInfo, ...]":
        """Stored sessions, newest first: of this folder, or of all. ``progress`` is told each part."""
        from musepi_tui.runtime.stored_sessions import list_stored  # deferred: only when somebody asks

        return await list_stored(self._options, None if everywhere else self._stage.cwd, progress)

    async def enter(self) -> None:
        """Starts the intent loop; called by ``open``."""
        await self._group.__aenter__()
        self._children.start("intents", self._serve())

    async def close(self) -> None:
        """Stops everything, stores what is there, gives the file back; called at the end of ``open``."""
        if self._closed:
            return
        self._stage.set_phase(Phase.CLOSING)
        self._closed = True
        await self._children.stop(CLOSE_WITHIN_S)
        await self._stage.close()
        self._bus.close()
        await self._group.__aexit__(None, None, None)

    def _early_texts(self) -> tuple[str, ...]:
        return tuple(prompt.text for _, prompt in self._early)

    def _take_early(self) -> None:
        """Hands over the prompts that were sent while there was no session to send them to."""
        early, self._early = self._early, []
        for intent_id, prompt in early:
            self._take(prompt, self._settling(intent_id), intent_id)

    async def _serve(self) -> None:
        while True:
            intent_id, intent = await self._intents.get()
            settle = self._settling(intent_id)
            take = partial(self._take, intent, settle, intent_id)
            if not self._children.call(type(intent).__name__, take):
                settle(STOPPED_UNEXPECTEDLY)

    def _take(self, intent: Intent, settle: Settle, intent_id: str) -> None:
        if self._stage.phase is Phase.LOADING:
            if isinstance(intent, SubmitPrompt):
                self._early.append((intent_id, intent))
                self._bus.emit(QueueChanged(self._early_texts(), ()))
            elif isinstance(intent, EditorChanged) and self._stage.desk is not None:
                self._stage.desk.post.idle.note_editor(empty=intent.empty)
                settle(None)
            else:
                settle(STILL_LOADING)
            return
        if self._exchange is None:
            from musepi_tui.runtime.exchange import Exchange  # deferred: see TYPE_CHECKING above

            self._exchange = Exchange(self._options, self._stage, self._children)
        self._exchange.take(intent, settle)

    def _settling(self, intent_id: str) -> Settle:
        settled = False

        def settle(error: str | None, data: Mapping[str, Any] | None = None) -> None:
            nonlocal settled
            if not settled:
                settled = True
                self._bus.emit(IntentSettled(intent_id, error is None, data, error))

        return settle


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
