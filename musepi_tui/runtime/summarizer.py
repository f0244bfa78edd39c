"""Asks models for the summaries a compaction needs: who is asked, in how many requests, what follows a
failure (compaction 6.4, 6.6, 6.7)."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from musepi_tui.base.clock import Clock
from musepi_tui.base.errors import MaintenanceError, MusepiError, ProviderError
from musepi_tui.base.text import group_digits
from musepi_tui.base.types import Tokenizer
from musepi_tui.context.llm import LlmTemplates
from musepi_tui.context.merge import NO_PRIOR_HISTORY, merge_split_turn
from musepi_tui.context.prepare import Preparation
from musepi_tui.context.request import upsert_request
from musepi_tui.context.stages import Way, find_way, plan_segments, segment_budget
from musepi_tui.maintenance import notices
from musepi_tui.maintenance.notices import NoticeText
from musepi_tui.runtime.candidates import (
    Candidate,
    Chain,
    NextAction,
    Wait,
    after_failure,
    is_harmony,
    next_action,
)
from musepi_tui.runtime.events import Event
from musepi_tui.runtime.gateway import ModelGateway
from musepi_tui.runtime.staging import Ask, Gate, Staged, SummaryMemory, summarize_in_stages
from musepi_tui.runtime.summary_call import Caller, Progress, Tally
from musepi_tui.runtime.summary_requests import Extras, Piece, PieceMaker
from musepi_tui.runtime.summary_retries import SummaryRetries
from musepi_tui.runtime.threads import run_stoppable, stopping
from musepi_tui.session.messages import Message, Usage
from musepi_tui.settings.schema import RetrySettings


@dataclass(frozen=True, slots=True)
class SummaryOrder:
    """What is wanted. Output limits are shares of ``reserve_tokens``; ``manual``: somebody asked for it."""

    preparation: Preparation
    chain: Chain
    reserve_tokens: int
    extras: Extras = Extras()
    manual: bool = False


@dataclass(frozen=True, slots=True)
class BranchOrder:
    """A summary of a branch that is left is wanted, made from these messages. ``instructions`` of the person
    replace the prompt for it."""

    messages: tuple[Message, ...]
    chain: Chain
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The finished text, who wrote it (``provider/id``), what all requests cost together, and in how many
    rounds of requests it was made."""

    text: str
    model: str
    usage: Usage | None
    stages: int = 1


@dataclass(frozen=True, slots=True)
class Tools:
    """What a summarizer works with. ``tell`` shows a notice, ``report`` the progress, ``emit`` an event.

    ``memory`` lives as long as the session.
    """

    gateway: ModelGateway
    clock: Clock
    count: Tokenizer
    templates: LlmTemplates
    retry: RetrySettings
    tell: Callable[[NoticeText], None]
    report: Callable[[Progress], None]
    emit: Callable[[Event], None]
    memory: SummaryMemory = field(default_factory=SummaryMemory)


async def summarize(order: SummaryOrder, tools: Tools) -> Summary:
    """The summary of a preparation: history and turn prefix are asked for side by side, then merged.

    Raises ``ProviderError`` or ``MaintenanceError`` when no candidate could write it.
    """
    harmony = any(is_harmony(candidate.model) for candidate in order.chain.candidates)
    maker = PieceMaker(tools.count, tools.templates, order.reserve_tokens, order.extras, harmony)
    pieces = await run_stoppable(
        lambda check: replace(maker, count=stopping(maker.count, check)).pieces(order.preparation)
    )
    work = _Work(order.chain, pieces, tools, manual=order.manual)
    if pieces:
        await work.ask_chain()
    previous = order.preparation.previous_summary
    history = work.texts.get("history") or (previous and upsert_request(previous, None)) or NO_PRIOR_HISTORY
    return work.finished(merge_split_turn(history, work.texts.get("prefix")))


async def summarize_branch(order: BranchOrder, tools: Tools) -> Summary:
    """What a model makes of a branch that is left (compaction 10.2).

    Somebody asked for it: a failure is shown at once. Raises ``ProviderError`` or ``MaintenanceError``.
    """
    harmony = any(is_harmony(candidate.model) for candidate in order.chain.candidates)
    maker = PieceMaker(tools.count, tools.templates, 0, Extras(), harmony)
    piece = await run_stoppable(
        lambda check: replace(maker, count=stopping(maker.count, check)).branch(
            order.messages, order.instructions
        )
    )
    work = _Work(order.chain, [piece], tools, manual=True)
    await work.ask_chain()
    return work.finished(work.texts[piece.name])


def way_for(candidate: Candidate, piece: Piece, memory: SummaryMemory) -> Way | None:
    """How this candidate can be asked for a piece; None when its window holds not even a part of it."""
    prefers_stages = candidate.name in memory.staged_models
    size = piece.size_for(candidate.model.max_tokens)
    return find_way(piece.messages, size, candidate.window, prefers_stages=prefers_stages)


def _has_segments(candidate: Candidate, piece: Piece) -> bool:
    return len(plan_segments(piece.messages, segment_budget(candidate.window))) > 1


class _Work:
    """The pieces of one summary on their way; what was answered is not asked for again."""

    def __init__(self, chain: Chain, pieces: Sequence[Piece], tools: Tools, *, manual: bool) -> None:
        self.texts: dict[str, str] = {}
        self.model = ""
        self.stages_of: dict[str, int] = {}
        self.tally = Tally(tools.clock, tools.report)
        self._chain = chain
        self._manual = manual
        self._pieces = tuple(pieces)
        self._tools = tools
        self._timed_out: set[tuple[str, str]] = set()

    async def ask_chain(self) -> None:
        """Asks one candidate after the other until nothing is missing."""
        waiting = self._usable(self._chain.candidates)
        self.tally.begin([piece.name for piece in self._pieces], 1)
        tools = self._tools
        with SummaryRetries(tools.clock, tools.emit, tools.retry.max_retries) as retries:
            while True:
                candidate, *rest = waiting
                error = await self._ask_missing(candidate)
                retries.ended(error)
                if error is None:
                    return
                action = self._after(candidate, error, rest, retries.attempt)
                if action is None:
                    raise error
                if isinstance(action, Wait):
                    await retries.wait(action.delay_s, error)
                else:
                    waiting = action.candidates
                    retries.start_over()
                    tools.tell(notices.next_candidate(candidate.name, waiting[0].name, str(error)))

    def finished(self, text: str) -> Summary:
        """The summary with this text, once nothing is missing."""
        for name, stages in self.stages_of.items():
            self._tools.memory.note_stages(name, stages)
        return Summary(text, self.model, self.tally.usage, max(self.stages_of.values(), default=1))

    @property
    def _missing(self) -> tuple[Piece, ...]:
        return tuple(piece for piece in self._pieces if piece.name not in self.texts)

    def _after(
        self, candidate: Candidate, error: MusepiError, rest: Sequence[Candidate], attempt: int
    ) -> NextAction:
        following = after_failure(candidate, error, rest)
        return next_action(error, attempt, following, self._tools.retry, manual=self._manual)

    def _usable(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The candidates whose window holds every request. Raises when there is none."""
        if not candidates:
            raise MaintenanceError(notices.NO_MODEL)
        usable = tuple(each for each in candidates if all(self._way(each, piece) for piece in self._missing))
        if not usable:
            window = max(candidate.window or 0 for candidate in candidates)
            largest = max(piece.input_tokens for piece in self._missing)
            raise MaintenanceError(
                f"The history to summarise takes {group_digits(largest)} tokens, and a part of it is too "
                f"large for the largest window of {group_digits(window)}. "
                "Set compaction.model to a model with a larger one."
            )
        return usable

    def _way(self, candidate: Candidate, piece: Piece) -> Way | None:
        return way_for(candidate, piece, self._tools.memory)

    async def _ask_missing(self, candidate: Candidate) -> MusepiError | None:
        """Asks for everything missing side by side; the first failure, when there was one."""
        try:
            if candidate.endpoint is None:
                await self._tools.gateway.prepare(candidate.model)
        except ProviderError as error:
            return error
        gate = Gate()
        requests = [self._ask(candidate, piece, gate) for piece in self._missing]
        results = await asyncio.gather(*requests, return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, MusepiError):
                raise failure
        return next((failure for failure in failures if isinstance(failure, MusepiError)), None)

    async def _ask(self, candidate: Candidate, piece: Piece, gate: Gate) -> None:
        """One piece from one candidate. What fails keeps the other piece from asking for more."""
        try:
            done = await self._answer(candidate, piece, gate)
        except MusepiError as error:
            gate.close(error)
            raise
        self.texts[piece.name] = done.text
        self.model = candidate.name
        self.stages_of[candidate.name] = max(done.stages, self.stages_of.get(candidate.name, 1))

    async def _answer(self, candidate: Candidate, piece: Piece, gate: Gate) -> Staged:
        """In one request or in several; one that took too long is taken apart, once."""
        way = self._way(candidate, piece)
        if way is Way.STAGED or (candidate.name, piece.name) in self._timed_out:
            return await self._staged(candidate, piece, gate)
        try:
            self.tally.asked(piece.input_tokens)
            ask = gate.passing(self._asking(candidate, piece))
            return Staged(await ask(piece.prompt, piece.limit_tokens), 1)
        except ProviderError as error:
            if error.cause != "timeout" or not _has_segments(candidate, piece):
                raise
        self._timed_out.add((candidate.name, piece.name))
        return await self._staged(candidate, piece, gate)

    async def _staged(self, candidate: Candidate, piece: Piece, gate: Gate) -> Staged:
        self.tally.is_staged = True
        self.tally.begin([piece.name], 0)
        self.tally.asked(piece.input_tokens)
        ask = gate.closing(self._asking(candidate, piece))
        expect = partial(self.tally.expect, piece.name)
        return await summarize_in_stages(piece, candidate.window, ask, self._tools.count, expect)

    def _asking(self, candidate: Candidate, piece: Piece) -> Ask:
        """Asks the candidate for what it was not asked for yet."""
        tools = self._tools
        caller = Caller(candidate, tools.gateway, tools.clock, self.tally)
        remembering = tools.memory.remembering(candidate.name, caller.ask)

        async def ask(prompt: str, limit_tokens: int) -> str:
            text = await remembering(prompt, limit_tokens)
            self.tally.answered(piece.name)
            return text

        return ask
