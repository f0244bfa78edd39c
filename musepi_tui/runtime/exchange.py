"""Intents that put another session in place of the open one, or concern a session that is not open."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from musepi_tui.base.errors import MusepiError, SessionBusyError, SessionError
from musepi_tui.extensions.points import BeforeSwitch
from musepi_tui.runtime.desk import Desk
from musepi_tui.runtime.events import Phase
from musepi_tui.runtime.intents import (
    Cancel,
    CloneSession,
    DeleteSession,
    ForkSession,
    Handoff,
    Intent,
    MoveSession,
    NewSession,
    OpenSession,
    WaitForSession,
)
from musepi_tui.runtime.options import RuntimeOptions
from musepi_tui.runtime.settling import BUSY, Settle, settle_with
from musepi_tui.runtime.stage import Stage
from musepi_tui.runtime.switching import (
    Prepare,
    fork_reason,
    prepare_clone,
    prepare_fork,
    prepare_move,
    prepare_new,
    prepare_path,
    prepare_reopening,
    saved_path,
)
from musepi_tui.runtime.tasks import Children, cancel_once
from musepi_tui.storage.lock import WriterLock
from musepi_tui.storage.paths import expand_home, resolve_path
from musepi_tui.storage.trash import DeleteOutcome, delete_session

POLL_S = 1.0
"""Seconds between two looks at a lock somebody else has: a second is not felt as a wait, more would be."""


class Exchange:
    """Decides which sessions come and go; everything else goes to the desk of the open one."""

    def __init__(self, options: RuntimeOptions, stage: Stage, children: Children) -> None:
        self._options = options
        self._stage = stage
        self._children = children
        self._waiting: asyncio.Task[None] | None = None

    def take(self, intent: Intent, settle: Settle) -> None:
        """Carries an intent out, or starts what takes longer. Never waits."""
        desk = self._stage.desk
        match intent:
            case NewSession() | OpenSession():
                self._leave(desk, intent, settle)
            case DeleteSession():
                settle_with(self._children.start("deleting", self._delete(intent, settle)), settle)
            case ForkSession() | CloneSession() | MoveSession() | WaitForSession():
                self._change(desk, intent, settle)
            case Handoff(focus):
                self._hand_off(desk, focus, settle)
            case _:
                if isinstance(intent, Cancel) and self._stop_waiting():
                    settle(None, {"cancelled": "waiting"})
                elif desk is None:
                    settle(self._stage.failure)
                else:
                    desk.take(intent, settle)

    def _leave(self, desk: Desk | None, intent: NewSession | OpenSession, settle: Settle) -> None:
        """Another session, whatever became of the open one."""
        if desk is not None and desk.worker.busy:
            settle(BUSY)
        elif isinstance(intent, NewSession):
            asked = BeforeSwitch("new", None)
            self._switch(partial(prepare_new, self._options, self._stage.cwd), settle, asked)
        elif desk is not None and intent.how == "there" and _is_open(desk, Path(intent.path)):
            self._stage.show_again()
            settle(None)
        else:
            asked = BeforeSwitch("resume", intent.path)
            self._switch(partial(prepare_path, intent, self._options), settle, asked)

    def _change(
        self,
        desk: Desk | None,
        intent: ForkSession | CloneSession | MoveSession | WaitForSession,
        settle: Settle,
    ) -> None:
        """Another session made from the open one."""
        if desk is None:
            settle(self._stage.failure)
        elif desk.worker.busy:
            settle(BUSY)
        elif isinstance(intent, WaitForSession):
            self._begin_waiting(desk, settle)
        elif isinstance(intent, MoveSession):
            self._move(desk, intent, settle)
        else:
            self._copy(desk, intent, settle)

    def _hand_off(self, desk: Desk | None, focus: str | None, settle: Settle) -> None:
        """Another session that begins with a document about the open one. One that is only read may have gone
        on elsewhere: its document would be about the past."""
        if desk is None:
            settle(self._stage.failure)
        elif desk.read_only is not None:
            settle(desk.read_only.reason)
        else:
            desk.worker.hand_off(focus, settle)

    def _copy(self, desk: Desk, intent: ForkSession | CloneSession, settle: Settle) -> None:
        history, cwd = desk.history, desk.workplace.cwd
        if isinstance(intent, CloneSession):
            prepare = partial(prepare_clone, history, cwd, self._options)
            asked = BeforeSwitch("clone", None)
        else:
            prepare = partial(prepare_fork, history, intent.entry_id, cwd, self._options)
            asked = BeforeSwitch(fork_reason(history, intent.entry_id), None)
        self._begin("copying", partial(self._copy_saved, desk, prepare, settle, asked), settle)

    async def _copy_saved(self, desk: Desk, prepare: Prepare, settle: Settle, asked: BeforeSwitch) -> None:
        await desk.save_all()
        await self._stage.switch(prepare, settle, asked)

    def _move(self, desk: Desk, intent: MoveSession, settle: Settle) -> None:
        try:
            folder = resolve_path(desk.workplace.cwd / expand_home(intent.folder))
        except SessionError as error:
            settle(str(error))
            return
        if desk.read_only is not None:
            settle(desk.read_only.reason)
        elif not folder.is_dir():
            settle(f"{folder}: there is no such folder")
        elif folder == desk.workplace.cwd.resolve():
            settle(None)
        elif desk.history.is_empty and desk.history.saver.unsaved == 0:
            self._switch(partial(prepare_new, self._options, folder), settle)
        else:
            self._begin("moving", partial(self._move_file, desk, folder, settle), settle)

    async def _move_file(self, desk: Desk, folder: Path, settle: Settle) -> None:
        await desk.save_all()
        try:
            path = saved_path(desk.history)
        except MusepiError as error:
            settle(str(error))
            self._stage.release()
            return
        move = partial(prepare_move, path, folder, self._options)
        await self._stage.switch_file(move, partial(prepare_reopening, path, self._options), settle)

    def _switch(self, prepare: Prepare, settle: Settle, asked: BeforeSwitch | None = None) -> None:
        self._begin("switching", partial(self._stage.switch, prepare, settle, asked), settle)

    def _begin(self, name: str, work: Callable[[], Awaitable[object]], settle: Settle) -> None:
        """Starts what puts another session here. The stage is held from this moment on, not only once
        ``work`` runs: what is sent right behind the intent is for that session."""
        self._stop_waiting()
        self._stage.hold()
        settle_with(self._children.start(name, self._work_held(work)), settle)

    async def _work_held(self, work: Callable[[], Awaitable[object]]) -> None:
        """Does the work; should it fail unexpectedly, what was sent meanwhile is not held for ever."""
        is_done = False
        try:
            await work()
            is_done = True
        finally:
            if not is_done and self._stage.phase is Phase.LOADING:
                self._stage.release()

    def _begin_waiting(self, desk: Desk, settle: Settle) -> None:
        if desk.read_only is None:
            settle(None)
        elif not desk.read_only.can_wait:
            settle(desk.read_only.reason)
        else:
            self._stop_waiting()
            self._waiting = self._children.start("waiting for the session", self._wait(settle))
            settle_with(self._waiting, settle)

    def _stop_waiting(self) -> bool:
        """Whether somebody waited."""
        waiting, self._waiting = self._waiting, None
        return waiting is not None and cancel_once(waiting)

    async def _wait(self, settle: Settle) -> None:
        """Opens the session for writing once its lock is free."""
        path = self._stage.opened.path
        try:
            while path is not None:
                if await asyncio.to_thread(_is_free, path):
                    break
                await self._options.clock.sleep(POLL_S)
        except asyncio.CancelledError:
            settle(None, {"cancelled": True})
            raise
        except MusepiError as error:
            settle(str(error))
            return
        if path is not None:
            self._waiting = None  # from here on it is a switch like any other
            await self._stage.switch(partial(prepare_reopening, path, self._options), settle)

    async def _delete(self, intent: DeleteSession, settle: Settle) -> None:
        path, desk = Path(intent.path), self._stage.desk
        if desk is not None and _is_open(desk, path):
            settle("this session is open here; go to another one first")
            return
        remove: Callable[[], DeleteOutcome] = partial(
            delete_session, path, self._options.paths, permanently=intent.permanently
        )
        try:
            outcome = await asyncio.to_thread(remove)
        except MusepiError as error:
            settle(str(error))
            return
        if outcome.done:
            settle(None, {"left": [str(left) for left in outcome.left]})
        else:
            settle(f"{path} could not be moved to the trash: {outcome.reason}")


def _is_open(desk: Desk, path: Path) -> bool:
    own = desk.history.saver.path
    try:
        return own is not None and resolve_path(path) == resolve_path(own)
    except SessionError:
        return False  # whoever opens it will be told


def _is_free(path: Path) -> bool:
    """Whether nobody writes the session now. Raises ``SessionError`` when no lock can be made at all."""
    lock = WriterLock(resolve_path(path))
    try:
        lock.acquire()
    except SessionBusyError:
        return False
    finally:
        lock.release()
    return True
