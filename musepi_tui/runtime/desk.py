"""Everything that belongs to the one open session, and the intents that concern it alone."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, assert_never

from musepi_tui.base.clock import iso_time
from musepi_tui.base.errors import EntryNotFoundError, ProviderError, SessionError
from musepi_tui.base.process import end_left_behind
from musepi_tui.providers.types import Model, ThinkingLevel
from musepi_tui.runtime.approvals import Approvals
from musepi_tui.runtime.events import (
    ModeChanged,
    ModelChanged,
    Notice,
    Phase,
    SessionNamed,
    SessionView,
)
from musepi_tui.runtime.history import History
from musepi_tui.runtime.intents import (
    AnswerApproval,
    Cancel,
    Compact,
    CompactIdle,
    ExportSession,
    Flush,
    MoveLeaf,
    NavigateTree,
    RenameSession,
    Retry,
    SelectModel,
    SetLabel,
    SetMode,
    SetName,
    SetThinking,
    Shake,
    SubmitPrompt,
    TakeQueue,
)
from musepi_tui.runtime.naming import PendingName
from musepi_tui.runtime.opening import ReadOnly
from musepi_tui.runtime.outcome import Outcome
from musepi_tui.runtime.post import Post
from musepi_tui.runtime.queue import MessageQueue, QueuedMessage
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.settling import Settle, settle_with
from musepi_tui.runtime.tasks import MAINTENANCE_KINDS, CancelKind
from musepi_tui.runtime.upkeep import MaintenanceIntent, Upkeep
from musepi_tui.runtime.worker import Worker
from musepi_tui.runtime.workplace import Workplace
from musepi_tui.session.entries import LoadIssue
from musepi_tui.session.places import place_of
from musepi_tui.session.totals import Totals
from musepi_tui.storage.titles import clean_title

LEAVE_WITHIN_S = 1.5
"""Seconds for what is not worth waiting for: everything is stored by then."""
_LOG = logging.getLogger("musepi.runtime")
MODES = ("ask", "auto-edit", "yolo")

Choice: TypeAlias = SelectModel | SetThinking | SetMode | SetName | SetLabel
"""Intents that are done at once."""

SessionIntent: TypeAlias = (
    SubmitPrompt
    | Cancel
    | AnswerApproval
    | TakeQueue
    | Flush
    | ExportSession
    | RenameSession
    | Choice
    | MaintenanceIntent
)

CHANGING = (
    SubmitPrompt,
    Compact,
    CompactIdle,
    Shake,
    MoveLeaf,
    NavigateTree,
    Retry,
    SelectModel,
    SetThinking,
    SetName,
    SetLabel,
)
"""Intents that would write to the session."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts that work for one session. ``notices`` were found while loading and are told once.

    ``read_totals`` reads a whole stored file; None for a new session. ``read_only`` says why nothing may be
    changed. ``scratch`` is a folder that goes with the session: the artifacts of one without a file.
    """

    services: Services
    queue: MessageQueue
    approvals: Approvals
    workplace: Workplace
    worker: Worker
    upkeep: Upkeep
    naming: PendingName
    post: Post
    issues: tuple[LoadIssue, ...] = ()
    notices: tuple[Notice, ...] = ()
    read_totals: Callable[[], Totals] | None = None
    read_only: ReadOnly | None = None
    scratch: Path | None = None

    @property
    def history(self) -> History:
        """Tree, messages and file."""
        return self.services.history

    def take(self, intent: SessionIntent, settle: Settle) -> None:
        """Carries an intent out, or starts what takes longer. Never waits."""
        if self.read_only is not None and isinstance(intent, CHANGING):
            settle(self.read_only.reason)
            return
        match intent:
            case SubmitPrompt():
                self._submit(intent, settle)
            case Cancel(only_maintenance):
                kinds = MAINTENANCE_KINDS if only_maintenance else tuple(CancelKind)
                cancelled = self.services.cancels.cancel_first(kinds)
                settle(None, {"cancelled": None if cancelled is None else cancelled.name.lower()})
            case AnswerApproval(request_id, decision, feedback):
                settle(self.approvals.answer(request_id, decision, feedback))
            case TakeQueue():
                taken = self.queue.take_all()
                settle(None, {"text": "\n\n".join(message.text for message in taken)})
            case Flush() | ExportSession() | RenameSession():
                self._work_on_files(intent, settle)
            case SelectModel() | SetThinking() | SetMode() | SetName() | SetLabel():
                self._choose(intent, settle)
            case _:
                self.upkeep.take(intent, settle)

    def _work_on_files(self, intent: Flush | ExportSession | RenameSession, settle: Settle) -> None:
        start = self.services.children.start
        match intent:
            case Flush():
                task = start("flush", self._flush(settle))
            case ExportSession():
                task = start("export", self._export(intent, settle))
            case RenameSession():
                task = start("renaming", self._rename(intent, settle))
            case _:
                assert_never(intent)
        settle_with(task, settle)

    def _choose(self, choice: Choice, settle: Settle) -> None:
        match choice:
            case SelectModel(provider, model_id):
                self._select_model(provider, model_id, settle)
            case SetThinking(level):
                self._set_thinking(level, settle)
            case SetMode(mode):
                self._set_mode(mode, settle)
            case SetName(name):
                self.set_name(name)
                settle(None, {"name": self.history.name})
            case SetLabel(label, entry_id):
                self._set_label(label, entry_id, settle)
            case _:
                assert_never(choice)

    def view(self, phase: Phase) -> SessionView:
        """The session as it is now."""
        history, gateway = self.history, self.services.gateway
        return SessionView(
            header=history.header,
            file=history.saver.path,
            tree=history.tree,
            phase=phase,
            meter=self.services.meter.meter,
            model=gateway.model,
            thinking_level=gateway.thinking.value,
            mode=self.workplace.mode,
            name=history.name,
            steering=self.queue.texts("steer"),
            follow_up=self.queue.texts("follow_up"),
            issues=self.issues,
            unsaved=history.saver.unsaved,
            read_only=self.read_only is not None,
            read_only_cause=self.read_only.cause if self.read_only else None,
            can_wait=self.read_only is not None and self.read_only.can_wait,
            turn_open=self.worker.turn_open,
            compacting=phase is Phase.MAINTAINING,
            cwd=self.workplace.cwd,
        )

    def outcome(self) -> Outcome:
        """How the last turn ended."""
        turn = self.worker.last
        if turn is None:
            return Outcome(withheld=self.approvals.withheld)
        return Outcome(turn.stop, self.approvals.withheld, turn.message, turn.error)

    async def prepare(self) -> None:
        """Does what the first frame did not need: tools, prompt, totals of a stored session."""
        await self.workplace.prepare()
        if self.read_totals is not None:
            self.history.set_totals(await asyncio.to_thread(self.read_totals))
        meter = self.services.meter
        measured = meter.measure()
        if self.history.messages and not (meter.is_exact_enough(measured) or measured.billed):
            # The gauge of a resumed session shows what it showed before; an empty one needs no tokenizer.
            await self.services.tokens.ready()
        meter.refresh(only_changes=True)

    async def finish(self) -> Path | None:
        """Stores what is there. Returns where the rescue file is, if one was needed.

        Raises ``SessionError`` when not even that could be written; the session is as it was then.
        """
        return await self.history.saver.finish(self.history.header.id)

    async def close(self) -> None:
        """Gives the file back; what ``finish`` did not store is gone with the desk. Nothing begins here by
        itself any more."""
        self.post.idle.stop()
        self.history.saver.close()
        self.history.close()
        if self.scratch is not None:
            await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)

    async def leave(self) -> None:
        """Ends what outlives sessions: commands left running, connections, what a provider made."""
        try:
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await end_left_behind()
                await self.services.gateway.close()
        except TimeoutError:
            _LOG.warning("not everything ended within %s s at closing", LEAVE_WITHIN_S)

    def set_name(self, name: str) -> None:
        """Names the session; an empty text takes the name away. Stored with the first message where there is
        none yet."""
        history, cleaned = self.history, clean_title(name)
        if history.is_empty:
            history.name = self.naming.text = cleaned or None
        else:
            history.set_name(cleaned)
        self.services.bus.emit(SessionNamed(history.name))

    async def save_all(self) -> int:
        """Writes what is in memory only; how many entries still are afterwards. A notice says why."""
        saver = self.history.saver
        if not saver.flush():
            with contextlib.suppress(SessionError):
                await saver.make_ready()
        return saver.unsaved

    async def _flush(self, settle: Settle) -> None:
        settle(None, {"unsaved": await self.save_all()})

    async def _export(self, intent: ExportSession, settle: Settle) -> None:
        from musepi_tui.runtime.exporting import OpenSessionExport  # deferred: only when somebody asks

        work = OpenSessionExport(self.history, self.services.gateway.registry, self.workplace.cwd)
        notice = await work.run(intent, settle)
        if notice is not None:
            self.services.bus.emit(notice)

    async def _rename(self, intent: RenameSession, settle: Settle) -> None:
        from musepi_tui.runtime.stored_sessions import rename_stored  # deferred: only when somebody asks

        now, own = iso_time(self.services.clock.now_ms()), self.history.saver.path
        try:
            name = await asyncio.to_thread(rename_stored, Path(intent.path), intent.name, now, own)
        except SessionError as error:
            settle(str(error))
        else:
            settle(None, {"name": name})

    def _submit(self, intent: SubmitPrompt, settle: Settle) -> None:
        if not intent.text.strip() and not intent.images:
            settle("The message is empty.")
            return
        self.worker.submit(QueuedMessage(intent.text, intent.images), intent.delivery, settle)

    def _set_label(self, label: str, entry_id: str | None, settle: Settle) -> None:
        target = place_of(self.history.tree) if entry_id is None else entry_id
        if target is None:
            settle("There is no entry to label yet.")
            return
        try:
            self.history.append_label(target, label.strip() or None)
        except EntryNotFoundError as error:
            settle(str(error))
        else:
            settle(None, {"entryId": target})

    def _select_model(self, provider: str, model_id: str, settle: Settle) -> None:
        services = self.services
        try:
            model = services.gateway.registry.find(provider or None, model_id)
        except ProviderError as error:
            settle(str(error))
            return
        services.gateway.choose(model, services.gateway.wanted_thinking)
        self._note_choice(model)
        settle(None)

    def _set_thinking(self, level: str, settle: Settle) -> None:
        if level not in {member.value for member in ThinkingLevel}:
            levels = ", ".join(member.value for member in ThinkingLevel)
            settle(f'There is no thinking level "{level}"; the levels are {levels}.')
            return
        gateway = self.services.gateway
        gateway.choose(gateway.model, ThinkingLevel(level))
        self._note_choice(gateway.model)
        settle(None)

    def _note_choice(self, model: Model | None) -> None:
        """Stores the choice when the file exists already; else it is stored with the first message."""
        if not self.history.is_empty:
            self.history.append_opening()
        self.services.bus.emit(ModelChanged(model, self.services.gateway.thinking.value))
        self.services.meter.refresh()

    def _set_mode(self, mode: str, settle: Settle) -> None:
        if mode not in MODES:
            settle(f'There is no approval mode "{mode}"; the modes are {", ".join(MODES)}.')
            return
        self.workplace.mode = mode
        self.services.bus.emit(ModeChanged(mode))
        settle(None)
