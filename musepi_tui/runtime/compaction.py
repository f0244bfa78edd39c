"""One compaction: prepare, produce, commit (compaction 4, 6, 11, 12.4; architecture 5)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from musepi_tui.base.errors import (
    CompactionStoppedError,
    MaintenanceError,
    MusepiError,
    NothingToCompactError,
    SessionError,
    SummaryRejectedError,
)
from musepi_tui.context.elide import artifact_text
from musepi_tui.context.estimate import stored_estimate
from musepi_tui.context.fileops import delta_details, render_files, upsert_files
from musepi_tui.context.merge import check_summary_size, inherited_data, validate_summary
from musepi_tui.context.prepare import Preparation, PrepareOptions, has_new_messages, prepare_compaction
from musepi_tui.context.request import pending_request, upsert_request, with_request
from musepi_tui.context.threshold import summary_reserve
from musepi_tui.extensions.points import BeforeCompact, CancelSignal, Compacted, Compacting, Hook
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.maintenance.triggers import Reason
from musepi_tui.runtime.candidates import find_chain
from musepi_tui.runtime.edits import CompactionDraft, Edit
from musepi_tui.runtime.events import MaintenanceProgress, MaintenanceResult
from musepi_tui.runtime.hooked import check_supplied, public_preparation
from musepi_tui.runtime.services import Services, llm_templates
from musepi_tui.runtime.staging import SummaryMemory
from musepi_tui.runtime.summarizer import Summary, SummaryOrder, Tools, summarize
from musepi_tui.runtime.summary_call import Progress
from musepi_tui.runtime.summary_requests import Extras
from musepi_tui.runtime.threads import run_stoppable, stopping
from musepi_tui.session.entries import CompactionEntry, ContextEditEntry, Entry
from musepi_tui.session.messages import TextBlock
from musepi_tui.session.rebuild import build_session_context
from musepi_tui.tools.types import ArtifactSink

METHOD = "summary"
METHOD_OF_HOOK = "hook"
"""How the entry says it was made (compaction 1.1)."""


@dataclass(frozen=True, slots=True)
class PassOrder:
    """What is wanted: why, with which focus, and whether a turn is under way. ``by_model``: no
    ``compaction.remoteEndpoint`` is asked."""

    reason: Reason
    focus: str | None = None
    mid_turn: bool = False
    by_model: bool = False


@dataclass(frozen=True, slots=True)
class PassHooks:
    """How a pass reaches the outside: ``tell`` shows a notice, ``seal`` is called right before the commit,
    after which the pass can no longer be cancelled. ``memory`` holds what earlier tries were answered.
    ``prepared`` is called once it is known that there is something to compact, ``committed`` once it is
    stored, whatever becomes of the wait for extensions behind that."""

    tell: Callable[[NoticeText], None]
    seal: Callable[[], None]
    memory: SummaryMemory
    prepared: Callable[[], None]
    committed: Callable[[MaintenanceResult], None]


@dataclass(frozen=True, slots=True)
class _Prepared:
    path: tuple[Entry, ...]
    generation: int
    preparation: Preparation


class CompactionPass:
    """One pass over the history of a session. Until its commit nothing is changed."""

    def __init__(
        self, services: Services, artifacts: ArtifactSink, order: PassOrder, hooks: PassHooks
    ) -> None:
        self._services = services
        self._artifacts = artifacts
        self._order = order
        self._hooks = hooks
        self._started_s = services.clock.monotonic()

    async def run(self) -> None:
        """Does it all. Raises ``NothingToCompactError``, or another ``MusepiError`` when it failed."""
        self._report("prepare")
        prepared = await self._prepare()
        self._hooks.prepared()
        draft = await self._supplied(prepared) or await self._summarised(prepared)
        self._hooks.seal()
        try:
            entry = await self._services.history.commit_compaction(draft)
        except SessionError as error:
            raise MaintenanceError(notices.save_failure(str(error))) from error
        self._hooks.memory.forget_texts()
        self._hooks.committed(
            MaintenanceResult(
                entry_id=entry.id,
                first_kept_entry_id=draft.first_kept_entry_id,
                tokens_before=draft.tokens_before,
                tokens_after=draft.tokens_after or 0,
                duration_ms=draft.duration_ms or 0,
                usage=draft.usage,
            )
        )
        await self._services.extensions.compacted(Compacted(entry, draft.from_extension))

    async def _prepare(self) -> _Prepared:
        services = self._services
        await services.tokens.ready()
        generation = services.history.generation
        path = await services.history.load_live()
        preparation = await prepare(services, path)
        if preparation is None:
            text = notices.TOO_SMALL if has_new_messages(path) else notices.ALREADY_COMPACTED
            raise NothingToCompactError(text)
        return _Prepared(path, generation, preparation)

    async def _supplied(self, prepared: _Prepared) -> CompactionDraft | None:
        """The compaction an extension supplies; None when none does. Raises when one stops it."""
        extensions = self._services.extensions
        if not extensions.listens(Hook.BEFORE_COMPACT):
            return None
        signal = CancelSignal()
        event = BeforeCompact(
            public_preparation(prepared.preparation),
            prepared.path,
            self._order.focus,
            signal,
            self._order.reason.value,
        )
        try:
            answer = await extensions.before_compact(event)
        except asyncio.CancelledError:
            signal.abort()
            raise
        if answer.cancelled:
            raise CompactionStoppedError(f"The extension {answer.by} stopped the compaction.")
        given = answer.compaction
        if given is None:
            return None
        check_supplied(given, prepared.preparation, answer.by)
        after = await asyncio.to_thread(
            self._tokens_after, prepared, given.first_kept_entry_id, given.summary, ()
        )
        return CompactionDraft(
            generation=prepared.generation,
            summary=given.summary,
            first_kept_entry_id=given.first_kept_entry_id,
            tokens_before=given.tokens_before,
            tokens_after=after,
            short_summary=given.short_summary,
            details=given.details,
            preserve_data=given.preserve_data,
            from_extension=True,
            method=METHOD_OF_HOOK,
            reason=self._order.reason.value,
            mid_turn=self._order.mid_turn,
            duration_ms=self._elapsed_ms(),
        )

    async def _summarised(self, prepared: _Prepared) -> CompactionDraft:
        """The compaction a model writes."""
        preparation = prepared.preparation
        extras, hook_data = await self._extras(preparation)
        summary = await self._produce(preparation, extras)
        self._report("write")
        await self._check_size(summary.text)
        request = pending_request(preparation)
        files = render_files(preparation.file_history.ops | preparation.file_ops)
        text = upsert_files(upsert_request(summary.text, request), files)
        validate_summary(text)
        edits = await self._save_elided(preparation)
        first_kept = preparation.first_kept_entry_id
        after = await asyncio.to_thread(self._tokens_after, prepared, first_kept, text, edits)
        previous = preparation.previous
        inherited = inherited_data(None if previous is None else previous.preserve_data)
        return CompactionDraft(
            generation=prepared.generation,
            summary=text,
            first_kept_entry_id=first_kept,
            tokens_before=preparation.tokens_before,
            tokens_after=after,
            details=delta_details(preparation.file_history, preparation.file_ops),
            preserve_data=with_request({**hook_data, **(inherited or {})}, request),
            method=METHOD,
            reason=self._order.reason.value,
            mid_turn=self._order.mid_turn,
            model=summary.model or None,
            duration_ms=self._elapsed_ms(),
            usage=summary.usage,
            edits=edits,
        )

    async def _check_size(self, summary: str) -> None:
        """Raises ``SummaryRejectedError`` for a summary that leaves no room."""
        size = await asyncio.to_thread(self._services.tokens.count, summary)
        try:
            check_summary_size(size, self._services.meter.window)
        except SummaryRejectedError:
            self._hooks.memory.forget_texts()  # another try must not get the same answers from memory
            raise

    async def _extras(self, preparation: Preparation) -> tuple[Extras, dict[str, Any]]:
        """What a person and extensions add to the requests, and the data extensions want stored."""
        extensions, focus = self._services.extensions, self._order.focus
        if not extensions.listens(Hook.COMPACTING):
            return Extras(focus), {}
        messages = (*preparation.history_messages, *preparation.prefix_messages)
        answer = await extensions.compacting(Compacting(self._services.history.header.id, messages))
        return Extras(focus, answer.context, answer.prompt), answer.preserve_data

    async def _produce(self, preparation: Preparation, extras: Extras) -> Summary:
        services = self._services
        settings = services.settings
        compaction = settings.compaction
        chain = find_chain(
            compaction.model,
            compaction.model_context_window,
            settings.model_roles,
            services.gateway,
            None if self._order.by_model else compaction.remote_endpoint,
        )
        if chain.unknown:
            self._hooks.tell(notices.unknown_candidates(chain.unknown))
        order = SummaryOrder(
            preparation,
            chain,
            summary_reserve(services.meter.window, compaction.reserve_tokens),
            extras,
            manual=self._order.reason is Reason.MANUAL,
        )
        tools = Tools(
            services.gateway,
            services.clock,
            services.tokens.count,
            llm_templates(),
            settings.retry,
            self._hooks.tell,
            self._report_summary,
            services.bus.emit,
            self._hooks.memory,
        )
        return await summarize(order, tools)

    async def _save_elided(self, preparation: Preparation) -> tuple[Edit, ...]:
        """The markers of the kept tail, once the texts they replace are safe in an artifact."""
        elisions = preparation.elisions
        if not elisions:
            return ()
        try:
            artifact_id = await asyncio.to_thread(self._artifacts.save, "compaction", artifact_text(elisions))
        except (OSError, MusepiError) as error:
            raise MaintenanceError(notices.save_failure(str(error))) from error
        return tuple(Edit(item.entry_id, (TextBlock(item.marker(artifact_id)),)) for item in elisions)

    def _tokens_after(
        self, prepared: _Prepared, first_kept_entry_id: str, summary: str, edits: Sequence[Edit]
    ) -> int:
        """The stored estimate of the context the commit will leave. Runs in a thread."""
        services = self._services
        after = preview_path(prepared.path, first_kept_entry_id, summary, edits)
        messages = build_session_context(after).messages
        return stored_estimate(messages, services.tokens.estimate, services.tokens.non_message_tokens())

    def _report(self, phase: str, **figures: int) -> None:
        self._services.bus.emit(MaintenanceProgress(phase, elapsed_ms=self._elapsed_ms(), **figures))

    def _report_summary(self, progress: Progress) -> None:
        self._report(
            "window" if progress.is_staged else "summary",
            done=progress.done,
            total=progress.total,
            input_tokens=progress.input_tokens,
            output_tokens=progress.output_tokens,
        )

    def _elapsed_ms(self) -> int:
        return round((self._services.clock.monotonic() - self._started_s) * 1000)


async def prepare(services: Services, path: Sequence[Entry]) -> Preparation | None:
    """The compaction of this path for the current model and settings, worked out in a thread."""
    options, estimate = prepare_options(services), services.tokens.estimate
    return await run_stoppable(lambda check: prepare_compaction(path, options, stopping(estimate, check)))


def prepare_options(services: Services) -> PrepareOptions:
    """The sizes a preparation works with, for the current model and settings."""
    compaction = services.settings.compaction
    window = services.meter.window
    return PrepareOptions(
        keep_recent_tokens=compaction.keep_recent_tokens,
        window=window,
        threshold=services.meter.threshold(),
        other_tokens=services.tokens.non_message_tokens(),
    )


def preview_path(
    path: Sequence[Entry], first_kept_entry_id: str, summary: str, edits: Sequence[Edit]
) -> tuple[Entry, ...]:
    """The path as it will be once the pass is committed; ids of the new entries are made up."""
    base: dict[str, Any] = {"parent_id": None, "timestamp": ""}
    marks = (
        ContextEditEntry(f"preview-{index}", target_id=edit.target_id, replacement=edit.replacement, **base)
        for index, edit in enumerate(edits)
    )
    divider = CompactionEntry("preview", summary=summary, first_kept_entry_id=first_kept_entry_id, **base)
    return (*path, *marks, divider)
