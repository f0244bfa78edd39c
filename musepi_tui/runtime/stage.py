"""The session that is open, and how another one takes its place."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musepi_tui.base.errors import CompactionStoppedError, EntryNotFoundError, MusepiError, SessionError
from musepi_tui.runtime.bus import EventBus
from musepi_tui.runtime.events import Meter, Notice, Phase, PhaseChanged, Reason, SessionReady, SessionView
from musepi_tui.runtime.opening import Opened
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.settling import LOAD_FAILED, STILL_LOADING, STOPPED_UNEXPECTEDLY, Settle
from musepi_tui.runtime.tasks import CancelStack, Children
from musepi_tui.session.entries import Entry, EntryHead
from musepi_tui.session.tree import SessionTree

if TYPE_CHECKING:
    # The first screen needs none of these; they are imported in a thread while it is shown.
    from musepi_tui.extensions.points import BeforeSwitch
    from musepi_tui.runtime.assembly import Shared
    from musepi_tui.runtime.desk import Desk
    from musepi_tui.runtime.history import History
    from musepi_tui.runtime.services import Services
    from musepi_tui.runtime.switching import Prepare, Prepared


class Stage:
    """Holds the open session and its parts. ``changed`` is called whenever it can be worked with again.

    ``failure`` says why there is no session to work with; ``rescues`` are the files with entries that could
    not be written to the session they belong to, ``lost`` says what could be written nowhere at closing.
    """

    def __init__(self, options: RuntimeOptions, opened: Opened, bus: EventBus, children: Children) -> None:
        self.phase = Phase.LOADING
        self.opened = opened
        self.desk: Desk | None = None
        self.failure: str | None = None
        self.rescues: list[Path] = []
        self.lost: str | None = None
        self.changed: Callable[[], None] = _nothing
        self._options = options
        self._bus = bus
        self._children = children
        self._cancels = CancelStack()
        self._shared: Shared | None = None
        self._told_rescues = 0
        self._handed_off: History | None = None

    @property
    def cwd(self) -> Path:
        """The working folder of the open session."""
        return self._options.cwd if self.desk is None else self.desk.workplace.cwd

    def set_phase(self, phase: Phase) -> None:
        """What is going on from now on; nothing comes after closing."""
        if phase is not self.phase and self.phase is not Phase.CLOSING:
            self.phase = phase
            self._bus.emit(PhaseChanged(phase))

    def hold(self) -> None:
        """Another session is about to be opened: what is sent waits for it, and here nothing begins by
        itself."""
        self.set_phase(Phase.LOADING)
        if self.desk is not None:
            self.desk.post.idle.stop()

    def release(self) -> None:
        """The open session stays."""
        self.set_phase(Phase.IDLE)
        if self.desk is not None:
            self.desk.post.idle.restart()
        self.changed()

    def view(self, steering: tuple[str, ...]) -> SessionView:
        """The session as it is now; ``steering`` waits until it is loaded."""
        if self.desk is not None:
            return self.desk.view(self.phase)
        return _view_of_tail(self.opened, self._options, self.phase, steering)

    def read_entry(self, entry_id: str) -> Entry:
        """One entry of the open session. Raises ``EntryNotFoundError``.

        Of a session that was handed off too: events that name its newest entries may still be on their way.
        """
        if self.desk is None:
            return _find_in_tail(self.opened, entry_id)
        try:
            return self.desk.history.entry(entry_id)
        except EntryNotFoundError:
            if self._handed_off is None:
                raise
            return self._handed_off.entry(entry_id)

    async def start(self) -> None:
        """Loads the session chosen at opening; without it intents are answered with the reason."""
        try:
            shared = await self._share()
            self._shared = shared
            desk = await _build(self.opened, shared, None)
        except MusepiError as error:
            self.fail(str(error))
            return
        except Exception:
            # A bug; the task guard logs it. Whoever waits for the session must still hear that there is none.
            self.fail(LOAD_FAILED)
            raise
        self._enter(desk, self.opened, "start")
        for problem in self._options.settings.problems:
            self._bus.emit(Notice("warning", f"{problem.path}: {problem.message}", "settings"))
        for problem in shared.registry.problems:
            self._bus.emit(Notice("warning", problem, "models"))
        if self._options.name is not None and desk.read_only is None:
            desk.set_name(self._options.name)
        self.changed()

    def fail(self, text: str) -> None:
        """There is no session to work with."""
        self.failure = text
        self.set_phase(Phase.IDLE)
        self._bus.emit(Notice("error", text, "session"))
        self._tell_rescues()
        self.changed()

    async def switch(self, prepare: "Prepare", settle: Settle, asked: "BeforeSwitch | None" = None) -> bool:
        """Another session takes the place of this one, which is stored and given back; whether it did.

        Extensions that are ``asked`` may stop it. Whatever fails, this one stays as it is; also when it has
        entries that can be written nowhere, not even to a rescue file.
        """
        previous = None if self.desk is None else _file_of(self.desk)
        desk = await self._replace(prepare, settle, asked)
        if desk is not None and asked is not None and self._shared is not None:
            await _tell_switched(self._shared, asked.reason, previous, desk)
        return desk is not None

    async def _replace(
        self, prepare: "Prepare", settle: Settle, asked: "BeforeSwitch | None"
    ) -> "Desk | None":
        """The desk of the other session, which can be worked at from now on; None when it is not there."""
        self.hold()
        desk: Desk | None = None
        try:
            if self._shared is None:
                raise SessionError(STILL_LOADING)
            if asked is not None:
                await _ask_extensions(self._shared, asked)
            prepared = await asyncio.to_thread(prepare)
            built = await _build(prepared.opened, self._shared, self.desk)
            await self._give_back_for(built)
        except MusepiError as error:
            settle(str(error))
        else:
            self._take_over(built, prepared)
            settle(None, prepared.data)
            desk = built
        finally:
            settle(STOPPED_UNEXPECTEDLY)
            if desk is None:
                self.release()
            else:
                self.changed()
        return desk

    async def hand_over(self, prepare: "Prepare", seal: Callable[[], None]) -> "Services":
        """A session made from the open one takes its place, and the worker goes on there with all it has to
        do. Gives what works for the new session.

        Extensions may stop it (``CompactionStoppedError``). When it fails this session stays as it is.
        ``seal`` is called when it is too late for a cancel.
        """
        from musepi_tui.extensions.points import BeforeSwitch  # deferred: see TYPE_CHECKING above
        from musepi_tui.runtime.saving import run_through_cancel
        from musepi_tui.runtime.switching import forget_prepared

        old, shared = self.desk, self._shared
        if old is None or shared is None:
            raise SessionError(STILL_LOADING)
        stopped_by = await shared.extensions.before_switch(BeforeSwitch("handoff", None))
        if stopped_by is not None:
            raise CompactionStoppedError(f"The extension {stopped_by} stopped the handoff.")
        seal()
        self.set_phase(Phase.LOADING)
        try:
            # A cancel, which only closing brings here, would leave a file that nobody has entered.
            prepared = await run_through_cancel(prepare)
            try:
                desk = await _build(prepared.opened, shared, old, takes_over=True)
                await self._give_back_for(desk)
            except BaseException:
                forget_prepared(prepared)
                raise
            desk.worker.move_to(desk.post)
            self._take_over(desk, prepared)
            self._handed_off = old.history
        finally:
            self.set_phase(Phase.MAINTAINING)
            self.changed()
        return desk.services

    async def switch_file(self, prepare: "Prepare", restore: "Prepare", settle: Settle) -> None:
        """As ``switch``, for a change of this session's own file, which is given back first.

        When ``prepare`` fails the session is opened again with ``restore``.
        """
        left = self.desk
        if left is None:
            settle(self.failure)
            return
        self.hold()
        try:
            await self._store(left)
        except MusepiError as error:
            settle(str(error))
            self.release()
            return
        await left.close()
        reopened: list[str] = []

        def attempt() -> "Prepared":
            try:
                return prepare()
            except MusepiError as error:
                reopened.append(str(error))
                return restore()

        def settled(error: str | None, data: Mapping[str, Any] | None = None) -> None:
            settle(error or (reopened[0] if reopened else None), data)

        if not await self.switch(attempt, settled):
            left.post.idle.stop()
            self.desk = None
            self.fail(reopened[0] if reopened else LOAD_FAILED)

    def show_again(self) -> None:
        """Tells the open session anew, for who asked for it although it is open."""
        if self.desk is not None:
            self._bus.emit(SessionReady(self.view(()), "resume"))

    async def close(self) -> None:
        """Stores what is there and gives the file back."""
        if self.desk is not None:
            try:
                await self._store(self.desk)
            except SessionError as error:
                self.lost = str(error)
            self._tell_rescues()
            await self.desk.close()
            await self.desk.leave()

    async def _store(self, desk: "Desk") -> None:
        """Stores what a session has in memory only. Raises ``SessionError`` when nothing takes it."""
        rescue = await desk.finish()
        if rescue is not None:
            self.rescues.append(rescue)

    async def _give_back_for(self, new: "Desk") -> None:
        """Stores and gives back the open session, or ``new`` when it cannot be stored: ``SessionError``."""
        if self.desk is None:
            return
        try:
            await self._store(self.desk)
        except BaseException:
            await new.close()
            raise
        await self.desk.close()

    def _tell_rescues(self) -> None:
        """Says where entries went that could not be stored, each file once."""
        untold = self.rescues[self._told_rescues :]
        self._told_rescues = len(self.rescues)
        for path in untold:
            self._bus.emit(Notice("error", f"session: what could not be saved is in {path}", "session"))

    async def _share(self) -> "Shared":
        """What outlives a session. Most of the program is imported here, in a thread."""
        for name in ("assembly", "exchange"):
            await asyncio.to_thread(import_module, f"musepi_tui.runtime.{name}")
        from musepi_tui.runtime import assembly  # deferred: see TYPE_CHECKING above

        registry = await assembly.load_registry(self._options)
        extensions, host = await assembly.load_extensions(
            self._options, self._bus, partial(_call_in, asyncio.get_running_loop())
        )
        return assembly.Shared(
            self._options,
            registry,
            self._bus,
            self._children,
            self._cancels,
            assembly.approvals_for(self._options, self._bus),
            self.set_phase,
            extensions,
            host,
            self.hand_over,
        )

    def _take_over(self, desk: "Desk", prepared: "Prepared") -> None:
        self._enter(desk, prepared.opened, prepared.reason)
        for notice in prepared.notices:
            self._bus.emit(notice)
        self._tell_rescues()

    def _enter(self, desk: "Desk", opened: Opened, reason: Reason) -> None:
        self.opened = opened
        self.desk = desk
        desk.approvals.forget_grants()
        self.failure = self._handed_off = None
        if self._shared is not None:
            services = desk.services
            self._shared.host.serve(
                services.gateway, desk.workplace.cwd, desk.history.header.id, desk.history.saver.path
            )
        # A worker that goes on here is in the middle of its maintenance.
        self.set_phase(Phase.MAINTAINING if desk.worker.busy else Phase.IDLE)
        self._bus.emit(SessionReady(self.view(()), reason))
        for notice in desk.notices:
            self._bus.emit(notice)
        self._children.start("preparation", desk.prepare())
        if self._options.remember is not None and opened.path is not None and desk.read_only is None:
            work = asyncio.to_thread(self._options.remember, opened.path)
            self._children.start("breadcrumb", work)


def _view_of_tail(
    opened: Opened, options: RuntimeOptions, phase: Phase, steering: tuple[str, ...]
) -> SessionView:
    """What is known of a session that is not loaded yet."""
    return SessionView(
        header=opened.header,
        file=opened.path,
        tree=SessionTree.from_heads([_head(entry) for entry in opened.tail]),
        phase=phase,
        meter=Meter(),
        model=None,
        thinking_level="off",
        mode=options.mode or options.settings.values.permissions.mode,
        tail=opened.tail,
        tail_is_whole=opened.tail_is_whole,
        steering=steering,
        issues=opened.issues,
        read_only=opened.read_only is not None,
        read_only_cause=opened.read_only.cause if opened.read_only else None,
        can_wait=opened.read_only is not None and opened.read_only.can_wait,
    )


def _find_in_tail(opened: Opened, entry_id: str) -> Entry:
    found = next((entry for entry in opened.tail if entry.id == entry_id), None)
    if found is None:
        raise EntryNotFoundError(f"Entry {entry_id} not found")
    return found


def _head(entry: Entry) -> EntryHead:
    return EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp)


async def _build(opened: Opened, shared: "Shared", old: "Desk | None", *, takes_over: bool = False) -> "Desk":
    """The desk for a session; ``takes_over``: the worker of the ``old`` one is going to go on there."""
    from musepi_tui.runtime.assembly import build_desk  # deferred: see TYPE_CHECKING above
    from musepi_tui.runtime.sessions import load_wholly

    stored = await asyncio.to_thread(load_wholly, opened, shared.options)
    stored = replace(stored, takes_over=takes_over)
    try:
        desk = build_desk(shared, stored, old)
        await _measure(desk, old)
    except BaseException:
        stored.file.close()
        stored.loaded.bodies.close()
        raise
    return desk


async def _ask_extensions(shared: "Shared", asked: "BeforeSwitch") -> None:
    """Raises ``SessionError`` when an extension stops the switch."""
    stopped_by = await shared.extensions.before_switch(asked)
    if stopped_by is not None:
        raise SessionError(f"The extension {stopped_by} stopped this.")


async def _tell_switched(shared: "Shared", reason: str, previous: str | None, desk: "Desk") -> None:
    """Tells extensions that another session is open."""
    from musepi_tui.extensions.points import Switched  # deferred: see TYPE_CHECKING above

    await shared.extensions.switched(Switched(reason, previous, _file_of(desk)))


async def _measure(desk: "Desk", old: "Desk | None") -> None:
    """Finds out how full the context is, system prompt and tools included. At the start, where there is no
    ``old`` desk, these are looked for later: the first screen does not wait for them."""
    services = desk.services
    if old is not None:
        await desk.workplace.equip()
        if desk.worker is old.worker and old.services.tokens.is_exact:
            # What a handoff freed is a difference of two figures: both are counted alike.
            await services.tokens.ready()
    await asyncio.to_thread(services.meter.measure)  # counts every message once, away from the screen
    services.meter.refresh()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(function)


def _file_of(desk: "Desk") -> str | None:
    path = desk.history.saver.path
    return None if path is None else str(path)


def _nothing() -> None:
    return None
