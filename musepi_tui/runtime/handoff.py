"""Going on in a new session that begins with a document about this one (compaction 9)."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeGuard

from musepi_tui.base.clock import iso_time
from musepi_tui.base.errors import (
    EmptySummaryError,
    ErrorKind,
    MaintenanceError,
    MusepiError,
    NothingToCompactError,
    ProviderError,
    SummaryRejectedError,
)
from musepi_tui.base.files import atomic_write, make_private_folder
from musepi_tui.base.ids import new_session_id
from musepi_tui.base.resources import read_prompt, render_prompt
from musepi_tui.context.fileops import (
    FileOps,
    collect_file_ops,
    recorded_file_ops,
    render_files,
    resolve_file_history,
    upsert_files,
)
from musepi_tui.context.merge import LARGEST_SHARE, clean_answer, is_degenerate
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.triggers import Reason
from musepi_tui.providers.types import Model, Request
from musepi_tui.runtime.answers import read_answer
from musepi_tui.runtime.candidates import Wait, next_action
from musepi_tui.runtime.events import MaintenanceProgress, MaintenanceResult, Notice
from musepi_tui.runtime.loop import Briefing
from musepi_tui.runtime.services import Services
from musepi_tui.runtime.summary_call import Progress, Tally
from musepi_tui.runtime.summary_retries import SummaryRetries
from musepi_tui.session.block_codec import encode_usage
from musepi_tui.session.entries import BranchSummaryEntry, CompactionEntry, CustomMessageEntry, Entry
from musepi_tui.session.messages import AssistantMessage, Message, StopReason, TextBlock, UserMessage
from musepi_tui.session.transcript import HANDOFF_TYPE

MINIMUM_MESSAGES = 2
"""Message entries a session needs before there is anything to hand off (compaction 9.1)."""

PIECE = "handoff"
"""What the progress of the request is called."""

_CLOSING_TAG = "</handoff-context>"
_WRAPPER = re.compile(r"\A\s*<handoff-context>(.*)</handoff-context>\s*\Z", re.DOTALL)
_CHOICE = re.compile(r"tool.?choice", re.IGNORECASE)
_TOO_LONG = frozenset({ErrorKind.OVERFLOW, ErrorKind.PAYLOAD})
_LOG = logging.getLogger("musepi.runtime")


@dataclass(frozen=True, slots=True)
class Letter:
    """What the new session begins with. ``details`` are stored with it, ``spent`` (fields of a ``usage``
    entry) in front of it; no model is sent either."""

    content: str
    details: Mapping[str, Any]
    spent: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HandoffDoor:
    """How a session is left for the one that goes on with its work.

    ``briefing`` gives what live requests hold besides messages. ``open_next`` opens the new session, after
    which the old one is closed, and gives what works for it; its second argument is called when it is too
    late for a cancel. ``tell_opened`` tells extensions of it. ``folder`` is where the old session keeps
    documents, None when it keeps nothing.
    """

    briefing: Callable[[], Awaitable[Briefing]]
    open_next: Callable[[Letter, Callable[[], None]], Awaitable[Services]]
    tell_opened: Callable[[Services], Awaitable[None]]
    folder: Path | None


@dataclass(frozen=True, slots=True)
class HandoffOrder:
    """What is wanted: why, and what the document should dwell on.

    ``seal`` ends the time for a cancel. ``opened`` is called once the new session is open, with what works
    for it: whatever becomes of the waits behind that, the handoff was done.
    """

    reason: Reason
    focus: str | None
    seal: Callable[[], None]
    opened: Callable[[MaintenanceResult, Services], None]


@dataclass(frozen=True, slots=True)
class HandedOff:
    """A handoff that was done. ``services`` work for the new session."""

    services: Services
    document: str
    saved_path: Path | None = None

    def data(self) -> dict[str, Any]:
        """What an intent to hand off settles with (contract 3.2)."""
        history = self.services.history
        file = history.saver.path
        data: dict[str, Any] = {
            "document": self.document,
            "sessionFile": None if file is None else str(file),
            "sessionId": history.header.id,
        }
        return data if self.saved_path is None else {**data, "savedPath": str(self.saved_path)}


async def hand_off(services: Services, door: HandoffDoor | None, order: HandoffOrder) -> HandedOff:
    """Goes on in a new session.

    Raises ``NothingToCompactError``, ``EmptySummaryError`` or ``SummaryRejectedError`` when no usable
    document is to be had, and another ``MusepiError`` when it failed.
    """
    if door is None:
        raise MaintenanceError("There is no way to a new session from here.")
    try:
        return await _Handoff(services, door, order).run()
    except MusepiError as error:
        cause = error if isinstance(error, ProviderError) else error.__cause__
        if order.reason is not Reason.MANUAL or not isinstance(cause, ProviderError):
            raise
        raise MaintenanceError(notices.handoff_failed(str(cause))) from cause


class _Handoff:
    """One handoff. Until the new session is opened nothing is changed, and of the old one nothing ever."""

    def __init__(self, services: Services, door: HandoffDoor, order: HandoffOrder) -> None:
        self._services = services
        self._door = door
        self._order = order
        self._clock = services.clock
        self._started_s = services.clock.monotonic()
        self._tally = Tally(services.clock, self._report)

    async def run(self) -> HandedOff:
        """Does it all; errors as of ``hand_off``."""
        services, history = self._services, self._services.history
        if not _has_messages(services):
            raise NothingToCompactError(notices.NOTHING_TO_HAND_OFF)
        tokens_before = services.meter.measure().decision
        generation = history.generation
        text, ops = await self._write(), await self._file_ops()
        document = upsert_files(text, render_files(ops))
        if history.generation != generation:
            raise MaintenanceError(
                "the conversation changed meanwhile, so the document was thrown away; try again."
            )
        model = services.gateway.require_model()
        letter = self._letter(document, ops, model, tokens_before)
        following = await self._door.open_next(letter, self._order.seal)
        self._order.opened(self._result(following, tokens_before), following)
        saved_path = await self._save(document)
        await self._door.tell_opened(following)
        return HandedOff(following, document, saved_path)

    async def _write(self) -> str:
        """The document as the model wrote it, cleaned and checked."""
        services = self._services
        briefing = await self._door.briefing()
        model = services.gateway.require_model()
        await services.gateway.prepare(model)
        message = await self._answer(model, briefing)
        if message.stop_reason is StopReason.LENGTH:
            raise SummaryRejectedError(notices.CUT_OFF_HANDOFF)
        texts = (block.text for block in message.content if isinstance(block, TextBlock))
        return await self._checked(_clean("\n".join(texts)))

    async def _checked(self, document: str) -> str:
        """Raises for a document nothing could go on from."""
        if not document:
            raise EmptySummaryError(notices.EMPTY_HANDOFF)
        if is_degenerate(document):
            raise SummaryRejectedError(notices.LOOPING_HANDOFF)
        size = await asyncio.to_thread(self._services.tokens.count, document)
        window = self._services.meter.window
        if window is not None and size > LARGEST_SHARE * window:
            raise SummaryRejectedError(notices.large_handoff(size, window))
        return document

    async def _answer(self, model: Model, briefing: Briefing) -> AssistantMessage:
        """The answer to the request; failures that pass are waited for as in other automatic passes."""
        services, is_manual = self._services, self._order.reason is Reason.MANUAL
        settings = services.settings.retry
        choice: Literal["none", "auto"] = "none"
        self._tally.begin([PIECE], 1)
        self._tally.asked(services.meter.measure().decision)
        with SummaryRetries(self._clock, services.bus.emit, settings.max_retries) as retries:
            while True:
                try:
                    message = await self._ask(model, self._build_request(briefing, choice))
                except ProviderError as error:
                    if choice == "none" and _wants_auto(error):
                        choice = "auto"
                        continue
                    retries.ended(error)
                    action = next_action(error, retries.attempt, (), settings, manual=is_manual)
                    if not isinstance(action, Wait):
                        raise
                    await retries.wait(action.delay_s, error)
                else:
                    retries.ended(None)
                    return message

    def _build_request(self, briefing: Briefing, choice: Literal["none", "auto"]) -> Request:
        """The live request, byte for byte, and one message more (compaction 9.2): so it is read from the
        cache of the session. It is no part of the conversation, and so has a session id of its own."""
        services = self._services
        prompt = read_prompt("handoff-document")
        if self._order.focus:
            prompt = f"{prompt}\n\nAdditional focus: {self._order.focus}"
        question = UserMessage(prompt, timestamp_ms=self._clock.now_ms())
        live = services.gateway.request(
            briefing.system, (*services.context_messages(), question), tools=briefing.tools
        )
        return replace(live, tool_choice=choice, session_id=new_session_id(), cache_key=live.session_id)

    async def _ask(self, model: Model, request: Request) -> AssistantMessage:
        """The complete answer. Raises ``ProviderError``; a request that is too long raises
        ``SummaryRejectedError``, for another kind of pass may still do."""
        try:
            return await read_answer(self._services.gateway.open(model, request), self._tally.watch)
        except ProviderError as error:
            if error.kind in _TOO_LONG:
                raise SummaryRejectedError(str(error)) from error
            raise

    async def _file_ops(self) -> FileOps:
        """Every file this session and those it goes back to worked on, as far as that is recorded."""
        history = self._services.history
        path = await history.load_live()
        return await asyncio.to_thread(_find_file_ops, path, history.compaction_id, history.messages)

    def _letter(self, document: str, ops: FileOps, model: Model, tokens_before: int) -> Letter:
        """What the new session begins with; it pays for the requests too, for the old one stays as it is."""
        details: dict[str, Any] = {
            "readFiles": list(ops.read_files),
            "modifiedFiles": list(ops.modified_files),
            "model": model.key,
            "tokensBefore": tokens_before,
            "durationMs": self._elapsed_ms(),
        }
        spent, usage = None, self._tally.usage
        if usage is not None:
            made_by = {"kind": HANDOFF_TYPE, "provider": model.provider, "model": model.id}
            spent = {**made_by, "usage": encode_usage(usage)}
        return Letter(render_prompt("handoff-context", document=document), details, spent)

    def _result(self, following: Services, tokens_before: int) -> MaintenanceResult:
        return MaintenanceResult(
            entry_id=following.history.message_entry_ids[-1],
            first_kept_entry_id=None,
            tokens_before=tokens_before,
            tokens_after=following.meter.measure().measured,
            duration_ms=self._elapsed_ms(),
            usage=self._tally.usage,
        )

    async def _save(self, document: str) -> Path | None:
        """The file the document of an automatic handoff was put in beside the old session, where that is
        wanted. That it cannot be written is no reason to undo the handoff."""
        folder = self._door.folder
        wanted = self._services.settings.compaction.handoff_save_to_disk
        if folder is None or not wanted or self._order.reason is Reason.MANUAL:
            return None
        stamp = iso_time(self._clock.now_ms()).replace(":", "-").replace(".", "-")
        path = folder / f"handoff-{stamp}.md"
        try:
            await asyncio.to_thread(_write_document, path, document)
        except OSError as error:
            _LOG.warning("the handoff document could not be saved in %s: %s", path, error)
            return None
        notice = notices.handoff_saved(str(path))
        self._services.bus.emit(Notice(notice.level, notice.text, "compaction"))
        return path

    def _report(self, progress: Progress) -> None:
        event = MaintenanceProgress(
            PIECE,
            input_tokens=progress.input_tokens,
            output_tokens=progress.output_tokens,
            elapsed_ms=self._elapsed_ms(),
        )
        self._services.bus.emit(event)

    def _elapsed_ms(self) -> int:
        return round((self._clock.monotonic() - self._started_s) * 1000)


def _has_messages(services: Services) -> bool:
    tree, found = services.history.tree, 0
    entry_id = tree.leaf_id
    while entry_id is not None and found < MINIMUM_MESSAGES:
        found += tree.head(entry_id).type == "message"
        entry_id = tree.parent(entry_id)
    return found >= MINIMUM_MESSAGES


def _wants_auto(error: ProviderError) -> bool:
    """Whether the server refused the request because it knows no other tool choice than ``auto``."""
    return error.status == 400 and _CHOICE.search(str(error)) is not None


def _clean(text: str) -> str:
    """The document in an answer: without tags around it, and without the tag that will close it."""
    inner = clean_answer(text)
    wrapped = _WRAPPER.match(inner)
    if wrapped is not None:
        inner = wrapped[1].strip()
    return inner.replace(_CLOSING_TAG, _CLOSING_TAG.replace("/", "\\/"))


def _find_file_ops(path: Sequence[Entry], compaction_id: str | None, messages: Sequence[Message]) -> FileOps:
    """The files of the calls in ``messages``, and those that the compaction, handoffs and branch summaries of
    the path recorded. Slow for long paths."""
    compaction = next((each for each in path if each.id == compaction_id), None)
    base = compaction if isinstance(compaction, CompactionEntry) else None
    ops = resolve_file_history(path, base).ops | collect_file_ops(messages)
    for entry in path:
        if _records_files(entry):
            ops |= recorded_file_ops(entry.details)
    return ops


def _records_files(entry: Entry) -> TypeGuard[CustomMessageEntry | BranchSummaryEntry]:
    """Whether it is an earlier handoff or branch summary; the lists of extensions mean nothing here."""
    if isinstance(entry, CustomMessageEntry):
        return entry.custom_type == HANDOFF_TYPE
    return isinstance(entry, BranchSummaryEntry) and not entry.from_extension


def _write_document(path: Path, document: str) -> None:
    make_private_folder(path.parent)
    atomic_write(path, f"{document}\n".encode("utf-8", "surrogatepass"), mode=0o600)
